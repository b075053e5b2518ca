/* SPDX-License-Identifier: MIT */
#include "graph/losses.h"

#include <stdlib.h>

#include "base/search.h"

static void set_reach(struct graph_windows *w, size_t from)
{
    for (size_t i = from; i < w->by_begin.n; i++) {
        struct graph_window *x = &w->by_begin.v[i];
        x->reach = i && w->by_begin.v[i - 1].reach > x->end ? w->by_begin.v[i - 1].reach : x->end;
    }
}

/* Begins arrive nearly in order, so the move is short. */
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

/* Returns whether it, or an earlier one, has a part behind an event at ts. */
static bool is_after(const struct graph_window *x, int64_t ts)
{
    return x->reach > ts || x->begin >= ts;
}

bool graph_windows_hull(const struct graph_windows *w, int64_t begin, int64_t end, int64_t *from, int64_t *to)
{
    size_t n = w->by_begin.n;
    if (!n || !is_after(&w->by_begin.v[n - 1], begin))
        return false;
    const struct graph_window *v = w->by_begin.v;
    size_t first = search_first(i, 0, n - 1, is_after(&v[i], begin)); /* all earlier ones end before */
    if (v[first].begin > end)
        return false;
    size_t last = search_first(i, first + 1, n, v[i].begin > end) - 1;
    *from = v[first].begin > begin ? v[first].begin : begin;
    *to = v[last].reach < end ? v[last].reach : end;
    return true;
}

/* ---- windows still needed ---- */

void graph_windows_keep_begin(const struct graph_windows *w, struct graph_windows_kept *kept)
{
    *kept = (struct graph_windows_kept){0};
    for (size_t i = 0; i < w->by_begin.n; i++) {
        const struct graph_window *x = &w->by_begin.v[i];
        vec_push(&kept->by_window, x->open);
        if (x->open)
            continue;
        vec_push(&kept->closed.by_begin, *x);
        vec_push(&kept->numbers, i);
    }
    set_reach(&kept->closed, 0);
    size_t n = kept->closed.by_begin.n;
    for (size_t i = 0; i < n; i++)
        if (kept->closed.by_begin.v[i].end == kept->closed.by_begin.v[n - 1].reach)
            kept->by_window.v[kept->numbers.v[i]] = true;
}

void graph_windows_keep(struct graph_windows_kept *kept, int64_t begin)
{
    size_t n = kept->closed.by_begin.n;
    size_t first = search_first(i, 0, n, is_after(&kept->closed.by_begin.v[i], begin));
    if (first < n)
        kept->by_window.v[kept->numbers.v[first]] = true;
}

void graph_windows_keep_end(struct graph_windows *w, struct graph_windows_kept *kept)
{
    size_t n = 0;
    for (size_t i = 0; i < w->by_begin.n; i++)
        if (kept->by_window.v[i])
            w->by_begin.v[n++] = w->by_begin.v[i];
    w->by_begin.n = n;
    set_reach(w, 0);
    vec_free(&kept->by_window);
    vec_free(&kept->numbers);
    vec_free(&kept->closed.by_begin);
}
