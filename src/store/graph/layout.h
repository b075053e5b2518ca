/* SPDX-License-Identifier: MIT */
/* Private to graph: sections of a store (docs/formats/graph.md), an open store, and a list of them. */
#ifndef WEFT_GRAPH_LAYOUT_H
#define WEFT_GRAPH_LAYOUT_H

#include <stdatomic.h>
#include <stdbool.h>

#include "base/chunks.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/store.h"
#include "graph/graph.h"

enum { GRAPH_VERSION = 4, GRAPH_BLOCK = 128, GRAPH_NARROW_ROWS = 0xfffe };

/* Limit of times, 146 years from the epoch, so that differences never overflow. */
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
/* State of an idle thread's row, given the occupant of its CPU. */
static inline unsigned graph_idle_state(int64_t occupant, int64_t idle_row)
{
    return occupant < 0 ? GRAPH_UNKNOWN : occupant == idle_row ? GRAPH_RUNNING : GRAPH_PREEMPTED;
}

enum { GRAPH_DISK_BORN = 1, GRAPH_DISK_DIED = 2 };

struct graph_disk_head {
    int64_t begin, end; /* range of all rows */
    uint64_t wake0;     /* base of the numbers of wakes in `packets` */
};

struct graph_disk_row {
    int32_t tid, tgid, ppid, parent_row, idle_cpu, vtid;
    uint32_t pid_ns, name;
    uint32_t total0; /* index of its first entry in `totals`, which has one per state */
    uint16_t flags, states;
    int64_t begin, end; /* range of its intervals here; if none, both are the begin of its next one, if known */
    uint32_t first, n;  /* number of intervals; 0 for idle rows, which use their CPU's occupants and sums */
    uint32_t first_block, n_blocks;
    uint32_t container, reserved; /* number in `containers` + 1; 0: none */
};

/* Block of up to 128 consecutive entries of one row (or of one CPU's occupants) whose begins are within 2^32 ns. The …0
 * fields are the numbers of the block's first entries in the sparse columns: an interval's entry is found by counting
 * kinds within the block. */
struct graph_disk_block {
    int64_t base;   /* begin of the first */
    uint32_t first; /* number of the first in the columns */
    uint32_t waker0, packet0, detail0, cpu0, reserved;
};

struct graph_disk_cpu {
    int64_t begin, end; /* see the fields of a row */
    int32_t idle_row;   /* row, or -1 */
    uint32_t first, n, first_block, n_blocks;
    uint32_t total0, states, reserved; /* sums of its idle thread, as in a row */
};

/* Earlier name of a row: from the end of the entry before of the same row to `until`. Sorted by row and time. */
struct graph_disk_former {
    int64_t until;
    int32_t row, tid;
    uint32_t name, reserved;
};

enum { GRAPH_DISK_NET = 1, GRAPH_DISK_LASTING = 2, GRAPH_DISK_CGROUP = 4 };
/* Container, see kernel_container: one of a row, or one that is still known and in which lives ended in earlier chunks,
 * since its name and first process may have changed. */
struct graph_disk_container {
    int64_t since;
    int32_t tid;
    uint32_t flags, pid_ns, net_ns, uts_ns;
    uint32_t name, first, cgroup_ns;
};

/* Wake that came before the wait that it ended. */
struct graph_disk_early_wake {
    uint32_t interval, reserved;
    int64_t ts;
};

/* Call stack: addresses in `stack-frames`, the innermost first. */
struct graph_disk_stack { uint32_t first; uint16_t n, cut; };
/* Stacks of a row at an event: numbers + 1, 0: none. WAITS: with them it left its CPU to wait. */
#define GRAPH_SAMPLE_WAITS (UINT32_C(1) << 31)
struct graph_disk_sample { int64_t ts; uint32_t user, kernel; };
struct graph_disk_sampled { uint64_t cut, left_out; }; /* stacks that are cut; samples beyond the limits */

/* Store of one chunk, with its own rows. */
struct graph_chunk {
    struct store *store;
    const struct graph_disk_head *head;
    const struct graph_disk_row *rows;
    const int64_t *totals;
    const struct graph_disk_block *blocks, *cpu_blocks;
    const uint32_t *begins, *cpu_begins; /* relative to the block's base */
    const uint8_t *kinds;
    const uint16_t *wakers16, *occupants16; /* row, row + 1 (0: unknown); either 16 or 32 exists */
    const uint32_t *wakers32, *occupants32;
    const int32_t *packets;
    const uint16_t *details;
    const uint8_t *where8; /* CPUs of running intervals */
    const uint16_t *where16;
    const uint32_t *detail_names; /* detail -> string */
    const struct graph_disk_early_wake *early_wakes;
    const struct graph_disk_former *formers;
    const struct graph_disk_cpu *cpus;
    const struct graph_disk_container *containers;
    const struct graph_loss *losses;
    const struct graph_mark *marks; /* with the chunk's rows */
    /* Call stacks; without any all are absent. sample_rows: first sample of each row, and the end of the last one's. */
    const struct graph_disk_sampled *sampled;
    const uint32_t *sample_rows;
    const struct graph_disk_sample *samples; /* of a row in order of time */
    const struct graph_disk_stack *stacks;
    const uint64_t *frames;
    const uint32_t *string_at;
    const char *text;
    size_t n_rows, n_totals, n_blocks, n_intervals, n_wakers, n_packets, n_details, n_where, n_detail_names,
        n_early_wakes, n_formers, n_cpus, n_cpu_blocks, n_occupants, n_losses, n_marks,
        n_containers, n_strings, n_text, n_sampled, n_sample_rows, n_samples, n_stacks, n_frames;
    int64_t begin, end; /* range of its rows */
    const int32_t *host_rows; /* list's row by row; NULL: the same */
    int32_t *host_containers; /* list's container by container */
};

