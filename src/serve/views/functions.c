/* SPDX-License-Identifier: MIT */
/* Functions of user-space traces in figures and by duration. Only calls whose entry and exit were recorded have a
 * duration. */
#include "views/durations.h"
#include "views/stacks.h"

enum { MOST_BARS = 4096 };

/* ---- figures ---- */

/* Figures of all functions of a trace, by number: calls that begin within [begin, end]. */
static struct stack_figures *trace_figures(
    const struct views *x, const struct stacks_trace *p, int64_t begin, int64_t end, const struct tsp_query *q)
{
    const struct view_host *h = &x->hosts[p->host];
    struct stack_figures *of = arena_new(q->http->arena, struct stack_figures, stack_functions(p->s) + 1);
    for (size_t row = 0; row < stack_rows(p->s) && !http_gone(q->http); row++) {
        struct stacks_range r = stacks_range(x, p, row, begin, end);
        stack_figures(p->s, row, r.first, r.end, of);
    }
    stack_figures_spread(of, stack_functions(p->s));
    for (size_t f = 0; f < stack_functions(p->s); f++) {
        of[f].calls.least_begin = view_to_reference(h, of[f].calls.least_begin);
        of[f].calls.most_begin = view_to_reference(h, of[f].calls.most_begin);
    }
    return of;
}

/* Figures by trace, then by function. */
static struct stack_figures **all_figures(struct views *x, int64_t begin, int64_t end, const struct tsp_query *q)
{
    const struct stacks *all = stacks_of(x);
    struct stack_figures **of = arena_new(q->http->arena, struct stack_figures *, all->n + 1);
    for (size_t i = 0; i < all->n; i++)
        of[i] = trace_figures(x, &all->v[i], begin, end, q);
    return of;
}

/* ---- statistics ---- */

struct statistics {
    struct views *x;
    const struct tsp_query *q;
    struct tsp_answer *answer;
    int64_t next;    /* entry */
    const char *row; /* name of the root's row */
};

static void join(struct stack_figures *to, const struct stack_figures *f)
{
    figures_join(&to->calls, &f->calls);
    to->self = figures_sum(to->self, f->self);
}

static void write_one(
    struct statistics *s, int64_t id, int64_t parent, uint64_t key, const char *label, const struct stack_figures *f)
{
    const char *row = parent < 0 ? s->row : NULL; /* the root is merged over machines */
    struct arena *a = s->q->http->arena;
    durations_write_figures(s->answer, a, id, parent, key, label, row, &f->calls, &f->self);
}

/* Writes a trace. Entries that are not written use up their numbers too, so numbers do not depend on the range. */
static void write_trace(
    struct statistics *s, const struct stacks_trace *p, const struct stack_figures *of, int64_t root)
{
    struct arena *a = s->q->http->arena;
    size_t processes = stack_processes(p->s), functions = stack_functions(p->s);
    struct stack_figures *sums = arena_new(a, struct stack_figures, processes + 1);
    struct stack_function f;
    int64_t first = s->next, first_function = first + (int64_t)processes;
    for (size_t i = 0; i < functions; i++) {
        stack_function(p->s, i, &f);
        join(&sums[f.process], &of[i]);
    }
    for (size_t i = 0; i < processes; i++) {
        const char *label = stacks_process_label(a, p, i);
        write_one(s, first + (int64_t)i, root, p->process_keys[i],
            s->x->n_hosts > 1 ? arena_printf(a, "%s/%s", s->x->hosts[p->host].index->name, label) : label, &sums[i]);
    }
    for (size_t i = 0; i < functions && !tsp_full(s->answer); i++) {
        stack_function(p->s, i, &f);
        write_one(s, first_function + (int64_t)i, first + f.process, stacks_function_key(&f), f.name, &of[i]);
    }
    s->next = first_function + (int64_t)functions;
}

static void write_all(struct statistics *s, const char *label, const char *row, struct stack_figures *const *of)
{
    s->row = row;
    const struct stacks *all = stacks_of(s->x);
    struct stack_figures sum = {.self = 0};
    int64_t root = s->next++;
    for (size_t i = 0; i < all->n; i++)
        for (size_t f = 0; f < stack_functions(all->v[i].s); f++)
            join(&sum, &of[i][f]);
    write_one(s, root, -1, 0, label, &sum);
    for (size_t i = 0; i < all->n; i++)
        write_trace(s, &all->v[i], of[i], root);
}

static void statistics_tree(
    const struct view *self, struct views *x, const struct tsp_query *q, struct tsp_answer *answer)
{
    struct statistics s = {x, q, answer, stacks_root(x, 0), NULL};
    write_all(&s, "Total", "total", all_figures(x, x->data.begin, x->data.end, q));
    if (view_has_selection(x, q))
        write_all(&s, "Selection", "selection", all_figures(x, q->begin, q->end, q));
}

/* ---- counts by duration ---- */

static void density_tree(const struct view *self, struct views *x, const struct tsp_query *q, struct tsp_answer *answer)
{
    const struct stacks *all = stacks_of(x);
    bool *begun = arena_new(q->http->arena, bool, x->n_hosts + 1);
    for (size_t i = 0; i < all->n; i++) {
        const struct stacks_trace *p = &all->v[i];
        const struct view_host *h = &x->hosts[p->host];
        if (!stack_rows(p->s))
            continue;
        if (!begun[p->host])
            view_write_keyed(answer, h, stacks_root(x, p->host), -1, h->index->user_key, h->index->name, VIEW_GROUP);
        begun[p->host] = true;
        for (size_t k = 0; k < stack_processes(p->s); k++)
            view_write_keyed(answer, h, p->first_process + (int64_t)k, stacks_root(x, p->host), p->process_keys[k],
                stacks_process_label(q->http->arena, p, k), VIEW_DATA | VIEW_DEFAULT);
    }
}

