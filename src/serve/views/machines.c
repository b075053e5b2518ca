/* SPDX-License-Identifier: MIT */
/* Machines: one row per host, with the load of its CPUs. A state covers the time between samples; its level is the
 * share of CPU time used. */
#include <string.h>

#include "views/looks.h"
#include "views/rates.h"
#include "views/sampling.h"
#include "views/tips.h"

#define LOST_BY_MACHINE "Lost events by machine"

static const struct view_look looks[] = {{"idle", LOOK_RUNNING, 1, 0.08}, {"low", LOOK_RUNNING, 1, 0.35},
    {"medium", LOOK_RUNNING, 1, 0.65}, {"high", LOOK_RUNNING, 1, 1}};
enum { LEVELS = sizeof looks / sizeof *looks, BUSIEST = 3 };
/* Least busy share of each level. */
static const double least[LEVELS] = {0, 0.05, 0.4, 0.75};

static bool has_data(const struct view *self, const struct view_host *h)
{
    return h->states && state_rows(h->states, STATE_CPU);
}

static int level_of(double share)
{
    int i = LEVELS - 1;
    while (i > 0 && share < least[i])
        i--;
    return i;
}

/* ---- load ---- */

/* Sums the busy ns of the host's CPUs up to each time (host's clock). */
static void busy_until(const struct view_host *h, const int64_t *times, size_t n, int64_t *sums, struct arena *a)
{
    int64_t *values = arena_new(a, int64_t, n);
    memset(sums, 0, n * sizeof *sums);
    for (size_t cpu = 0; cpu < state_rows(h->states, STATE_CPU); cpu++) {
        struct state_row r;
        state_row(h->states, STATE_CPU, cpu, &r);
        int64_t counter = state_find_counter(h->states, STATE_CPU_TIME, -1 - r.number);
        if (counter < 0)
            continue;
        state_counter_values(h->states, STATE_CPU_TIME, (size_t)counter, times, n, values);
        for (size_t i = 0; i < n; i++)
            sums[i] += values[i];
    }
}

static double share_of(const struct view_host *h, int64_t busy, int64_t ns)
{
    size_t cpus = state_rows(h->states, STATE_CPU);
    double share = ns > 0 && cpus ? (double)busy / ((double)ns * (double)cpus) : 0;
    return share > 1 ? 1 : share;
}

/* Busy share within [begin, end] of the host's clock. */
static double share_within(const struct view_host *h, int64_t begin, int64_t end, struct arena *a)
{
    int64_t times[2] = {begin, end}, sums[2];
    busy_until(h, times, 2, sums, a);
    return share_of(h, sums[1] - sums[0], end - begin);
}

static const char *percent(struct arena *a, double share)
{
    return arena_printf(a, "%.1f %%", 100 * share);
}

static uint64_t lost_within(const struct view_host *h, int64_t begin, int64_t end)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < state_losses(h->states); i++) {
        struct state_loss l;
        state_loss(h->states, i, &l);
        if (l.begin > end)
            break;
        if (l.end >= begin)
            sum += l.count;
    }
    return sum;
}

/* Time in ns that threads woken within [begin, end] of the host's clock waited for a CPU. */
static int64_t waited_within(const struct view_host *h, int64_t begin, int64_t end, struct arena *a)
{
    const struct state_store *s = h->states;
    size_t n = state_latency_names(s, STATE_LATENCY_SCHED);
    struct figures *of = arena_new(a, struct figures, n + 1);
    int64_t sum = 0;
    state_latency_figures(s, STATE_LATENCY_SCHED, state_latency_find(s, STATE_LATENCY_SCHED, begin),
        state_latency_find(s, STATE_LATENCY_SCHED, time_after(end)), of);
    for (size_t i = 0; i < n; i++)
        sum += of[i].sum;
    return sum;
}

/* Bytes of payload sent and received by all interfaces within [begin, end] of the reference clock. */
static int64_t moved_within(const struct view_host *h, int64_t begin, int64_t end)
{
    static const int kinds[] = {STATE_NET_SENT, STATE_NET_RECEIVED};
    int64_t sum = 0;
    for (size_t k = 0; k < 2; k++)
        for (size_t i = 0; i < state_counters(h->states, kinds[k]); i++)
            sum += rates_growth(h, kinds[k], (int64_t)i, begin, end);
    return sum;
}

/* Clock error at the worse end of [begin, end]; < 0: the host is the reference, or the error is unknown. */
static int64_t clock_error(const struct view_host *h, int64_t begin, int64_t end)
{
    if (!h->map || h->map->predecessor < 0)
        return -1;
    int64_t at_begin = clock_error_at(h->map, begin), at_end = clock_error_at(h->map, end);
    return at_begin > at_end ? at_begin : at_end;
}

