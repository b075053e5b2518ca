/* SPDX-License-Identifier: MIT */
#include "cli/spans_kernel.h"

#include <stdlib.h>

#include "base/mem.h"
#include "base/order.h"
#include "base/search.h"
#include "cli/traces.h"
#include "graph/graph.h"
#include "index/span_threads.h"
#include "path/path.h"
#include "show/show.h"

const char *const cli_why_names[WHY_COUNT] = {
    "running", "preempted", "disk", "network", "timer", "blocked", "other span", "not known"};

/* Usual distance of wall clocks from a trace's clock; limit of ancestors to search. */
enum { NOTABLE_NS = 1000000, MOST_FOREBEARS = 64 };

/* Thread that has a span in this time, by the clock of its machine. */
struct owner {
    int32_t host, row;
    int64_t begin_ns, end_ns;
};
struct cli_kernel {
    struct experiment *experiment;
    struct cli_clocks clocks;
    struct path_local_host *hosts;
    size_t n;
    struct path_local *local;
    struct index_joined joined;   /* indexed by row of the spans */
    const struct spans_row *rows; /* the spans: borrowed */
    VEC(struct owner) owners;     /* sorted by machine and thread */
};

/* ---- opening ---- */

static int open_hosts(struct cli_kernel *k, struct err *e)
{
    const struct index_host *hosts;
    const struct clock_net *net;
    k->n = index_experiment_hosts(k->experiment, &hosts);
    int rc = cli_relate(k->experiment, &k->clocks, &net, e);
    if (rc)
        return rc;
    k->hosts = mem_zalloc((k->n + 1) * sizeof *k->hosts);
    for (size_t i = 0; i < k->n; i++)
        k->hosts[i] = (struct path_local_host){
            hosts[i].name, hosts[i].graph, hosts[i].flows, net ? clock_net_map(net, i) : NULL};
    k->local = path_local_new(k->hosts, k->n);
    return 0;
}

int cli_kernel_open(const struct cli_list *traces, const char *store, struct cli_kernel **out, struct err *e)
{
    struct cli_kernel *k = mem_zalloc(sizeof *k);
    struct index_options o = {.store = store, .stores = true};
    int rc = cli_clocks_parse(&k->clocks, e);
    rc = rc ? rc : cli_open_traces((char **)(uintptr_t)traces->v, traces->n, &o, &k->experiment, e);
    rc = rc ? rc : open_hosts(k, e);
    if (rc) {
        cli_kernel_close(k);
        return rc;
    }
    *out = k;
    return 0;
}

void cli_kernel_close(struct cli_kernel *k)
{
    if (!k)
        return;
    path_local_free(k->local);
    free(k->hosts);
    vec_free(&k->owners);
    index_joined_fini(&k->joined);
    index_experiment_close(k->experiment);
    cli_clocks_fini(&k->clocks);
    free(k);
}

const struct experiment *cli_kernel_experiment(const struct cli_kernel *k)
{
    return k->experiment;
}

/* ---- owners of threads ---- */

static int by_row(const void *x, const void *y)
{
    const struct owner *a = x, *b = y;
    return order_of(a->host, b->host) ?: order_of(a->row, b->row) ?: order_of(a->begin_ns, b->begin_ns);
}

static void join_spans(struct cli_kernel *k, const struct spans *s, const struct spans_row *rows, size_t n)
{
    const struct spans_trace *traces;
    struct index_span *asked = mem_zalloc((n + 1) * sizeof *asked);
    spans_traces(s, &traces);
    for (size_t i = 0; i < n; i++) {
        struct spans_process p = spans_process(s, rows + i);
        asked[i] = (struct index_span){.trace_id = traces[rows[i].trace].id,
            .id = rows[i].id,
            .host = p.host,
            .boot = p.boot,
            .pid = p.pid,
            .tid = p.tid,
            .pid_ns = (uint32_t)p.pid_namespace,
            .monotonic_begin = p.monotonic_begin,
            .monotonic_end = p.monotonic_end,
            .begin_ns = rows[i].recorded_ns,
            .end_ns = rows[i].end_ns - rows[i].shift_ns};
    }
    k->rows = rows;
    index_join_spans(k->experiment, asked, n, &k->joined);
    free(asked);
}

void cli_kernel_know(struct cli_kernel *k, const struct spans *s)
{
    const struct spans_row *rows;
    size_t n = spans_rows(s, &rows);
    join_spans(k, s, rows, n);
    for (size_t i = 0; i < n; i++) {
        const struct index_span_thread *t = k->joined.threads + i;
        if (t->row >= 0)
            vec_push(&k->owners, ((struct owner){t->host, t->row, t->begin_ns, t->end_ns}));
    }
    if (k->owners.n)
        qsort(k->owners.v, k->owners.n, sizeof *k->owners.v, by_row);
}

static int64_t own_time(const struct cli_kernel *k, int32_t host, int64_t t)
{
    const struct clock_map *map = k->hosts[host].map;
    return map ? clock_from_reference(map, t) : t;
}

