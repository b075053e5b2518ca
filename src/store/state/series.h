/* SPDX-License-Identifier: MIT */
/* Private to state: rows and columns while they grow. Complete parts are packed at once; rows then go to the store's
 * file. */
#ifndef WEFT_STATE_SERIES_H
#define WEFT_STATE_SERIES_H

#include "base/map.h"
#include "base/mem.h"
#include "state/format.h"
#include "state/tiles.h"

/* Packed bytes of columns, in order of completion. Memory chunks do not move; each reserved room is within one chunk.
 * n: bytes so far. */
enum { SERIES_CHUNK = MEM_HUGE_PAGE };
struct series_bytes {
    VEC(uint8_t *) chunks;
    uint64_t n;
};
static inline const uint8_t *series_bytes_at(const struct series_bytes *b, uint64_t position)
{
    return b->chunks.v[position / SERIES_CHUNK] + position % SERIES_CHUNK;
}

/* Duration as unsigned: clocks may jump by more than a signed number holds. */
static inline uint64_t ns_between(int64_t begin, int64_t end) { return (uint64_t)end - (uint64_t)begin; }

/* ---- rows ---- */

/* Open entries: the last ones of a row, which may change when more becomes known. At most the last CHANGE may be
 * removed or get another number; RENAMED may be renamed, and CHANGE more stay open because as many may be removed.
 * MOST: pairs that fill a block. */
enum {
    SERIES_CHANGE = 4,
    SERIES_RENAMED = 32,
    SERIES_OPEN = SERIES_RENAMED + SERIES_CHANGE,
    SERIES_BUFFER = STATE_CELLS * STATE_CELL + SERIES_OPEN,
    SERIES_MOST = STATE_CELLS * STATE_CELL_ENTRIES + SERIES_OPEN,
};

/* Sums over the entries of a row. RUNNING, BUSY: time spent in entries whose number has that flag in series_pool.flags,
 * which the users extend. BYTES: bytes read, and bytes written, by uses of a file. */
enum series_sum { SERIES_NO_SUM, SERIES_RUNNING, SERIES_BUSY, SERIES_FLAGS, SERIES_BYTES = SERIES_FLAGS };

struct series_entry { int64_t time, number; };
struct series {
    struct series_entry *v;
    struct series_entry last;   /* v[n - 1]: a push reads it here and only writes to v */
    uint64_t closed;            /* number of entries in blocks */
    int64_t before[STATE_WAYS]; /* sums before the first entry of v */
    uint32_t cells;             /* cells in blocks */
    uint32_t id;                /* set when the first block closes; 0: none */
    uint16_t n, cap;
    uint16_t fixed;             /* entries at the begin of v that can only be renamed, as last determined */
    uint8_t lead;               /* number in force before the first entry */
    uint8_t sum : 4;            /* enum series_sum */
    bool pairs : 1;             /* entries usually alternate between some number, and 0 or 1 */
    bool past : 1;              /* entries exist before v[0] */
    /* state_series_leave: continues in the next chunk; last.time: begin of its entries there */
    bool goes_on : 1;
};
_Static_assert(sizeof(struct series) == 64, "a line of the processor's caches");
/* Number of sums. */
static inline unsigned series_sums(const struct series *s)
{
    return s->sum == SERIES_NO_SUM ? 0 : s->sum == SERIES_BYTES ? STATE_WAYS : 1;
}

/* Cells of all rows: a section of a store being written, in the order in which their blocks were completed. */
enum { SERIES_CELLS = 1024 }; /* cells written to the file at a time */
struct series_cells {
    struct store_writer *to;        /* owned */
    struct state_disk_cell *buffer; /* cells not yet in the file: `buffered` of `n` */
    uint32_t buffered, n;
    struct file_map file;           /* complete cells, for reading */
    const struct state_disk_cell *v;
};

struct series_block { uint32_t cell, id; }; /* cell: index of its first */
struct series_pool {
    VEC(struct series_block) blocks;
    VEC(int64_t) sums;         /* sums of its series before each block, block by block */
    struct series_cells cells; /* cells of rows */
    struct series_bytes bytes; /* bytes of columns */
    uint32_t ids;
    VEC(uint8_t) flags[SERIES_FLAGS];
};
/* Begins the store at `path` with the section of the cells. */
void state_series_pool_init(struct series_pool *, struct store_place, uint64_t key);
void state_series_pool_fini(struct series_pool *);
/* Ends the section when all series are finished: cells can be read, and the writer used. Fails if the file could not be
 * written. */
