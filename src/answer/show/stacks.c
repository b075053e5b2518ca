/* SPDX-License-Identifier: MIT */
/* Call stacks of segments and links. */
#include <inttypes.h>

#include "base/text.h"
#include "graph/graph.h"
#include "path/path.h"
#include "show/show.h"

bool show_segment_stack(const struct path *p, const struct path_source *source, size_t segment, struct graph_stack *out)
{
    const struct path_segment *s = &p->segments[segment];
    bool ran = s->state == GRAPH_RUNNING, waited = s->state != GRAPH_UNKNOWN && !graph_is_awake(s->state);
    return (ran || waited) && path_stack(source, s->row, s->begin, s->end, waited, out);
}

bool show_sleeper_stack(const struct path_source *source, const struct path_link *l, struct graph_stack *out)
{
    return l->kind != PATH_LINK_FORK && path_stack(source, l->to, l->from_ts, l->to_ts, true, out);
}

bool show_waker_stack(const struct path_source *source, const struct path_link *l, struct graph_stack *out)
{
    return l->from_ts > INT64_MIN && path_stack(source, l->from, l->from_ts - 1, l->from_ts, false, out);
}

static void write_some(const uint64_t *v, size_t n, bool cut, size_t most, struct text *t)
{
    for (size_t i = 0; i < n && i < most; i++)
        text_printf(t, "%s0x%" PRIx64, i ? " " : "", v[i]);
    if (n > most || cut)
        text_puts(t, " …");
}

void show_stack(const struct graph_stack *s, size_t most, struct text *t)
{
    write_some(s->user, s->n_user, s->user_cut, most, t);
    if (s->n_kernel)
        text_puts(t, s->n_user ? " · kernel " : "kernel ");
    write_some(s->kernel, s->n_kernel, s->kernel_cut, most, t);
}
