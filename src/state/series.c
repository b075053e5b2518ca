#include "state/series.h"

#include <stdlib.h>
#include <string.h>

uint8_t *series_bytes_room(struct series_bytes *b, size_t n)
{
    if (b->n % SERIES_CHUNK + n + 8 > SERIES_CHUNK || !b->chunks.n)
        b->n = b->chunks.n * (uint64_t)SERIES_CHUNK;
    if (b->n == b->chunks.n * (uint64_t)SERIES_CHUNK)
        vec_push(&b->chunks, mem_map(SERIES_CHUNK));
    return b->chunks.v[b->n / SERIES_CHUNK] + b->n % SERIES_CHUNK;
}

void series_bytes_fini(struct series_bytes *b)
{
    for (size_t i = 0; i < b->chunks.n; i++)
        mem_unmap(b->chunks.v[i], SERIES_CHUNK);
    vec_free(&b->chunks);
    b->n = 0;
}

/* ---- rows ---------------------------------------------------------------------------------------------------------------------- */

void series_pool_fini(struct series_pool *p)
{
    vec_free(&p->blocks);
    series_bytes_fini(&p->bytes);
    for (int i = 0; i < SERIES_SUMS; i++)
        vec_free(&p->flags[i]);
}

void series_fini(struct series *s)
{
    free(s->v);
    s->v = NULL;
}

static int64_t sum_over(const struct series_pool *p, const struct series *s, size_t n)
{
    int64_t sum = 0;
    const uint8_t *flags = p->flags[s->sum].v;
    for (size_t i = 0; i < n; i++)
        if (flags[s->v[i].number])
            sum += s->v[i + 1].time - s->v[i].time;
    return sum;
}

/* Packs the first n entries. `last`: no entry comes behind them. */
static void close_block(struct series_pool *p, struct series *s, size_t n, bool last)
{
    int64_t least = s->v[0].number, most = least;
    for (size_t i = 1; i < n; i++) {
        int64_t v = s->v[i].number;
        least = v < least ? v : least;
        most = v > most ? v : most;
    }
    if (!s->id)
        s->id = ++p->ids;
    struct state_disk_block b = {.base = s->v[0].time, .least = least, .before = s->before, .n = (uint16_t)n};
    b.time_width = pack_width((uint64_t)s->v[n - 1].time - (uint64_t)b.base);
    b.number_width = pack_width((uint64_t)most - (uint64_t)least);
    size_t time_bytes = pack_bytes(n, b.time_width), number_bytes = pack_bytes(n, b.number_width);
    uint8_t *to = series_bytes_room(&p->bytes, time_bytes + number_bytes);
    b.position = p->bytes.n;
    pack_put(to, &s->v[0].time, 2, n, b.base, b.time_width);
    pack_put(to + time_bytes, &s->v[0].number, 2, n, least, b.number_width);
    p->bytes.n += time_bytes + number_bytes;
    vec_push(&p->blocks, ((struct series_block){b, s->id}));
    if (s->sum != SERIES_NO_SUM && !last)
        s->before += sum_over(p, s, n);
    s->closed += n;
    s->n -= (uint16_t)n;
    memmove(s->v, s->v + n, s->n * sizeof *s->v);
}

void series_grow(struct series_pool *p, struct series *s)
{
    if (s->cap == SERIES_BUFFER) {
        close_block(p, s, STATE_BLOCK, false);
        return;
    }
    s->cap = !s->cap ? 4 : s->cap < 64 ? s->cap * 4 : SERIES_BUFFER;
    s->v = mem_resize(s->v, s->cap * sizeof *s->v);
}

void series_amend(struct series *s, int64_t number)
{
    if (s->n > 1 ? s->v[s->n - 2].number == number : !s->closed && number == s->lead)
        s->n--;
    else
        s->v[s->n - 1].number = number;
}

void series_cut(struct series *s, int64_t time)
{
    while (s->n > (s->closed ? 1 : 0) && s->v[s->n - 1].time >= time)
        s->n--;
}

void series_rename(struct series *s, int64_t time, int64_t from, int64_t to)
{
    for (size_t i = s->n; i-- > 0 && s->v[i].time >= time;)
        if (s->v[i].number == from)
            s->v[i].number = to;
}

void series_mend(struct series *s)
{
    if (s->n < 3)
        return;
    s->v[s->n - 2] = s->v[s->n - 1];
    s->n--;
    if (s->v[s->n - 2].number == s->v[s->n - 1].number)
        s->n--;
}

void series_finish(struct series_pool *p, struct series *s)
{
    if (s->n > STATE_BLOCK)
        close_block(p, s, STATE_BLOCK, false);
    if (s->n)
        close_block(p, s, s->n, true);
}

/* ---- columns ------------------------------------------------------------------------------------------------------------------- */

void series_column_add(struct series_bytes *bytes, struct series_column *c, const int64_t *v, size_t stride, size_t n)
{
    int64_t least = v[0], most = v[0];
    for (size_t i = 1; i < n; i++) {
        least = v[i * stride] < least ? v[i * stride] : least;
        most = v[i * stride] > most ? v[i * stride] : most;
    }
    uint8_t width = pack_width((uint64_t)most - (uint64_t)least);
    uint8_t *to = series_bytes_room(bytes, pack_bytes(n, width));
    pack_put(to, v, stride, n, least, width);
    vec_push(&c->heads, ((struct state_disk_head){least, bytes->n | (uint64_t)width << 56}));
    bytes->n += pack_bytes(n, width);
    c->n += n;
}
