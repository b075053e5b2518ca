/* weft threads: who was there, and what they did with their time; to choose one. */
#include "cli/cli.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/order.h"
#include "base/time.h"
#include "cli/cluster.h"
#include "cli/traces.h"

struct thread_line {
    const char *host, *name;
    int64_t host_begin;
    int32_t tid, tgid;
    int64_t totals[GRAPH_STATE_COUNT], begin, end, born;
};
struct thread_lines {
    struct thread_line *v;
    size_t n, cap;
};

struct thread_choice {
    const char *host, *thread, *sort, *begin_text, *end_text;
    bool all;
    int64_t begin, end, limit;
    int format;
};

static int sort_state; /* qsort has no argument; set once before sorting */

static int by_total(const void *a, const void *b)
{
    const struct thread_line *x = a, *y = b;
    return order_of(y->totals[sort_state], x->totals[sort_state]) ?: strcmp(x->host, y->host)
        ?: order_of(x->tid, y->tid) ?: order_of(x->born, y->born);
}

static int state_by_name(const char *s, struct err *e)
{
    for (int i = 0; i < GRAPH_STATE_COUNT; i++)
        if (!strcmp(graph_state_name(i), s))
            return i;
    return err_set(
        e, ERR_ARG, "--sort %s: give a state, such as running, preempted, blocked, timer, network or block-device", s);
}

static bool wanted(const struct thread_choice *c, const struct index_host *h, int32_t row, const struct graph_row *r)
{
    if (c->host && strcmp(c->host, h->name))
        return false;
    return (!c->thread || graph_row_is(h->graph, row, c->thread)) && (c->all || r->idle_cpu < 0);
}

static void collect(const struct experiment *x, const struct thread_choice *c, struct thread_lines *out)
{
    const struct index_host *hosts;
    struct graph_row row;
    size_t n = experiment_hosts(x, &hosts);
    for (size_t i = 0; i < n; i++)
        for (size_t r = 0; hosts[i].graph && r < graph_rows(hosts[i].graph); r++) {
            graph_row(hosts[i].graph, (int32_t)r, &row);
            struct thread_line l = {hosts[i].name, row.name, hosts[i].begin, row.tid, row.tgid, .born = row.begin};
            l.begin = row.begin > c->begin ? row.begin : c->begin;
            l.end = row.end < c->end ? row.end : c->end;
            if (l.begin > l.end || !wanted(c, &hosts[i], (int32_t)r, &row))
                continue;
            graph_row_totals(hosts[i].graph, (int32_t)r, l.begin, l.end, l.totals);
            vec_push(out, l);
        }
}

/* Hosts by name. */
struct host_names {
    const char **v;
    size_t n, cap;
};

static int known_host(const struct host_names *hosts, const char *wanted, struct err *e)
{
    struct text names = {.fd = -1};
    for (size_t i = 0; wanted && i < hosts->n; i++) {
        if (!strcmp(hosts->v[i], wanted))
            wanted = NULL;
        else
            text_printf(&names, "%s%s", names.n ? ", " : "", hosts->v[i]);
    }
    int rc = wanted ? err_set(e, ERR_ARG, "--host %s: no such host; there are %s", wanted, text_cstr(&names)) : 0;
    text_fini(&names);
    return rc;
}

/* The parts of the choice that depend on what hosts there are. */
static int settle_choice(
    struct thread_choice *c, const struct host_names *hosts, const struct cli_span *span, struct err *e)
{
    int rc = known_host(hosts, c->host, e);
    return rc ? rc : cli_parse_window(c->begin_text, c->end_text, span, &c->begin, &c->end, e);
}

static void add_host(struct host_names *names, struct cli_span *span, const char *name, int64_t begin, int64_t end)
{
    vec_push(names, name);
    span->first = begin < span->first ? begin : span->first;
    span->last = end > span->last ? end : span->last;
}

/* For people, nothing where there is no time. */
static void duration_cell(struct cli_table *t, int format, int64_t ns)
{
    if (format == CLI_TABLE && !ns)
        cli_table_cell(t, "%s", "");
    else
        cli_table_duration(t, format, ns);
}

