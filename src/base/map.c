/* SPDX-License-Identifier: MIT */
#include "base/map.h"

#include <stdlib.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/mem.h"

uint64_t map_hash(const void *data, size_t n)
{
    return XXH3_64bits(data, n);
}

void map_hash_pieces(const struct map_piece *pieces, size_t count, uint64_t out[2])
{
    XXH3_state_t state;
    XXH3_128bits_reset(&state);
    for (size_t i = 0; i < count; i++) {
        uint64_t n = pieces[i].n;
        XXH3_128bits_update(&state, &n, sizeof n);
        XXH3_128bits_update(&state, pieces[i].data, pieces[i].n);
    }
    XXH128_hash_t hash = XXH3_128bits_digest(&state);
    out[0] = hash.low64;
    out[1] = hash.high64;
}

/* Finaliser of splitmix64: a bijection, so distinct keys stay distinct. */
uint64_t map_mix(uint64_t x)
{
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

/* Linear probing; cap is a power of two, at most 3/4 full, so a probe always ends at a free slot. */
static size_t slot_of(const struct map *m, uint64_t key)
{
    size_t mask = m->cap - 1, i = (size_t)map_mix(key) & mask;
    while (m->used[i] && m->keys[i] != key)
        i = (i + 1) & mask;
    return i;
}

uint64_t *map_find(const struct map *m, uint64_t key)
{
    if (!m->cap)
        return NULL;
    size_t i = slot_of(m, key);
    return m->used[i] ? &m->values[i] : NULL;
}

static void grow(struct map *m)
{
    struct map old = *m;
    m->cap = old.cap ? old.cap * 2 : 16;
    m->keys = mem_alloc(m->cap * sizeof *m->keys);
    m->values = mem_alloc(m->cap * sizeof *m->values);
    m->used = mem_zalloc(m->cap);
    for (size_t i = 0; i < old.cap; i++) {
        if (!old.used[i])
            continue;
        size_t to = slot_of(m, old.keys[i]);
        m->used[to] = 1;
        m->keys[to] = old.keys[i];
        m->values[to] = old.values[i];
    }
    free(old.keys);
    free(old.values);
    free(old.used);
}

uint64_t *map_put(struct map *m, uint64_t key, bool *fresh)
{
    if (m->n >= m->cap / 4 * 3)
        grow(m);
    size_t i = slot_of(m, key);
    if (fresh)
        *fresh = !m->used[i];
    if (!m->used[i]) {
        m->used[i] = 1;
        m->keys[i] = key;
        m->values[i] = 0;
        m->n++;
    }
    return &m->values[i];
}

bool map_remove(struct map *m, uint64_t key)
{
    if (!m->cap)
        return false;
    size_t mask = m->cap - 1, hole = slot_of(m, key);
    if (!m->used[hole])
        return false;
    /* Entries that probed over the hole are moved back into it, so no tombstones are needed. */
    for (size_t i = (hole + 1) & mask; m->used[i]; i = (i + 1) & mask) {
        size_t home = (size_t)map_mix(m->keys[i]) & mask;
        if (((i - home) & mask) >= ((i - hole) & mask)) {
            m->keys[hole] = m->keys[i];
            m->values[hole] = m->values[i];
            hole = i;
        }
    }
    m->used[hole] = 0;
    m->n--;
    return true;
}

void map_fini(struct map *m)
{
    free(m->keys);
    free(m->values);
    free(m->used);
    *m = (struct map){0};
}

static uint32_t append(struct strings *t, const char *s, size_t n)
{
    vec_reserve(t, 1);
    t->v[t->n] = n ? arena_strndup(&t->arena, s, n) : "";
    return (uint32_t)t->n++;
}

uint32_t strings_intern(struct strings *t, const char *s, size_t n)
{
    if (!t->n)
        append(t, "", 0);
    const char *zero = n ? memchr(s, '\0', n) : NULL;
    if (zero)
        n = (size_t)(zero - s);
    if (!n)
        return 0;
    /* Different strings of equal hash get the following keys: a second probing on top of the map's. */
    for (uint64_t key = map_hash(s, n);; key++) {
        bool fresh;
        uint64_t *number = map_put(&t->by_hash, key, &fresh);
        if (fresh)
            return (uint32_t)(*number = append(t, s, n));
        const char *known = t->v[*number];
        if (strncmp(known, s, n) == 0 && known[n] == '\0')
            return (uint32_t)*number;
    }
}

void strings_fini(struct strings *t)
{
    free(t->v);
    map_fini(&t->by_hash);
    arena_fini(&t->arena);
    *t = (struct strings){0};
}
