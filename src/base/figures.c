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

double figures_exact_spread(uint64_t n, int64_t sum, figures_squares squares)
{
    if (!n)
        return 0;
    figures_squares square = figures_square(sum), least = square / n;
    double spread = squares > least ? (double)(squares - least) - (double)(square % n) / (double)n : 0;
    return spread > 0 ? spread : 0;
}