int state_series_pool_finish(struct series_pool *, struct err *e);
static inline const struct state_disk_cell *series_cell(const struct series_pool *p, uint32_t cell)
{
    return &p->cells.v[cell];
}
void state_series_fini(struct series *);

void state_series_grow(struct series_pool *, struct series *);
void state_series_amend(struct series *, int64_t number);
/* Appends; there must be room. Writes number by number, not the struct: a whole that was just written in halves can be
 * read only after both have arrived in memory. */
static inline void series_append(struct series *s, int64_t time, int64_t number)
{
    struct series_entry *e = &s->v[s->n++];
    e->time = s->last.time = time;
    e->number = s->last.number = number;
}
/* Sets the row to `number` from `time` on. Times before the last entry's count as that; an entry that lasted no time is
 * replaced. */
static inline void series_push(struct series_pool *p, struct series *s, int64_t time, int64_t number)
{
    if (s->n) {
        if (s->last.number == number)
            return;
        if (time <= s->last.time) {
            state_series_amend(s, number);
            return;
        }
    } else if (number == s->lead) {
        return;
    }
    if (s->n == s->cap)
        state_series_grow(p, s);
    series_append(s, time, number);
}
/* Pushes as series_push, but keeps a first entry that repeats the number in force before it. */
static inline void series_tell(struct series_pool *p, struct series *s, int64_t time, int64_t number)
{
    if (s->n == 1 && !s->past && time <= s->last.time) {
        s->last.number = s->v[0].number = number;
        return;
    }
    if (s->n) {
        series_push(p, s, time, number);
        return;
    }
    if (s->n == s->cap)
        state_series_grow(p, s);
    series_append(s, time, number);
}
/* Prefetch a series before a push. The position of the entry is known only when the series itself is in the cache, so
 * call series_fetch first, and series_fetch_tail some pushes later. */
static inline void series_fetch(const struct series *s) { mem_fetch(s, sizeof *s); }
static inline void series_fetch_tail(const struct series *s)
{
    uintptr_t behind = (uintptr_t)s->v + s->n * sizeof *s->v;
    __builtin_prefetch((const void *)(behind - sizeof *s->v), 1);
    __builtin_prefetch((const void *)(behind + sizeof *s->v), 1);
}
static inline int64_t series_last(const struct series *s) { return s->n ? s->last.time : INT64_MIN; }
/* Removes the entries from `time` on, of the last SERIES_CHANGE. */
void state_series_cut(struct series *, int64_t time);
/* Changes the number of entries from `time` on that have `from` to `to`, of the last SERIES_RENAMED. */
void state_series_rename(struct series *, int64_t time, int64_t from, int64_t to);
/* Removes the entry before the last, which turned out to be wrong. */
void state_series_mend(struct series *);
/* Updates `last` after entries at the end have changed. */
void state_series_take_last(struct series *);
/* Sums over the entries before entry n of v; n < s->n, or for BYTES n <= s->n. */
void state_series_sums_before(const struct series_pool *, const struct series *, size_t n, int64_t sums[STATE_WAYS]);
/* Makes room for n entries, n <= SERIES_OPEN, in a new series. */
void state_series_reserve(struct series *, size_t n);
/* Leaves the entries from v[n] on to the next chunk, where the row begins at `begin`. */
void state_series_leave(struct series *, size_t n, int64_t begin);
/* Packs the open entries and completes the series. */
void state_series_finish(struct series_pool *, struct series *);

/* ---- tables of columns ---- */

struct series_table { VEC(struct state_disk_head) heads; uint64_t n; };
typedef int64_t series_values[STATE_BLOCK]; /* values of a column in a block */
/* Appends a block: the first n <= 128 values of each column. Only the last block may be short. */
void state_series_table_add(struct series_bytes *, struct series_table *, const series_values *, int columns, size_t n);

