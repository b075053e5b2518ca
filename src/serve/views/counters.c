/* SPDX-License-Identifier: MIT */
/* Counters: values of performance counters in event contexts, per host, CPU and counter. */
#include "views/rates.h"
#include "views/sampling.h"

static bool has_data(const struct view *self, const struct view_host *h)
{
    return h->states && state_counters(h->states, STATE_CPU_COUNTER);
}

/* ---- entries in a fixed order: per host its root, "Grouped", "CPU", then per CPU its number and its counters ---- */

enum level { HOST, GROUPED, CPUS, CPU, COUNTER, LEVELS };
struct entry {
    const struct view_host *host;
    int64_t id, parent;
    enum level level;
    int32_t cpu;    /* CPU, COUNTER: number of the CPU; else -1 */
    size_t counter; /* COUNTER: number within the host */
    const char *label;
};
typedef void on_entry(const struct view *self, const struct tsp_query *, struct tsp_answer *, const struct entry *);

static void each_of_host(const struct view *self, const struct view_host *h, int64_t *id, const struct tsp_query *q,
    struct tsp_answer *answer, on_entry *f)
{
    const char *labels[CPU] = {h->index->name, "Grouped", "CPU"};
    int64_t above[LEVELS];
    int32_t cpu = -1;
    for (enum level l = HOST; l < CPU; l++) {
        above[l] = (*id)++;
        f(self, q, answer, &(struct entry){h, above[l], l == HOST ? -1 : above[l - 1], l, -1, 0, labels[l]});
    }
    for (size_t i = 0; i < state_counters(h->states, STATE_CPU_COUNTER); i++) {
        struct state_counter c;
        state_counter(h->states, STATE_CPU_COUNTER, i, &c);
        if (c.number / STATE_CPU_COUNTERS != cpu) {
            cpu = c.number / STATE_CPU_COUNTERS;
            above[CPU] = (*id)++;
            const char *label = arena_printf(q->http->arena, "%d", cpu);
            f(self, q, answer, &(struct entry){h, above[CPU], above[CPUS], CPU, cpu, 0, label});
        }
        f(self, q, answer, &(struct entry){h, (*id)++, above[CPU], COUNTER, cpu, i, c.name});
    }
}

static void each_entry(
    const struct view *self, const struct views *x, const struct tsp_query *q, struct tsp_answer *answer, on_entry *f)
{
    int64_t id = view_id(x, 0);
    for (size_t i = 0; i < x->n_hosts && view_goes_on(q, answer); i++)
        if (has_data(self, &x->hosts[i]))
            each_of_host(self, &x->hosts[i], &id, q, answer, f);
}

static void write_entry(
    const struct view *self, const struct tsp_query *q, struct tsp_answer *answer, const struct entry *e)
{
    struct tsp_meta cpu = {.key = "cpu", .number = e->cpu};
    tsp_write_entry(answer,
        &(struct tsp_entry){.id = e->id,
            .parent = e->parent,
            .key = e->level == HOST ? e->host->index->key : 0,
            .labels = &e->label,
            .n_labels = 1,
            .xy = true,
            .has_data = e->level == COUNTER,
            .host_id = e->host->id,
            .meta = &cpu,
            .n_meta = e->cpu >= 0});
}

static void tree(const struct view *self, struct views *x, const struct tsp_query *q, struct tsp_answer *answer)
{
    each_entry(self, x, q, answer, write_entry);
}

/* ---- series ---- */

/* First known value of the counter, with its time. */
static struct state_interval first_shown(const struct view_host *h, size_t counter)
{
    struct state_interval first[2] = {{.begin = INT64_MIN}};
    size_t n = state_range(h->states, STATE_COUNTER_ROWS + STATE_CPU_COUNTER, counter, INT64_MIN, INT64_MAX, first, 2);
    return first[n == 2 && first[0].value == STATE_NONE];
}

/* Values at the sample times, and one before them. Nothing is counted until the counter's first value. */
static const int64_t *values_of(const struct entry *e, const struct tsp_query *q)
{
    int64_t *values = arena_new(q->http->arena, int64_t, q->n_times + 1);
    const int64_t *times = rates_times(e->host, q, view_sample_time);
    struct state_interval first = first_shown(e->host, e->counter);
    state_counter_values(e->host->states, STATE_CPU_COUNTER, e->counter, times, q->n_times + 1, values);
    for (size_t i = 0; i <= q->n_times && times[i] < first.begin; i++)
        values[i] = first.amount;
    return values;
}

static void write_series(
    const struct view *self, const struct tsp_query *q, struct tsp_answer *answer, const struct entry *e)
{
    struct arena *a = q->http->arena;
    if (e->level != COUNTER || !q->has_items || !tsp_wants(q, e->id) || !view_goes_on(q, answer))
        return;
    bool cumulative = json_is_true(json_object_get(q->parameters, "isCumulative"));
    const int64_t *values = values_of(e, q);
    double *y = arena_new(a, double, q->n_times);
    for (size_t i = 0; i < q->n_times; i++)
        y[i] = (double)(cumulative ? values[i + 1] : (int64_t)((uint64_t)values[i + 1] - (uint64_t)values[i]));
    struct tsp_series s = self->series;
    s.id = e->id;
    s.name = arena_printf(a, "%s/Grouped/CPU/%d/%s", e->host->index->name, e->cpu, e->label);
    s.x = q->times;
    s.y = y;
    s.n = q->n_times;
    s.merge = cumulative ? TSP_LEVEL : TSP_SUM;
    tsp_write_series(answer, &s);
}

static void xy(const struct view *self, struct views *x, const struct tsp_query *q, struct tsp_answer *answer)
{
    each_entry(self, x, q, answer, write_series);
}

const struct view view_counters = {
    .provider = {.id = "org.eclipse.tracecompass.analysis.counters.core.CounterDataProvider",
        .name = "Counters",
        .description = "Performance counters of CPUs: what was counted between two points, or what the counter showed",
        .type = "TREE_TIME_XY"},
    .host_has_data = has_data,
    VIEW_HEADERS({"Name", "CPU and counter", "STRING"}),
    .tree = tree,
    .title = "Counters",
    .series = {.type = "line", .y_label = "Count"},
    .xy = xy,
};
