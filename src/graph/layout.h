/* Private to graph: the store's sections (docs/formats/graph.md) and an open store. */
#ifndef WEFT_GRAPH_LAYOUT_H
#define WEFT_GRAPH_LAYOUT_H

#include <stdbool.h>

#include "base/store.h"
#include "graph/graph.h"

enum { GRAPH_VERSION = 1, GRAPH_BLOCK = 128, GRAPH_NARROW_ROWS = 0xfffe };

/* Times lie within 146 years of the epoch, so that differences never overflow. */
#define GRAPH_MOST_TIME (INT64_C(1) << 62)

/* Kind byte of an interval. */
enum { GRAPH_KIND_STATE = 0x0f, GRAPH_KIND_CAUSE_SHIFT = 4, GRAPH_KIND_CAUSE = 0x70, GRAPH_KIND_DETAIL = 0x80 };
static inline uint8_t graph_kind(unsigned state, unsigned cause, bool detail)
{
    return (uint8_t)(state | cause << GRAPH_KIND_CAUSE_SHIFT | (detail ? GRAPH_KIND_DETAIL : 0));
}
static inline unsigned graph_kind_state(uint8_t kind)
{
    return kind & GRAPH_KIND_STATE;
}
static inline unsigned graph_kind_cause(uint8_t kind)
{
    return (kind & GRAPH_KIND_CAUSE) >> GRAPH_KIND_CAUSE_SHIFT;
}

enum { GRAPH_DISK_BORN = 1, GRAPH_DISK_DIED = 2 };

struct graph_disk_head {
    int64_t begin, end; /* of all rows */
    uint64_t reserved;
};

struct graph_disk_row {
    int32_t tid, tgid, ppid, parent_row, idle_cpu, vtid;
    uint32_t pid_ns, name, reserved, flags;
    int64_t begin, end;
    uint32_t first, n; /* intervals; idle rows have none here: theirs are their CPU's occupants */
    uint32_t first_block, n_blocks;
};

/* Up to 128 neighbours of one row (or of one CPU's occupants) whose begins lie within 2^32 ns. The …0 fields are the
 * numbers of the first entries in the sparse columns that belong to this block: an interval's entry is found by
 * counting kinds within the block. */
struct graph_disk_block {
    int64_t base;   /* begin of the first */
    uint32_t first; /* number of the first in the columns */
    uint32_t waker0, packet0, detail0, cpu0, reserved;
};

struct graph_disk_cpu {
    int32_t idle_row; /* or -1 */
    uint32_t first, n, first_block, n_blocks, reserved;
};

/* What a row was called before `until`, since the entry before of the same row. By row and time. */
struct graph_disk_former {
    int64_t until;
    int32_t row, tid;
    uint32_t name, reserved;
};

/* A wake that came before the wait it ended. */
struct graph_disk_early_wake {
    uint32_t interval, reserved;
    int64_t ts;
};

struct graph {
    struct store *store;
    const struct graph_disk_head *head;
    const struct graph_disk_row *rows;
    const struct graph_disk_block *blocks, *cpu_blocks;
    const uint32_t *begins, *cpu_begins; /* minus the block's base */
    const uint8_t *kinds;
    const uint16_t *wakers16, *occupants16; /* row, row + 1 (0: nobody known); one of 16 and 32 is there */
    const uint32_t *wakers32, *occupants32;
    const uint32_t *packets;
    const uint16_t *details;
    const uint8_t *where8; /* CPUs of running intervals */
    const uint16_t *where16;
    const uint32_t *detail_names; /* detail -> string */
    const struct graph_disk_early_wake *early_wakes;
    const struct graph_disk_former *formers;
    const struct graph_disk_cpu *cpus;
    const struct graph_loss *losses;
    const uint32_t *string_at;
    const char *text;
    size_t n_rows, n_blocks, n_intervals, n_wakers, n_packets, n_details, n_where, n_detail_names, n_early_wakes,
        n_formers, n_cpus, n_cpu_blocks, n_occupants, n_losses, n_strings, n_text;
    _Atomic(char *) *by_row; /* "by 31 kworker/0:2", made when first asked for: by row, then by former */
};

/* Texts and occupants by numbers from the file, which may be anything. */
static inline const char *graph_string(const struct graph *g, uint32_t number)
{
    return number < g->n_strings && g->string_at[number] < g->n_text ? g->text + g->string_at[number] : "";
}
/* The row that entry i of the column of occupants names, or -1. */
static inline int32_t graph_occupant_at(const struct graph *g, size_t i)
{
    size_t row = (size_t)(g->occupants16 ? g->occupants16[i] : g->occupants32[i]) - 1; /* 0, nobody, is beyond all */
    return row < g->n_rows ? (int32_t)row : -1;
}
/* check.c: what is wrong with what leads from one section to another, or NULL: O(rows). Then readers stay inside. */
const char *graph_structure_defect(const struct graph *);
/* The same for everything else, of a graph without such a defect: O(intervals). */
const char *graph_content_defect(const struct graph *);
/* read.c: which of its names the row had for most of [begin, end], at the instant when they are equal: a number in
 * `formers`, or n_formers for the last one. */
size_t graph_former(const struct graph *, int32_t row, int64_t begin, int64_t end);
/* preempted.c: who held the CPU while the row waited for it, or "throttled"; NULL when not known. */
const char *graph_preempted_detail(const struct graph *, int32_t row, uint32_t cpu, int64_t begin, int64_t end);
#endif
