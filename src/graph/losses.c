#include "graph/losses.h"

static void set_reach(struct graph_windows *w, size_t from)
{
    for (size_t i = from; i < w->by_begin.n; i++) {
        struct graph_window *x = &w->by_begin.v[i];
        x->reach = i && w->by_begin.v[i - 1].reach > x->end ? w->by_begin.v[i - 1].reach : x->end;
    }
}

/* Begins come nearly in order, so the move is short. */
void graph_windows_add(struct graph_windows *w, uint32_t cpu, int64_t begin, int64_t end, bool open)
{
    struct graph_window x = {.begin = begin, .end = end, .cpu = cpu, .open = open};
    vec_push(&w->by_begin, x);
    size_t i = w->by_begin.n - 1;
    for (; i && w->by_begin.v[i - 1].begin > begin; i--)
        w->by_begin.v[i] = w->by_begin.v[i - 1];
    w->by_begin.v[i] = x;
    set_reach(w, i);
}

void graph_windows_close(struct graph_windows *w, uint32_t cpu, int64_t ts)
{
    for (size_t i = w->by_begin.n; i-- > 0;) {
        struct graph_window *x = &w->by_begin.v[i];
        if (x->open && x->cpu == cpu) {
            x->open = false;
            if (ts <= x->begin) {
                w->by_begin.n--;
                for (size_t j = i; j < w->by_begin.n; j++)
                    w->by_begin.v[j] = w->by_begin.v[j + 1];
            } else if (x->end > ts) {
                x->end = ts;
            }
            set_reach(w, i);
            return;
        }
    }
}

/* It or an earlier one has a part behind an event at ts. */
static bool is_after(const struct graph_window *x, int64_t ts)
{
    return x->reach > ts || x->begin >= ts;
}

bool graph_windows_hull(const struct graph_windows *w, int64_t begin, int64_t end, int64_t *from, int64_t *to)
{
    size_t n = w->by_begin.n;
    if (!n || !is_after(&w->by_begin.v[n - 1], begin))
        return false;
    size_t lo = 0, hi = n - 1; /* the first that is after: no earlier one reaches so far */
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        if (is_after(&w->by_begin.v[mid], begin))
            hi = mid;
        else
            lo = mid + 1;
    }
    if (w->by_begin.v[lo].begin > end)
        return false;
    *from = w->by_begin.v[lo].begin > begin ? w->by_begin.v[lo].begin : begin;
    size_t last = lo, past = n; /* last window that begins by end */
    while (last + 1 < past) {
        size_t mid = last + (past - last) / 2;
        if (w->by_begin.v[mid].begin <= end)
            last = mid;
        else
            past = mid;
    }
    *to = w->by_begin.v[last].reach < end ? w->by_begin.v[last].reach : end;
    return true;
}
