/* SPDX-License-Identifier: MIT */
#include "span/term_sets.h"

#include <stdlib.h>
#include <string.h>

#include "base/err.h"

/* Code: 25 bits of a term. 6 choose the bucket; 19 precede the place in the group in its entries. */
enum { CODE_SHIFT = 39, PLACE_BITS = 13, IN_BUCKET_BITS = 19, MANY = sizeof(struct term_set) / sizeof(uint32_t) };
_Static_assert(TERM_GROUP == 1 << PLACE_BITS && TERM_BUCKETS == 1 << (25 - IN_BUCKET_BITS), "as entries are made");

static uint32_t code_of(uint64_t term)
{
    return (uint32_t)(term >> CODE_SHIFT);
}

static uint32_t entry_of(uint32_t code, uint32_t place)
{
    return (code & ((1U << IN_BUCKET_BITS) - 1)) << PLACE_BITS | place;
}

void term_group_fini(struct term_group *t)
{
    for (size_t i = 0; i < TERM_BUCKETS; i++)
        vec_free(&t->buckets[i]);
    vec_free(&t->origins);
    *t = (struct term_group){0};
}

void term_begin_span(struct term_group *t, uint32_t place, int64_t begin_ns, int64_t lasted_ns, int64_t origin)
{
    t->place = place;
    t->first_ns = !t->n || begin_ns < t->first_ns ? begin_ns : t->first_ns;
    t->last_ns = !t->n || begin_ns > t->last_ns ? begin_ns : t->last_ns;
    t->longest_ns = !t->n || lasted_ns > t->longest_ns ? lasted_ns : t->longest_ns;
    t->n++;
    vec_push(&t->origins, ((struct term_origin_use){origin, place}));
}

void term_take(void *terms, uint64_t term)
{
    struct term_group *t = terms;
    uint32_t code = code_of(term);
    vec_push(&t->buckets[code >> IN_BUCKET_BITS], entry_of(code, t->place));
}

/* ---- terms of origins ---- */

/* Sets by code. Those of origins are built first. */
struct sets {
    struct map places; /* code → place + 1 */
    VEC(struct term_set) v;
    VEC(uint32_t) codes;
    const struct term_set *adding;
};

static struct term_set *set_of(struct sets *s, uint32_t code)
{
    uint64_t *place = map_put(&s->places, code, NULL);
    if (!*place) {
        vec_push(&s->v, (struct term_set){0});
        vec_push(&s->codes, code);
        *place = s->v.n;
    }
    return &s->v.v[*place - 1];
}

static void add_set(void *arg, uint64_t term)
{
    struct sets *s = arg;
    struct term_set *to = set_of(s, code_of(term));
    for (size_t i = 0; i < TERM_WORDS; i++)
        to->words[i] |= s->adding->words[i];
}

static int by_origin(const void *a, const void *b)
{
    const struct term_origin_use *x = a, *y = b;
    return x->origin != y->origin ? (x->origin < y->origin ? -1 : 1) : (x->place > y->place) - (x->place < y->place);
}

static void put_bit(struct term_set *s, uint32_t place)
{
    s->words[place / 64] |= UINT64_C(1) << place % 64;
}

static int take_origins(struct term_group *t, struct sets *sets, term_of_origin *of_origin, void *arg, struct err *e)
{
    int rc = 0;
    if (t->origins.n)
        qsort(t->origins.v, t->origins.n, sizeof *t->origins.v, by_origin);
    for (size_t i = 0, n = t->origins.n; i < n && !rc;) {
        struct term_set used = {0};
        const int64_t origin = t->origins.v[i].origin;
        for (; i < n && t->origins.v[i].origin == origin; i++)
            put_bit(&used, t->origins.v[i].place);
        sets->adding = &used;
        rc = of_origin(arg, origin, add_set, sets, e);
    }
    return rc;
}