/* Longest call of the experiment. Bounds of the bars do not change with the time range, so pictures can be compared. */
static int64_t longest(struct views *x, const struct tsp_query *q)
{
    struct stack_figures *const *of = all_figures(x, x->data.begin, x->data.end, q);
    const struct stacks *all = stacks_of(x);
    int64_t most = 0;
    for (size_t i = 0; i < all->n; i++)
        for (size_t f = 0; f < stack_functions(all->v[i].s); f++)
            most = of[i][f].calls.most > most ? of[i][f].calls.most : most;
    return most;
}

/* Adds the calls of all threads of a process that begin within the range. */
static void count_process(const struct views *x, const struct tsp_query *q, const struct stacks_trace *p,
    size_t process, const struct durations_bars *b)
{
    struct stack_process d;
    struct stack_thread t;
    stack_process(p->s, process, &d);
    for (size_t k = d.first_thread; k < (size_t)d.first_thread + d.threads; k++) {
        stack_thread(p->s, k, &t);
        for (size_t row = t.first_row; row < (size_t)t.first_row + t.rows && !http_gone(q->http); row++) {
            struct stacks_range r = stacks_range(x, p, row, q->begin, q->end);
            stack_histogram(p->s, row, r.first, r.end, b->width, b->n, b->counts);
        }
    }
}

static size_t wanted_bars(const struct tsp_query *q)
{
    json_t *n = json_object_get(json_object_get(q->parameters, "requested_timerange"), "nbSamples");
    json_int_t wanted = json_is_integer(n) ? json_integer_value(n) : DURATIONS_BARS;
    return wanted < 1 ? 1 : wanted > MOST_BARS ? MOST_BARS : (size_t)wanted;
}

static void density_xy(const struct view *self, struct views *x, const struct tsp_query *q, struct tsp_answer *answer)
{
    const struct stacks *all = stacks_of(x);
    struct arena *a = q->http->arena;
    int64_t most = longest(x, q);
    for (size_t i = 0; i < all->n; i++) {
        const struct stacks_trace *p = &all->v[i];
        for (size_t k = 0; k < stack_processes(p->s) && !tsp_full(answer); k++) {
            struct tsp_series s = self->series;
            s.id = p->first_process + (int64_t)k;
            if (q->has_items && !tsp_wants(q, s.id))
                continue;
            struct durations_bars b = durations_bars(q, most, wanted_bars(q));
            count_process(x, q, p, k, &b);
            s.name = arena_printf(a, "%s/%s", x->hosts[p->host].index->name, stacks_process_label(a, p, k));
            durations_write_bars(q, answer, s, &b);
        }
    }
}

/* Second name of each view, used among the analyses of latencies. */
#define OF_CALLS ":org.eclipse.linuxtools.lttng2.ust.analysis.callstack"
#define STATISTICS \
    .has_data = stacks_have_calls, .headers = durations_headers, .n_headers = DURATIONS_SELF_HEADERS, \
    .tree = statistics_tree
#define DENSITY \
    .has_data = stacks_have_calls, .headers = density_headers, .n_headers = 1, .tree = density_tree, \
    .title = "Function Density", .xy = density_xy, \
    .series = {.type = "bar", \
        .x_label = "Execution Time", \
        .x_unit = "ns", \
        .x_type = "DURATION", \
        .y_label = "Number of Executions"}
static const struct tsp_header density_headers[] = {{"Name", "All calls of the process within the range", "STRING"}};

const struct view view_function_statistics = {
    .provider =
        {.id = "org.eclipse.tracecompass.internal.analysis.profiling.core.callgraph.callgraphanalysis.statistics",
            .name = "Function Duration Statistics",
            .description = "Least, most, mean and spread of the durations of functions, by process",
            .type = "DATA_TREE"},
    STATISTICS,
};
const struct view view_function_density = {
    .provider = {.id = "org.eclipse.tracecompass.analysis.profiling.core.callstack.functiondensity.provider",
        .family = STACKS_FAMILY,
        .name = "Function Density View",
        .description = "How many calls of functions take how long",
        .type = "TREE_GENERIC_XY"},
    DENSITY,
};
const struct view view_call_statistics = {
    .provider =
        {.id = "org.eclipse.tracecompass.analysis.timing.core.segmentstore.SegmentStoreStatisticsDataProvider" OF_CALLS,
            .name = "LTTng-UST CallStack - Latency Statistics",
            .description = "Least, most, mean and spread of the durations of functions, by process",
            .type = "DATA_TREE"},
    STATISTICS,
};
const struct view view_call_density = {
    .provider = {.id = "org.eclipse.tracecompass.internal.analysis.timing.core.segmentstore."
                       "SegmentStoreDensityDataProvider" OF_CALLS,
        .family = STACKS_FAMILY,
        .name = "LTTng-UST CallStack - Latency Density",
        .description = "How many calls of functions take how long",
        .type = "TREE_GENERIC_XY"},
    DENSITY,
};
