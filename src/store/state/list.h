/* SPDX-License-Identifier: MIT */
/* Private to state: rows of the host. The entries of a row are in some of the store's chunks, one after the other. */
#ifndef WEFT_STATE_LIST_H
#define WEFT_STATE_LIST_H

#include <stdatomic.h>

#include "state/store.h"

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
void state_list_kind_join(const struct state_store *, int kind);
static inline const struct list_kind *list_kind_of(const struct state_store *s, int kind)
{
    const struct list_kind *k = &s->kinds[kind];
    if (!atomic_load_explicit(&k->made, memory_order_acquire))
        state_list_kind_join(s, kind);
    return k;
}
static inline const struct list_row *list_row_of(const struct state_store *s, int kind, size_t i)
{
    return &list_kind_of(s, kind)->v[i];
}
/* Place whose entries are in force at t; NULL before the first. */
const struct list_place *state_list_place_at(const struct list_row *, int64_t t);
/* Place at t, given the place of an earlier time, or NULL. */
static inline const struct list_place *list_place_from(const struct list_row *r, const struct list_place *p, int64_t t)
{
    if (!p)
        return state_list_place_at(r, t);
    if (t < p->next || p->next == INT64_MAX) /* the last place has no end */
        return p;
    return t < p[1].next ? p + 1 : state_list_place_at(r, t);
}
/* State of a row. t must be within the span, whose last instant counts as the one before it. (list_rows.c) */
void state_list_row_at(const struct state_store *, const struct list_row *, int64_t t, struct state_interval *out);
/* End of the time that a place covers, limited to the end of the row. */
static inline int64_t list_place_end(const struct list_row *r, const struct list_place *p)
{
    return p->next < r->end ? p->next : r->end;
}

/* Joins all parts, which are open. Returns NULL, or the defect of part *part. (list.c) */
const char *state_list_join(struct state_store *, const struct chunk *, size_t *part);
void state_list_fini(struct state_store *);

/* ---- bytes of threads: list_io.c ---- */

/* Bytes up to each of the (ascending) times. O(n + files, and for each file its uses between the times or, if they are
 * many more than the times, n). */
void state_list_io_values(const struct state_store *, const struct list_row *, const int64_t *times, size_t n,
    int64_t *values);
/* Intervals, as state_sample; the times are within the span and before its end. */
size_t state_list_io_sample(const struct state_store *, const struct list_row *, const int64_t *times, size_t n,
    struct state_interval *out);
/* Range as by state_range; the times are within the span and before its end. */
size_t state_list_io_range(const struct state_store *, const struct list_row *, int64_t begin, int64_t end,
    struct state_interval *out, size_t max);

#endif
