/* SPDX-License-Identifier: MIT */
/* Flame Chart: functions of every thread of user-space traces over time. Rows: hosts, processes, threads, and below
 * each thread its levels. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "views/sampling.h"
#include "views/stacks.h"
#include "views/tips.h"

/* ---- tree ---- */

static void write_levels(const struct stacks_tree *w, const struct stacks_trace *p, size_t thread)
{
    const struct view_host *h = &w->x->hosts[p->host];
    struct stack_thread t;
    stack_thread(p->s, thread, &t);
    for (uint32_t level = 0; level < t.rows && !tsp_full(w->answer); level++) {
        size_t row = t.first_row + level;
        size_t calls = stack_calls(p->s, row);
        struct stack_call first = {.begin = t.begin}, last = {.end = t.end};
        const char *labels[3] = {arena_printf(w->q->http->arena, "%u", level + 1), "", ""};
        if (calls) { /* a call without an end is open: the recording continues */
            stack_call(p->s, row, 0, &first);
            stack_call(p->s, row, calls - 1, &last);
        }
        tsp_write_entry(w->answer,
            &(struct tsp_entry){.id = p->first_row + (int64_t)row,
                .parent = p->first_thread + (int64_t)thread,
                .labels = labels,
                .n_labels = 3,
                .time_graph = true,
                .start = view_to_reference(h, first.begin),
                .end = view_to_reference(h, last.end),
                .has_data = true,
                .host_id = h->id,
                .has_tid = t.tid >= 0,
                .tid = t.tid});
    }
}

static void tree(const struct view *self, struct views *x, const struct tsp_query *q, struct tsp_answer *answer)
{
    tsp_begin_tree(answer, stacks_headers, 3, -1);
    stacks_write_tree(&(struct stacks_tree){
        .x = x, .q = q, .answer = answer, .shown = stacks_calls_shown, .time_graph = true, .below = write_levels});
    tsp_end_tree(answer);
}

/* ---- states ---- */

struct sampler {
    struct views *x;
    const struct tsp_query *q;
    struct tsp_answer *answer;
    struct view_times times;
    struct stack_call *found;
};
struct row {
    const struct stacks_trace *trace;
    size_t row;
};

static bool is_call(const struct stack_call *c)
{
    return c->how == STACK_WHOLE || c->how == STACK_CUT;
}

static void add_properties(
    const struct sampler *s, const struct row *r, const struct stack_function *f, struct view_shown *out)
{
    struct stack_thread t;
    struct stack_process p;
    stack_thread(r->trace->s, r->trace->row_threads[r->row], &t);
    stack_process(r->trace->s, t.process, &p);
    view_add_property(out, "host", s->x->hosts[r->trace->host].index->name);
    view_add_property(out, "process", p.name);
    if (f) {
        snprintf(out->text, sizeof out->text, "0x%" PRIx64, f->address);
        view_add_property(out, "function", f->name);
        view_add_property(out, "address", out->text);
    }
    view_add_number(out, "thread", t.tid);
    view_add_number(out, "tid", t.tid);
    view_add_number(out, "pid", p.pid);
    view_add_number(out, "depth", (int64_t)(r->row - t.first_row) + 1);
}

/* Writes the interval, unless `only_matches` is set and the filter rejects it. */
static bool write_state(const struct sampler *s, const struct row *r, const struct stack_call *c, bool only_matches)
{
    const struct view_host *h = &s->x->hosts[r->trace->host];
    struct view_shown shown;
    struct stack_function f;
    shown.n = 0;
    shown.label = shown.style_key = shown.filtered_label = NULL;
    if (is_call(c)) {
        stack_function(r->trace->s, c->function, &f);
        shown.label = f.name;
        shown.style_key = stacks_style(f.name);
    } else if (c->how == STACK_UNKNOWN) {
        shown.style_key = shown.filtered_label = "Unknown";
    }
    if (s->q->filter && shown.style_key)
        add_properties(s, r, is_call(c) ? &f : NULL, &shown);
    return view_write_shown(
        s->q, s->answer, view_to_reference(h, c->begin), view_to_reference(h, c->end), &shown, only_matches);
}

/* Writes the first match of the filter between two samples, which represents all intervals there. */
static void write_match_within(const struct sampler *s, const struct row *r, int64_t begin, int64_t end)
{
    struct stack_call c;
    for (size_t i = stack_find(r->trace->s, r->row, begin); i < stack_calls(r->trace->s, r->row); i++) {
        stack_call(r->trace->s, r->row, i, &c);
        if (c.end > end || (i % 65536 == 0 && http_gone(s->q->http)))
            return;
        if (c.begin >= begin && write_state(s, r, &c, true))
            return;
    }
}

