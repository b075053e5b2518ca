/* SPDX-License-Identifier: MIT */
/* Private to graph: a store's sections (docs/formats/graph.md), one open store, and a list of them. */
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
/* How a CPU's occupant looks from the row of its idle thread. */
static inline unsigned graph_idle_state(int64_t occupant, int64_t idle_row)
{
    return occupant < 0 ? GRAPH_UNKNOWN : occupant == idle_row ? GRAPH_RUNNING : GRAPH_PREEMPTED;
}

enum { GRAPH_DISK_BORN = 1, GRAPH_DISK_DIED = 2 };

struct graph_disk_head {
    int64_t begin, end; /* of all rows */
    uint64_t wake0;     /* the wakes of `packets` are numbered from it */
};

struct graph_disk_row {
    int32_t tid, tgid, ppid, parent_row, idle_cpu, vtid;
    uint32_t pid_ns, name;
    uint32_t total0; /* its first entry in `totals`: one for each of its states */
    uint16_t flags, states;
    int64_t begin, end; /* of its intervals here; without any both are where its next one begins, as far as known */
    uint32_t first, n;  /* intervals; idle rows have none here, no sums either: theirs are their CPU's occupants */
    uint32_t first_block, n_blocks;
    uint32_t container, reserved; /* number in `containers` + 1, 0 none */
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
    int64_t begin, end; /* as a row's */
    int32_t idle_row;   /* or -1 */
    uint32_t first, n, first_block, n_blocks;
    uint32_t total0, states, reserved; /* of its idle thread, as a row's */
};

/* What a row was called before `until`, since the entry before of the same row. By row and time. */
struct graph_disk_former {
    int64_t until;
    int32_t row, tid;
    uint32_t name, reserved;
};

enum { GRAPH_DISK_NET = 1, GRAPH_DISK_LASTING = 2, GRAPH_DISK_CGROUP = 4 };
/* As kernel_container. Those that rows are in, and those in which lives ended in chunks before and which are still
 * known: what is called so, and its first process, may have changed. */
struct graph_disk_container {
    int64_t since;
    int32_t tid;
    uint32_t flags, pid_ns, net_ns, uts_ns;
    uint32_t name, first, cgroup_ns;
};

/* A wake that came before the wait it ended. */
struct graph_disk_early_wake {
    uint32_t interval, reserved;
    int64_t ts;
};

/* The store of one chunk. Its rows are its own. */
struct graph_chunk {
    struct store *store;
    const struct graph_disk_head *head;
    const struct graph_disk_row *rows;
    const int64_t *totals;
    const struct graph_disk_block *blocks, *cpu_blocks;
    const uint32_t *begins, *cpu_begins; /* minus the block's base */
    const uint8_t *kinds;
    const uint16_t *wakers16, *occupants16; /* row, row + 1 (0: nobody known); one of 16 and 32 is there */
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
    const struct graph_mark *marks; /* rows are the chunk's */
    const uint32_t *string_at;
    const char *text;
    size_t n_rows, n_totals, n_blocks, n_intervals, n_wakers, n_packets, n_details, n_where, n_detail_names,
        n_early_wakes, n_formers, n_cpus, n_cpu_blocks, n_occupants, n_losses, n_marks,
        n_containers, n_strings, n_text;
    int64_t begin, end; /* of its rows */
    const int32_t *host_rows; /* by row, the list's; NULL: the same */
    int32_t *host_containers; /* by container, the list's */
};

/* What a chunk has of a row of the host: within its time and its columns, whatever the file says since. */
struct graph_place {
    const struct graph_chunk *chunk;
    int64_t begin, end;
    uint32_t first, n, first_block, n_blocks, total0;
    uint16_t states;
};

/* What is known of a row of the host from all chunks. A chunk whose row makes no sense, or goes back to before the end
 * of the one before, counts as missing. */
struct graph_host_row {
    struct graph_row row;
    /* Pieces: a thread's are its places, an idle thread's are what chunks have of its CPU, known to have it or not.
     * Those that count begin at the first that has intervals; n: there is none. */
    uint32_t first, n;
    const int64_t *ends; /* of its pieces */
    struct graph_place places[];
};

