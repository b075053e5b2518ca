/* Latencies while they are measured, and their order by begin. */
#include <stdlib.h>
#include <string.h>

#include "base/order.h"
#include "state/series.h"

static const uint64_t ASIDE = UINT64_C(1) << 63; /* a handle that is an index in `aside`, + 1 */

void latency_series_init(struct latency_series *l, struct series_bytes *bytes, latency_far *far)
{
    memset(l, 0, sizeof *l);
    l->bytes = bytes;
    l->far = far;
    l->last_begin = INT64_MIN;
}

void latency_series_fini(struct latency_series *l)
{
    free(l->window);
    vec_free(&l->aside);
    map_fini(&l->aside_of);
    vec_free(&l->table.heads);
    tiles_fini(&l->tiles);
}

/* ---- packing ---- */

static void pack_rows(struct latency_series *l)
{
    if (l->buffered) {
        series_table_add(l->bytes, &l->table, l->buffer, STATE_LATENCY_COLUMNS, l->buffered);
        tiles_add(&l->tiles, l->buffer[STATE_DURATION], l->buffer[STATE_LATENCY_CODE], l->buffered);
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

/* Of those that are open, the ones of this one's half. */
static size_t *open_beside(struct latency_series *l, uint64_t serial)
{
    return &l->open[(serial - l->origin) >> l->shift & 1];
}

/* The window, which is full, becomes the older half of one twice as large. */
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

/* Makes room: the older half goes; what is still open moves aside. Rare, so it is no part of latency_open's code. */
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
            vec_push(&l->aside, *x);
        }
    }
    *open = 0;
    l->n -= l->half;
    l->first += l->half;
}

uint64_t latency_open(struct latency_series *l, int64_t begin, int32_t thread, uint32_t code)
{
    struct latency x = {.begin = begin, .thread = thread, .code = code, .progress = LATENCY_OPEN};
    if (begin < l->last_begin) { /* known too late */
        vec_push(&l->aside, x);
        return ASIDE | l->aside.n;
    }
    l->last_begin = begin;
    if (l->n == 2 * l->half)
        advance(l);
    uint64_t serial = l->first + l->n++;
    *at(l, serial) = x;
    ++*open_beside(l, serial);
    return serial + 1;
}

/* The latency of a handle, which is open no more. */
static struct latency *take(struct latency_series *l, uint64_t handle)
{
    if (handle & ASIDE)
        return &l->aside.v[(handle & ~ASIDE) - 1];
    if (handle - 1 < l->first)
        return &l->aside.v[*map_find(&l->aside_of, handle - 1)];
    --*open_beside(l, handle - 1);
    return at(l, handle - 1);
}

void latency_close(struct latency_series *l, uint64_t handle, int64_t end, int64_t ret, int32_t cpu)
{
    struct latency *x = take(l, handle); /* it lies anywhere in memory, so nothing of it is read */
    x->end = end;
    x->ret = ret;
    x->cpu = cpu;
    x->progress = LATENCY_CLOSED;
}

void latency_fetch(const struct latency_series *l, uint64_t handle)
{
    if (handle && !(handle & ASIDE) && handle - 1 >= l->first)
        mem_fetch(at(l, handle - 1), sizeof *l->window);
}

void latency_drop(struct latency_series *l, uint64_t handle)
{
    take(l, handle)->progress = LATENCY_DROPPED;
}

/* ---- the end ---- */

static int by_begin(const void *a, const void *b)
{
    const struct latency *x = a, *y = b;
    return order_of(x->begin, y->begin) ?: order_of(x->thread, y->thread);
}

static void sort_aside(struct latency_series *l, latency_refuse *refuse, const void *arg)
{
    size_t n = 0;
    for (size_t i = 0; i < l->aside.n; i++) {
        struct latency x = l->aside.v[i];
        x.end = end_of(&x);
        if (x.progress == LATENCY_CLOSED && !(refuse && refuse(arg, x.thread, x.begin, x.end)))
            l->aside.v[n++] = x;
    }
    l->aside.n = n;
    if (n)
        qsort(l->aside.v, n, sizeof *l->aside.v, by_begin);
}

void latency_series_finish(struct latency_series *l)
{
    for (uint64_t i = l->first; i < l->first + l->n; i++)
        if (at(l, i)->progress == LATENCY_CLOSED)
            pack(l, at(l, i));
    pack_rows(l);
    tiles_end(&l->tiles);
    l->n = 0;
    sort_aside(l, NULL, NULL);
}

void latency_series_sift(
    struct latency_series *l, const struct series_bytes *bytes, latency_refuse *refuse, const void *arg)
{
    struct series_table old = l->table;
    series_values v[STATE_LATENCY_COLUMNS];
    l->table = (struct series_table){0};
    tiles_fini(&l->tiles);
    for (size_t block = 0; block < old.heads.n; block++) {
        size_t n = series_table_rows(&old, block);
        for (int c = 0; c < STATE_LATENCY_COLUMNS; c++)
            series_table_take(bytes, &old, block, c, v[c]);
        for (size_t i = 0; i < n; i++) {
            int64_t begin = v[STATE_BEGIN][i], end = (int64_t)((uint64_t)begin + (uint64_t)v[STATE_DURATION][i]);
            if (refuse && refuse(arg, v[STATE_LATENCY_THREAD][i], begin, end))
                continue;
            for (int c = 0; c < STATE_LATENCY_COLUMNS; c++)
                l->buffer[c][l->buffered] = v[c][i];
            if (++l->buffered == STATE_BLOCK)
                pack_rows(l);
        }
    }
    pack_rows(l);
    tiles_end(&l->tiles);
    vec_free(&old.heads);
    sort_aside(l, refuse, arg);
}