static void write_lines(const struct thread_line *lines, size_t n, int format, struct text *out)
{
    static const int shown[] = {
        GRAPH_RUNNING, GRAPH_PREEMPTED, GRAPH_BLOCKED, GRAPH_TIMER, GRAPH_NETWORK, GRAPH_BLOCK_DEVICE};
    static const struct cli_column columns[] = {{"host", false, false}, {"tid", true, true}, {"pid", true, true},
        {"comm", false, false}, {"begin", true, true}, {"life", true, true}, {"running", true, true},
        {"preempted", true, true}, {"blocked", true, true}, {"timer", true, true}, {"network", true, true},
        {"block-device", true, true}, {"other", true, true}};
    struct cli_table *t = cli_table_new(columns, 13);
    struct text when = {.fd = -1};
    for (size_t i = 0; i < n; i++) {
        const struct thread_line *l = &lines[i];
        int64_t other = l->end - l->begin;
        cli_table_cell(t, "%s", l->host);
        cli_table_cell(t, "%d", l->tid);
        cli_table_cell(t, "%d", l->tgid);
        cli_table_cell(t, "%s", l->name);
        if (format == CLI_TABLE) {
            text_putc(&when, '+');
            text_duration(&when, l->begin - l->host_begin);
            cli_table_text(t, &when);
        } else {
            cli_table_number(t, l->begin);
        }
        duration_cell(t, format, l->end - l->begin);
        for (size_t k = 0; k < sizeof shown / sizeof *shown; k++) {
            duration_cell(t, format, l->totals[shown[k]]);
            other -= l->totals[shown[k]];
        }
        duration_cell(t, format, other);
    }
    text_fini(&when);
    cli_table_write(t, format, out);
    cli_table_free(t);
}

/* At most so many lines are shown. */
static size_t limit_of(const struct thread_choice *c)
{
    return c->limit >= 0 ? (size_t)c->limit : c->format == CLI_TABLE ? 40 : SIZE_MAX;
}

static void show(const struct thread_choice *c, struct thread_lines *lines, struct text *out)
{
    size_t limit = limit_of(c), count = lines->n;
    if (count)
        qsort(lines->v, count, sizeof *lines->v, by_total);
    write_lines(lines->v, count < limit ? count : limit, c->format, out);
    if (count > limit && c->format == CLI_TABLE)
        cli_note("%zu more threads; --limit %zu shows all, --thread NAME some", count - limit, count);
    if (!count && c->thread)
        cli_note("no thread %s%s%s; without --thread all are listed", c->thread, c->host ? " on " : "",
            c->host ? c->host : "");
    else if (!count && !c->begin_text && !c->end_text)
        cli_note("no threads: record sched_switch and sched_waking to have them; network events alone tie clocks");
}

/* ---- traces ---- */

static int show_traces(struct thread_choice *c, const char *store, char **args, size_t n)
{
    struct err e = {0};
    struct experiment *x;
    struct index_options o = {.store = store, .stores = true};
    const struct index_host *hosts;
    struct host_names names = {0};
    struct cli_span span = {INT64_MAX, INT64_MIN};
    struct thread_lines lines = {0};
    if (cli_open_traces(args, n, &o, &x, &e))
        return cli_fail(&e);
    size_t n_hosts = experiment_hosts(x, &hosts);
    for (size_t i = 0; i < n_hosts; i++)
        add_host(&names, &span, hosts[i].name, hosts[i].begin, hosts[i].end);
    int code;
    if (settle_choice(c, &names, &span, &e)) {
        code = cli_fail(&e);
    } else {
        struct text out = TEXT_TO(1);
        collect(x, c, &lines);
        show(c, &lines, &out);
        code = cli_finish_traces(x, &out, NULL);
    }
    vec_free(&lines);
    vec_free(&names);
    experiment_close(x);
    return code;
}

/* ---- a cluster ---- */

