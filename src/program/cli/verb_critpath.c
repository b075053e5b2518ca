/* SPDX-License-Identifier: MIT */
/* weft critpath: where the time of a thread went, across machines. */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "cli/critpath.h"
#include "graph/graph.h"

/* Everything that stands open while the question is answered. */
struct work {
    struct experiment *experiment;
    const struct clock_net *clocks;
    struct path_local_host *hosts;
    struct critpath_host *shown;
    size_t n;
    struct path_local *local;
    const struct path_source *source;
    struct path *path, *second; /* second: of --compare */
};

static void close_all(struct work *w)
{
    path_free(w->path);
    path_free(w->second);
    path_local_free(w->local);
    free(w->hosts);
    free(w->shown);
    index_experiment_close(w->experiment);
}

/* ---- choosing the thread ---- */

/* -1 to go on, else the exit code. */
static int choose_thread(
    const struct work *w, const struct critpath_question *q, const struct path_options *o, struct path_row *row)
{
    struct path_lives found = {0};
    int code = -1;
    path_find_lives(w->local, q->thread, NULL, o->begin, o->end, &found);
    if (found.n == 0) {
        path_find_lives(w->local, q->thread, NULL, INT64_MIN, INT64_MAX, &found);
        code = cli_critpath_refuse_absent(q->thread, &found);
    } else if (found.n > 1) {
        code = cli_critpath_refuse_several(q->thread, &found);
    } else {
        *row = found.v[0].row;
    }
    vec_free(&found);
    return code;
}

/* ---- opening ---- */

/* Returns whether nodes of a cluster answer. */
static bool asks_cluster(const struct critpath_question *q)
{
    return q->cluster.url != NULL;
}

static int check_method(const struct critpath_question *q, struct err *e)
{
    bool local = q->method && !strcmp(q->method, "local");
    if (!q->method || (local && !asks_cluster(q)))
        return 0;
    if (!local && strcmp(q->method, "broadcast") != 0 && strcmp(q->method, "index") != 0)
        return err_set(e, ERR_ARG, "--method %s: give local, broadcast or index", q->method);
    if (local)
        return err_set(e, ERR_ARG, "--method local is for traces on this machine: name them in place of --cluster");
    return asks_cluster(q) ? 0
                           : err_set(e, ERR_ARG,
                                 "--method %s asks the nodes of a cluster: give --cluster URL; with "
                                 "traces on this machine use --method local",
                                 q->method);
}

static int check_question(struct critpath_question *q, int n, struct err *e)
{
    cli_cluster_give_way(&q->cluster, (size_t)n);
    int rc = check_method(q, e);
    if (!rc && q->polling && strcmp(q->polling, "assume") != 0)
        rc = err_set(e, ERR_ARG, "--polling %s: give assume, or leave it out", q->polling);
    if (!rc && q->by && strcmp(q->by, "container") != 0)
        rc = err_set(
            e, ERR_ARG, "--by %s: give container, or --aggregate for totals by machine, name and state", q->by);
    if (!rc && q->compare && (q->by || (!q->requests && (q->aggregate || q->segments || q->refine))))
        rc = err_set(
            e, ERR_ARG, "--compare shows two paths by their parts: leave --aggregate, --by, --segments, --refine out");
    if (!rc && !asks_cluster(q) && (q->refine || q->snips))
        rc = err_set(
            e, ERR_ARG, "%s is for the nodes of a cluster: give --cluster URL", q->refine ? "--refine" : "--snips");
    if (!rc)
        rc = cli_cluster_check(&q->cluster, (size_t)n, e);
    if (!rc && q->requests)
        return cli_critpath_check_requests(q, e);
    if (!rc && !q->thread)
        rc = err_set(e, ERR_ARG, "--thread is missing: give [HOST:]TID or a name (`weft threads` lists them)");
    return rc;
}

static int open_hosts(struct work *w, const struct critpath_question *q, struct err *e)
{
    const struct index_host *hosts;
    bool apart = cli_clocks_apart(&q->clocks);
    w->n = index_experiment_hosts(w->experiment, &hosts);
    int rc = apart ? 0 : cli_sync(w->experiment, &q->clocks, &w->clocks, e);
    if (rc)
        return rc;
    w->hosts = mem_zalloc((w->n + 1) * sizeof *w->hosts);
    w->shown = mem_zalloc((w->n + 1) * sizeof *w->shown);
    for (size_t i = 0; i < w->n; i++) {
        const struct clock_map *map = apart ? NULL : clock_net_map(w->clocks, i);
        w->hosts[i] = (struct path_local_host){hosts[i].name, hosts[i].graph, hosts[i].flows, map};
        w->shown[i] = (struct critpath_host){hosts[i].name, map, hosts[i].graph != NULL};
    }
    w->local = path_local_new(w->hosts, w->n);
    w->source = q->polling ? path_local_source_assuming(w->local) : path_local_source(w->local);
    return 0;
}

