/* Latencies while they are measured, and their order by begin. */
#include <stdlib.h>
#include <string.h>

#include "state/series.h"

static const uint64_t ASIDE = UINT64_C(1) << 63; /* a handle that is a place in `late` */

void latencies_init(struct latencies *l)
{
    memset(l, 0, sizeof *l);
    l->last_begin = INT64_MIN;
}

void latencies_fini(struct latencies *l)
{
    free(l->window);
    vec_free(&l->late);
    map_fini(&l->late_of);
    vec_free(&l->bytes);
    for (int i = 0; i < STATE_LATENCY_COLUMNS; i++)
        vec_free(&l->columns[i].heads);
    vec_free(&l->far);
}

/* ---- packing ------------------------------------------------------------------------------------------------------------------- */

/* Rows of a latency become blocks of six columns. */
struct packer {
    int64_t (*buffer)[STATE_LATENCY_COLUMNS];
    size_t *n;
    struct series_bytes *bytes;
    struct series_column *columns;
};

static void pack_rows(const struct packer *p)
{
    for (int i = 0; i < STATE_LATENCY_COLUMNS && *p->n; i++)
        series_column_add(p->bytes, &p->columns[i], &p->buffer[0][i], STATE_LATENCY_COLUMNS, *p->n);
    *p->n = 0;
}

static void pack_row(const struct packer *p, const int64_t row[STATE_LATENCY_COLUMNS])
{
    memcpy(p->buffer[*p->n], row, sizeof p->buffer[0]);
    if (++*p->n == STATE_BLOCK)
        pack_rows(p);
}

static void to_row(const struct latency *x, latency_far *far, int64_t row[STATE_LATENCY_COLUMNS])
{
    row[STATE_BEGIN] = x->begin;
    row[STATE_DURATION] = x->end - x->begin;
    if (x->ret >= -STATE_RET_BIAS && x->ret < STATE_RET_FAR - STATE_RET_BIAS) {
        row[STATE_RET] = x->ret + STATE_RET_BIAS;
    } else {
        row[STATE_RET] = (int64_t)(STATE_RET_FAR + far->n);
        vec_push(far, x->ret);
    }
    row[STATE_LATENCY_THREAD] = x->thread;
    row[STATE_LATENCY_CPU] = x->cpu;
    row[STATE_LATENCY_CODE] = x->code;
}

/* ---- the window ---------------------------------------------------------------------------------------------------------------- */

/* Makes room: the older half goes; what is still open moves aside. */
static void advance(struct latencies *l)
{
    struct packer p = {l->buffer, &l->buffered, &l->bytes, l->columns};
    int64_t row[STATE_LATENCY_COLUMNS];
    for (size_t i = 0; i < LATENCY_WINDOW; i++) {
        const struct latency *x = &l->window[i];
        if (x->progress == LATENCY_CLOSED) {
            to_row(x, &l->far, row);
            pack_row(&p, row);
        } else if (x->progress == LATENCY_OPEN) {
            *map_put(&l->late_of, l->first + i, NULL) = l->late.n;
            vec_push(&l->late, *x);
        }
    }
    l->n -= LATENCY_WINDOW;
    l->first += LATENCY_WINDOW;
    memmove(l->window, l->window + LATENCY_WINDOW, l->n * sizeof *l->window);
}

uint64_t latency_open(struct latencies *l, int64_t begin, int32_t thread, uint32_t code)
{
    struct latency x = {.begin = begin, .thread = thread, .code = code, .progress = LATENCY_OPEN};
    if (begin < l->last_begin) { /* told late */
        vec_push(&l->late, x);
        return ASIDE | l->late.n;
    }
    l->last_begin = begin;
    if (!l->window)
        l->window = mem_alloc(2 * LATENCY_WINDOW * sizeof *l->window);
    if (l->n == 2 * LATENCY_WINDOW)
        advance(l);
    l->window[l->n++] = x;
    return l->first + l->n;
}

