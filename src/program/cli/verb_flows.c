/* SPDX-License-Identifier: MIT */
/* weft flows: traffic between hosts, its amount and its delays. */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "cli/cli.h"
#include "cli/flows.h"
#include "cli/traces.h"

static int sort_by_name(const char *s, int *sort, struct err *e)
{
    *sort = FLOWS_BYTES;
    for (int i = 0; s; i++) {
        if (i == FLOWS_SORTS)
            return err_set(
                e, ERR_ARG, "--sort %s: bytes, packets, retransmitted, connections, delay or begin is expected", s);
        *sort = i;
        if (!strcmp(cli_flows_sort_name(i), s))
            break;
    }
    return 0;
}

/* ---- data, from traces or a cluster ---- */

void cli_flows_add_host(
    struct flows_found *f, const char *name, const struct clock_map *map, int64_t begin, int64_t end)
{
    f->hosts[f->names.n] = (struct flows_host){name, map, true};
    cli_hosts_add(
        &f->names, name, map ? clock_to_reference(map, begin) : begin, map ? clock_to_reference(map, end) : end);
}

/* The parts of the question that depend on what hosts there are. */
int cli_flows_settle(struct flows_choice *q, const struct flows_found *f, struct err *e)
{
    int rc = q->host ? cli_hosts_check(&f->names, "--host", q->host, e) : 0;
    return rc ? rc : cli_parse_window(q->begin_text, q->end_text, &f->names.span, &q->begin, &q->end, e);
}

static bool is_of_host(const struct flows_row *r, const struct flows_host *hosts, const char *host)
{
    return (r->from >= 0 && !strcmp(hosts[r->from].name, host)) || (r->to >= 0 && !strcmp(hosts[r->to].name, host));
}

static void keep_rows_of(struct flows_rows *rows, const struct flows_host *hosts, const char *host)
{
    size_t kept = 0;
    for (size_t i = 0; i < rows->n; i++)
        if (is_of_host(&rows->v[i], hosts, host))
            rows->v[kept++] = rows->v[i];
    rows->n = kept;
}

/* Notes pairs of hosts whose clocks are unrelated: times of one say nothing about the other. */
static void note_clocks(const struct flows_rows *rows, const struct flows_host *hosts)
{
    size_t unrelated = 0;
    for (size_t i = 0; i < rows->n; i++) {
        const struct flows_row *r = &rows->v[i];
        const struct clock_map *from = r->from < 0 ? NULL : hosts[r->from].map;
        const struct clock_map *to = r->to < 0 ? NULL : hosts[r->to].map;
        unrelated += from && to && from->island != to->island;
    }
    if (unrelated)
        cli_note("%zu lines are of hosts whose clocks are not related: delays are not known; `weft sync` tells more",
            unrelated);
}

/* Notes packets outside of all lines: carriers of other packets, and packets whose sender no line shows. */
static void note_carried(const struct flow_carried *c)
{
    if (c->carrying)
        cli_note("%llu packets of tunnels are not counted; what %llu of them carried was not recorded",
            (unsigned long long)c->carrying, (unsigned long long)c->opaque);
    if (c->renamed)
        cli_note(
            "%llu datagrams had their addresses translated: their senders are unknown", (unsigned long long)c->renamed);
}

void cli_flows_show(const struct flows_choice *q, struct flows_found *f, struct text *out)
{
    struct flows_rows rows = {0};
    cli_flows_make_rows(&f->lines, &f->delays, f->hosts, q->by_flow, &rows);
    if (q->host)
        keep_rows_of(&rows, f->hosts, q->host);
    cli_flows_sort(&rows, f->hosts, q->sort);
    size_t limit = q->limit >= 0 ? (size_t)q->limit : q->format == CLI_TABLE ? 40 : SIZE_MAX;
    size_t shown = rows.n < limit ? rows.n : limit;
    cli_flows_write_rows(rows.v, shown, f->hosts, q->by_flow, f->names.span.first, q->format, out);
    if (rows.n > limit && q->format == CLI_TABLE)
        cli_note("%zu more lines; --limit %zu shows all", rows.n - limit, rows.n);
    note_clocks(&rows, f->hosts);
    note_carried(&f->carried);
    if (!rows.n && !q->begin_text && !q->end_text)
        cli_note("no packets%s%s; record net_dev_queue and net_if_receive_skb to have them", q->host ? " of " : "",
            q->host ? q->host : "");
    vec_free(&rows);
}

void cli_flows_found_fini(struct flows_found *f)
{
    free(f->hosts);
    cli_hosts_fini(&f->names);
    vec_free(&f->lines);
    vec_free(&f->delays);
}

/* ---- traces ---- */