static int parse_interval(
    const struct work *w, const struct critpath_question *q, struct path_options *o, struct err *e)
{
    const struct index_host *hosts;
    struct cli_span span = {INT64_MAX, INT64_MIN};
    index_experiment_hosts(w->experiment, &hosts);
    for (size_t i = 0; i < w->n; i++)
        cli_critpath_add_span(&span, w->hosts[i].map, hosts[i].begin, hosts[i].end);
    return cli_critpath_parse_interval(q, &span, o, e);
}

/* ---- answering ---- */

/* The path shows threads that run where they may have polled; or the thread that was asked for got messages awake, and
 * nothing can be assumed of them. */
static void note_polling(const struct work *w)
{
    const struct path *p = w->path;
    int64_t totals[GRAPH_STATE_COUNT], duration;
    size_t seen, stretches = path_local_assumable(w->local, p, &duration);
    if (stretches) {
        struct text t = {.fd = -1};
        text_duration(&t, duration);
        cli_note("%s of the path may be polling: %zu time%s a thread ran until a message came and soon sent again, and "
                 "the recorded events do not show what it waited for. `--polling assume` takes it to have waited for "
                 "that message; to know, let the program block, or record its own spans (docs/record.md)",
            text_cstr(&t), stretches, stretches == 1 ? "" : "s");
        text_fini(&t);
        return;
    }
    size_t messages = path_local_unslept(w->local, p->start, p->begin, p->end, &seen);
    const struct path_local_host *h = &w->hosts[p->start.host];
    int64_t begin = h->map ? clock_from_reference(h->map, p->begin) : p->begin,
            end = h->map ? clock_from_reference(h->map, p->end) : p->end;
    graph_row_totals(h->graph, p->start.row, begin, end, totals);
    if (messages <= seen || totals[GRAPH_NETWORK])
        return;
    cli_note("%zu messages came while the thread was awake%s: it polls, and waits of that kind are invisible in "
             "scheduling events; let the program block, or record its own spans (docs/record.md)",
        messages, seen ? ", only some could be told as polling" : "");
}

/* -1: found; else the exit code. */
static int find(struct work *w, const struct critpath_question *q, struct path **out)
{
    struct err e = {0};
    struct path_options options;
    struct path_row row;
    if (parse_interval(w, q, &options, &e))
        return cli_fail(&e);
    int code = choose_thread(w, q, &options, &row);
    if (code >= 0)
        return code;
    if ((w->clocks && clock_net_relates(w->clocks, row.host, &e)) || path_walk(w->source, row, &options, out, &e) ||
        index_experiment_intact(w->experiment, &e))
        return cli_fail(&e);
    return -1;
}

static struct critpath_shown shown_of(const struct work *w, const struct path *p)
{
    return (struct critpath_shown){.path = p,
        .source = w->source,
        .local = w->local,
        .hosts = w->shown,
        .n = w->n,
        .synced = w->clocks,
        .method = "local"};
}

static int compare(struct work *w, const struct critpath_question *q, const struct critpath_shown *first)
{
    struct arena arena = {0};
    struct critpath_question second;
    struct err e = {0};
    int code = cli_critpath_second(q, &arena, &second, &e) ? cli_fail(&e) : find(w, &second, &w->second);
    arena_fini(&arena);
    if (code >= 0)
        return code;
    struct critpath_shown shown = shown_of(w, w->second);
    struct text out = TEXT_TO(1);
    cli_critpath_write_compared(first, &shown, q, &out);
    return cli_finish_traces(w->experiment, &out, NULL);
}

static int sum_set(const struct work *w, const char *asked, bool by_container, const struct path_options *o,
    struct critpath_set *out, struct err *e)
{
    struct arena arena = {0};
    struct requests *found = path_requests_find(w->local,
        &(struct requests_question){
            .host = cli_critpath_requests_host(asked, &arena), .begin = o->begin, .end = o->end});
    out->sums.by_container = by_container;
    int rc = cli_critpath_sum_requests(asked, found, NULL, out, e);
    path_requests_free(found);
    arena_fini(&arena);
    return rc;
}

static int sum_requests(struct work *w, const struct critpath_question *q)
{
    struct critpath_set sets[CRITPATH_SETS] = {0};
    struct path_options o;
    struct err e = {0};
    struct text out = TEXT_TO(1);
    int rc = parse_interval(w, q, &o, &e);
    for (size_t i = 0; i < CRITPATH_SETS && cli_critpath_set_asked(q, i) && !rc; i++)
        rc = sum_set(w, cli_critpath_set_asked(q, i), q->by != NULL, &o, &sets[i], &e);
    if (!rc)
        rc = index_experiment_intact(w->experiment, &e);
    if (!rc)
        cli_critpath_write_requests(q, sets, &out);
    for (size_t i = 0; i < CRITPATH_SETS; i++)
        cli_critpath_set_fini(&sets[i]);
    if (rc) {
        text_fini(&out);
        return cli_fail(&e);
    }
    return cli_finish_traces(w->experiment, &out, NULL);
}