static struct latency *place_of(struct latencies *l, uint64_t handle)
{
    if (handle & ASIDE)
        return &l->late.v[(handle & ~ASIDE) - 1];
    if (handle - 1 >= l->first)
        return &l->window[handle - 1 - l->first];
    return &l->late.v[*map_find(&l->late_of, handle - 1)];
}


void latency_close(struct latencies *l, uint64_t handle, int64_t end, int64_t ret, int32_t cpu)
{
    struct latency *x = place_of(l, handle);
    x->end = end > x->begin ? end : x->begin;
    x->ret = ret;
    x->cpu = cpu;
    x->progress = LATENCY_CLOSED;
}

void latency_drop(struct latencies *l, uint64_t handle)
{
    place_of(l, handle)->progress = LATENCY_DROPPED;
}

/* ---- the end ------------------------------------------------------------------------------------------------------------------- */

static int by_begin(const void *a, const void *b)
{
    const struct latency *x = a, *y = b;
    if (x->begin != y->begin)
        return x->begin < y->begin ? -1 : 1;
    return x->thread < y->thread ? -1 : x->thread > y->thread;
}

/* Row i of what was packed. */
static void unpack_row(const struct latencies *l, size_t i, int64_t row[STATE_LATENCY_COLUMNS])
{
    for (int c = 0; c < STATE_LATENCY_COLUMNS; c++) {
        const struct state_disk_head *h = &l->columns[c].heads.v[i / STATE_BLOCK];
        const uint8_t *from = l->bytes.v + (h->position & (UINT64_MAX >> 8));
        row[c] = (int64_t)((uint64_t)h->base + pack_get(from, i % STATE_BLOCK, (uint8_t)(h->position >> 56)));
    }
}

static void sort_late(struct latencies *l)
{
    size_t n = 0;
    for (size_t i = 0; i < l->late.n; i++)
        if (l->late.v[i].progress == LATENCY_CLOSED)
            l->late.v[n++] = l->late.v[i];
    l->late.n = n;
    if (n)
        qsort(l->late.v, n, sizeof *l->late.v, by_begin);
}

/* All that never closed is dropped; late and punctual ones are merged. */
void latencies_finish(struct latencies *l, latency_refuse *refuse, const void *arg, struct series_bytes *bytes, latency_far *far,
    struct series_column columns[STATE_LATENCY_COLUMNS])
{
    struct packer own = {l->buffer, &l->buffered, &l->bytes, l->columns}, to = own;
    int64_t row[STATE_LATENCY_COLUMNS], late_row[STATE_LATENCY_COLUMNS];
    for (size_t i = 0; i < l->n; i++) {
        if (l->window[i].progress != LATENCY_CLOSED)
            continue;
        to_row(&l->window[i], &l->far, row);
        pack_row(&own, row);
    }
    pack_rows(&own);
    sort_late(l);
    to.bytes = bytes;
    to.columns = columns;
    size_t late = 0, n = l->columns[0].n;
    for (size_t i = 0; i < n || late < l->late.n;) {
        if (i < n)
            unpack_row(l, i, row);
        if (late < l->late.n && (i == n || l->late.v[late].begin < row[STATE_BEGIN])) {
            to_row(&l->late.v[late++], far, late_row);
        } else {
            memcpy(late_row, row, sizeof row);
            if (row[STATE_RET] >= STATE_RET_FAR) {
                late_row[STATE_RET] = (int64_t)(STATE_RET_FAR + far->n);
                vec_push(far, l->far.v[row[STATE_RET] - STATE_RET_FAR]);
            }
            i++;
        }
        if (!refuse ||
            !refuse(arg, late_row[STATE_LATENCY_THREAD], late_row[STATE_BEGIN], late_row[STATE_BEGIN] + late_row[STATE_DURATION]))
            pack_row(&to, late_row);
    }
    pack_rows(&to);
}
