/* Flame Chart: what functions every thread of user-space traces was in, over time. Rows: hosts, processes, threads,
 * below each thread its levels. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "views/state_rows.h"
#include "views/stacks.h"

/* ---- tree ---- */

static void write_levels(const struct stacks_tree *w, const struct stacks_trace *p, size_t thread)
{
    const struct view_host *h = &w->x->hosts[p->host];
    struct stack_thread t;
    stack_thread(p->s, thread, &t);
    for (uint32_t level = 0; level < t.rows && !tsp_full(w->answer); level++) {
        size_t row = t.first_row + level;
        struct stack_call first, last;
        const char *labels[3] = {arena_printf(w->q->http->arena, "%u", level + 1), "", ""};
        stack_call(p->s, row, 0, &first);
        stack_call(p->s, row, stack_calls(p->s, row) - 1, &last);
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
    int64_t **times; /* by host: sample times on its clock, made on first use */
    struct stack_call *found;
};
struct row {
    const struct stacks_trace *place;
    size_t row;
};

static const int64_t *times_of(struct sampler *s, size_t host)
{
    if (!s->times[host]) {
        s->times[host] = arena_new(s->q->http->arena, int64_t, s->q->n_times + 1);
        for (size_t i = 0; i < s->q->n_times; i++)
            s->times[host][i] = view_sample_time(&s->x->hosts[host], s->q->times[i]);
    }
    return s->times[host];
}

static bool is_call(const struct stack_call *c)
{
    return c->how == STACK_WHOLE || c->how == STACK_CUT;
}

/* The filter's tags of a call of [begin, end) on the reference clock. */
static int tags_of(const struct sampler *s, const struct row *r, const struct stack_call *c, const char *label,
    int64_t begin, int64_t end)
{
    struct view_shown shown;
    struct stack_thread t;
    struct stack_process p;
    struct stack_function f;
    char address[24];
    stack_thread(r->place->s, r->place->row_threads[r->row], &t);
    stack_process(r->place->s, t.process, &p);
    shown.n = 0;
    view_add_property(&shown, "label", label);
    view_add_property(&shown, "host", s->x->hosts[r->place->host].index->name);
    view_add_property(&shown, "process", p.name);
    if (is_call(c)) {
        stack_function(r->place->s, c->function, &f);
        snprintf(address, sizeof address, "0x%" PRIx64, f.address);
        view_add_property(&shown, "function", f.name);
        view_add_property(&shown, "address", address);
    }
    view_add_number(&shown, "thread", t.tid);
    view_add_number(&shown, "tid", t.tid);
    view_add_number(&shown, "pid", p.pid);
    view_add_number(&shown, "depth", (int64_t)(r->row - t.first_row) + 1);
    view_add_number(&shown, "start", begin);
    view_add_number(&shown, "duration", end - begin);
    return tsp_filter_tags(s->q, shown.properties, shown.n);
}

/* Writes the interval unless `only_matches` and the filter is against it. */
static bool write_state(const struct sampler *s, const struct row *r, const struct stack_call *c, bool only_matches)
{
    const struct view_host *h = &s->x->hosts[r->place->host];
    struct tsp_state state = {.start = view_to_reference(h, c->begin), .end = view_to_reference(h, c->end)};
    struct stack_function f;
    if (state.start >= state.end)
        return false;
    if (is_call(c)) {
        stack_function(r->place->s, c->function, &f);
        state.label = f.name;
        state.style_key = stacks_style(f.name);
    } else if (c->how == STACK_UNKNOWN) {
        state.style_key = "Unknown";
    }
    if (s->q->filter && state.style_key)
        state.tags = tags_of(s, r, c, state.label ? state.label : state.style_key, state.start, state.end);
    if (only_matches && (!state.style_key || state.tags & (1 | 4)))
        return false;
    if (state.tags & 4)
        state.label = state.style_key = NULL;
    tsp_write_state(s->answer, &state);
    return true;
}

/* Between two samples lies more than they show: the first that the filter wants stands for it. */
static void write_match_within(const struct sampler *s, const struct row *r, int64_t begin, int64_t end)
{
    struct stack_call c;
    for (size_t i = stack_find(r->place->s, r->row, begin); i < stack_calls(r->place->s, r->row); i++) {
        stack_call(r->place->s, r->row, i, &c);
        if (c.end > end || (i % 65536 == 0 && http_gone(s->q->http)))
            return;
        if (c.begin >= begin && write_state(s, r, &c, true))
            return;
    }
}

static void sample_row(struct sampler *s, int64_t entry, const struct row *r)
{
    size_t n = stack_sample(r->place->s, r->row, times_of(s, r->place->host), s->q->n_times, s->found);
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
    struct sampler s = {x, q, answer, arena_new(q->http->arena, int64_t *, x->n_hosts + 1),
        arena_new(q->http->arena, struct stack_call, q->n_times + 1)};
    struct row r;
    tsp_begin_rows(answer);
    for (size_t i = 0; q->has_items && i < q->n_items && !tsp_full(answer) && !http_gone(q->http); i++)
        if ((r.place = stacks_row(all, q->items[i], &r.row)))
            sample_row(&s, q->items[i], &r);
    for (size_t i = 0; !q->has_items && i < all->n; i++) {
        r.place = &all->v[i];
        for (r.row = 0; r.row < stack_rows(r.place->s) && !tsp_full(answer) && !http_gone(q->http); r.row++)
            sample_row(&s, r.place->first_row + (int64_t)r.row, &r);
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
    char text[32];
    stack_thread(p->s, number, &thread);
    stack_process(p->s, thread.process, &process);
    snprintf(text, sizeof text, "%u", (unsigned)(row - thread.first_row) + 1);
    tsp_write_tip(answer, "Depth", text);
    tsp_write_tip(answer, "Host", x->hosts[p->host].index->name);
    if (*process.name)
        tsp_write_tip(answer, "Process", process.name);
    if (process.pid >= 0) {
        snprintf(text, sizeof text, "%d", process.pid);
        tsp_write_tip(answer, "PID", text);
    }
    if (*thread.name)
        tsp_write_tip(answer, "Thread", stack_thread_name(p->s, number, t));
    if (thread.tid >= 0) {
        snprintf(text, sizeof text, "%d", thread.tid);
        tsp_write_tip(answer, "TID", text);
    }
}

static void tooltip(const struct view *self, struct views *x, const struct tsp_query *q, struct tsp_answer *answer)
{
    int64_t entry, time;
    size_t row;
    struct stack_call c;
    json_begin_object(&answer->json);
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
    json_end_object(&answer->json);
}

static void style(const struct view *self, struct views *x, const struct tsp_query *q, struct tsp_answer *answer)
{
    tsp_begin_styles(answer);
    stacks_write_styles(answer);
    tsp_end_styles(answer);
}

const struct view view_flame_chart = {
    .provider = {.id = "org.eclipse.tracecompass.internal.analysis.profiling.callstack.provider.CallStackDataProvider",
        .name = "Flame Chart",
        .description = "The functions that threads of user space were in, over time",
        .type = "TIME_GRAPH"},
    .has_data = stacks_have_calls,
    .tree = tree,
    .states = states,
    .tooltip = tooltip,
    .style = style,
};
