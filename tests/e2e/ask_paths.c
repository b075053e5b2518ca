/* SPDX-License-Identifier: MIT */
/* Answers many questions for critical paths in one process, which a start of the program for each would take long for:
 *   ask_paths local REFERENCE STORE TRACE…        all traces are here
 *   ask_paths cluster REFERENCE URL TIMEOUT_MS    the nodes of a cluster are asked, as they are then
 *   ask_paths memory REFERENCE URL TIMEOUT_MS     so, too, by one who remembers what they said before
 * Reads lines "HOST:TID BEGIN END" (ns of the clock of REFERENCE), and writes for each a line: the path as
 * critpath --format json, or {"error": "why there is none"}. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/mem.h"
#include "base/text.h"
#include "base/time.h"
#include "bus/bus.h"
#include "clock/clock.h"
#include "cluster/cluster.h"
#include "index/index.h"
#include "path/path.h"
#include "show/show.h"

struct question {
    const char *thread;
    int64_t begin, end;
};

struct asker {
    struct clock_options clocks;
    void (*ask)(struct asker *, const struct question *, struct text *out);
    struct experiment *experiment; /* local */
    struct path_local_host *parts;
    struct path_local *local;
    struct bus *bus; /* cluster */
    struct cluster_cache *cache;
    int64_t patience_ns;
};

static void write_path(const struct path *p, const struct path_source *source, struct text *out)
{
    struct json j = JSON_TO(out);
    show_json(p, source, "", &j);
    text_putc(out, '\n');
}

static void write_error(const char *why, struct text *out)
{
    struct json j = JSON_TO(out);
    json_object(&j);
    json_kv_string(&j, "error", why);
    json_end_object(&j);
    text_putc(out, '\n');
}

/* ---- local traces ---- */

static void ask_local(struct asker *a, const struct question *q, struct text *out)
{
    struct path_options o = {.begin = q->begin, .end = q->end};
    struct path_lives lives = {0};
    struct path *p;
    struct err e = {0};
    path_find_lives(a->local, q->thread, NULL, q->begin, q->end, &lives);
    if (lives.n != 1) {
        write_error(lives.n ? "several" : "none", out);
    } else if (path_walk(path_local_source(a->local), lives.v[0].row, &o, &p, &e)) {
        write_error(e.text, out);
    } else {
        write_path(p, path_local_source(a->local), out);
        path_free(p);
    }
    vec_free(&lives);
}

static int open_local(struct asker *a, const char *store, const char *const *traces, size_t n, struct err *e)
{
    const struct index_host *hosts;
    const struct clock_net *net;
    struct index_options o = {.store = store, .stores = true};
    int rc = index_experiment_open(traces, n, &o, &a->experiment, e);
    rc = rc ? rc : index_experiment_sync(a->experiment, &a->clocks, &net, e);
    if (rc)
        return rc;
    size_t n_hosts = index_experiment_hosts(a->experiment, &hosts);
    struct path_local_host *parts = a->parts = mem_zalloc((n_hosts + 1) * sizeof *parts);
    for (size_t i = 0; i < n_hosts; i++)
        parts[i] = (struct path_local_host){hosts[i].name, hosts[i].graph, hosts[i].flows, clock_net_map(net, i)};
    a->local = path_local_new(parts, n_hosts);
    a->ask = ask_local;
    return 0;
}

/* ---- nodes are asked ---- */

static int find_in_cluster(
    struct cluster *c, const struct asker *a, const struct question *q, struct text *out, struct err *e)
{
    int64_t deadline = time_monotonic_ns() + a->patience_ns;
    struct cluster_path_options o = {.path = {.begin = q->begin, .end = q->end}, .deadline_ns = deadline};
    struct cluster_lives lives = {0};
    struct cluster_path *p;
    bool stale;
    int rc = cluster_sync(c, &a->clocks, deadline, &stale, e);
    rc = rc ? rc : cluster_find_lives(c, q->thread, q->begin, q->end, deadline, &lives, e);
    if (!rc && lives.n != 1)
        rc = err_set(e, ERR_NOTFOUND, "%s", lives.n ? "several" : "none");
    if (!rc)
        rc = cluster_path_find(c, lives.v[0].host, lives.v[0].row, &o, &p, e);
    if (!rc) {
        write_path(cluster_path_answer(p), cluster_path_source(p), out);
        cluster_path_free(p);
    }
    vec_free(&lives);
    return rc;
}

static void ask_cluster(struct asker *a, const struct question *q, struct text *out)
{
    struct cluster *c = NULL;
    struct err e = {0};
    int rc = a->cache ? cluster_open_cached(a->cache, &c, &e) : cluster_open(a->bus, CLUSTER_DEFAULT, &c, &e);
    if (rc || find_in_cluster(c, a, q, out, &e))
        write_error(e.text, out);
    cluster_close(c);
}

/* ---- questions ---- */

static int answer_all(struct asker *a)
{
    char line[512], thread[256];
    struct text out = TEXT_TO(1);
    int rc = 0;
    while (!rc && fgets(line, sizeof line, stdin)) {
        struct question q = {.thread = thread};
        if (sscanf(line, "%255s %" SCNd64 " %" SCNd64, thread, &q.begin, &q.end) != 3)
            rc = 2;
        else
            a->ask(a, &q, &out);
        rc = rc ? rc : text_drain(&out, 0, NULL) != 0;
    }
    text_fini(&out);
    return rc;
}

int main(int argc, char **argv)
{
    struct asker a = {.clocks = clock_defaults(), .ask = ask_cluster};
    struct err e = {0};
    int rc;
    if (argc < 5)
        return 2;
    a.clocks.reference = argv[2];
    if (!strcmp(argv[1], "local")) {
        rc = open_local(&a, argv[3], (const char *const *)argv + 4, (size_t)argc - 4, &e);
    } else {
        a.patience_ns = atoll(argv[4]) * 1000000;
        rc = bus_open(&(struct bus_options){.url = argv[3]}, &a.bus, &e);
        if (!rc && !strcmp(argv[1], "memory"))
            rc = cluster_cache_open(a.bus, CLUSTER_DEFAULT, 0, &a.cache, &e);
    }
    if (rc)
        fprintf(stderr, "ask_paths: %s\n", e.text);
    rc = rc ? 1 : answer_all(&a);
    path_local_free(a.local);
    free(a.parts);
    if (a.experiment)
        index_experiment_close(a.experiment);
    cluster_cache_close(a.cache);
    if (a.bus)
        bus_close(a.bus);
    return rc;
}
