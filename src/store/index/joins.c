/* SPDX-License-Identifier: MIT */
/* Choice of neighbouring chunks to join, so that there are few of them however many archives come.
 *
 * A chunk's tier is the power of 2 of its events; small ones count alike. Neighbouring chunks are joined if together
 * they are of a higher tier than each of them, or if one is of a higher tier than the one before it. At most one chunk
 * of each tier remains, the larger ones first, unless memory bounds them. All joins are planned before the first is
 * made, so that an event is read once for all joins of one run. Over all archives that come one by one, an event is
 * read some log2(archives) / 2 times. */
#include <stdlib.h>

#include "base/mem.h"
#include "index/stores.h"

enum { LEAST_TIER = 12 };

struct run {
    uint64_t held, events;
    uint64_t counted; /* events, small chunks' as more */
    size_t n;         /* chunks */
};

static int tier_of(uint64_t events)
{
    return events >> LEAST_TIER ? 63 - __builtin_clzll(events) : LEAST_TIER;
}

static struct run run_of(const struct index_chunk *c)
{
    const uint64_t least = UINT64_C(1) << LEAST_TIER, events = c->totals.events;
    return (struct run){index_chunk_held(c), events, events > least ? events : least, 1};
}

static struct run sum_of(struct run a, struct run b)
{
    return (struct run){a.held + b.held, a.events + b.events, a.counted + b.counted, a.n + b.n};
}

/* Joins neighbours of that tier at most, if together they are of a higher one. Returns how many runs are left. */
static size_t join_tier(struct run *v, size_t n, int tier, size_t most_events)
{
    size_t left = 0;
    for (size_t i = 0, end; i < n; i = end) {
        struct run sum = v[i];
        end = i + 1;
        if (tier_of(v[i].events) <= tier)
            while (end < n && tier_of(v[end].events) <= tier && sum.held + v[end].held <= most_events)
                sum = sum_of(sum, v[end++]);
        if (end - i > 1 && tier_of(sum.counted) > tier)
            v[left++] = sum;
        else
            for (size_t k = i; k < end; k++)
                v[left++] = v[k];
    }
    return left;
}

/* Joins the first that is less than the one behind it. */
static bool join_rising(struct run *v, size_t *n, size_t most_events)
{
    for (size_t i = 0; i + 1 < *n; i++) {
        struct run sum = sum_of(v[i], v[i + 1]);
        if (tier_of(v[i].events) >= tier_of(v[i + 1].events) || sum.held > most_events)
            continue;
        v[i] = sum;
        for (size_t k = i + 1; k + 1 < *n; k++)
            v[k] = v[k + 1];
        --*n;
        return true;
    }
    return false;
}

size_t index_joins_next(const struct index_history *h, size_t most_events, size_t *first)
{
    size_t n = h->chunks.n ? h->chunks.n - 1 : 0, found = 0; /* the last chunk is made anew with each archive */
    struct run *v = mem_alloc((n + 1) * sizeof *v);
    uint64_t all = 0;
    for (size_t i = 0; i < n; i++) {
        v[i] = run_of(&h->chunks.v[i]);
        all += v[i].counted;
    }
    do {
        for (int tier = LEAST_TIER; tier < tier_of(all); tier++)
            n = join_tier(v, n, tier, most_events);
    } while (join_rising(v, &n, most_events));
    *first = 0;
    for (size_t i = 0; i < n && !found; i++) {
        found = v[i].n > 1 ? v[i].n : 0;
        *first += found ? 0 : v[i].n;
    }
    free(v);
    return found;
}
