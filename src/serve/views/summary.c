/* SPDX-License-Identifier: MIT */
/* Machine Summary: one or two lines per machine, for any number of CPUs and threads. Each sample shows the state of
 * most CPUs; the state of most threads, not counting waiting ones; and the least, mean and greatest use of a CPU.
 * O(rows · samples). */
#include <string.h>

#include "views/looks.h"
#include "views/rates.h"
#include "views/sampling.h"
#include "views/tips.h"

enum { MACHINE, CPUS, THREADS, LINES };
static const char *const line_names[LINES] = {[CPUS] = "CPUs", [THREADS] = "Threads"},
                         *const line_keys[LINES] = {[CPUS] = "cpus", [THREADS] = "threads"};
static const int line_kinds[LINES] = {[CPUS] = STATE_CPU, [THREADS] = STATE_THREAD};
enum { LOOK_EACH = 64 };

static bool has_data(const struct view *self, const struct view_host *h)
{
    return h->states && state_rows(h->states, STATE_CPU);
}

/* ---- counting ---- */

/* Number of rows in each state, by sample. */
struct counts {
    uint32_t (*of)[STATE_VALUES];
    size_t n;
};

/* Returns whether a row is counted. Idle threads belong to the CPUs. */
static bool is_counted(const struct view_host *h, int line, size_t row)
{
    struct graph_row r;
    if (line != THREADS)
        return true;
    if (!h->index->graph || row >= (size_t)h->threads)
        return false;
    graph_row(h->index->graph, (int32_t)row, &r);
    return r.idle_cpu < 0;
}

/* Counts the states of a row. times: ascending, on the host's clock. */
static void count_row(const struct view_host *h, int kind, size_t row, const int64_t *times, size_t n,
    struct state_interval *found, struct counts *out)
{
    struct state_row is;
    size_t from = 0, to = n;
    state_row(h->states, kind, row, &is);
    while (from < n && times[from] < is.begin)
        from++;
    while (to > from && times[to - 1] > is.end)
        to--;
    size_t got = from < to ? state_sample(h->states, kind, row, times + from, to - from, found) : 0;
    for (size_t i = 0, at = from; i < got; i++)
        for (; at < to && (times[at] < found[i].end || i + 1 == got); at++)
            if (times[at] >= found[i].begin && found[i].value < STATE_VALUES)
                out->of[at][found[i].value]++;
}

static struct counts count_line(const struct tsp_query *q, const struct tsp_answer *answer, const struct view_host *h,
    int line, const int64_t *times, size_t n)
{
    struct arena *a = q->http->arena;
    struct counts c = {arena_alloc(a, (n + 1) * sizeof *c.of), n};
    struct state_interval *found = arena_new(a, struct state_interval, n + 1);
    memset(c.of, 0, (n + 1) * sizeof *c.of);
    for (size_t row = 0; row < state_rows(h->states, line_kinds[line]); row++) {
        if (row % LOOK_EACH == 0 && !view_goes_on(q, answer))
            break;
        if (is_counted(h, line, row))
            count_row(h, line_kinds[line], row, times, n, found, &c);
    }
    return c;
}

/* Waiting is the state of threads that do nothing. */
static bool is_waiting(int value)
{
    return value == STATE_WAIT_BLOCKED || value == STATE_WAIT_UNKNOWN || value == STATE_UNKNOWN;
}

/* Returns the most frequent state; if equal, the first in the order of states. Threads: a waiting state only if there
 * is no other. */
static int dominant(const uint32_t of[STATE_VALUES], int line)
{
    int best = STATE_NONE;
    for (int v = STATE_NONE + 1; v < STATE_VALUES; v++) {
        bool less = line == THREADS && is_waiting(v), best_less = line == THREADS && is_waiting(best);
        if (of[v] && (best == STATE_NONE || (best_less && !less) || (best_less == less && of[v] > of[best])))
            best = v;
    }
    return best;
}

/* ---- lines ---- */

static void write_line(
    struct tsp_answer *answer, const struct views *x, const struct tsp_query *q, size_t host, int line)
{
    const struct view_host *h = &x->hosts[host];
    size_t rows = line ? state_rows(h->states, line_kinds[line]) : 0;
    const char *labels[] = {
        line ? line_names[line] : h->index->name, line ? arena_printf(q->http->arena, "%zu", rows) : ""};
    const struct tsp_meta meta = {.key = "rows", .number = (int64_t)rows};
    tsp_write_entry(answer,
        &(struct tsp_entry){.id = view_id(x, host * LINES + (size_t)line),
            .parent = line ? view_id(x, host * LINES) : -1,
            .key = line ? 0 : h->index->key,
            .labels = labels,
            .n_labels = 2,
            .time_graph = true,
            .start = x->data.begin,
            .end = x->data.end,
            .has_data = line != MACHINE,
            .host_id = h->id,
            .meta = &meta,
            .n_meta = line != MACHINE,
            .row = line_keys[line]});
}

