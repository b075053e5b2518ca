/* SPDX-License-Identifier: MIT */
#include "state/measure.h"

void state_measure_join(struct state_measure *to, const struct state_measure *f)
{
    if (!f->n)
        return;
    if (!to->n || f->least < to->least || (f->least == to->least && f->least_begin < to->least_begin)) {
        to->least = f->least;
        to->least_begin = f->least_begin;
    }
    if (!to->n || f->most > to->most || (f->most == to->most && f->most_begin < to->most_begin)) {
        to->most = f->most;
        to->most_begin = f->most_begin;
    }
    to->n += f->n;
    to->sum = figures_sum(to->sum, f->sum);
    to->squares += f->squares;
}

/* Sum of squares minus square of the sum, divided by n. */
static double spread(const struct state_measure *f)
{
    state_wide square = state_square(f->sum), share = square / f->n;
    uint64_t rest = (uint64_t)(square % f->n);
    if (f->squares <= share)
        return 0;
    return (double)(f->squares - share) - (double)rest / (double)f->n;
}

struct figures state_measure_figures(const struct state_measure *f)
{
    return (struct figures){f->n, f->sum, f->least, f->most, f->least_begin, f->most_begin, f->n ? spread(f) : 0};
}
