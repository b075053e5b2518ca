/* SPDX-License-Identifier: MIT */
/* The segments of the answer as CSV. */
#include <string.h>

#include "base/shown.h"
#include "graph/graph.h"
#include "path/path.h"
#include "show/show.h"

static void csv_row(
    const struct path_source *source, struct path_row row, int64_t begin, int64_t end, bool comm, struct text *t)
{
    int32_t tid;
    const char *name;
    source->row_name(source->arg, row, begin, end, &tid, &name);
    shown_cell(t, source->host_name(source->arg, row.host));
    text_putc(t, ',');
    text_i64(t, tid);
    text_putc(t, ',');
    if (comm) {
        shown_cell(t, name);
        text_putc(t, ',');
    }
}

void show_csv(const struct path *p, const struct path_source *source, struct text *t)
{
    text_puts(t, "host,tid,comm,begin,end,state,detail,sender_host,sender_tid,assumed\n");
    for (size_t i = 0; i < p->n_segments; i++) {
        const struct path_segment *s = &p->segments[i];
        csv_row(source, s->row, s->begin, s->end, true, t);
        text_i64(t, s->begin);
        text_putc(t, ',');
        text_i64(t, s->end);
        text_putc(t, ',');
        text_puts(t, graph_state_name(s->state));
        text_putc(t, ',');
        shown_cell(t, s->detail ? s->detail : "");
        text_putc(t, ',');
        if (s->sender.host >= 0)
            csv_row(source, s->sender, s->begin, s->begin, false, t);
        else
            text_puts(t, ",,");
        text_puts(t, s->assumed ? "true\n" : "\n");
    }
}