static void tree(const struct view *self, struct views *x, const struct tsp_query *q, struct tsp_answer *answer)
{
    for (size_t i = 0; i < x->n_hosts && view_goes_on(q, answer); i++)
        for (int line = MACHINE; line < LINES && has_data(self, &x->hosts[i]); line++)
            write_line(answer, x, q, i, line);
}

/* Writes states at samples within the host's trace. The last state ends with the trace, or just after the last
 * sample. */
static void write_states(
    const struct views *x, const struct tsp_query *q, size_t host, int line, struct tsp_answer *answer)
{
    const struct view_host *h = &x->hosts[host];
    int64_t *times = arena_new(q->http->arena, int64_t, q->n_times + 1), first, last;
    size_t from = 0, n = 0;
    state_span(h->states, &first, &last);
    for (size_t i = 0; i < q->n_times; i++) {
        int64_t t = view_sample_time(h, q->times[i]);
        if (t >= first && t <= last)
            times[n++] = t;
        from += t < first;
    }
    struct counts c = count_line(q, answer, h, line, times, n);
    tsp_begin_row(answer, view_id(x, host * LINES + (size_t)line));
    for (size_t i = 0, k; i < n; i = k) {
        int value = dominant(c.of[i], line);
        for (k = i + 1; k < n && dominant(c.of[k], line) == value;)
            k++;
        int64_t begin = q->times[from + i], end = from + k < q->n_times ? q->times[from + k] : time_after(begin);
        if (k == n && end > view_to_reference(h, last))
            end = time_after(view_to_reference(h, last));
        if (k == n && end <= q->times[from + k - 1])
            end = time_after(q->times[from + k - 1]);
        struct view_shown shown = {.style_key = view_state_key(value)};
        view_add_property(&shown, "state", shown.style_key);
        view_add_property(&shown, "host", h->index->name);
        view_write_shown(q, answer, begin, end, &shown, false);
    }
    tsp_end_row(answer);
}

static void states(const struct view *self, struct views *x, const struct tsp_query *q, struct tsp_answer *answer)
{
    tsp_begin_rows(answer);
    for (size_t i = 0; i < x->n_hosts && view_goes_on(q, answer); i++)
        for (int line = CPUS; line < LINES && has_data(self, &x->hosts[i]); line++)
            if (tsp_wants(q, view_id(x, i * LINES + (size_t)line)))
                write_states(x, q, i, line, answer);
    tsp_end_rows(answer);
}

/* Writes the number of rows in each state. */
static void tooltip(const struct view *self, struct views *x, const struct tsp_query *q, struct tsp_answer *answer)
{
    int64_t entry, t, at;
    bool named = view_tooltip_target(q, &entry, &t);
    int64_t number = entry - view_id(x, 0);
    size_t host = (size_t)number / LINES;
    int line = (int)((size_t)number % LINES);
    tsp_begin_tooltip(answer);
    if (named && number >= 0 && host < x->n_hosts && line && has_data(self, &x->hosts[host])) {
        at = view_sample_time(&x->hosts[host], t);
        struct counts c = count_line(q, answer, &x->hosts[host], line, &at, 1);
        for (int v = STATE_NONE + 1; v < STATE_VALUES; v++)
            if (c.of[0][v])
                tsp_write_tip(answer, view_state_key(v), arena_printf(q->http->arena, "%u", c.of[0][v]));
    }
    tsp_end_tooltip(answer);
}

static void style(const struct view *self, struct views *x, const struct tsp_query *q, struct tsp_answer *answer)
{
    tsp_begin_styles(answer);
    view_write_state_styles(answer,
        VIEW_STATE(USERMODE) | VIEW_STATE(SYSCALL) | VIEW_STATE(INTERRUPTED) | VIEW_STATE(WAIT_FOR_CPU) |
            VIEW_STATE(WAIT_BLOCKED) | VIEW_STATE(WAIT_UNKNOWN) | VIEW_STATE(IDLE) | VIEW_STATE(IRQ) |
            VIEW_STATE(SOFTIRQ) | VIEW_STATE(UNKNOWN));
    tsp_end_styles(answer);
}

