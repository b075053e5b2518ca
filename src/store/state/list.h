/* SPDX-License-Identifier: MIT */
/* Private to state: the functions of state.h for a list of chunks: the entries of a row of the host are in some of the
 * chunks, one after the other. */
#ifndef WEFT_STATE_LIST_H
#define WEFT_STATE_LIST_H

#include <stdatomic.h>

#include "state/store.h"
#include "state/thread_io.h"

struct chunk;

/* Place: part of a row of the host in one chunk. */
struct list_place {
    uint32_t part;
    const struct state_disk_row *row; /* row with cells */
    int64_t first, next;         /* first entry; first entry of the row's next place, or INT64_MAX */
    int64_t until;               /* time from which the row is unknown, if it continues in a missing chunk */
    int64_t moved[STATE_WAYS];   /* files: bytes counted by entries up to the end of this place */
};

/* Row of the host. */
struct list_row {
    int64_t begin, end;          /* see struct state_row */
    const struct list_place *places; /* places in order of time: `first` ascends */
    uint32_t n;
    int32_t number;
    int32_t thread;              /* FUTEX_USER, files: row of the host; else -1 */
    uint8_t kind, lead;
    bool waits, idle;
    const char *name;
    uint64_t entries;
    union {
        int64_t least;           /* counters that may fall */
        int64_t bytes[STATE_WAYS]; /* files */
        struct { const uint32_t *files; uint32_t n_files; }; /* IO_READ, IO_WRITTEN: rows of files, ascending */
    };
};
struct list_kind {
    atomic_bool made;            /* set when its rows are first requested; until then all below is 0 */
    struct list_row *v;          /* rows in order of number */
    size_t n;
    struct list_place *places;   /* places of all rows */
};
void list_kind_join(const struct state_store *, int kind);
static inline const struct list_kind *list_kind_of(const struct state_store *s, int kind)
{
    const struct list_kind *k = &s->kinds[kind];
    if (!atomic_load_explicit(&k->made, memory_order_acquire))
        list_kind_join(s, kind);
    return k;
}
static inline const struct list_row *list_row_of(const struct state_store *s, int kind, size_t i)
{
    return &list_kind_of(s, kind)->v[i];
}
/* Place whose entries are in force at t; NULL before the first. */
const struct list_place *list_place_at(const struct list_row *, int64_t t);
/* Place at t, given the place of an earlier time, or NULL. */
static inline const struct list_place *list_place_from(const struct list_row *r, const struct list_place *p, int64_t t)
{
    if (!p)
        return list_place_at(r, t);
    return t < p->next ? p : t < p[1].next ? p + 1 : list_place_at(r, t);
}
struct io_source list_io_source(const struct state_store *, const struct list_row *); /* (list_io.c) */
/* End of the time that a place covers, limited to the end of the row. */
static inline int64_t list_place_end(const struct list_row *r, const struct list_place *p)
{
    return p->next < r->end ? p->next : r->end;
}

/* Joins all parts, which are open. Returns NULL, or the defect of part *part. (list.c) */
const char *list_join(struct state_store *, const struct chunk *, size_t *part);
void list_fini(struct state_store *);
void list_lines_init(struct state_store *); /* (list_rows.c) */

size_t list_rows(const struct state_store *, int kind);
void list_row(const struct state_store *, int kind, size_t i, struct state_row *out);
int64_t list_find_row(const struct state_store *, int kind, int32_t number);
size_t list_sample(const struct state_store *, int kind, size_t row, const int64_t *times, size_t n,
    struct state_interval *out);
bool list_at(const struct state_store *, int kind, size_t row, int64_t t, struct state_interval *out);
int32_t list_thread_cpu(const struct state_store *, size_t row, int64_t t, int32_t near);

void list_counter_values(const struct state_store *, int row_kind, size_t row, const int64_t *times, size_t n,
    int64_t *values); /* see state_chunk_counter_values */
size_t list_file_count(const struct state_store *);
void list_file(const struct state_store *, size_t i, struct state_file *out);

/* ---- events and losses: list_tables.c; latencies: list_latencies.c ---- */

void list_event_counts(const struct state_store *, const int64_t *times, size_t n, uint64_t *counts, bool *exact);
uint64_t list_events(const struct state_store *);
size_t list_losses(const struct state_store *);
void list_loss(const struct state_store *, size_t i, struct state_loss *out);
size_t list_latencies(const struct state_store *, int kind);
void list_latency(const struct state_store *, int kind, size_t i, struct state_latency *out);
size_t list_latency_find(const struct state_store *, int kind, int64_t t);
size_t list_latency_names(const struct state_store *, int kind);
const char *list_latency_name(const struct state_store *, int kind, size_t name);
void list_latency_figures(const struct state_store *, int kind, size_t first, size_t end, struct figures *out);
void list_latency_histogram(const struct state_store *, int kind, size_t first, size_t end, int64_t width, size_t n,
    uint64_t *counts);

#endif
