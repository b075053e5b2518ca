/* Counters: what performance counters in the contexts of events showed, per host, CPU and counter. */
#include "views/growth.h"
#include "views/state_rows.h"

static bool has_counters(const struct view_host *h)
{
    return h->states && state_counters(h->states, STATE_CPU_COUNTER);
}

static bool has_data(const struct view *self, struct views *x)
{
    for (size_t i = 0; i < x->n_hosts; i++)
        if (has_counters(&x->hosts[i]))
            return true;
    return false;
}

/* Entries in a fixed order: per host its root, "Grouped", "CPU", then per CPU its number and its counters. */
enum level { HOST, GROUPED, CPUS, CPU, COUNTER, LEVELS };
struct place {
    const struct view_host *host;
    int64_t id, parent;
    enum level level;
    size_t counter; /* of the host; COUNTER */
    int32_t cpu;
    const char *label;
};
struct writing {
    const struct tsp_query *q;
    struct tsp_answer *answer;
};
typedef void on_place(const struct writing *, const struct place *);

static void each_of_host(const struct writing *w, const struct view_host *h, int64_t *id, on_place *f)
{
    static const char *const labels[CPU] = {[GROUPED] = "Grouped", [CPUS] = "CPU"};
    int64_t above[LEVELS];
    int32_t cpu = -1;
    for (enum level l = HOST; l < CPU; l++) {
        above[l] = (*id)++;
        f(w,
            &(struct place){
                h, above[l], l == HOST ? -1 : above[l - 1], l, 0, -1, l == HOST ? h->index->name : labels[l]});
    }
    for (size_t i = 0; i < state_counters(h->states, STATE_CPU_COUNTER); i++) {
        struct state_counter c;
        state_counter(h->states, STATE_CPU_COUNTER, i, &c);
        if (c.number / STATE_CPU_COUNTERS != cpu) {
            cpu = c.number / STATE_CPU_COUNTERS;
            above[CPU] = (*id)++;
            f(w, &(struct place){h, above[CPU], above[CPUS], CPU, 0, cpu, arena_printf(w->q->http->arena, "%d", cpu)});
        }
        f(w, &(struct place){h, (*id)++, above[CPU], COUNTER, i, cpu, c.name});
    }
}

static void each_place(const struct views *x, const struct writing *w, on_place *f)
{
    int64_t id = x->last_thread + 1;
    for (size_t i = 0; i < x->n_hosts && !tsp_full(w->answer) && !http_gone(w->q->http); i++)
        if (has_counters(&x->hosts[i]))
            each_of_host(w, &x->hosts[i], &id, f);
}

static void write_entry(const struct writing *w, const struct place *p)
{
    struct tsp_meta meta = {"cpu", NULL, p->cpu};
    tsp_write_entry(w->answer,
        &(struct tsp_entry){.id = p->id,
            .parent = p->parent,
            .labels = &p->label,
            .n_labels = 1,
            .xy = true,
            .has_data = p->level == COUNTER,
            .host_id = p->host->id,
            .meta = &meta,
            .n_meta = p->cpu >= 0});
}

static void tree(const struct view *self, struct views *x, const struct tsp_query *q, struct tsp_answer *answer)
{
    static const struct tsp_header headers[] = {{"Name", "CPU and counter", "STRING"}};
    struct writing w = {q, answer};
    tsp_begin_tree(answer, headers, 1, -1);
    each_place(x, &w, write_entry);
    tsp_end_tree(answer);
}

/* What the counter first showed, and when. */
static struct state_interval first_shown(const struct view_host *h, size_t counter)
{
    struct state_interval first[2] = {{.begin = INT64_MIN}};
    size_t n = state_range(h->states, STATE_COUNTER_ROWS + STATE_CPU_COUNTER, counter, INT64_MIN, INT64_MAX, first, 2);
    return first[n == 2 && first[0].value == STATE_NONE];
}

/* Values at the sample times, and one before them. Until a counter first shows something nothing counts. */
static const int64_t *values_of(const struct place *p, const struct tsp_query *q)
{
    struct arena *a = q->http->arena;
    int64_t *values = arena_new(a, int64_t, q->n_times + 1), *times = arena_new(a, int64_t, q->n_times + 1);
    struct state_interval first = first_shown(p->host, p->counter);
    times[0] = view_sample_time(p->host, view_time_before(q));
    for (size_t i = 0; i < q->n_times; i++)
        times[i + 1] = view_sample_time(p->host, q->times[i]);
    state_counter_values(p->host->states, STATE_CPU_COUNTER, p->counter, times, q->n_times + 1, values);
    for (size_t i = 0; i <= q->n_times && times[i] < first.begin; i++)
        values[i] = first.amount;
    return values;
}

static void write_series(const struct writing *w, const struct place *p)
{
    const struct tsp_query *q = w->q;
    if (p->level != COUNTER || !q->has_items || !tsp_wants(q, p->id) || tsp_full(w->answer) || http_gone(q->http))
        return;
    bool cumulative = json_is_true(json_object_get(q->parameters, "isCumulative"));
    const int64_t *values = values_of(p, q);
    double *y = arena_new(q->http->arena, double, q->n_times);
    for (size_t i = 0; i < q->n_times; i++)
        y[i] = (double)(cumulative ? values[i + 1] : (int64_t)((uint64_t)values[i + 1] - (uint64_t)values[i]));
    tsp_write_series(w->answer,
        &(struct tsp_series){.id = p->id,
            .name = arena_printf(q->http->arena, "%s/Grouped/CPU/%d/%s", p->host->index->name, p->cpu, p->label),
            .type = "line",
            .x = q->times,
            .y = y,
            .n = q->n_times,
            .y_label = "Count"});
}

static void xy(const struct view *self, struct views *x, const struct tsp_query *q, struct tsp_answer *answer)
{
    struct writing w = {q, answer};
    tsp_begin_xy(answer, "Counters");
    each_place(x, &w, write_series);
    tsp_end_xy(answer);
}

const struct view view_counters = {
    .provider = {.id = "org.eclipse.tracecompass.analysis.counters.core.CounterDataProvider",
        .name = "Counters",
        .description = "Performance counters of CPUs: what was counted between two points, or what the counter showed",
        .type = "TREE_TIME_XY"},
    .has_data = has_data,
    .tree = tree,
    .xy = xy,
};
