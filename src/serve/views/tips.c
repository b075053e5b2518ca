/* SPDX-License-Identifier: MIT */
#include "views/tips.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/time.h"

bool view_tooltip_target(const struct tsp_query *q, int64_t *entry, int64_t *time)
{
    *entry = q->element_entry >= 0 ? q->element_entry : q->n_items ? q->items[0] : -1;
    *time = q->n_times ? q->times[0] : q->element_time;
    return *entry >= 0;
}

bool view_tooltip_of_arrow(const struct tsp_query *q)
{
    return q->element && !strcmp(q->element, "arrow");
}

void view_write_number(struct tsp_answer *answer, const char *name, int64_t n)
{
    char text[24];
    snprintf(text, sizeof text, "%" PRId64, n);
    tsp_write_tip(answer, name, text);
}

void view_write_duration(struct tsp_answer *answer, const char *name, int64_t ns)
{
    struct text t = {.fd = -1};
    text_duration(&t, ns);
    tsp_write_tip(answer, name, text_cstr(&t));
    text_fini(&t);
}

static void write_time(struct tsp_answer *answer, const char *name, int64_t ns)
{
    struct text t = {.fd = -1};
    time_write_utc(&t, ns, true);
    tsp_write_tip(answer, name, text_cstr(&t));
    text_fini(&t);
}

void view_write_span(struct tsp_answer *answer, int64_t begin, int64_t end)
{
    write_time(answer, "Start", begin);
    write_time(answer, "End", end);
    view_write_duration(answer, "Duration", end - begin);
}

void view_write_interval(struct tsp_answer *answer, const struct view_host *h, const struct state_interval *iv)
{
    view_write_span(answer, view_to_reference(h, iv->begin), view_to_reference(h, iv->end));
}

void view_write_thread(
    struct tsp_answer *answer, const struct view_host *h, int32_t row, int64_t t, const char *name, const char *tid)
{
    struct graph_row thread;
    if (row < 0 || row >= h->threads)
        return;
    graph_row_then(h->index->graph, row, t, t, &thread);
    tsp_write_tip(answer, name, thread.name);
    view_write_number(answer, tid, thread.tid);
}

int64_t view_clock_error_ns(const struct view_host *h, int64_t t)
{
    return !h->map || h->map->predecessor < 0 ? 0 : clock_error_at(h->map, view_to_host(h, t));
}

void view_write_clock_error(struct tsp_answer *answer, const struct view_host *h, int64_t t)
{
    if (!h->map || h->map->predecessor < 0)
        return;
    struct text text = {.fd = -1};
    text_puts(&text, "±");
    text_duration(&text, view_clock_error_ns(h, t));
    tsp_write_tip(answer, "Clock error", text_cstr(&text));
    text_fini(&text);
}
