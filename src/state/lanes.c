/* Lanes: rows for what goes on at once. Their entries are made when something is over; until then nothing else has the
 * lane. */
#include <stdlib.h>

#include "state/builder.h"

enum { WORD = 64 };

static void set_free(struct builder_lanes *l, uint32_t lane, bool free)
{
    uint64_t bit = UINT64_C(1) << lane % WORD;
    l->free.v[lane / WORD] = free ? l->free.v[lane / WORD] | bit : l->free.v[lane / WORD] & ~bit;
}

/* What is told late does not fit into a lane that something had since. */
uint32_t builder_lane_take(struct builder_lanes *l, int64_t since)
{
    for (size_t i = 0; i < l->free.n; i++)
        for (uint64_t left = l->free.v[i]; left; left &= left - 1) {
            uint32_t lane = (uint32_t)(i * WORD) + (uint32_t)__builtin_ctzll(left);
            if (series_last(&l->v.v[lane]) <= since) {
                set_free(l, lane, false);
                return lane;
            }
        }
    vec_push(&l->v, ((struct series){.pairs = true}));
    if (l->free.n * WORD < l->v.n)
        vec_push(&l->free, 0);
    return (uint32_t)l->v.n - 1;
}

void builder_lane_leave(
    struct state_builder *b, struct builder_lanes *l, uint32_t lane, int64_t since, int64_t end, int64_t number)
{
    series_push(&b->pool, &l->v.v[lane], since, number);
    series_push(&b->pool, &l->v.v[lane], end, 0);
    set_free(l, lane, true);
}

void builder_lanes_fini(struct builder_lanes *l)
{
    for (size_t i = 0; i < l->v.n; i++)
        series_fini(&l->v.v[i]);
    vec_free(&l->v);
    vec_free(&l->free);
}
