/* SPDX-License-Identifier: MIT */
/* Scenarios: futex calls that wait or wake, and interrupt handlers, in tracks: as many as there are simultaneous ones.
 * Rows: hosts, kinds, tracks. */
#include "views/futex_calls.h"
#include "views/list.h"

enum { FUTEXES, IRQS }; /* struct view's kind */
static const char handler_cut[] = "IRQ without an end";

/* ---- rows ---- */

static const struct group {
    int view, kind;
    const char *label;
} groups[] = {{FUTEXES, STATE_FUTEX_WAITS, "Futex wait/lock"}, {FUTEXES, STATE_FUTEX_WAKES, "Futex wake/unlock"},
    {IRQS, STATE_IRQ_HANDLERS, "IRQ handlers"}};
enum { GROUPS = sizeof groups / sizeof *groups };

static size_t tracks_of(const struct view *self, const struct view_host *h, const struct group *g)
{
    return h->states && g->view == self->kind ? state_rows(h->states, g->kind) : 0;
}

static bool has_data(const struct view *self, const struct view_host *h)
{
    size_t n = 0;
    for (const struct group *g = groups; g < groups + GROUPS; g++)
        n += tracks_of(self, h, g);
    return n > 0;
}

static void add(const struct view *self, const struct views *x, size_t host, struct view_rows *rows)
{
    const struct view_host *h = &x->hosts[host];
    int64_t root = has_data(self, h) ? view_add_group(rows, VIEW_NO_PARENT, host, h->index->name) : -1;
    for (const struct group *g = groups; g < groups + GROUPS; g++) {
        size_t n = tracks_of(self, h, g);
        int64_t group = n ? view_add_group(rows, root, host, g->label) : -1;
        for (size_t i = 0; i < n; i++)
            view_add_row(rows, (struct view_row){group, host, arena_printf(&rows->arena, "%zu", i), g->kind, i, 0});
    }
}

/* ---- states ---- */

static void show_irq(
    const struct view_sampler *s, const struct view_host *h, const struct state_interval *iv, struct view_shown *out)
{
    out->style_key = iv->value == STATE_IRQ && iv->cut ? handler_cut : view_state_key(iv->value);
    out->label = iv->name;
    if (!s->q->filter || !out->style_key)
        return;
    view_add_property(out, "state", out->style_key);
    view_add_property(out, "host", h->index->name);
    view_add_property(out, "interrupt", iv->name);
    if (iv->cpu >= 0)
        view_add_number(out, "cpu", iv->cpu);
}

static bool is_futex_call(const struct state_interval *iv)
{
    return iv->value == STATE_FUTEX_WAIT || iv->value == STATE_FUTEX_WAKE;
}

/* A call has the style of its thread's row and the name of its futex. */
static void show(
    const struct view_sampler *s, const struct view_row *row, const struct state_interval *iv, struct view_shown *out)
{
    const struct view_host *h = &s->x->hosts[row->host];
    struct state_interval call;
    if (row->kind == STATE_IRQ_HANDLERS) {
        show_irq(s, h, iv, out);
    } else if (!is_futex_call(iv)) {
        out->style_key = view_state_key(iv->value);
    } else if (state_at(h->states, STATE_FUTEX_USER, (size_t)iv->amount, iv->begin, &call)) {
        futex_show(s, h, (size_t)iv->amount, &call, out);
        out->label = iv->name;
    }
}

/* ---- tooltip, style ---- */

static bool tooltip(const struct view_pointed *p)
{
    const struct state_interval *iv = p->interval;
    tsp_write_tip(p->answer, "Host", p->host->index->name);
    if (iv && iv->value == STATE_IRQ) {
        tsp_write_tip(p->answer, "State", iv->cut ? handler_cut : view_state_key(STATE_IRQ));
        if (iv->name)
            tsp_write_tip(p->answer, "Interrupt", iv->name);
        if (iv->cpu >= 0)
            view_write_number(p->answer, "CPU", iv->cpu);
        view_write_interval(p->answer, p->host, iv);
    } else if (iv && is_futex_call(iv)) {
        futex_write_call(p->answer, p->host, (size_t)iv->amount, iv->begin);
    }
    return true;
}

static void style(const struct view *self, struct views *x, const struct tsp_query *q, struct tsp_answer *answer)
{
    tsp_begin_styles(answer);
    if (self->kind == FUTEXES) {
        futex_write_styles(answer);
    } else {
        view_write_state_styles(answer, VIEW_STATE(IRQ) | VIEW_STATE(UNKNOWN));
        tsp_write_style(answer, handler_cut, NULL, LOOK_STOLEN, 1, -1, handler_cut);
    }
    tsp_end_styles(answer);
}

static const struct view_row_graph graph = {.add = add, .show = show, .tooltip = tooltip};

#define SCENARIOS \
    .host_has_data = has_data, VIEW_ROWS(graph), .style = style, \
    VIEW_HEADERS({"Scenario", "What goes on at once, each in the first free lane", "STRING"})

const struct view view_futex_scenarios = {
    .provider = {.id = "lttng2.kernel.core.futex.scenarios",
        .name = "Futex Contention Analysis: Scenarios",
        .description = "How many threads wait for futexes at once, how many wake others",
        .type = "TIME_GRAPH"},
    .kind = FUTEXES,
    SCENARIOS,
};
const struct view view_irq_scenarios = {
    .provider = {.id = "xml.scenarios",
        .name = "IRQ Analysis: Scenarios",
        .description = "How many interrupts are handled at once",
        .type = "TIME_GRAPH"},
    .kind = IRQS,
    SCENARIOS,
};