static inline size_t series_table_rows(const struct series_table *t, size_t block)
{
    uint64_t left = t->n - block * STATE_BLOCK;
    return left < STATE_BLOCK ? left : STATE_BLOCK;
}
/* A column of a block. */
static inline struct column series_table_column(const struct series_bytes *b, const struct series_table *t,
    size_t block, int column)
{
    const struct state_disk_head *h = &t->heads.v[block];
    return column_open(series_bytes_at(b, h->position + h->columns[column].offset), series_table_rows(t, block),
        column ? 0 : h->first, h->columns[column]);
}
/* Reads all values of it. Returns their number. */
static inline size_t series_table_take(const struct series_bytes *b, const struct series_table *t, size_t block,
    int column, int64_t *out)
{
    struct column c = series_table_column(b, t, block, column);
    state_column_take(&c, out);
    return c.n;
}

/* ---- latencies ---- */

/* Latencies become known at their ends and are sorted by their begins. A window holds the open ones in order of begin;
 * one that stays open too long moves aside. If many would, as in servers whose threads all wait in calls, the window
 * grows.
 *
 * Latencies that begin in the same ns are in order of opening, given by their rank, wherever cuts are. One that is
 * opened after others that began later is late: it comes behind all that were opened in time. */

enum { LATENCY_HALF = 512, LATENCY_MOST_HALF = 1 << 19, LATENCY_ASIDE_SHARE = 256 };
enum latency_progress { LATENCY_OPEN, LATENCY_CLOSED, LATENCY_DROPPED };
struct latency {
    int64_t begin, end, ret;
    int32_t thread, cpu;
    uint32_t code;
    uint8_t progress;
};
/* before: number of the table's rows before it, unless it is late. early: it began before all that were opened in the
 * chunk in time. */
struct latency_aside {
    struct latency latency;
    uint64_t rank, before;
    size_t place;               /* position in the order of opening */
    bool early;
};
typedef VEC(int64_t) latency_far;
struct latency_series {
    struct latency *window;     /* ring of 2 * half, by serial number */
    size_t n, half;             /* half: 1 << shift, once there is a window */
    unsigned shift;
    uint64_t first;             /* serial number of the oldest */
    uint64_t origin;            /* start of the counting of halves: `first` is on a border of one */
    size_t open[2];             /* latencies in LATENCY_OPEN, in even and in odd halves */
    int64_t last_begin;         /* last begin of those opened in time */
    int64_t from;               /* value of last_begin when the chunk began */
    int64_t ranked_begin;       /* begin of the last one that left the window, or the chunk before */
    uint64_t ranked;            /* number of those with this begin */
    uint64_t late;              /* rank of the next late one; restarts from 0 when no late one is open */
    size_t late_open;
    VEC(struct latency_aside) aside;
    struct map aside_of;        /* serial number -> index in aside */
    series_values buffer[STATE_LATENCY_COLUMNS];
    size_t buffered;
    struct series_bytes *bytes; /* bytes of the pool; shared by all kinds */
    struct series_table table;
    struct tiles tiles;         /* tiles of the table */
    latency_far *far;           /* shared by all kinds */
};
void state_latency_series_init(struct latency_series *, struct series_bytes *, latency_far *far);
void state_latency_series_fini(struct latency_series *);
/* Returns a handle, never 0; valid for one close or drop. */
uint64_t state_latency_open(struct latency_series *, int64_t begin, int32_t thread, uint32_t code);
void state_latency_close(struct latency_series *, uint64_t handle, int64_t end, int64_t ret, int32_t cpu);
/* Latency of an open handle; valid until the next is opened. */
const struct latency *state_latency_of(const struct latency_series *, uint64_t handle);
uint64_t state_latency_rank(const struct latency_series *, uint64_t handle); /* rank of an open handle */
/* Opens a latency that began in an earlier chunk. */
uint64_t state_latency_reopen(struct latency_series *, const struct latency *, uint64_t rank);
/* Number of those opened in time that began at last_begin. */
uint64_t state_latency_ranks(const struct latency_series *);
/* Continues a series that was cut, with its last_begin and ranks. */
void state_latency_go_on(struct latency_series *, int64_t last_begin, uint64_t ranks);
void state_latency_drop(struct latency_series *, uint64_t handle);
/* Prefetches a latency some time before its close or drop. Handle 0: does nothing. */
void state_latency_fetch(const struct latency_series *, uint64_t handle);
/* Ends the series, or cuts it. The table then holds the latencies closed within the window, and `aside` the other
 * closed ones, in order. At a cut `aside` also has those opened in the chunk, in time, and still open. */
void state_latency_series_finish(struct latency_series *, bool cut);

#endif