/* ---- tree ---- */

/* Figures of a machine in the query's range. */
struct machine_sums {
    double busy;
    uint64_t lost;
    int64_t error, waited, moved;
};

static struct machine_sums sums_of(const struct tsp_query *q, const struct view_host *h, bool *some)
{
    struct arena *a = q->http->arena;
    int64_t begin, end;
    *some = view_range_on(h, q->begin, q->end, &begin, &end) && begin < end;
    if (!*some)
        return (struct machine_sums){.error = -1};
    return (struct machine_sums){.busy = share_within(h, begin, end, a),
        .lost = lost_within(h, begin, end),
        .error = clock_error(h, begin, end),
        .waited = waited_within(h, begin, end, a),
        .moved = moved_within(h, q->begin, q->end)};
}

static void write_machine(
    struct tsp_answer *answer, const struct views *x, const struct tsp_query *q, const struct view_host *h, int64_t id)
{
    struct arena *a = q->http->arena;
    bool some;
    const struct machine_sums m = sums_of(q, h, &some);
    const int64_t cpus = (int64_t)state_rows(h->states, STATE_CPU), events = (int64_t)state_events(h->states);
    const char *labels[] = {h->index->name, arena_printf(a, "%lld", (long long)cpus), some ? percent(a, m.busy) : "",
        arena_printf(a, "%lld", (long long)events), arena_printf(a, "%llu", (unsigned long long)m.lost),
        m.error < 0 ? "" : arena_printf(a, "±%s", arena_duration(a, m.error)), some ? arena_duration(a, m.waited) : "",
        some ? arena_printf(a, "%lld", (long long)m.moved) : ""};
    struct tsp_meta meta[7] = {{.key = "cpus", .number = cpus}, {.key = "events", .number = events},
        {.key = "lost", .number = (int64_t)m.lost}};
    size_t n = 3;
    if (some) {
        meta[n++] = (struct tsp_meta){.key = "busy", .is_real = true, .real = m.busy};
        meta[n++] = (struct tsp_meta){.key = "waited", .number = m.waited};
        meta[n++] = (struct tsp_meta){.key = "moved", .number = m.moved};
    }
    if (m.error >= 0)
        meta[n++] = (struct tsp_meta){.key = "clockError", .number = m.error};
    tsp_write_entry(answer,
        &(struct tsp_entry){.id = id,
            .parent = -1,
            .key = h->index->key,
            .labels = labels,
            .n_labels = sizeof labels / sizeof *labels,
            .time_graph = true,
            .start = x->data.begin,
            .end = x->data.end,
            .has_data = true,
            .host_id = h->id,
            .meta = meta,
            .n_meta = n});
}

static void tree(const struct view *self, struct views *x, const struct tsp_query *q, struct tsp_answer *answer)
{
    for (size_t i = 0; i < x->n_hosts && view_goes_on(q, answer); i++)
        if (has_data(self, &x->hosts[i]))
            write_machine(answer, x, q, &x->hosts[i], view_id(x, i));
}

/* ---- states ---- */

/* Sample times cut to what the host's trace covers, on both clocks; strictly ascending on both. */
struct grid {
    int64_t *reference, *host;
    size_t n;
};

static void add_time(struct grid *g, int64_t reference, int64_t host)
{
    if (g->n && (reference <= g->reference[g->n - 1] || host <= g->host[g->n - 1]))
        return;
    g->reference[g->n] = reference;
    g->host[g->n++] = host;
}

static struct grid grid_of(const struct tsp_query *q, const struct view_host *h)
{
    struct arena *a = q->http->arena;
    struct grid g = {arena_new(a, int64_t, q->n_times + 2), arena_new(a, int64_t, q->n_times + 2), 0};
    int64_t first, last, from = q->n_times ? q->times[0] : 0, to = q->n_times ? q->times[q->n_times - 1] : -1;
    state_span(h->states, &first, &last);
    int64_t begin = view_to_reference(h, first), end = view_to_reference(h, last);
    if (from <= begin && begin < to)
        add_time(&g, begin, first);
    for (size_t i = 0; i < q->n_times; i++)
        if (q->times[i] > begin && q->times[i] < end)
            add_time(&g, q->times[i], view_sample_time(h, q->times[i]));
    if (from < end && end <= to)
        add_time(&g, end, last);
    if (g.n == 1 && q->n_times == 1) /* a single time shows the following millisecond */
        add_time(&g, g.reference[0] + 1000000, g.host[0] + 1000000);
    return g;
}