struct graph_former {
    int64_t until;
    int32_t row, tid;
    const char *name;
};

struct graph {
    struct graph_chunk *chunks;
    _Atomic(struct graph_host_row *) *rows; /* each when it is first asked for: graph_host_row_of */
    struct chunk_rows *chunk_rows;
    struct graph_former *formers; /* by row and time */
    struct graph_loss *losses;
    struct graph_mark *marks;
    VEC(struct graph_container) containers;
    int64_t *cpu_ends; /* by CPU, then chunk: the greatest end of its occupants in the chunks up to this one */
    size_t n_chunks, n_rows, n_formers, n_losses, n_marks, n_cpus;
    int64_t begin, end;      /* of all chunks */
    _Atomic(char *) *by_row; /* "by 31 kworker/0:2", made when first asked for: by row, then by former */
};

/* Texts, rows and occupants by numbers from the file, which may be anything. */
static inline const char *graph_string(const struct graph_chunk *c, uint32_t number)
{
    return number < c->n_strings && c->string_at[number] < c->n_text ? c->text + c->string_at[number] : "";
}
/* The host's row, or -1. */
static inline int32_t graph_host_row(const struct graph_chunk *c, int64_t row)
{
    return row < 0 || (size_t)row >= c->n_rows ? -1 : c->host_rows ? c->host_rows[row] : (int32_t)row;
}
/* The row of the chunk that entry i of the column of occupants names, or -1. */
static inline int32_t graph_occupant_at(const struct graph_chunk *c, size_t i)
{
    size_t row = (size_t)(c->occupants16 ? c->occupants16[i] : c->occupants32[i]) - 1; /* 0, nobody, is beyond all */
    return row < c->n_rows ? (int32_t)row : -1;
}

/* open.c: one file. */
int graph_chunk_open(const struct chunk *, struct graph_chunk *, struct err *e);
void graph_chunk_close(struct graph_chunk *);
/* check.c: what is wrong with what is not looked at again by readers, or NULL: O(CPUs). Then they stay inside. */
const char *graph_structure_defect(const struct graph_chunk *);
/* The same for everything else, of a graph without such a defect: O(intervals). */
const char *graph_content_defect(const struct graph_chunk *);
/* list.c: what is known from all chunks together, once each is open: O(chunks · CPUs), and a look at the numbers of
 * their rows. NULL, or why they do not follow each other; then *chunk is the one that does not follow. */
const char *graph_list_join(struct graph *, const struct chunk *, size_t *chunk);
/* containers.c: part of graph_list_join. */
void graph_containers_join(struct graph *);
void graph_containers_free(struct graph *);
/* The list's container that a row of the chunk names, or GRAPH_NO_CONTAINER. */
int32_t graph_host_container(const struct graph_chunk *, uint32_t number);
/* host_rows.c: any number of threads may ask. */
const struct graph_host_row *graph_host_row_joined(const struct graph *, int32_t row);
/* The last tid and name of a row that there is, without joining it. */
void graph_host_row_last(const struct graph *, int32_t row, int32_t *tid, const char **name);
void graph_host_rows_free(struct graph *);
/* Of which nothing is known. */
extern const struct graph_row graph_no_row;
/* As the file says. */
struct graph_place graph_place_of(const struct graph_chunk *, const struct graph_disk_row *);
/* Of a row that there is. The first one to ask looks for it in all chunks. */
static inline const struct graph_host_row *graph_host_row_of(const struct graph *g, int32_t row)
{
    const struct graph_host_row *known = atomic_load_explicit(&g->rows[row], memory_order_acquire);
    return known ? known : graph_host_row_joined(g, row);
}
/* rows.c: which of its names the row had for most of [begin, end], at the instant when they are equal: a number in
 * `formers`, or n_formers for the last one. */
size_t graph_former(const struct graph *, int32_t row, int64_t begin, int64_t end);
/* preempted.c: who held the CPU while the row waited for it, or "throttled"; NULL when not known. */
const char *graph_preempted_detail(const struct graph *, int32_t row, uint32_t cpu, int64_t begin, int64_t end);
#endif