static int ask(
    const struct thread_choice *c, struct cli_asked *a, struct thread_lines *lines, size_t *away, struct err *e)
{
    struct cluster_threads found = {0};
    struct cluster_threads_question q = {.thread = c->thread,
        .host = c->host,
        .idle = c->all,
        .sort = sort_state,
        .begin = c->begin,
        .end = c->end,
        .limit = SIZE_MAX};
    int rc = cluster_find_threads(a->cluster, &q, a->deadline_ns, &found, away, e);
    for (size_t i = 0; i < found.n; i++) {
        const struct cluster_thread *t = &found.v[i];
        const struct cluster_host *h = &a->hosts[t->host];
        struct thread_line l = {
            h->name, t->name, h->begin, t->tid, t->tgid, .begin = t->begin, .end = t->end, .born = t->born};
        memcpy(l.totals, t->totals, sizeof l.totals);
        vec_push(lines, l);
    }
    vec_free(&found);
    return rc;
}

static int show_cluster(struct thread_choice *c, struct cli_cluster *cluster)
{
    struct err e = {0};
    struct cli_asked a;
    struct host_names names = {0};
    struct cli_span span = {INT64_MAX, INT64_MIN};
    struct thread_lines lines = {0};
    size_t away = 0;
    int rc = cli_cluster_ask(cluster, NULL, &a, &e), code;
    for (size_t i = 0; i < a.n; i++)
        add_host(&names, &span, a.hosts[i].name, a.hosts[i].begin, a.hosts[i].end);
    if (!rc)
        rc = settle_choice(c, &names, &span, &e);
    if (!rc)
        rc = ask(c, &a, &lines, &away, &e);
    if (rc) {
        code = cli_fail(&e);
    } else {
        struct text out = TEXT_TO(1);
        show(c, &lines, &out);
        if (away)
            cli_note("%s; its threads are not shown", e.text);
        code = cli_finish(&out, away ? CLI_PARTIAL : CLI_OK);
    }
    vec_free(&lines);
    vec_free(&names);
    cli_asked_close(&a);
    return code;
}

static int run(int argc, char **argv)
{
    struct thread_choice c = {.sort = "running", .limit = -1, .begin = INT64_MIN, .end = INT64_MAX};
    struct cli_cluster cluster = {0};
    const char *store = NULL, *format_name = NULL;
    const struct cli_option options[] = {
        {"host", 0, CLI_STRING, "HOST", "threads of this host only", &c.host},
        {"thread", 't', CLI_STRING, "TID|COMM", "threads of this number or name only", &c.thread},
        {"begin", 'b', CLI_STRING, "TIME", "count from here (ns, +1.5s, ISO 8601; each host's own clock)",
            &c.begin_text},
        {"end", 'e', CLI_STRING, "TIME", "count to here", &c.end_text},
        {"sort", 's', CLI_STRING, "STATE", "most of this state first (default: running)", &c.sort},
        {"limit", 'n', CLI_INT, "N", "at most N lines (default: 40 on a terminal table, else all)", &c.limit},
        {"all", 'a', CLI_FLAG, NULL, "idle threads too", &c.all},
        {"store", 0, CLI_STRING, "DIR", "keep the stores below DIR", &store},
        CLI_CLUSTER_ASKED(&cluster),
        {"format", 0, CLI_STRING, "FORMAT", "table, json or csv", &format_name},
        {0},
    };
    int n;
    struct err e = {0};
    int code = cli_parse(&verb_threads, options, argc, argv, &n);
    if (code >= 0)
        return code;
    if (cli_format_parse(format_name, &c.format, &e) || (sort_state = state_by_name(c.sort, &e)) < 0 ||
        cli_cluster_check(&cluster, (size_t)n, &e))
        code = cli_fail(&e);
    else
        code = cluster.url ? show_cluster(&c, &cluster) : show_traces(&c, store, argv + 1, (size_t)n);
    cli_cluster_fini(&cluster);
    return code;
}

const struct cli_verb verb_threads = {"threads", "[TRACE…]", "threads with their running and waiting time by cause",
    "weft threads --host web --sort network examples/three-tier", run};
