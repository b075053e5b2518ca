/* Private to state: rows and columns while they grow. What is complete is packed at once, so that memory stays near the size of the store. */
#ifndef WEFT_STATE_SERIES_H
#define WEFT_STATE_SERIES_H

#include "base/map.h"
#include "base/mem.h"
#include "state/format.h"

/* Packed bytes; always 8 more than n are allocated. */
struct series_bytes { uint8_t *v; size_t n, cap; };
uint8_t *series_bytes_room(struct series_bytes *, size_t n);

/* ---- rows ---------------------------------------------------------------------------------------------------------------------------- */

enum { SERIES_KEPT = 32, SERIES_BUFFER = STATE_BLOCK + SERIES_KEPT }; /* the last entries stay open, because late news may change them */

/* Which entries of a row count as time spent, by their number: tables of flags, grown by their users. */
enum series_sum { SERIES_NO_SUM, SERIES_RUNNING, SERIES_BUSY, SERIES_SUMS };

struct series_entry { int64_t time, number; };
struct series {
    struct series_entry *v;
    uint32_t id;             /* given when the first block closes; 0: none */
    uint16_t n, cap;
    uint8_t sum;             /* enum series_sum */
    uint8_t lead;            /* number in force before the first entry */
    uint64_t closed;         /* entries that went into blocks */
    int64_t before;          /* sum before the first entry of v */
};

struct series_block { struct state_disk_block block; uint32_t id; };
struct series_pool {
    VEC(struct series_block) blocks;
    struct series_bytes bytes;
    uint32_t ids;
    VEC(uint8_t) flags[SERIES_SUMS];
};
void series_pool_fini(struct series_pool *);
void series_fini(struct series *);

void series_grow(struct series_pool *, struct series *);
void series_amend(struct series *, int64_t number);
/* From `time` on the row is at `number`. Times before the last entry's count as that; an entry that lasted no time is replaced. */
static inline void series_push(struct series_pool *p, struct series *s, int64_t time, int64_t number)
{
    if (s->n) {
        const struct series_entry *last = &s->v[s->n - 1];
        if (last->number == number)
            return;
        if (time <= last->time) {
            series_amend(s, number);
            return;
        }
    } else if (number == s->lead) {
        return;
    }
    if (s->n == s->cap)
        series_grow(p, s);
    s->v[s->n++] = (struct series_entry){time, number};
}
static inline int64_t series_last(const struct series *s) { return s->n ? s->v[s->n - 1].time : INT64_MIN; }
/* Takes back entries from `time` on, as far as they are open. */
void series_cut(struct series *, int64_t time);
/* Entries from `time` on that say `from` say `to`, as far as they are open. */
void series_rename(struct series *, int64_t time, int64_t from, int64_t to);
/* The last entry but one did not happen. */
void series_mend(struct series *);
/* Packs what is open. The series is complete then. */
void series_finish(struct series_pool *, struct series *);

/* ---- columns -------------------------------------------------------------------------------------------------------------------------- */

struct series_column { VEC(struct state_disk_head) heads; uint64_t n; };
/* Appends a block: n <= 128 values v[i * stride]. Only the last block may be short. */
void series_column_add(struct series_bytes *, struct series_column *, const int64_t *v, size_t stride, size_t n);

/* ---- latencies ------------------------------------------------------------------------------------------------------------------------ */
/* Latencies are known at their ends and kept by their begins: a window of open places in order of begin; what stays open too long moves aside. */

enum { LATENCY_WINDOW = 2048 };
enum latency_progress { LATENCY_OPEN, LATENCY_CLOSED, LATENCY_DROPPED };
struct latency {
    int64_t begin, end, ret;
    int32_t thread, cpu;
    uint32_t code;
    uint8_t progress;
};
typedef VEC(int64_t) latency_far;
struct latencies {
    struct latency *window;  /* 2 * LATENCY_WINDOW places */
    size_t n;
    uint64_t first;          /* serial number of window[0] */
    int64_t last_begin;
    VEC(struct latency) late;
    struct map late_of;      /* serial number -> place in late */
    int64_t buffer[STATE_BLOCK][STATE_LATENCY_COLUMNS];
    size_t buffered;
    struct series_bytes bytes;
    struct series_column columns[STATE_LATENCY_COLUMNS];
    latency_far far;
};
void latencies_init(struct latencies *);
void latencies_fini(struct latencies *);
/* A handle, never 0; valid for one close or drop. */
uint64_t latency_open(struct latencies *, int64_t begin, int32_t thread, uint32_t code);
void latency_close(struct latencies *, uint64_t handle, int64_t end, int64_t ret, int32_t cpu);
void latency_drop(struct latencies *, uint64_t handle);
/* Whether a latency must be left out. */
typedef bool latency_refuse(const void *arg, int64_t thread, int64_t begin, int64_t end);
/* Everything closed and not refused (NULL: nothing is), in order of begin, as columns whose blocks go to `bytes`; addresses go to `far`. */
void latencies_finish(struct latencies *, latency_refuse *, const void *arg, struct series_bytes *bytes, latency_far *far,
                      struct series_column columns[STATE_LATENCY_COLUMNS]);

#endif