const struct view view_summary = {
    .provider = {.id = "weft.summary",
        .name = "Machine Summary",
        .description = "What most CPUs and threads of each machine did",
        .type = "TIME_GRAPH"},
    .host_has_data = has_data,
    VIEW_HEADERS({"Machine", "Name of the host, and what of it", "STRING"},
        {"Rows", "How many are summed up", "NUMBER", "rows", TSP_MAX}),
    .tree = tree,
    .states = states,
    .tooltip = tooltip,
    .style = style,
};

/* ---- CPU usage ---- */

enum { HOST, LEAST, MEAN, MOST, CURVES };
static const char *const curve_names[CURVES] = {[LEAST] = "Minimum", [MEAN] = "Mean", [MOST] = "Maximum"};
static const struct {
    const char *row;
    enum tsp_merge merge;
    unsigned flags;
} curves[CURVES] = {[HOST] = {NULL, TSP_MERGE_NONE, VIEW_GROUP},
    [LEAST] = {"minimum", TSP_MIN, VIEW_DATA},
    [MEAN] = {"mean", TSP_MEAN, VIEW_DATA | VIEW_DEFAULT},
    [MOST] = {"maximum", TSP_MAX, VIEW_DATA}};

static void usage_tree(const struct view *self, struct views *x, const struct tsp_query *q, struct tsp_answer *answer)
{
    for (size_t i = 0; i < x->n_hosts && view_goes_on(q, answer); i++)
        for (size_t k = HOST; k < CURVES && has_data(self, &x->hosts[i]); k++)
            view_write_merged(answer, &x->hosts[i], view_id(x, i * CURVES + k), k ? view_id(x, i * CURVES) : -1,
                k ? curve_names[k] : x->hosts[i].index->name, curves[k].flags, curves[k].row, curves[k].merge);
}

static void curves_of(const struct view_host *h, const struct tsp_query *q, double *curve[CURVES])
{
    struct arena *a = q->http->arena;
    const int64_t *times = rates_times(h, q, view_to_host);
    size_t cpus = state_rows(h->states, STATE_CPU);
    for (size_t k = LEAST; k < CURVES; k++)
        curve[k] = arena_new(a, double, q->n_times + 1);
    double *y = arena_new(a, double, q->n_times + 1);
    for (size_t cpu = 0; cpu < cpus; cpu++) {
        struct state_row r;
        state_row(h->states, STATE_CPU, cpu, &r);
        memset(y, 0, q->n_times * sizeof *y);
        rates_add(h, q, times, STATE_CPU_TIME, state_find_counter(h->states, STATE_CPU_TIME, -1 - r.number), 100, y);
        for (size_t i = 0; i < q->n_times; i++) {
            curve[LEAST][i] = !cpu || y[i] < curve[LEAST][i] ? y[i] : curve[LEAST][i];
            curve[MOST][i] = !cpu || y[i] > curve[MOST][i] ? y[i] : curve[MOST][i];
            curve[MEAN][i] += y[i] / (double)cpus;
        }
    }
}

static void usage_xy(const struct view *self, struct views *x, const struct tsp_query *q, struct tsp_answer *answer)
{
    for (size_t i = 0; i < x->n_hosts && !tsp_full(answer); i++) {
        double *curve[CURVES];
        bool wanted = false;
        for (size_t k = LEAST; k < CURVES; k++)
            wanted |= tsp_wants(q, view_id(x, i * CURVES + k));
        if (!wanted || !has_data(self, &x->hosts[i]))
            continue;
        curves_of(&x->hosts[i], q, curve);
        for (size_t k = LEAST; k < CURVES; k++)
            view_write_series(self, q, answer, view_id(x, i * CURVES + k),
                arena_printf(q->http->arena, "%s: %s", x->hosts[i].index->name, curve_names[k]), curve[k]);
    }
}

const struct view view_summary_usage = {
    .provider = {.id = "weft.summary.cpu",
        .name = "CPU Usage Summary",
        .description = "Least, mean and greatest use of the CPUs of each machine",
        .type = "TREE_TIME_XY"},
    .host_has_data = has_data,
    VIEW_HEADERS({"Name", "Machine, and what of its CPUs", "STRING"}),
    .tree = usage_tree,
    .title = "CPU Usage Summary",
    .series = {.type = "line", .y_label = "CPU usage", .y_unit = "%", .merge = TSP_SUM},
    .xy = usage_xy,
};