static void find_in_traces(const struct index_host *hosts, const struct flows_choice *q, struct flows_found *f)
{
    size_t n = f->names.n;
    struct talk_told *told = mem_zalloc((n + 1) * sizeof *told);
    struct talk_host *talk = mem_zalloc((n + 1) * sizeof *talk);
    for (size_t i = 0; i < n; i++) {
        int64_t begin = q->begin, end = q->end;
        path_talk_window(f->hosts[i].map, &begin, &end);
        talk[i] = (struct talk_host){hosts[i].flows, f->hosts[i].map};
        path_talk_report(hosts[i].flows, begin, end, &told[i].flows);
        if (hosts[i].flows && (!q->host || !strcmp(q->host, hosts[i].name)))
            flow_carried(hosts[i].flows, begin, end, &f->carried);
        told[i].n_own = hosts[i].flows ? flow_addresses(hosts[i].flows, &told[i].own) : 0;
    }
    path_talk_join(told, n, &f->lines);
    path_talk_find_delays(talk, n, q->begin, q->end, q->by_flow, &f->delays);
    for (size_t i = 0; i < n; i++)
        vec_free(&told[i].flows);
    free(told);
    free(talk);
}

static int relate_traces(struct experiment *x, struct flows_choice *q, struct flows_found *f, struct err *e)
{
    const struct index_host *hosts;
    const struct clock_net *net;
    size_t n = index_experiment_hosts(x, &hosts);
    int rc = cli_relate(x, &q->clocks, &net, e);
    f->hosts = mem_zalloc((n + 1) * sizeof *f->hosts);
    for (size_t i = 0; i < n && !rc; i++)
        cli_flows_add_host(f, hosts[i].name, net ? clock_net_map(net, i) : NULL, hosts[i].begin, hosts[i].end);
    return rc ? rc : cli_flows_settle(q, f, e);
}

static int show_traces(struct flows_choice *q, const char *store, char **args, size_t n)
{
    struct err e = {0};
    struct experiment *x;
    struct index_options o = {.store = store, .stores = true};
    struct flows_found f = {.names = CLI_HOSTS_NONE};
    const struct index_host *hosts;
    int code;
    if (cli_open_traces(args, n, &o, &x, &e))
        return cli_fail(&e);
    index_experiment_hosts(x, &hosts);
    if (relate_traces(x, q, &f, &e)) {
        code = cli_fail(&e);
    } else {
        struct text out = TEXT_TO(1);
        find_in_traces(hosts, q, &f);
        cli_flows_show(q, &f, &out);
        code = cli_finish_traces(x, &out, NULL);
    }
    cli_flows_found_fini(&f);
    index_experiment_close(x);
    return code;
}

static int run(int argc, char **argv)
{
    struct flows_choice q = {.limit = -1, .begin = INT64_MIN, .end = INT64_MAX};
    struct cli_cluster cluster = {0};
    const char *store = NULL, *format_name = NULL;
    const struct cli_option options[] = {
        {"connections", 0, CLI_FLAG, NULL, "one line per direction of each connection", &q.by_flow},
        {"host", 0, CLI_STRING, "HOST", "only what this host sent or received", &q.host},
        {"begin", 'b', CLI_STRING, "TIME", "packets from here (ns, +1.5s, ISO 8601; reference clock)", &q.begin_text},
        {"end", 'e', CLI_STRING, "TIME", "packets to here", &q.end_text},
        {"sort", 's', CLI_STRING, "WHAT",
            "most of this first: bytes (default), packets, retransmitted, connections, delay; or by begin",
            &q.sort_name},
        {"limit", 'n', CLI_INT, "N", "at most N lines (default: 40 on a terminal table, else all)", &q.limit},
        CLI_CLOCKS(&q.clocks),
        {"store", 0, CLI_STRING, "DIR", "keep the stores below DIR", &store},
        CLI_CLUSTER_ASKED(&cluster),
        {"format", 0, CLI_STRING, "FORMAT", "table, json or csv", &format_name},
        {0},
    };
    int n;
    struct err e = {0};
    int code = cli_parse(&verb_flows, options, argc, argv, &n);
    if (code >= 0)
        return code;
    if (cli_format_parse(format_name, &q.format, &e) || sort_by_name(q.sort_name, &q.sort, &e) ||
        cli_clocks_parse(&q.clocks, &e) || cli_cluster_check(&cluster, (size_t)n, &e))
        code = cli_fail(&e);
    else
        code = cluster.url ? cli_flows_ask_cluster(&q, &cluster) : show_traces(&q, store, argv + 1, (size_t)n);
    cli_clocks_fini(&q.clocks);
    return code;
}

const struct cli_verb verb_flows = {"flows", "[TRACE…]",
    "network traffic between hosts: bytes, retransmissions, delays", "weft flows --sort delay examples/three-tier",
    run};