/* Place: part of a row of the host in one chunk, bounded by its time and columns, whatever the file contains later. */
struct graph_place {
    const struct graph_chunk *chunk;
    int64_t begin, end;
    uint32_t first, n, first_block, n_blocks, total0;
    uint16_t states;
};

/* Row of the host, joined from all chunks. A chunk whose row is invalid, or begins before the end of the one before,
 * counts as missing. */
struct graph_host_row {
    struct graph_row row;
    /* Pieces: places of a thread; for an idle thread, the chunks' occupants of its CPU, even before the thread is
     * known. `first`: the first that has intervals; n: none has. */
    uint32_t first, n;
    const int64_t *ends; /* ends of its pieces */
    struct graph_place places[];
};

struct graph_former {
    int64_t until;
    int32_t row, tid;
    const char *name;
};

struct graph {
    struct graph_chunk *chunks;
    _Atomic(struct graph_host_row *) *rows; /* rows, each made at the first request: graph_host_row_of */
    struct chunk_rows *chunk_rows;
    struct graph_former *formers; /* earlier names by row and time */
    struct graph_loss *losses;
    struct graph_mark *marks;
    VEC(struct graph_container) containers;
    int64_t *cpu_ends; /* by CPU, then chunk: greatest end of its occupants in the chunks up to this one */
    size_t n_chunks, n_rows, n_formers, n_losses, n_marks, n_cpus;
    int64_t begin, end;      /* range of all chunks */
    bool has_stacks;
    _Atomic(char *) *by_row; /* "by 31 kworker/0:2", made at the first request: by row, then by former */
};

/* Bounded access to texts, rows and occupants: numbers from the file may be anything. */
static inline const char *graph_string(const struct graph_chunk *c, uint32_t number)
{
    return number < c->n_strings && c->string_at[number] < c->n_text ? c->text + c->string_at[number] : "";
}
/* Row of the host, or -1. */
static inline int32_t graph_host_row(const struct graph_chunk *c, int64_t row)
{
    return row < 0 || (size_t)row >= c->n_rows ? -1 : c->host_rows ? c->host_rows[row] : (int32_t)row;
}
/* Row of the chunk in entry i of the column of occupants, or -1. */
static inline int32_t graph_occupant_at(const struct graph_chunk *c, size_t i)
{
    size_t row = (size_t)(c->occupants16 ? c->occupants16[i] : c->occupants32[i]) - 1; /* 0, nobody, exceeds all */
    return row < c->n_rows ? (int32_t)row : -1;
}

/* open.c: one file. */
int graph_chunk_open(const struct chunk *, struct graph_chunk *, struct err *e);
void graph_chunk_close(struct graph_chunk *);
/* check.c: returns the defect of what readers do not check again, or NULL: O(CPUs). Without a defect they stay inside
 * of the file. */
const char *graph_structure_defect(const struct graph_chunk *);
/* stacks_read.c: part of the next. */
const char *graph_stacks_defect(const struct graph_chunk *);
/* Returns any other defect of a graph without the former: O(intervals). */
const char *graph_content_defect(const struct graph_chunk *);
/* list.c: joins the opened chunks: O(chunks · CPUs), plus a pass over the numbers of their rows. Returns NULL, or why
 * they do not follow each other; *chunk is then the one that does not follow. */
const char *graph_list_join(struct graph *, const struct chunk *, size_t *chunk);
/* containers.c: part of graph_list_join. */
void graph_containers_join(struct graph *);
void graph_containers_free(struct graph *);
/* Container of the list for the one that a row of the chunk names, or GRAPH_NO_CONTAINER. */
int32_t graph_host_container(const struct graph_chunk *, uint32_t number);
/* host_rows.c; thread-safe. */
const struct graph_host_row *graph_host_row_joined(const struct graph *, int32_t row);
/* Last tid and name of an existing row, without joining it. */
void graph_host_row_last(const struct graph *, int32_t row, int32_t *tid, const char **name);
void graph_host_rows_free(struct graph *);
/* Row of which nothing is known. */
extern const struct graph_row graph_no_row;
/* Place with the bounds in the file. */
struct graph_place graph_place_of(const struct graph_chunk *, const struct graph_disk_row *);
/* Joined row, which must exist. The first request searches all chunks. */
static inline const struct graph_host_row *graph_host_row_of(const struct graph *g, int32_t row)
{
    const struct graph_host_row *known = atomic_load_explicit(&g->rows[row], memory_order_acquire);
    return known ? known : graph_host_row_joined(g, row);
}
/* rows.c: name that the row had for most of [begin, end], or at the instant if they are equal: a number in `formers`,
 * or n_formers for the last one. */
size_t graph_former(const struct graph *, int32_t row, int64_t begin, int64_t end);
/* preempted.c: thread that held the CPU while the row waited for it, or "throttled"; NULL: unknown. */
const char *graph_preempted_detail(const struct graph *, int32_t row, uint32_t cpu, int64_t begin, int64_t end);
#endif