static void write_level(const struct tsp_query *q, const struct view_host *h, const struct grid *g, const int64_t *sums,
    size_t from, size_t to, struct tsp_answer *answer)
{
    struct arena *a = q->http->arena;
    double share = share_of(h, sums[to] - sums[from], g->host[to] - g->host[from]);
    struct view_shown shown = {.label = percent(a, share), .style_key = looks[level_of(share)].key};
    view_add_property(&shown, "state", shown.style_key);
    view_add_property(&shown, "host", h->index->name);
    view_add_property(&shown, "busy", arena_printf(a, "%.1f", 100 * share));
    view_write_shown(q, answer, g->reference[from], g->reference[to], &shown, false);
}

/* Neighbours of the same level are one state. */
static void write_row(const struct tsp_query *q, const struct view_host *h, int64_t entry, struct tsp_answer *answer)
{
    struct grid g = grid_of(q, h);
    tsp_begin_row(answer, entry);
    if (g.n > 1) {
        int64_t *sums = arena_new(q->http->arena, int64_t, g.n);
        int level = -1;
        size_t from = 0;
        busy_until(h, g.host, g.n, sums, q->http->arena);
        for (size_t i = 0; i + 1 < g.n; i++) {
            int next = level_of(share_of(h, sums[i + 1] - sums[i], g.host[i + 1] - g.host[i]));
            if (i && next != level) {
                write_level(q, h, &g, sums, from, i, answer);
                from = i;
            }
            level = next;
        }
        write_level(q, h, &g, sums, from, g.n - 1, answer);
    }
    tsp_end_row(answer);
}

static void states(const struct view *self, struct views *x, const struct tsp_query *q, struct tsp_answer *answer)
{
    tsp_begin_rows(answer);
    for (size_t i = 0; i < x->n_hosts && view_goes_on(q, answer); i++)
        if (has_data(self, &x->hosts[i]) && tsp_wants(q, view_id(x, i)))
            write_row(q, &x->hosts[i], view_id(x, i), answer);
    tsp_end_rows(answer);
}

/* ---- tooltip ---- */

struct busy {
    int32_t row;
    int64_t ns;
};

/* Finds the threads with the most CPU time within [begin, end] of the host's clock, largest first. */
static size_t find_busiest(
    const struct tsp_query *q, const struct view_host *h, int64_t begin, int64_t end, struct busy top[BUSIEST])
{
    size_t n = 0;
    for (int32_t row = 0; row < h->threads && !http_gone(q->http); row++) {
        int64_t times[2] = {begin, end}, values[2], counter = state_find_counter(h->states, STATE_CPU_TIME, row);
        if (counter < 0)
            continue;
        state_counter_values(h->states, STATE_CPU_TIME, (size_t)counter, times, 2, values);
        struct busy b = {row, values[1] - values[0]};
        if (b.ns <= 0 || (n == BUSIEST && b.ns <= top[n - 1].ns))
            continue;
        size_t i = n < BUSIEST ? n++ : n - 1;
        for (; i > 0 && top[i - 1].ns < b.ns; i--)
            top[i] = top[i - 1];
        top[i] = b;
    }
    return n;
}

static void write_busiest(
    struct tsp_answer *answer, const struct tsp_query *q, const struct view_host *h, int64_t begin, int64_t end)
{
    static const char *const keys[BUSIEST] = {"Busiest", "Second", "Third"};
    struct busy top[BUSIEST];
    size_t n = find_busiest(q, h, begin, end, top);
    for (size_t i = 0; i < n; i++) {
        struct graph_row r;
        graph_row_then(h->index->graph, top[i].row, begin, end, &r);
        if (r.idle_cpu < 0)
            tsp_write_tip(answer, keys[i],
                arena_printf(q->http->arena, "%s (%d), %.1f %% of a CPU", r.name, r.tid,
                    100 * (double)top[i].ns / (double)(end - begin)));
    }
}

static void write_range(
    struct tsp_answer *answer, const struct tsp_query *q, const struct view_host *h, int64_t begin, int64_t end)
{
    struct arena *a = q->http->arena;
    tsp_write_tip(answer, "Busy", percent(a, share_within(h, begin, end, a)));
    if (h->index->graph)
        write_busiest(answer, q, h, begin, end);
    uint64_t lost = lost_within(h, begin, end);
    if (lost)
        tsp_write_tip(answer, "Lost events", arena_printf(a, "%llu", (unsigned long long)lost));
    view_write_span(answer, view_to_reference(h, begin), view_to_reference(h, end));
}

