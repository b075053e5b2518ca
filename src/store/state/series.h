/* SPDX-License-Identifier: MIT */
/* Private to state: rows and columns while they grow. What is complete is packed at once; rows then go to the store's
 * file. */
#ifndef WEFT_STATE_SERIES_H
#define WEFT_STATE_SERIES_H

#include "base/map.h"
#include "base/mem.h"
#include "state/format.h"
#include "state/tiles.h"

/* Packed bytes of columns, in the order in which they became complete. In chunks that stay where they are; what is
 * written into one room lies in one chunk. n: bytes so far. */
enum { SERIES_CHUNK = MEM_HUGE_PAGE };
struct series_bytes {
    VEC(uint8_t *) chunks;
    uint64_t n;
};
static inline const uint8_t *series_bytes_at(const struct series_bytes *b, uint64_t position)
{
    return b->chunks.v[position / SERIES_CHUNK] + position % SERIES_CHUNK;
}

/* Clocks may jump by more than a signed number holds. */
static inline uint64_t ns_between(int64_t begin, int64_t end) { return (uint64_t)end - (uint64_t)begin; }

/* ---- rows ---- */

/* The last entries stay open, because what becomes known later may change them: at most the last CHANGE may go or get
 * another number; RENAMED may be renamed, and as CHANGE of these may be gone then, so many more stay open.
 * MOST: where pairs fill a block. */
enum {
    SERIES_CHANGE = 4,
    SERIES_RENAMED = 32,
    SERIES_OPEN = SERIES_RENAMED + SERIES_CHANGE,
    SERIES_BUFFER = STATE_CELLS * STATE_CELL + SERIES_OPEN,
    SERIES_MOST = STATE_CELLS * STATE_CELL_ENTRIES + SERIES_OPEN,
};

/* What is summed up over the entries of a row. RUNNING, BUSY: time spent in entries whose number has that flag in
 * series_pool.flags, which the users grow. BYTES: bytes that uses of a file read, and those that they wrote. */
enum series_sum { SERIES_NO_SUM, SERIES_RUNNING, SERIES_BUSY, SERIES_FLAGS, SERIES_BYTES = SERIES_FLAGS };

struct series_entry { int64_t time, number; };
struct series {
    struct series_entry *v;
    struct series_entry last;   /* v[n - 1]: what a push reads lies here, to v it only writes */
    uint64_t closed;            /* entries that went into blocks */
    int64_t before[STATE_WAYS]; /* sums before the first entry of v */
    uint32_t cells;             /* in blocks */
    uint32_t id;                /* given when the first block closes; 0: none */
    uint16_t n, cap;
    uint16_t fixed;             /* the first ones of v that cannot change but be renamed, as was known last */
    uint8_t lead;               /* number in force before the first entry */
    uint8_t sum : 4;            /* enum series_sum */
    bool pairs : 1;             /* it goes on and off as a rule: some number, then 0 or 1 */
    bool past : 1;              /* there are entries before v[0] */
    bool goes_on : 1;           /* series_leave: in the next chunk; last.time: where its entries begin there */
};
_Static_assert(sizeof(struct series) == 64, "a line of the processor's caches");
/* How many sums there are. */
static inline unsigned series_sums(const struct series *s)
{
    return s->sum == SERIES_NO_SUM ? 0 : s->sum == SERIES_BYTES ? STATE_WAYS : 1;
}

/* Cells of all rows: the section of a store being written, in the order in which their blocks became complete. */
enum { SERIES_CELLS = 1024 }; /* so many go to the file at once */
struct series_cells {
    struct store_writer *to;        /* owned */
    struct state_disk_cell *buffer; /* what is not there yet: `buffered` of `n` */
    uint32_t buffered, n;
    struct file_map file;           /* once there are no more */
    const struct state_disk_cell *v;
};

