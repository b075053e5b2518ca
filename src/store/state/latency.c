/* SPDX-License-Identifier: MIT */
/* Latencies while they are measured, and their order by begin. */
#include <stdlib.h>
#include <string.h>

#include "base/order.h"
#include "base/search.h"
#include "state/series.h"

static const uint64_t ASIDE = UINT64_C(1) << 63; /* flag of a handle that is an index in `aside`, + 1 */

void state_latency_series_init(struct latency_series *l, struct series_bytes *bytes, latency_far *far)
{
    memset(l, 0, sizeof *l);
    l->bytes = bytes;
    l->far = far;
    l->last_begin = l->from = l->ranked_begin = INT64_MIN;
}

void state_latency_series_fini(struct latency_series *l)
{
    free(l->window);
    vec_free(&l->aside);
    map_fini(&l->aside_of);
    vec_free(&l->table.heads);
    state_tiles_fini(&l->tiles);
}

/* ---- packing ---- */

static void pack_rows(struct latency_series *l)
{
    if (l->buffered) {
        state_series_table_add(l->bytes, &l->table, l->buffer, STATE_LATENCY_COLUMNS, l->buffered);
        state_tiles_add(&l->tiles, l->buffer[STATE_DURATION], l->buffer[STATE_LATENCY_CODE], l->buffered);
    }
    l->buffered = 0;
}

static int64_t end_of(const struct latency *x)
{
    return x->end > x->begin ? x->end : x->begin;
}

static void pack(struct latency_series *l, const struct latency *x)
{
    size_t i = l->buffered++;
    l->buffer[STATE_BEGIN][i] = x->begin;
    l->buffer[STATE_DURATION][i] = (int64_t)ns_between(x->begin, end_of(x));
    if (x->ret >= -STATE_RET_BIAS && x->ret < STATE_RET_FAR - STATE_RET_BIAS) {
        l->buffer[STATE_RET][i] = x->ret + STATE_RET_BIAS;
    } else {
        l->buffer[STATE_RET][i] = (int64_t)(STATE_RET_FAR + l->far->n);
        vec_push(l->far, x->ret);
    }
    l->buffer[STATE_LATENCY_THREAD][i] = x->thread;
    l->buffer[STATE_LATENCY_CPU][i] = x->cpu;
    l->buffer[STATE_LATENCY_CODE][i] = x->code;
    if (l->buffered == STATE_BLOCK)
        pack_rows(l);
}

/* ---- the window ---- */

static struct latency *at(const struct latency_series *l, uint64_t serial)
{
    return &l->window[serial & (2 * l->half - 1)];
}

/* Begins in the window ascend. */
static uint64_t rank_in_window(const struct latency_series *l, uint64_t serial)
{
    int64_t begin = at(l, serial)->begin;
    uint64_t first = search_first(i, l->first, serial, at(l, i)->begin >= begin);
    return serial - first + (first == l->first && begin == l->ranked_begin ? l->ranked : 0);
}

/* Moves a latency aside, when all before it are packed. */
static void move_aside(struct latency_series *l, uint64_t serial)
{
    vec_push(&l->aside,
        ((struct latency_aside){
            .latency = *at(l, serial), .rank = rank_in_window(l, serial), .before = l->table.n + l->buffered}));
}

/* Number of open ones in the half of this one. */
static size_t *open_beside(struct latency_series *l, uint64_t serial)
{
    return &l->open[(serial - l->origin) >> l->shift & 1];
}

/* Doubles the full window, which becomes the older half. */
static void grow(struct latency_series *l)
{
    struct latency_series old = *l;
    l->half = old.half ? 2 * old.half : LATENCY_HALF;
    l->shift = (unsigned)__builtin_ctzll(l->half);
    l->window = mem_alloc(2 * l->half * sizeof *l->window);
    for (uint64_t i = l->first; i < l->first + l->n; i++)
        *at(l, i) = *at(&old, i);
    l->origin = l->first;
    l->open[0] = old.open[0] + old.open[1];
    l->open[1] = 0;
    free(old.window);
}

/* Makes room: packs the older half and moves its open ones aside. Rare, so it is kept out of state_latency_open's
 * code. */
static __attribute__((noinline)) void advance(struct latency_series *l)
{
    size_t *open = open_beside(l, l->first);
    if (!l->half || (l->half<LATENCY_MOST_HALF && * open> l->half / LATENCY_ASIDE_SHARE)) {
        grow(l);
        return;
    }
    for (uint64_t i = l->first; i < l->first + l->half; i++) {
        const struct latency *x = at(l, i);
        if (x->progress == LATENCY_CLOSED) {
            pack(l, x);
        } else if (x->progress == LATENCY_OPEN) {
            *map_put(&l->aside_of, i, NULL) = l->aside.n;
            move_aside(l, i);
        }
    }
    *open = 0;
    l->ranked = rank_in_window(l, l->first + l->half - 1) + 1;
    l->ranked_begin = at(l, l->first + l->half - 1)->begin;
    l->n -= l->half;
    l->first += l->half;
}

