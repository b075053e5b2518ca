/* Functions of user-space traces in figures and by duration. Only calls whose entry and exit were seen have a duration.
 */
#include <stdlib.h>

#include "views/density.h"
#include "views/figures.h"
#include "views/list.h"
#include "views/stacks.h"

enum { BUCKETS = 128, MOST_BUCKETS = 4096 };

/* ---- figures ---- */

/* Of all functions of a trace, by number: the calls that begin within [begin, end]. */
static struct stack_figures *place_figures(
    const struct views *x, const struct stacks_trace *p, int64_t begin, int64_t end, const struct tsp_query *q)
{
    const struct view_host *h = &x->hosts[p->host];
    struct stack_figures *of = arena_new(q->http->arena, struct stack_figures, stack_functions(p->s) + 1);
    for (size_t row = 0; row < stack_rows(p->s) && !http_gone(q->http); row++) {
        struct stacks_range r = stacks_range(x, p, row, begin, end);
        stack_figures(p->s, row, r.first, r.end, of);
    }
    for (size_t f = 0; f < stack_functions(p->s); f++) {
        of[f].calls.least_begin = view_to_reference(h, of[f].calls.least_begin);
        of[f].calls.most_begin = view_to_reference(h, of[f].calls.most_begin);
    }
    return of;
}

/* By place, by function. */
static struct stack_figures **all_figures(struct views *x, int64_t begin, int64_t end, const struct tsp_query *q)
{
    const struct stacks *all = stacks_of(x);
    struct stack_figures **of = arena_new(q->http->arena, struct stack_figures *, all->n + 1);
    for (size_t i = 0; i < all->n; i++)
        of[i] = place_figures(x, &all->v[i], begin, end, q);
    return of;
}

/* ---- statistics ---- */

struct statistics {
    struct views *x;
    const struct tsp_query *q;
    struct tsp_answer *answer;
    int64_t next; /* id */
};

static void join(struct stack_figures *to, const struct stack_figures *f)
{
    figures_join(&to->calls, &f->calls);
    to->self = (int64_t)((uint64_t)to->self + (uint64_t)f->self);
}

static void write_one(
    struct statistics *s, int64_t id, int64_t parent, const char *label, const struct stack_figures *f)
{
    const char *self = durations_text(s->q->http->arena, (double)f->self);
    figures_write(s->answer, s->q->http->arena, id, parent, label, &f->calls, &self, 1);
}

/* Ids are used up also by what is not written, so that an entry keeps its id whatever the range. */
static void write_place(
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
        write_one(s, first + (int64_t)i, root,
            s->x->n_hosts > 1 ? arena_printf(a, "%s/%s", s->x->hosts[p->host].index->name, label) : label, &sums[i]);
    }
    for (size_t i = 0; i < functions && !tsp_full(s->answer); i++) {
        stack_function(p->s, i, &f);
        write_one(s, first_function + (int64_t)i, first + f.process, f.name, &of[i]);
    }
    s->next = first_function + (int64_t)functions;
}

static void write_all(struct statistics *s, const char *label, struct stack_figures *const *of)
{
    const struct stacks *all = stacks_of(s->x);
    struct stack_figures sum = {.self = 0};
    int64_t root = s->next++;
    for (size_t i = 0; i < all->n; i++)
        for (size_t f = 0; f < stack_functions(all->v[i].s); f++)
            join(&sum, &of[i][f]);
    write_one(s, root, -1, label, &sum);
    for (size_t i = 0; i < all->n; i++)
        write_place(s, &all->v[i], of[i], root);
}

static void statistics_tree(
    const struct view *self, struct views *x, const struct tsp_query *q, struct tsp_answer *answer)
{
    struct statistics s = {x, q, answer, stacks_root(x, 0)};
    struct tsp_header headers[FIGURES_HEADERS + 1];
    memcpy(headers, figures_headers, sizeof figures_headers);
    headers[FIGURES_HEADERS] = (struct tsp_header){"Self Time", "Sum without the calls that they made", "DURATION"};
    tsp_begin_tree(answer, headers, FIGURES_HEADERS + 1, -1);
    write_all(&s, "Total", all_figures(x, x->data.begin, x->data.end, q));
    if (q->has_range && (q->begin > x->data.begin || q->end < x->data.end))
        write_all(&s, "Selection", all_figures(x, q->begin, q->end, q));
    tsp_end_tree(answer);
    tsp_end(answer, q);
}

/* ---- how many of which duration ---- */

static void density_tree(const struct view *self, struct views *x, const struct tsp_query *q, struct tsp_answer *answer)
{
    const struct stacks *all = stacks_of(x);
    const struct tsp_header header = {"Name", "All calls of the process within the range", "STRING"};
    bool *begun = arena_new(q->http->arena, bool, x->n_hosts + 1);
    tsp_begin_tree(answer, &header, 1, -1);
    for (size_t i = 0; i < all->n; i++) {
        const struct stacks_trace *p = &all->v[i];
        const char *host = x->hosts[p->host].index->name;
        if (!stack_rows(p->s))
            continue;
        if (!begun[p->host])
            tsp_write_entry(answer,
                &(struct tsp_entry){.id = stacks_root(x, p->host),
                    .parent = -1,
                    .labels = &host,
                    .n_labels = 1,
                    .xy = true,
                    .host_id = x->hosts[p->host].id});
        begun[p->host] = true;
        for (size_t k = 0; k < stack_processes(p->s); k++) {
            const char *label = stacks_process_label(q->http->arena, p, k);
            tsp_write_entry(answer,
                &(struct tsp_entry){.id = p->first_process + (int64_t)k,
                    .parent = stacks_root(x, p->host),
                    .labels = &label,
                    .n_labels = 1,
                    .xy = true,
                    .is_default = true,
                    .has_data = true,
                    .host_id = x->hosts[p->host].id});
        }
    }
    tsp_end_tree(answer);
}