struct series_block { uint32_t cell, id; }; /* cell: its first */
struct series_pool {
    VEC(struct series_block) blocks;
    VEC(int64_t) sums;         /* of each block in turn: the sums of its series before it */
    struct series_cells cells; /* of rows */
    struct series_bytes bytes; /* of columns */
    uint32_t ids;
    VEC(uint8_t) flags[SERIES_FLAGS];
};
/* Begins the store that will be at `path`, with the section of the cells. */
void series_pool_init(struct series_pool *, struct store_place, uint64_t key);
void series_pool_fini(struct series_pool *);
/* All series are finished: from now on cells can be read, and the writer can go on. Fails when the file could not be
 * written. */
int series_pool_finish(struct series_pool *, struct err *e);
static inline const struct state_disk_cell *series_cell(const struct series_pool *p, uint32_t cell)
{
    return &p->cells.v[cell];
}
void series_fini(struct series *);

void series_grow(struct series_pool *, struct series *);
void series_amend(struct series *, int64_t number);
/* There is room. Writes number by number, not the struct: a whole that was just written in halves can be read only
 * after both have arrived in memory. */
static inline void series_append(struct series *s, int64_t time, int64_t number)
{
    struct series_entry *e = &s->v[s->n++];
    e->time = s->last.time = time;
    e->number = s->last.number = number;
}
/* From `time` on the row is at `number`. Times before the last entry's count as that; an entry that lasted no time is
 * replaced. */
static inline void series_push(struct series_pool *p, struct series *s, int64_t time, int64_t number)
{
    if (s->n) {
        if (s->last.number == number)
            return;
        if (time <= s->last.time) {
            series_amend(s, number);
            return;
        }
    } else if (number == s->lead) {
        return;
    }
    if (s->n == s->cap)
        series_grow(p, s);
    series_append(s, time, number);
}
/* The same, but the first entry is one even when it says what was in force before. */
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
        series_grow(p, s);
    series_append(s, time, number);
}
/* A push comes soon: brings its memory near. Where the entry goes is known only when the series itself has come from
 * memory, so series_fetch is called first, series_fetch_tail some pushes later. */
static inline void series_fetch(const struct series *s) { mem_fetch(s, sizeof *s); }
static inline void series_fetch_tail(const struct series *s)
{
    uintptr_t behind = (uintptr_t)s->v + s->n * sizeof *s->v;
    __builtin_prefetch((const void *)(behind - sizeof *s->v), 1);
    __builtin_prefetch((const void *)(behind + sizeof *s->v), 1);
}
static inline int64_t series_last(const struct series *s) { return s->n ? s->last.time : INT64_MIN; }
/* Takes back the entries from `time` on, of the last SERIES_CHANGE. */
void series_cut(struct series *, int64_t time);
/* Changes the number of entries from `time` on that have `from` to `to`, of the last SERIES_RENAMED. */
void series_rename(struct series *, int64_t time, int64_t from, int64_t to);
/* Removes the last entry but one, which turned out not to have happened. */
void series_mend(struct series *);
/* Entries at the end have changed. */
void series_take_last(struct series *);
/* What is summed up over the entries before entry n of v; n < s->n, or of BYTES n <= s->n. */
void series_sums_before(const struct series_pool *, const struct series *, size_t n, int64_t sums[STATE_WAYS]);
/* Makes room for n entries, n <= SERIES_OPEN, in a new series. */
void series_reserve(struct series *, size_t n);
/* The entries from v[n] on are left to the next chunk, where the row begins at `begin`. */
void series_leave(struct series *, size_t n, int64_t begin);
/* Packs what is open. The series is complete then. */
void series_finish(struct series_pool *, struct series *);

/* ---- tables of columns ---- */

struct series_table { VEC(struct state_disk_head) heads; uint64_t n; };
typedef int64_t series_values[STATE_BLOCK]; /* of a column in a block */
/* Appends a block: the first n <= 128 values of each column. Only the last block may be short. */
void series_table_add(struct series_bytes *, struct series_table *, const series_values *, int columns, size_t n);

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
/* All values of it. Returns how many. */
static inline size_t series_table_take(const struct series_bytes *b, const struct series_table *t, size_t block,
    int column, int64_t *out)
{
    struct column c = series_table_column(b, t, block, column);
    column_take(&c, out);
    return c.n;
}