static void tooltip(const struct view *self, struct views *x, const struct tsp_query *q, struct tsp_answer *answer)
{
    int64_t entry, t, begin, end, until;
    bool named = view_tooltip_target(q, &entry, &t);
    int64_t i = entry - view_id(x, 0);
    tsp_begin_tooltip(answer);
    if (named && i >= 0 && i < (int64_t)x->n_hosts && has_data(self, &x->hosts[i])) {
        const struct view_host *h = &x->hosts[i];
        bool lasts = q->element_duration > 0; /* false: shows the following millisecond */
        int64_t from = lasts ? q->element_time : t;
        if (__builtin_add_overflow(from, lasts ? q->element_duration : 1000000, &until))
            until = INT64_MAX;
        tsp_write_tip(answer, "Host", h->index->name);
        view_write_number(answer, "CPUs", (int64_t)state_rows(h->states, STATE_CPU));
        if (view_range_on(h, from, until, &begin, &end) && begin < end)
            write_range(answer, q, h, begin, end);
        view_write_clock_error(answer, h, t);
    }
    tsp_end_tooltip(answer);
}

/* ---- lost events ---- */

static bool has_losses(const struct view *self, const struct views *x)
{
    for (size_t i = 0; i < x->n_hosts; i++)
        if (has_data(self, &x->hosts[i]) && state_losses(x->hosts[i].states))
            return true;
    return false;
}

static void annotation_categories(
    const struct view *self, struct views *x, const struct tsp_query *q, struct tsp_answer *answer)
{
    if (has_losses(self, x))
        json_write_string(&answer->json, LOST_BY_MACHINE);
}

/* Writes losses; simultaneous losses of several CPUs are one range. */
static void write_losses(const struct tsp_query *q, const struct view_host *h, int64_t entry, struct tsp_answer *answer)
{
    size_t n = state_losses(h->states);
    for (size_t i = 0; i < n && view_goes_on(q, answer);) {
        struct state_loss l, next;
        state_loss(h->states, i, &l);
        for (i++; i < n; i++) {
            state_loss(h->states, i, &next);
            if (next.begin > l.end)
                break;
            l.end = next.end > l.end ? next.end : l.end;
            l.count += next.count;
        }
        int64_t begin = view_to_reference(h, l.begin), end = view_to_reference(h, l.end);
        if (begin <= q->end && end >= q->begin)
            tsp_write_annotation(answer, begin, end - begin, entry,
                arena_printf(q->http->arena, "%llu events lost", (unsigned long long)l.count), LOOK_STOLEN, 0.4);
    }
}

static void annotations(const struct view *self, struct views *x, const struct tsp_query *q, struct tsp_answer *answer)
{
    if (!has_losses(self, x) || !tsp_wants_category(q, LOST_BY_MACHINE))
        return;
    json_key(&answer->json, LOST_BY_MACHINE);
    json_begin_array(&answer->json);
    for (size_t i = 0; i < x->n_hosts; i++)
        if (has_data(self, &x->hosts[i]) && tsp_wants(q, view_id(x, i)))
            write_losses(q, &x->hosts[i], view_id(x, i), answer);
    json_end_array(&answer->json);
}

const struct view view_machines = {
    .provider = {.id = "weft.machines",
        .name = "Machines",
        .description = "How busy the CPUs of each machine were, and where events were lost",
        .type = "TIME_GRAPH"},
    .host_has_data = has_data,
    VIEW_HEADERS({"Machine", "Name of the host", "STRING"}, {"CPUs", "Number of CPUs seen", "NUMBER", "cpus", TSP_MAX},
        {"Busy", "Share of all CPU time that was used within the range", "STRING", "busy", TSP_MEAN},
        {"Events", "Events recorded", "NUMBER", "events", TSP_SUM},
        {"Lost", "Events lost within the range", "NUMBER", "lost", TSP_SUM},
        {"Clock error", "The machine's clock is known this well, at the worse end of the range", "STRING", "clockError",
            TSP_FIRST},
        {"Waiting", "Time that woken threads waited for a CPU, within the range", "DURATION", "waited", TSP_SUM},
        {"Network", "Payload that its interfaces sent and received within the range", "BINARY_NUMBER", "moved",
            TSP_SUM}),
    .tree = tree,
    .states = states,
    .tooltip = tooltip,
    VIEW_LOOKS(looks),
    .annotation_categories = annotation_categories,
    .annotations = annotations,
};
