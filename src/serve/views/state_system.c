/* SPDX-License-Identifier: MIT */
/* State System Explorer: complete content of the state stores, attribute by attribute, as stored. */
#include <stdio.h>
#include <stdlib.h>

#include "views/attributes.h"
#include "views/list.h"

static bool has_data(const struct view *self, const struct view_host *h)
{
    return h->states != NULL;
}

/* ---- states ---- */

static const char *const value_keys[VIEW_PALETTE] = {"Value 0", "Value 1", "Value 2", "Value 3", "Value 4", "Value 5",
    "Value 6", "Value 7", "Value 8", "Value 9", "Value 10", "Value 11"};

static void show_number(struct view_shown *out, int64_t n)
{
    snprintf(out->text, sizeof out->text, "%lld", (long long)n);
    out->label = out->text;
    out->style_key = value_keys[(uint64_t)n % VIEW_PALETTE];
}

static int64_t tid_of(const struct view_host *h, int32_t row)
{
    struct graph_row t;
    if (row >= h->threads)
        return -1;
    graph_row(h->index->graph, row, &t);
    return t.tid;
}

/* Shows the attribute's value; nothing if it has none at the time. */
static void show_value(
    const struct view_host *h, const struct view_row *row, const struct state_interval *iv, struct view_shown *out)
{
    int32_t cpu = iv->cpu;
    if (row->number == ATTRIBUTE_CPU_OF_THREAD && cpu < 0 &&
        state_may_have_cpu(iv->value)) /* interval of the thread that sample_cpus did not make */
        cpu = state_thread_cpu(h->states, row->row, iv->begin, -1);
    switch (row->number) {
    case ATTRIBUTE_STATUS: out->label = out->style_key = view_state_key(iv->value); break;
    case ATTRIBUTE_CALL:
        if (iv->value == STATE_SYSCALL) {
            out->label = iv->name ? iv->name : "";
            out->style_key = view_state_key(STATE_SYSCALL);
        }
        break;
    case ATTRIBUTE_AMOUNT:
        if (iv->value != STATE_NONE)
            show_number(out, iv->amount);
        break;
    default:
        if (row->number == ATTRIBUTE_THREAD ? iv->thread >= 0 : cpu >= 0)
            show_number(out, row->number == ATTRIBUTE_THREAD ? tid_of(h, iv->thread) : cpu);
        else if (row->number != ATTRIBUTE_CPU_OF_THREAD && iv->value == STATE_UNKNOWN)
            out->label = out->style_key = view_state_key(STATE_UNKNOWN);
    }
}

static void show(
    const struct view_sampler *s, const struct view_row *row, const struct state_interval *iv, struct view_shown *out)
{
    const struct view_host *h = &s->x->hosts[row->host];
    show_value(h, row, iv, out);
    if (!s->q->filter || !out->style_key)
        return;
    view_add_property(out, "value", out->label);
    view_add_property(out, "host", h->index->name);
    view_add_property(out, "attribute", row->label);
}

/* CPU of a thread at the times: an interval for as long as the thread had the CPU, and blanks between. */
static size_t sample_cpus(
    const struct state_store *s, size_t thread, const int64_t *times, size_t n, struct state_interval *out)
{
    struct state_interval *own = mem_alloc((n + 1) * sizeof *own);
    size_t n_own = state_sample(s, STATE_THREAD, thread, times, n, own), k = 0, found = 0;
    int32_t near = -1;
    int64_t begin, end;
    state_span(s, &begin, &end);
    for (size_t i = 0; i < n && n_own; i++) {
        int64_t t = times[i] - (times[i] == end && end > begin); /* the last instant counts as the previous one */
        struct state_interval *x = &out[found];
        if (t < begin || t > end || (found && t < x[-1].end))
            continue;
        while (k + 1 < n_own && own[k].end <= t)
            k++;
        int32_t cpu = state_may_have_cpu(own[k].value) ? state_thread_cpu(s, thread, t, near) : -1;
        *x = own[k];
        if (cpu >= 0)
            state_at(s, STATE_CPU_THREAD, (size_t)state_find_row(s, STATE_CPU_THREAD, cpu), t, x);
        near = cpu >= 0 ? cpu : near;
        x->cpu = cpu;
        x->value = cpu >= 0 ? STATE_ACTIVE : STATE_NONE;
        if (found && x->begin < x[-1].end)
            x->begin = x[-1].end;
        found++;
    }
    free(own);
    return found;
}

static size_t sample(
    const struct state_store *s, const struct view_row *row, const int64_t *times, size_t n, struct state_interval *out)
{
    return row->number == ATTRIBUTE_CPU_OF_THREAD ? sample_cpus(s, row->row, times, n, out)
                                                  : state_sample(s, row->kind, row->row, times, n, out);
}

/* ---- tooltip, style ---- */

static bool tooltip(const struct view_pointed *p)
{
    const struct state_interval *iv = p->interval;
    struct state_interval own;
    struct view_shown shown;
    shown.label = shown.style_key = NULL;
    tsp_write_tip(p->answer, "Attribute path", attribute_path(p->rows, p->row, p->q->http->arena));
    if (p->row->number == ATTRIBUTE_CPU_OF_THREAD)
        iv = sample_cpus(p->host->states, p->row->row, &p->t, 1, &own) ? &own : NULL;
    if (iv) {
        show_value(p->host, p->row, iv, &shown);
        tsp_write_tip(p->answer, "Value", shown.label ? shown.label : "");
        view_write_interval(p->answer, p->host, iv);
    }
    return true;
}

static void style(const struct view *self, struct views *x, const struct tsp_query *q, struct tsp_answer *answer)
{
    tsp_begin_styles(answer);
    view_write_state_styles(answer, ~0u);
    for (int i = 0; i < VIEW_PALETTE; i++)
        tsp_write_style(answer, value_keys[i], NULL, view_palette[i], 0.75, -1, value_keys[i]);
    tsp_end_styles(answer);
}

static const struct view_row_graph graph = {.add = attributes_add, .show = show, .sample = sample, .tooltip = tooltip};

const struct view view_state_system = {
    .provider = {.id = "org.eclipse.tracecompass.internal.tmf.core.statesystem.provider.StateSystemDataProvider",
        .name = "State System Explorer",
        .description = "Every state and counter that is stored, as it is stored",
        .type = "TIME_GRAPH"},
    .host_has_data = has_data,
    VIEW_HEADERS({"Attribute", "What has a state", "STRING"},
        {"Name", "Of threads and interrupts", "STRING", "name", TSP_FIRST}),
    .expand = 2,
    VIEW_ROWS(graph),
    .style = style,
};