static int answer(struct work *w, const struct critpath_question *q)
{
    struct err e = {0};
    if (open_hosts(w, q, &e))
        return cli_fail(&e);
    if (q->requests)
        return sum_requests(w, q);
    int code = find(w, q, &w->path);
    if (code >= 0)
        return code;
    struct critpath_shown shown = shown_of(w, w->path);
    if (q->svg && cli_critpath_write_svg(&shown, q->svg, &e))
        return cli_fail(&e);
    cli_critpath_note_clocks(&shown);
    if (!q->polling)
        note_polling(w);
    if (q->compare)
        return compare(w, q, &shown);
    struct text out = TEXT_TO(1);
    cli_critpath_write(&shown, q, &out);
    return cli_finish_traces(w->experiment, &out, NULL);
}

static int run(int argc, char **argv)
{
    struct critpath_question q = {0};
    const struct cli_option options[] = {
        {"thread", 't', CLI_STRING, "[HOST:]TID|COMM", "thread whose path is shown", &q.thread},
        {"begin", 'b', CLI_STRING, "TIME",
            "from here on the reference clock (ns, +1.5s, ISO 8601; default: the thread's first instant)", &q.begin},
        {"end", 'e', CLI_STRING, "TIME", "to here (default: the thread's last instant)", &q.end},
        CLI_CLOCKS(&q.clocks),
        CLI_CLUSTER_ASKED(&q.cluster),
        {"method", 0, CLI_STRING, "METHOD",
            "local (traces given here), index (a cluster: asks the nodes that hold a piece of the path), or broadcast "
            "(asks all of them, for comparison)",
            &q.method},
        {"refine", 0, CLI_FLAG, NULL, "show what is known after each round of questions, too", &q.refine},
        {"snips", 0, CLI_FLAG, NULL, "with --cluster: query excerpts of traces even where the whole trace is available",
            &q.snips},
        {"requests", 0, CLI_STRING, "SET",
            "totals of the paths of many requests: all, group=N (of `weft requests`), slowest=P%, fastest=P%, "
            "host=HOST, several by commas",
            &q.requests},
        {"aggregate", 'a', CLI_FLAG, NULL, "only the totals by machine, name and state", &q.aggregate},
        {"by", 0, CLI_STRING, "container", "only the totals, by machine and container", &q.by},
        {"segments", 0, CLI_FLAG, NULL, "list the segments, too", &q.segments},
        {"svg", 0, CLI_STRING, "FILE", "draw the path", &q.svg},
        {"compare", 0, CLI_STRING, "[HOST:]TID,BEGIN,END|SET",
            "compare this path (a) with that of another thread and interval (b), or --requests with "
            "another set of requests",
            &q.compare},
        {"store", 0, CLI_STRING, "DIR", "keep the stores below DIR", &q.store},
        {"polling", 0, CLI_STRING, "assume", "treat a thread that polls for a message as waiting for it", &q.polling},
        {"request", 0, CLI_FLAG, NULL,
            "the interval is that of a request: leave out what the thread did for others meanwhile", &q.request},
        {"no-early-return", 0, CLI_FLAG, NULL, "the plain bounded walk, for comparison with other tools",
            &q.no_early_return},
        {"format", 0, CLI_STRING, "FORMAT", "table, json or csv", &q.format_name},
        {0},
    };
    int n;
    struct err e = {0};
    int code = cli_parse(&verb_critpath, options, argc, argv, &n);
    if (code >= 0)
        return code;
    struct work w = {0};
    struct index_options o = {.store = q.store, .stores = true};
    if (cli_format_parse(q.format_name, &q.format, &e) || check_question(&q, n, &e) || cli_clocks_parse(&q.clocks, &e))
        code = cli_fail(&e);
    else if (asks_cluster(&q))
        code = cli_critpath_ask_cluster(&q);
    else if (cli_open_traces(argv + 1, (size_t)n, &o, &w.experiment, &e))
        code = cli_fail(&e);
    else
        code = answer(&w, &q);
    close_all(&w);
    cli_clocks_fini(&q.clocks);
    return code;
}

const struct cli_verb verb_critpath = {"critpath", "[TRACE…]",
    "critical path of a thread across machines: where its time went",
    "weft critpath examples/three-tier --thread client:204 --begin +2.3s --end +2.4s --svg path.svg", run};