static int64_t joint_time(const struct cli_kernel *k, int32_t host, int64_t t)
{
    const struct clock_map *map = k->hosts[host].map;
    return map ? clock_to_reference(map, t) : t;
}

static bool has_span(const struct cli_kernel *k, const struct owner *then)
{
    struct owner first = {.host = then->host, .row = then->row, .begin_ns = INT64_MIN};
    for (size_t i = search_first(j, 0, k->owners.n, by_row(k->owners.v + j, &first) >= 0);
         i < k->owners.n && k->owners.v[i].host == then->host && k->owners.v[i].row == then->row; i++)
        if (k->owners.v[i].begin_ns < then->end_ns && k->owners.v[i].end_ns > then->begin_ns)
            return true;
    return false;
}

/* Returns whether the thread has, at that time, a span other than those of `mine`, or was forked by such a thread. */
static bool is_of_another(const struct cli_kernel *k, const struct path_segment *x, struct path_row mine)
{
    int32_t row = x->row.row;
    for (int i = 0; row >= 0 && i < MOST_FOREBEARS; i++) {
        struct graph_row r;
        if (x->row.host == mine.host && row == mine.row)
            return false;
        if (has_span(k,
                &(struct owner){
                    x->row.host, row, own_time(k, x->row.host, x->begin), own_time(k, x->row.host, x->end)}))
            return true;
        graph_row(k->hosts[x->row.host].graph, row, &r);
        row = r.parent_row;
    }
    return false;
}

/* ---- reasons ---- */

static enum cli_why why_of(int state)
{
    switch (state) {
    case GRAPH_RUNNING: return WHY_RUNNING;
    case GRAPH_PREEMPTED:
    case GRAPH_INTERRUPTED:
    case GRAPH_STOLEN:
    case GRAPH_HYPERVISOR: return WHY_PREEMPTED;
    case GRAPH_BLOCK_DEVICE: return WHY_DISK;
    case GRAPH_NETWORK: return WHY_NETWORK;
    case GRAPH_TIMER: return WHY_TIMER;
    case GRAPH_UNKNOWN: return WHY_UNKNOWN;
    default: return WHY_BLOCKED;
    }
}

static void add_path(const struct cli_kernel *k, const struct path *p, struct cli_reasons *out)
{
    for (size_t i = 0; i < p->n_segments; i++) {
        const struct path_segment *x = p->segments + i;
        out->ns[is_of_another(k, x, p->start) ? WHY_OTHER_SPAN : why_of(x->state)] += x->end - x->begin;
    }
    out->traced += p->end - p->begin;
}

bool cli_kernel_explain(
    const struct cli_kernel *k, const struct spans_section *x, struct cli_reasons *out, struct text *sentence)
{
    const struct path_source *source = path_local_source(k->local);
    struct path *p;
    struct err e = {0};
    out->asked += x->end_ns - x->begin_ns;
    out->pieces++;
    const struct index_span_thread *t = x->row < 0 ? NULL : k->joined.threads + x->row;
    if (!t || t->row < 0)
        return false;
    int64_t shift = k->rows[x->row].shift_ns; /* the trace's clock is known better */
    struct path_options o = {.begin = joint_time(k, t->host, index_span_time(t, x->begin_ns - shift)),
        .end = joint_time(k, t->host, index_span_time(t, x->end_ns - shift))};
    if (o.begin >= o.end || path_walk(source, (struct path_row){t->host, t->row}, &o, &p, &e))
        return false;
    add_path(k, p, out);
    struct graph_row thread;
    graph_row_then(k->hosts[t->host].graph, t->row, t->begin_ns, t->end_ns, &thread);
    out->host = k->hosts[t->host].name;
    out->tid = thread.tid;
    out->by = t->by;
    out->found++;
    if (sentence)
        show_sentence(p, source, sentence);
    path_free(p);
    return true;
}

/* ---- clocks ---- */

bool cli_kernel_clock(const struct cli_kernel *k, size_t host, struct cli_clock *out)
{
    const struct index_span_clock *c = k->joined.clocks + host;
    *out = (struct cli_clock){k->hosts[host].name, c->marked, c->monotonic, c->least_ns, c->most_ns};
    return c->marked || c->monotonic;
}

size_t cli_kernel_hosts(const struct cli_kernel *k)
{
    return k->n;
}

void cli_kernel_note_clocks(const struct cli_kernel *k)
{
    struct cli_clock c;
    for (size_t i = 0; i < k->n; i++) {
        if (!cli_kernel_clock(k, i, &c) || (c.least_ns > -NOTABLE_NS && c.least_ns < NOTABLE_NS))
            continue;
        struct text t = {.fd = -1};
        text_duration(&t, c.least_ns < 0 ? -c.least_ns : c.least_ns);
        cli_note("%s: times of its spans are taken as %s %s, as %zu of them %s", c.host, text_cstr(&t),
            c.least_ns < 0 ? "earlier" : "later", c.marked ? c.marked : c.monotonic,
            c.marked ? "marked in the trace tell" : "tell by the machine's monotonic clock");
        text_fini(&t);
    }
}
