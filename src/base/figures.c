#include "base/figures.h"

void figures_join(struct figures *to, const struct figures *f)
{
    if (!f->n)
        return;
    if (!to->n || f->least < to->least) {
        to->least = f->least;
        to->least_begin = f->least_begin;
    }
    if (!to->n || f->most > to->most) {
        to->most = f->most;
        to->most_begin = f->most_begin;
    }
    to->spread = to->n ? figures_spread(to->n, to->sum, to->spread, f->n, f->sum, f->spread) : f->spread;
    to->n += f->n;
    to->sum = figures_sum(to->sum, f->sum);
}
