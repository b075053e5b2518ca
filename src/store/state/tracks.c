/* SPDX-License-Identifier: MIT */
/* Tracks: rows for simultaneous things. An entry is made when the thing is over; until then nothing else has its
 * track. */
#include <stdlib.h>

#include "state/builder.h"

enum { WORD = 64 };

static void set_free(struct builder_tracks *l, uint32_t track, bool free)
{
    uint64_t bit = UINT64_C(1) << track % WORD;
    l->free.v[track / WORD] = free ? l->free.v[track / WORD] | bit : l->free.v[track / WORD] & ~bit;
}

/* Returns a free track that was not used after `since`: what becomes known late must not overlap. */
uint32_t state_builder_track_take(struct builder_tracks *l, int64_t since)
{
    for (size_t i = 0; i < l->free.n; i++)
        for (uint64_t left = l->free.v[i]; left; left &= left - 1) {
            uint32_t track = (uint32_t)(i * WORD) + (uint32_t)__builtin_ctzll(left);
            if (series_last(&l->v.v[track]) <= since) {
                set_free(l, track, false);
                return track;
            }
        }
    vec_push(&l->v, ((struct series){.pairs = true}));
    if (l->free.n * WORD < l->v.n)
        vec_push(&l->free, 0);
    return (uint32_t)l->v.n - 1;
}

void state_builder_track_leave(
    struct state_builder *b, struct builder_tracks *l, uint32_t track, int64_t since, int64_t end, int64_t number)
{
    series_push(&b->pool, &l->v.v[track], since, number);
    series_push(&b->pool, &l->v.v[track], end, 0);
    set_free(l, track, true);
}

void state_builder_tracks_fini(struct builder_tracks *l)
{
    for (size_t i = 0; i < l->v.n; i++)
        state_series_fini(&l->v.v[i]);
    vec_free(&l->v);
    vec_free(&l->free);
}