/* Adds small sets to their buckets as entries; stores large ones. */
static int put_sets(struct term_group *t, struct sets *s, term_put *put, void *arg, struct err *e)
{
    int rc = 0;
    for (size_t i = 0; i < s->v.n && !rc; i++) {
        const struct term_set *set = &s->v.v[i];
        uint32_t code = s->codes.v[i], n = 0;
        for (size_t w = 0; w < TERM_WORDS; w++)
            n += (uint32_t)__builtin_popcountll(set->words[w]);
        if (n >= MANY) {
            rc = put(arg, (int64_t)code + TERM_SETS, set, sizeof *set, e);
            continue;
        }
        for (uint32_t w = 0; w < TERM_WORDS; w++)
            for (uint64_t word = set->words[w]; word; word &= word - 1)
                vec_push(&t->buckets[code >> IN_BUCKET_BITS], entry_of(code, w * 64 + (uint32_t)__builtin_ctzll(word)));
    }
    return rc;
}

/* ---- lists ---- */

static int by_number(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

/* Moves codes with many spans from the sorted list to the sets. */
static void move_many(struct term_group *t, uint32_t bucket, struct sets *s)
{
    uint32_t *v = t->buckets[bucket].v;
    size_t n = t->buckets[bucket].n, kept = 0;
    for (size_t i = 0, end; i < n; i = end) {
        uint32_t in_bucket = v[i] >> PLACE_BITS, code = bucket << IN_BUCKET_BITS | in_bucket;
        for (end = i; end < n && v[end] >> PLACE_BITS == in_bucket;)
            end++;
        struct term_set *set = end - i >= MANY || map_find(&s->places, code) ? set_of(s, code) : NULL;
        for (size_t k = i; k < end; k++)
            if (set)
                put_bit(set, v[k] & (TERM_GROUP - 1));
            else if (k == i || v[k] != v[k - 1])
                v[kept++] = v[k];
    }
    t->buckets[bucket].n = kept;
}

int term_group_write(struct term_group *t, term_of_origin *of_origin, term_put *put, void *arg, struct err *e)
{
    struct sets sets = {0};
    int rc = take_origins(t, &sets, of_origin, arg, e);
    for (uint32_t i = 0; i < TERM_BUCKETS && !rc; i++) {
        if (t->buckets[i].n)
            qsort(t->buckets[i].v, t->buckets[i].n, sizeof(uint32_t), by_number);
        move_many(t, i, &sets);
    }
    rc = rc ? rc : put_sets(t, &sets, put, arg, e);
    for (uint32_t i = 0; i < TERM_BUCKETS && !rc; i++)
        if (t->buckets[i].n) {
            qsort(t->buckets[i].v, t->buckets[i].n, sizeof(uint32_t), by_number);
            rc = put(arg, i, t->buckets[i].v, t->buckets[i].n * sizeof(uint32_t), e);
        }
    map_fini(&sets.places);
    vec_free(&sets.v);
    vec_free(&sets.codes);
    for (size_t i = 0; i < TERM_BUCKETS; i++)
        t->buckets[i].n = 0;
    t->origins.n = t->n = 0;
    return rc;
}

/* ---- reading ---- */

int64_t term_bucket_key(uint64_t term)
{
    return code_of(term) >> IN_BUCKET_BITS;
}

int64_t term_set_key(uint64_t term)
{
    return (int64_t)code_of(term) + TERM_SETS;
}

void term_read_bucket(uint64_t term, const void *blob, size_t n, struct term_set *out)
{
    const uint8_t *bytes = blob;
    const uint32_t from = entry_of(code_of(term), 0);
    size_t low = 0, high = n / sizeof from;
    uint32_t entry;
    while (low < high) {
        size_t middle = (low + high) / 2;
        memcpy(&entry, bytes + middle * sizeof entry, sizeof entry);
        if (entry < from)
            low = middle + 1;
        else
            high = middle;
    }
    for (; low < n / sizeof entry; low++) {
        memcpy(&entry, bytes + low * sizeof entry, sizeof entry);
        if (entry >> PLACE_BITS != from >> PLACE_BITS)
            break;
        put_bit(out, entry & (TERM_GROUP - 1));
    }
}

void term_read_set(const void *blob, size_t n, struct term_set *out)
{
    uint64_t word;
    for (size_t i = 0; i < TERM_WORDS && (i + 1) * sizeof word <= n; i++) {
        memcpy(&word, (const uint8_t *)blob + i * sizeof word, sizeof word);
        out->words[i] |= word;
    }
}
