/* SPDX-License-Identifier: MIT */
/* weft threads: threads and their time in each state; to choose one. */
#include "cli/cli.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/order.h"
#include "base/time.h"
#include "cli/threads.h"

static int sort_state; /* a graph_state: qsort has no argument */

static int by_total(const void *a, const void *b)
{
    const struct threads_row *x = a, *y = b;
    return order_of(y->is.totals[sort_state], x->is.totals[sort_state]) ?: strcmp(x->host, y->host)
        ?: order_of(x->host_begin, y->host_begin) ?: order_of(x->is.row.tid, y->is.row.tid)
        ?: order_of(x->is.row.begin, y->is.row.begin);
}

static int state_by_name(const char *s, struct err *e)
{
    for (int i = 0; i < GRAPH_STATE_COUNT; i++)
        if (!strcmp(graph_state_name(i), s))
            return i;
    return err_set(
        e, ERR_ARG, "--sort %s: give a state, such as running, preempted, blocked, timer, network or block-device", s);
}

static void collect(const struct experiment *x, const struct threads_choice *q, struct threads_rows *out)
{
    const struct index_host *hosts;
    size_t n = index_experiment_hosts(x, &hosts);
    for (size_t i = 0; i < n; i++) {
        struct threads_row l = {.host = hosts[i].name, .host_begin = hosts[i].begin};
        if (!hosts[i].graph || (q->host && strcmp(q->host, hosts[i].name) != 0))
            continue;
        for (size_t r = 0; r < graph_rows(hosts[i].graph); r++)
            if (graph_row_time(hosts[i].graph, (int32_t)r, &q->choice, &l.is))
                vec_push(out, l);
    }
    out->total = out->n;
}

/* The parts of the question that depend on what hosts there are. */
int cli_threads_settle(struct threads_choice *q, const struct cli_hosts *hosts, struct err *e)
{
    int rc = q->host ? cli_hosts_check(hosts, "--host", q->host, e) : 0;
    return rc ? rc : cli_parse_window(q->begin_text, q->end_text, &hosts->span, &q->choice.begin, &q->choice.end, e);
}

/* Writes a duration; for people, zero is an empty cell. */
static void duration_cell(struct cli_table *t, int format, int64_t ns)
{
    if (format == CLI_TABLE && !ns)
        cli_table_cell(t, "%s", "");
    else
        cli_table_duration(t, format, ns);
}

static bool has_containers(const struct threads_row *lines, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (*lines[i].is.container)
            return true;
    return false;
}

