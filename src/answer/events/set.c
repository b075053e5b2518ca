/* SPDX-License-Identifier: MIT */
#include "events/set.h"

#include "base/search.h"

enum { BLOCK = 65536, MAX_POSITIONS = 4096, WORDS = BLOCK / 64 };

static void to_bits(struct event_set *s, struct event_block *b)
{
    uint64_t *bits = mem_zalloc(sizeof *bits * WORDS);
    for (uint32_t i = 0; i < b->n; i++)
        bits[b->positions[i] / 64] |= (uint64_t)1 << (b->positions[i] % 64);
    free(b->positions);
    s->bytes += sizeof *bits * WORDS - sizeof *b->positions * b->cap;
    b->bits = bits;
    b->cap = 0;
}

static struct event_block *new_block(struct event_set *s, uint64_t base)
{
    struct event_block b = {.base = base, .before = s->n, .cap = 8};
    b.positions = mem_alloc(sizeof *b.positions * b.cap);
    s->bytes += sizeof b + sizeof *b.positions * b.cap;
    vec_push(&s->blocks, b);
    return &s->blocks.v[s->blocks.n - 1];
}

static void grow(struct event_set *s, struct event_block *b)
{
    s->bytes += sizeof *b->positions * b->cap;
    b->cap *= 2;
    b->positions = mem_resize(b->positions, sizeof *b->positions * b->cap);
}

void events_set_add(struct event_set *s, uint64_t number)
{
    struct event_block *b = s->blocks.n ? &s->blocks.v[s->blocks.n - 1] : NULL;
    uint16_t position = (uint16_t)(number % BLOCK);
    if (!b || b->base != number / BLOCK)
        b = new_block(s, number / BLOCK);
    if (b->cap && b->n == MAX_POSITIONS)
        to_bits(s, b);
    else if (b->cap && b->n == b->cap)
        grow(s, b);
    if (b->cap)
        b->positions[b->n] = position;
    else
        b->bits[position / 64] |= (uint64_t)1 << (position % 64);
    b->n++;
    s->n++;
}

static uint64_t rank_in(const struct event_block *b, uint32_t position)
{
    uint64_t n = 0;
    if (!b->cap) {
        for (uint32_t w = 0; w < position / 64; w++)
            n += (uint64_t)__builtin_popcountll(b->bits[w]);
        return n + (uint64_t)__builtin_popcountll(b->bits[position / 64] & (((uint64_t)1 << (position % 64)) - 1));
    }
    while (n < b->n && b->positions[n] < position)
        n++;
    return n;
}

uint64_t events_set_rank(const struct event_set *s, uint64_t number)
{
    size_t lo = search_first(i, 0, s->blocks.n, s->blocks.v[i].base >= number / BLOCK);
    if (lo == s->blocks.n)
        return s->n;
    const struct event_block *b = &s->blocks.v[lo];
    return b->before + (b->base == number / BLOCK ? rank_in(b, (uint32_t)(number % BLOCK)) : 0);
}

/* Numbers of one block from the rank `first` in it. */
static size_t get_from(const struct event_block *b, uint64_t first, uint64_t *out, size_t max)
{
    size_t n = 0;
    uint64_t base = b->base * BLOCK;
    if (b->cap) {
        for (; first + n < b->n && n < max; n++)
            out[n] = base + b->positions[first + n];
        return n;
    }
    for (uint32_t w = 0; w < WORDS && n < max; w++) {
        uint64_t bits = b->bits[w], here = (uint64_t)__builtin_popcountll(bits);
        if (first >= here) {
            first -= here;
            continue;
        }
        for (; first; first--)
            bits &= bits - 1;
        for (; bits && n < max; bits &= bits - 1)
            out[n++] = base + w * 64 + (uint64_t)__builtin_ctzll(bits);
    }
    return n;
}

size_t events_set_get(const struct event_set *s, uint64_t first, uint64_t *out, size_t max)
{
    size_t n = 0;
    if (first >= s->n)
        return 0;
    size_t lo = search_first(i, 0, s->blocks.n, s->blocks.v[i].before > first) - 1;
    for (first -= s->blocks.v[lo].before; lo < s->blocks.n && n < max; lo++, first = 0)
        n += get_from(&s->blocks.v[lo], first, out + n, max - n);
    return n;
}

void events_set_fini(struct event_set *s)
{
    for (size_t i = 0; i < s->blocks.n; i++)
        free(s->blocks.v[i].cap ? (void *)s->blocks.v[i].positions : (void *)s->blocks.v[i].bits);
    vec_free(&s->blocks);
}