static __attribute__((noinline)) uint64_t open_late(
    struct latency_series *l, int64_t begin, int32_t thread, uint32_t code)
{
    l->late_open++;
    vec_push(&l->aside,
        ((struct latency_aside){.latency = {.begin = begin, .thread = thread, .code = code, .progress = LATENCY_OPEN},
            .rank = STATE_RANK_LATE | l->late++,
            .early = begin < l->from}));
    return ASIDE | l->aside.n;
}

uint64_t state_latency_open(struct latency_series *l, int64_t begin, int32_t thread, uint32_t code)
{
    struct latency x = {.begin = begin, .thread = thread, .code = code, .progress = LATENCY_OPEN};
    if (begin < l->last_begin)
        return open_late(l, begin, thread, code);
    l->last_begin = begin;
    if (l->n == 2 * l->half)
        advance(l);
    uint64_t serial = l->first + l->n++;
    *at(l, serial) = x;
    ++*open_beside(l, serial);
    return serial + 1;
}

/* Returns NULL if it is in the window. */
static struct latency_aside *aside_of(const struct latency_series *l, uint64_t handle)
{
    if (handle & ASIDE)
        return &l->aside.v[(handle & ~ASIDE) - 1];
    return handle - 1 < l->first ? &l->aside.v[*map_find(&l->aside_of, handle - 1)] : NULL;
}

const struct latency *state_latency_of(const struct latency_series *l, uint64_t handle)
{
    const struct latency_aside *aside = aside_of(l, handle);
    return aside ? &aside->latency : at(l, handle - 1);
}

/* Returns the latency of a handle and ends its being open. */
static struct latency *take(struct latency_series *l, uint64_t handle)
{
    struct latency_aside *aside = aside_of(l, handle);
    if (__builtin_expect(!aside, 1)) {
        --*open_beside(l, handle - 1);
        return at(l, handle - 1);
    }
    if (aside->rank & STATE_RANK_LATE && l->late_open && !--l->late_open)
        l->late = 0;
    return &aside->latency;
}

void state_latency_close(struct latency_series *l, uint64_t handle, int64_t end, int64_t ret, int32_t cpu)
{
    struct latency *x = take(l, handle); /* may be anywhere in memory, so it is not read */
    x->end = end;
    x->ret = ret;
    x->cpu = cpu;
    x->progress = LATENCY_CLOSED;
}

void state_latency_fetch(const struct latency_series *l, uint64_t handle)
{
    if (handle && !(handle & ASIDE) && handle - 1 >= l->first)
        mem_fetch(at(l, handle - 1), sizeof *l->window);
}

void state_latency_drop(struct latency_series *l, uint64_t handle)
{
    take(l, handle)->progress = LATENCY_DROPPED;
}

/* ---- cuts ---- */

uint64_t state_latency_rank(const struct latency_series *l, uint64_t handle)
{
    const struct latency_aside *aside = aside_of(l, handle);
    return aside ? aside->rank : rank_in_window(l, handle - 1);
}

uint64_t state_latency_ranks(const struct latency_series *l)
{
    return l->n ? rank_in_window(l, l->first + l->n - 1) + 1 : l->ranked;
}

void state_latency_go_on(struct latency_series *l, int64_t last_begin, uint64_t ranks)
{
    l->last_begin = l->from = l->ranked_begin = last_begin;
    l->ranked = ranks;
}

uint64_t state_latency_reopen(struct latency_series *l, const struct latency *x, uint64_t rank)
{
    l->late_open += rank >= STATE_RANK_LATE;
    vec_push(&l->aside, ((struct latency_aside){.latency = *x, .rank = rank, .early = true}));
    return ASIDE | l->aside.n;
}

/* ---- the end ---- */

static int by_begin(const void *a, const void *b)
{
    const struct latency_aside *x = a, *y = b;
    return order_of(x->latency.begin, y->latency.begin) ?: order_of(x->rank, y->rank) ?: order_of(x->place, y->place);
}

/* Returns whether it is open and may be looked up in later chunks. */
static bool stays_open(const struct latency_aside *x)
{
    return x->latency.progress == LATENCY_OPEN && !x->early && x->rank < STATE_RANK_LATE;
}

void state_latency_series_finish(struct latency_series *l, bool cut)
{
    size_t n = 0;
    for (uint64_t i = l->first; i < l->first + l->n; i++) {
        const struct latency *x = at(l, i);
        if (x->progress == LATENCY_CLOSED)
            pack(l, x);
        else if (x->progress == LATENCY_OPEN && cut)
            move_aside(l, i);
    }
    pack_rows(l);
    state_tiles_end(&l->tiles);
    l->n = 0;
    for (size_t i = 0; i < l->aside.n; i++) {
        struct latency_aside x = l->aside.v[i];
        x.latency.end = end_of(&x.latency);
        x.place = i;
        if (x.latency.progress == LATENCY_CLOSED || (cut && stays_open(&x)))
            l->aside.v[n++] = x;
    }
    l->aside.n = n;
    if (n)
        qsort(l->aside.v, n, sizeof *l->aside.v, by_begin);
}