static void write_lines(const struct threads_row *lines, size_t n, int format, struct text *out)
{
    static const int shown[] = {
        GRAPH_RUNNING, GRAPH_PREEMPTED, GRAPH_BLOCKED, GRAPH_TIMER, GRAPH_NETWORK, GRAPH_BLOCK_DEVICE};
    static const struct cli_column columns[] = {{"host", false, false}, {"tid", true, true}, {"pid", true, true},
        {"comm", false, false}, {"begin", true, true}, {"life", true, true}, {"running", true, true},
        {"preempted", true, true}, {"blocked", true, true}, {"timer", true, true}, {"network", true, true},
        {"block-device", true, true}, {"other", true, true}, {"container", false, false}};
    bool contained = has_containers(lines, n);
    struct cli_table *t = cli_table_new(columns, contained ? 14 : 13);
    struct text when = {.fd = -1};
    for (size_t i = 0; i < n; i++) {
        const struct graph_time *l = &lines[i].is;
        int64_t other = l->end - l->begin;
        cli_table_cell(t, "%s", lines[i].host);
        cli_table_cell(t, "%d", l->row.tid);
        cli_table_cell(t, "%d", l->row.tgid);
        cli_table_cell(t, "%s", l->row.name);
        if (format == CLI_TABLE) {
            text_putc(&when, '+');
            text_duration(&when, l->begin - lines[i].host_begin);
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
        if (contained)
            cli_table_cell(t, "%s", l->container);
    }
    text_fini(&when);
    cli_table_write(t, format, out);
    cli_table_free(t);
}

/* Returns the maximum number of lines to show. */
size_t cli_threads_most_lines(const struct threads_choice *q)
{
    return q->limit >= 0 ? (size_t)q->limit : q->format == CLI_TABLE ? 40 : SIZE_MAX;
}

void cli_threads_show(const struct threads_choice *q, struct threads_rows *lines, struct text *out)
{
    size_t limit = cli_threads_most_lines(q), shown = lines->n < limit ? lines->n : limit;
    sort_state = q->state;
    if (lines->n)
        qsort(lines->v, lines->n, sizeof *lines->v, by_total);
    write_lines(lines->v, shown, q->format, out);
    if (lines->total > shown && q->format == CLI_TABLE)
        cli_note("%zu more threads; --limit %zu shows all, --thread NAME some", lines->total - shown, lines->total);
    if (!lines->total && q->choice.container)
        cli_note("no thread in a container %s: without --container and --thread the last column tells which there are",
            q->choice.container);
    else if (!lines->total && q->choice.thread)
        cli_note("no thread %s%s%s; without --thread all are listed", q->choice.thread, q->host ? " on " : "",
            q->host ? q->host : "");
    else if (!lines->total && q->partial)
        cli_note("no threads in what is there of the traces");
    else if (!lines->total && !q->begin_text && !q->end_text)
        cli_note("no threads: record sched_switch and sched_waking; network events alone only synchronize clocks");
}

/* ---- traces ---- */

static int show_traces(struct threads_choice *q, const char *store, char **args, size_t n)
{
    struct err e = {0};
    struct experiment *x;
    struct index_options o = {.store = store, .stores = true};
    const struct index_host *hosts;
    struct cli_hosts names = CLI_HOSTS_NONE;
    struct threads_rows lines = {0};
    if (cli_open_traces(args, n, &o, &x, &e))
        return cli_fail(&e);
    size_t n_hosts = index_experiment_hosts(x, &hosts);
    for (size_t i = 0; i < n_hosts; i++)
        cli_hosts_add(&names, hosts[i].name, hosts[i].begin, hosts[i].end);
    int code;
    if (cli_threads_settle(q, &names, &e)) {
        code = cli_fail(&e);
    } else {
        struct text out = TEXT_TO(1);
        q->partial = index_experiment_partial(x);
        collect(x, q, &lines);
        cli_threads_show(q, &lines, &out);
        code = cli_finish_traces(x, &out, NULL);
    }
    vec_free(&lines);
    cli_hosts_fini(&names);
    index_experiment_close(x);
    return code;
}

static int run(int argc, char **argv)
{
    struct threads_choice q = {.sort = "running", .limit = -1, .choice = {.begin = INT64_MIN, .end = INT64_MAX}};
    struct cli_cluster cluster = {0};
    const char *store = NULL, *format_name = NULL;
    const struct cli_option options[] = {
        {"host", 0, CLI_STRING, "HOST", "threads of this host only", &q.host},
        {"thread", 't', CLI_STRING, "TID|COMM", "threads of this number or name only", &q.choice.thread},
        {"container", 0, CLI_STRING, "NAME|PATTERN", "only threads in containers (pods) of this name",
            &q.choice.container},
        {"begin", 'b', CLI_STRING, "TIME", "count from here (ns, +1.5s, ISO 8601; each host's own clock)",
            &q.begin_text},
        {"end", 'e', CLI_STRING, "TIME", "count to here", &q.end_text},
        {"sort", 's', CLI_STRING, "STATE", "most of this state first (default: running)", &q.sort},
        {"limit", 'n', CLI_INT, "N", "at most N lines (default: 40 on a terminal table, else all)", &q.limit},
        {"all", 'a', CLI_FLAG, NULL, "idle threads too", &q.choice.idle},
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
    if (cli_format_parse(format_name, &q.format, &e) || (q.state = state_by_name(q.sort, &e)) < 0 ||
        cli_cluster_check(&cluster, (size_t)n, &e))
        code = cli_fail(&e);
    else
        code = cluster.url ? cli_threads_ask_cluster(&q, &cluster) : show_traces(&q, store, argv + 1, (size_t)n);
    return code;
}

const struct cli_verb verb_threads = {"threads", "[TRACE…]", "threads with their running and waiting time by cause",
    "weft threads --host web --sort network examples/three-tier", run};