/* The longest call of the experiment: bounds of the ranges do not move with the time range, so that pictures can be
 * compared. */
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
    size_t process, int64_t width, size_t n, uint64_t *counts)
{
    struct stack_process d;
    struct stack_thread t;
    stack_process(p->s, process, &d);
    for (size_t k = d.first_thread; k < (size_t)d.first_thread + d.threads; k++) {
        stack_thread(p->s, k, &t);
        for (size_t row = t.first_row; row < (size_t)t.first_row + t.rows && !http_gone(q->http); row++) {
            struct stacks_range r = stacks_range(x, p, row, q->begin, q->end);
            stack_histogram(p->s, row, r.first, r.end, width, n, counts);
        }
    }
}

static size_t wanted_buckets(const struct tsp_query *q)
{
    json_t *n = json_object_get(json_object_get(q->parameters, "requested_timerange"), "nbSamples");
    json_int_t wanted = json_is_integer(n) ? json_integer_value(n) : BUCKETS;
    return wanted < 1 ? 1 : wanted > MOST_BUCKETS ? MOST_BUCKETS : (size_t)wanted;
}

static void density_xy(const struct view *self, struct views *x, const struct tsp_query *q, struct tsp_answer *answer)
{
    const struct stacks *all = stacks_of(x);
    struct arena *a = q->http->arena;
    size_t n = wanted_buckets(q);
    int64_t width = density_width(longest(x, q), n);
    const int64_t(*ranges)[2] = density_ranges(a, width, n);
    tsp_begin_xy(answer, "Function Density");
    for (size_t i = 0; i < all->n; i++)
        for (size_t k = 0; k < stack_processes(all->v[i].s) && !tsp_full(answer); k++) {
            int64_t id = all->v[i].first_process + (int64_t)k;
            if (q->has_items && !tsp_wants(q, id))
                continue;
            uint64_t *counts = arena_new(a, uint64_t, n);
            double *y = arena_alloc(a, sizeof *y * n);
            count_process(x, q, &all->v[i], k, width, n, counts);
            for (size_t b = 0; b < n; b++)
                y[b] = (double)counts[b];
            tsp_write_series(answer,
                &(struct tsp_series){.id = id,
                    .name = arena_printf(
                        a, "%s/%s", x->hosts[all->v[i].host].index->name, stacks_process_label(a, &all->v[i], k)),
                    .type = "bar",
                    .ranges = ranges,
                    .y = y,
                    .n = n,
                    .x_label = "Execution Time",
                    .x_unit = "ns",
                    .x_type = "DURATION",
                    .y_label = "Number of Executions"});
        }
    tsp_end_xy(answer);
    tsp_end(answer, q);
}

const struct view view_function_statistics = {
    .provider =
        {.id = "org.eclipse.tracecompass.internal.analysis.profiling.core.callgraph.callgraphanalysis.statistics",
            .name = "Function Duration Statistics",
            .description = "Least, most, mean and spread of the durations of functions, by process",
            .type = "DATA_TREE"},
    .has_data = stacks_have_calls,
    .tree = statistics_tree,
};
const struct view view_function_density = {
    .provider = {.id = "org.eclipse.tracecompass.analysis.profiling.core.callstack.functiondensity.provider",
        .name = "Function Density View",
        .description = "How many calls of functions take how long",
        .type = "TREE_GENERIC_XY"},
    .has_data = stacks_have_calls,
    .tree = density_tree,
    .xy = density_xy,
};
/* The same under the names by which analyses of latencies are asked for. */
const struct view view_call_statistics = {
    .provider = {.id = "org.eclipse.tracecompass.analysis.timing.core.segmentstore.SegmentStoreStatisticsDataProvider:"
                       "org.eclipse.linuxtools.lttng2.ust.analysis.callstack",
        .name = "LTTng-UST CallStack - Latency Statistics",
        .description = "Least, most, mean and spread of the durations of functions, by process",
        .type = "DATA_TREE"},
    .has_data = stacks_have_calls,
    .tree = statistics_tree,
};
const struct view view_call_density = {
    .provider =
        {.id = "org.eclipse.tracecompass.internal.analysis.timing.core.segmentstore.SegmentStoreDensityDataProvider:"
               "org.eclipse.linuxtools.lttng2.ust.analysis.callstack",
            .name = "LTTng-UST CallStack - Latency Density",
            .description = "How many calls of functions take how long",
            .type = "TREE_GENERIC_XY"},
    .has_data = stacks_have_calls,
    .tree = density_tree,
    .xy = density_xy,
};