static void write_row(struct sampler *s, int64_t entry, const struct row *r)
{
    size_t n = stack_sample(r->trace->s, r->row, view_times_on(&s->times, r->trace->host), s->q->n_times, s->found);
    tsp_begin_row(s->answer, entry);
    for (size_t i = 0; i < n; i++) {
        if (i && s->q->deep && s->q->filter && s->found[i - 1].end < s->found[i].begin)
            write_match_within(s, r, s->found[i - 1].end, s->found[i].begin);
        write_state(s, r, &s->found[i], false);
    }
    tsp_end_row(s->answer);
}

static void states(const struct view *self, struct views *x, const struct tsp_query *q, struct tsp_answer *answer)
{
    const struct stacks *all = stacks_of(x);
    struct sampler s = {
        x, q, answer, view_times_new(x, q), arena_new(q->http->arena, struct stack_call, q->n_times + 1)};
    struct row r;
    tsp_begin_rows(answer);
    int64_t id;
    for (size_t i = 0; view_next_item(q, answer, &i, &id);)
        if ((r.trace = stacks_row(all, id, &r.row)))
            write_row(&s, id, &r);
    for (size_t i = 0; !q->has_items && i < all->n; i++) {
        r.trace = &all->v[i];
        for (r.row = 0; r.row < stack_rows(r.trace->s) && view_goes_on(q, answer); r.row++)
            write_row(&s, r.trace->first_row + (int64_t)r.row, &r);
    }
    tsp_end_rows(answer);
}

/* ---- tooltip ---- */

static void write_call(struct tsp_answer *answer, const struct stacks_trace *p, const struct stack_call *c)
{
    struct stack_function f;
    char text[32];
    if (c->how == STACK_UNKNOWN) {
        tsp_write_tip(answer, "State", "Unknown: events were lost");
        return;
    }
    stack_function(p->s, c->function, &f);
    tsp_write_tip(answer, "Function", f.name);
    snprintf(text, sizeof text, "0x%" PRIx64, f.address);
    tsp_write_tip(answer, "Address", text);
    if (c->how == STACK_CUT)
        tsp_write_tip(answer, "Exit", "not seen");
}

static void write_where(struct views *x, struct tsp_answer *answer, const struct stacks_trace *p, size_t row, int64_t t)
{
    struct stack_thread thread;
    struct stack_process process;
    size_t number = p->row_threads[row];
    stack_thread(p->s, number, &thread);
    stack_process(p->s, thread.process, &process);
    view_write_number(answer, "Depth", (int64_t)(row - thread.first_row) + 1);
    tsp_write_tip(answer, "Host", x->hosts[p->host].index->name);
    if (*process.name)
        tsp_write_tip(answer, "Process", process.name);
    if (process.pid >= 0)
        view_write_number(answer, "PID", process.pid);
    if (*thread.name)
        tsp_write_tip(answer, "Thread", stack_thread_name(p->s, number, t));
    if (thread.tid >= 0)
        view_write_number(answer, "TID", thread.tid);
}

static void tooltip(const struct view *self, struct views *x, const struct tsp_query *q, struct tsp_answer *answer)
{
    int64_t entry, time;
    size_t row;
    struct stack_call c;
    tsp_begin_tooltip(answer);
    if (view_tooltip_target(q, &entry, &time)) {
        const struct stacks_trace *p = stacks_row(stacks_of(x), entry, &row);
        const struct view_host *h = p ? &x->hosts[p->host] : NULL;
        int64_t t = p ? view_sample_time(h, time) : 0;
        if (p && stack_at(p->s, row, t, &c) && c.how != STACK_NOTHING) {
            write_call(answer, p, &c);
            write_where(x, answer, p, row, t);
            view_write_span(answer, view_to_reference(h, c.begin), view_to_reference(h, c.end));
            view_write_clock_error(answer, h, time);
        }
    }
    tsp_end_tooltip(answer);
}

static void style(const struct view *self, struct views *x, const struct tsp_query *q, struct tsp_answer *answer)
{
    tsp_begin_styles(answer);
    stacks_write_styles(answer);
    tsp_end_styles(answer);
}

const struct view view_flame_chart = {
    .provider = {.id = "org.eclipse.tracecompass.internal.analysis.profiling.callstack.provider.CallStackDataProvider",
        .family = STACKS_FAMILY,
        .name = "Flame Chart",
        .description = "The functions that threads of user space were in, over time",
        .type = "TIME_GRAPH"},
    .has_data = stacks_have_calls,
    .tree = tree,
    .states = states,
    .tooltip = tooltip,
    .style = style,
};
