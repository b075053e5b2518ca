/* SPDX-License-Identifier: MIT */
/* weft requests: the requests of server threads, the slowest first, and groups of like ones. */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/search.h"
#include "cli/cli.h"
#include "cli/requests.h"
#include "cli/traces.h"
#include "show/show.h"

enum { SHOWN = 20, TOLD = 1000 }; /* lines unless --limit says so: for people, for programs */

struct requests_choice {
    struct requests_question is;
    const char *begin_text, *end_text, *slower_text;
    int64_t slower_ns, limit;
    int format;
    struct cli_clocks clocks;
};

/* Open data of the verb. */
struct work {
    struct path_local_host *hosts;
    struct path_local *local;
    struct cli_hosts names;
};

static int open_hosts(struct work *w, struct experiment *x, struct requests_choice *q, struct err *e)
{
    const struct index_host *hosts;
    const struct clock_net *net;
    size_t n = index_experiment_hosts(x, &hosts);
    int rc = cli_relate(x, &q->clocks, &net, e);
    if (rc)
        return rc;
    w->hosts = mem_zalloc((n + 1) * sizeof *w->hosts);
    for (size_t i = 0; i < n; i++) {
        const struct clock_map *map = net ? clock_net_map(net, i) : NULL;
        w->hosts[i] = (struct path_local_host){hosts[i].name, hosts[i].graph, hosts[i].flows, map};
        cli_hosts_add(&w->names, hosts[i].name, map ? clock_to_reference(map, hosts[i].begin) : hosts[i].begin,
            map ? clock_to_reference(map, hosts[i].end) : hosts[i].end);
    }
    w->local = path_local_new(w->hosts, n);
    rc = q->is.host ? cli_hosts_check(&w->names, "--host", q->is.host, e) : 0;
    return rc ? rc : cli_parse_window(q->begin_text, q->end_text, &w->names.span, &q->is.begin, &q->is.end, e);
}

/* ---- notes ---- */

static void note_lacking(const struct requests *found)
{
    struct path_requests_lacking l;
    path_requests_lacking(found, &l);
    for (int i = 0; i < SHOW_REQUESTS_LACKS; i++) {
        struct text t = {.fd = -1};
        if (show_requests_lack(&l, (enum show_requests_lack)i, &t))
            cli_note("%s%s", text_cstr(&t),
                i == SHOW_REQUESTS_UNRELATED ? "; `weft sync` tells more, --reference names another one" : "");
        text_fini(&t);
    }
}

static void note_shown(const struct requests_choice *q, const struct requests_shown *s, size_t meant, size_t all)
{
    if (!all && (q->is.host || q->begin_text || q->end_text))
        cli_note("no requests there; `weft requests` without --host, --begin and --end looks everywhere");
    else if (!all)
        cli_note("no requests; record net_dev_queue, net_if_receive_skb and sched events of the server's host, so "
                 "that its messages and its threads are known");
    if (meant > s->n)
        cli_note("%zu more requests; --limit %zu shows all", meant - s->n, meant);
    struct text t = {.fd = -1};
    if (show_requests_sample(s->groups, all, &t))
        cli_note("%s", text_cstr(&t));
    text_fini(&t);
}

/* ---- answering ---- */

static size_t limit_of(const struct requests_choice *q)
{
    return q->limit >= 0 ? (size_t)q->limit : q->format == CLI_TABLE ? SHOWN : TOLD;
}

static void answer(const struct work *w, const struct requests_choice *q, struct text *out)
{
    struct requests *found = path_requests_find(w->local, &q->is);
    struct request_groups *groups = path_request_groups_new(found, NULL);
    size_t all = path_requests_count(found), limit = limit_of(q);
    size_t meant = search_first(i, 0, all, request_duration(path_requests_get(found, i)) < q->slower_ns);
    struct requests_shown shown = {.found = found,
        .groups = groups,
        .local = w->local,
        .n = meant < limit ? meant : limit,
        .first = w->names.span.first,
        .reference = q->clocks.reference};
    cli_requests_write(&shown, q->format, out);
    note_lacking(found);
    note_shown(q, &shown, meant, all);
    path_request_groups_free(groups);
    path_requests_free(found);
}

static int show(struct requests_choice *q, const char *store, char **args, size_t n)
{
    struct err e = {0};
    struct experiment *x;
    struct index_options o = {.store = store, .stores = true};
    struct work w = {.names = CLI_HOSTS_NONE};
    int code;
    if (cli_open_traces(args, n, &o, &x, &e))
        return cli_fail(&e);
    if (open_hosts(&w, x, q, &e)) {
        code = cli_fail(&e);
    } else {
        struct text out = TEXT_TO(1);
        answer(&w, q, &out);
        code = cli_finish_traces(x, &out, NULL);
    }
    path_local_free(w.local);
    free(w.hosts);
    cli_hosts_fini(&w.names);
    index_experiment_close(x);
    return code;
}

static int run(int argc, char **argv)
{
    struct requests_choice q = {.limit = -1, .is = {.begin = INT64_MIN, .end = INT64_MAX}};
    const char *store = NULL, *format_name = NULL;
    const struct cli_option options[] = {
        {"host", 0, CLI_STRING, "HOST", "what this host served only", &q.is.host},
        {"slower", 0, CLI_STRING, "TIME", "list only requests of at least this duration (50ms); groups use all",
            &q.slower_text},
        {"limit", 'n', CLI_INT, "N", "list at most N requests (default: 20 in a table, else 1000)", &q.limit},
        {"begin", 'b', CLI_STRING, "TIME", "requests from here (ns, +1.5s, ISO 8601; reference clock)", &q.begin_text},
        {"end", 'e', CLI_STRING, "TIME", "requests to here", &q.end_text},
        CLI_CLOCKS(&q.clocks),
        {"store", 0, CLI_STRING, "DIR", "keep the stores below DIR", &store},
        {"format", 0, CLI_STRING, "FORMAT", "table, json or csv", &format_name},
        {0},
    };
    int n;
    struct err e = {0};
    int code = cli_parse(&verb_requests, options, argc, argv, &n);
    if (code >= 0)
        return code;
    if (cli_format_parse(format_name, &q.format, &e) || cli_parse_duration("slower", q.slower_text, &q.slower_ns, &e) ||
        cli_clocks_parse(&q.clocks, &e) || cli_need_traces((size_t)n, &e))
        code = cli_fail(&e);
    else
        code = show(&q, store, argv + 1, (size_t)n);
    cli_clocks_fini(&q.clocks);
    return code;
}

const struct cli_verb verb_requests = {"requests", "TRACE…",
    "requests of server threads, the slowest first, and what differs in slow ones",
    "weft requests --slower 50ms examples/three-tier", run};
