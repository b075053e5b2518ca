/* SPDX-License-Identifier: MIT */
/* Private to state: figures while they are summed up. All sums are exact (beyond 2^127 squares wrap around), and the
 * first of equally long ones counts; so the order of adding makes no difference. */
#ifndef WEFT_STATE_MEASURE_H
#define WEFT_STATE_MEASURE_H

#include "base/figures.h"

__extension__ typedef unsigned __int128 state_wide;
static inline state_wide state_square(int64_t d)
{
    uint64_t size = d < 0 ? -(uint64_t)d : (uint64_t)d;
    return (state_wide)size * size;
}

struct state_measure {
    uint64_t n;
    int64_t sum, least, most, least_begin, most_begin;   /* see struct figures */
    state_wide squares;                                  /* sum of squared durations */
};
void state_measure_join(struct state_measure *, const struct state_measure *more);
static inline void state_measure_add(struct state_measure *f, int64_t begin, int64_t duration)
{
    if (!f->n || duration < f->least || (duration == f->least && begin < f->least_begin)) {
        f->least = duration;
        f->least_begin = begin;
    }
    if (!f->n || duration > f->most || (duration == f->most && begin < f->most_begin)) {
        f->most = duration;
        f->most_begin = begin;
    }
    f->n++;
    f->sum = figures_sum(f->sum, duration);
    f->squares += state_square(duration);
}
/* Figures of a measure. The spread is exact except for its last digits. */
struct figures state_measure_figures(const struct state_measure *);

#endif
