/* SPDX-License-Identifier: MIT */
/* Call stacks as words. */
#include <inttypes.h>

#include "base/text.h"
#include "graph/graph.h"
#include "show/show.h"

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
