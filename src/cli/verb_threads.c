/* weft threads: who was there, and what they did with their time; to choose one. */
#include "cli/cli.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/order.h"
#include "base/time.h"
#include "cli/traces.h"

struct thread_line {
    const struct index_host *host;
    struct graph_row row;
    int64_t totals[GRAPH_STATE_COUNT], begin, end;
};

struct thread_choice {
    const char *host, *thread, *sort;
    bool all;
    int64_t begin, end, limit;
};

static int sort_state; /* qsort has no argument; set once before sorting */

static int by_total(const void *a, const void *b)
{
    const struct thread_line *x = a, *y = b;
    return order_of(y->totals[sort_state], x->totals[sort_state]) ?: strcmp(x->host->name, y->host->name)
        ?: order_of(x->row.tid, y->row.tid) ?: order_of(x->row.begin, y->row.begin);
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

static size_t collect(const struct experiment *x, const struct thread_choice *c, struct thread_line **lines)
{
    VEC(struct thread_line) v = {0};
    const struct index_host *hosts;
    size_t n = experiment_hosts(x, &hosts);
    for (size_t i = 0; i < n; i++)
        for (size_t r = 0; hosts[i].graph && r < graph_rows(hosts[i].graph); r++) {
            struct thread_line l = {.host = &hosts[i]};
            graph_row(hosts[i].graph, (int32_t)r, &l.row);
            l.begin = l.row.begin > c->begin ? l.row.begin : c->begin;
            l.end = l.row.end < c->end ? l.row.end : c->end;
            if (l.begin > l.end || !wanted(c, &hosts[i], (int32_t)r, &l.row))
                continue;
            graph_row_totals(hosts[i].graph, (int32_t)r, l.begin, l.end, l.totals);
            vec_push(&v, l);
        }
    *lines = v.v;
    return v.n;
}

static int known_host(const struct index_host *hosts, size_t n, const char *wanted, struct err *e)
{
    struct text names = {.fd = -1};
    for (size_t i = 0; wanted && i < n; i++) {
        if (!strcmp(hosts[i].name, wanted))
            wanted = NULL;
        else
            text_printf(&names, "%s%s", names.n ? ", " : "", hosts[i].name);
    }
    int rc = wanted ? err_set(e, ERR_ARG, "--host %s: no such host; there are %s", wanted, text_cstr(&names)) : 0;
    text_fini(&names);
    return rc;
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
        cli_table_cell(t, "%s", l->host->name);
        cli_table_cell(t, "%d", l->row.tid);
        cli_table_cell(t, "%d", l->row.tgid);
        cli_table_cell(t, "%s", l->row.name);
        if (format == CLI_TABLE) {
            text_putc(&when, '+');
            text_duration(&when, l->begin - l->host->begin);
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

static int run(int argc, char **argv)
{
    struct thread_choice c = {.sort = "running", .limit = -1, .begin = INT64_MIN, .end = INT64_MAX};
    const char *store = NULL, *format_name = NULL, *begin = NULL, *end = NULL;
    const struct cli_option options[] = {
        {"host", 0, CLI_STRING, "HOST", "threads of this host only", &c.host},
        {"thread", 't', CLI_STRING, "TID|COMM", "threads of this number or name only", &c.thread},
        {"begin", 'b', CLI_STRING, "TIME", "count from here (ns, +1.5s, ISO 8601; each host's own clock)", &begin},
        {"end", 'e', CLI_STRING, "TIME", "count to here", &end},
        {"sort", 's', CLI_STRING, "STATE", "most of this state first (default: running)", &c.sort},
        {"limit", 'n', CLI_INT, "N", "at most N lines (default: 40 on a terminal table, else all)", &c.limit},
        {"all", 'a', CLI_FLAG, NULL, "idle threads too", &c.all},
        {"store", 0, CLI_STRING, "DIR", "keep the stores below DIR", &store},
        {"format", 0, CLI_STRING, "FORMAT", "table, json or csv", &format_name},
        {0},
    };
    int n, format;
    struct err e = {0};
    int code = cli_parse(&verb_threads, options, argc, argv, &n);
    if (code >= 0)
        return code;
    if (cli_format_parse(format_name, &format, &e) || (sort_state = state_by_name(c.sort, &e)) < 0)
        return cli_fail(&e);
    struct experiment *x;
    struct index_options o = {.store = store, .stores = true};
    if (cli_open_traces(argv + 1, (size_t)n, &o, &x, &e))
        return cli_fail(&e);
    const struct index_host *hosts;
    size_t n_hosts = experiment_hosts(x, &hosts);
    int64_t first = INT64_MAX;
    for (size_t i = 0; i < n_hosts; i++)
        first = hosts[i].begin < first ? hosts[i].begin : first;
    if (known_host(hosts, n_hosts, c.host, &e) || cli_parse_window(begin, end, first, &c.begin, &c.end, &e)) {
        experiment_close(x);
        return cli_fail(&e);
    }
    struct thread_line *lines;
    size_t count = collect(x, &c, &lines);
    if (count)
        qsort(lines, count, sizeof *lines, by_total);
    size_t limit = c.limit >= 0 ? (size_t)c.limit : format == CLI_TABLE ? 40 : count;
    struct text out = TEXT_TO(1);
    write_lines(lines, count < limit ? count : limit, format, &out);
    if (count > limit && format == CLI_TABLE)
        cli_note("%zu more threads; --limit %zu shows all, --thread NAME some", count - limit, count);
    if (!count && c.thread)
        cli_note(
            "no thread %s%s%s; without --thread all are listed", c.thread, c.host ? " on " : "", c.host ? c.host : "");
    else if (!count)
        cli_note("no threads: record sched_switch and sched_waking to have them; network events alone tie clocks");
    free(lines);
    code = cli_finish_traces(x, &out, NULL);
    experiment_close(x);
    return code;
}

const struct cli_verb verb_threads = {"threads", "TRACE…", "threads with their running and waiting time by cause",
    "weft threads --host web --sort network examples/three-tier", run};