/* ---- latencies ---- */

/* Latencies become known at their ends and are sorted by their begins. A window holds the open ones in order of begin;
 * one that stays open too long moves aside. Where many would, as in servers whose threads all wait in calls, the window
 * grows.
 *
 * Those that begin in the same ns are in the order in which they were opened; their rank says which that is, wherever
 * cuts are. One that is opened after others that began later is late: it comes behind all that were opened in time. */

enum { LATENCY_HALF = 512, LATENCY_MOST_HALF = 1 << 19, LATENCY_ASIDE_SHARE = 256 };
enum latency_progress { LATENCY_OPEN, LATENCY_CLOSED, LATENCY_DROPPED };
struct latency {
    int64_t begin, end, ret;
    int32_t thread, cpu;
    uint32_t code;
    uint8_t progress;
};
/* before: rows of the table that come before it, unless it is late. early: it began before all that was opened in the
 * chunk in time. */
struct latency_aside {
    struct latency latency;
    uint64_t rank, before;
    size_t place;               /* in the order of opening */
    bool early;
};
typedef VEC(int64_t) latency_far;
struct latency_series {
    struct latency *window;     /* a ring of 2 * half, by serial number */
    size_t n, half;             /* half: 1 << shift, once there is a window */
    unsigned shift;
    uint64_t first;             /* serial number of the oldest */
    uint64_t origin;            /* halves are counted from here: `first` is on their border */
    size_t open[2];             /* latencies in LATENCY_OPEN, in even and in odd halves */
    int64_t last_begin;         /* of those opened in time */
    int64_t from;               /* what this was when the chunk began */
    int64_t ranked_begin;       /* of the last one that left the window, or the chunk before; */
    uint64_t ranked;            /* how many of this begin did so */
    uint64_t late;              /* the rank of the next late one; from 0 again once none of these is open */
    size_t late_open;
    VEC(struct latency_aside) aside;
    struct map aside_of;        /* serial number -> index in aside */
    series_values buffer[STATE_LATENCY_COLUMNS];
    size_t buffered;
    struct series_bytes *bytes; /* of the pool; shared by all kinds */
    struct series_table table;
    struct tiles tiles;         /* of the table */
    latency_far *far;           /* shared by all kinds */
};
void latency_series_init(struct latency_series *, struct series_bytes *, latency_far *far);
void latency_series_fini(struct latency_series *);
/* A handle, never 0; valid for one close or drop. */
uint64_t latency_open(struct latency_series *, int64_t begin, int32_t thread, uint32_t code);
void latency_close(struct latency_series *, uint64_t handle, int64_t end, int64_t ret, int32_t cpu);
/* Of a handle that was neither closed nor dropped; valid until the next is opened. */
const struct latency *latency_of(const struct latency_series *, uint64_t handle);
uint64_t latency_rank(const struct latency_series *, uint64_t handle); /* likewise */
/* One that began in a chunk before. */
uint64_t latency_reopen(struct latency_series *, const struct latency *, uint64_t rank);
/* How many that were opened in time began at last_begin. */
uint64_t latency_ranks(const struct latency_series *);
/* A new one goes on where another was cut, with its last_begin and ranks. */
void latency_go_on(struct latency_series *, int64_t last_begin, uint64_t ranks);
void latency_drop(struct latency_series *, uint64_t handle);
/* To be called some time before its close or drop: brings its memory near. Handle 0: does nothing. */
void latency_fetch(const struct latency_series *, uint64_t handle);
/* The end, or a cut. Then the table holds what closed within the window and `aside` the rest that closed, in order. At
 * a cut `aside` also has those that were opened in the chunk, in time, and are still open. */
void latency_series_finish(struct latency_series *, bool cut);

#endif
