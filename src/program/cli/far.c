/* SPDX-License-Identifier: MIT */
#include "cli/far.h"

#include <stdlib.h>

#include "base/mem.h"
#include "base/time.h"
#include "clock/clock.h"
#include "cluster/paths.h"
#include "path/requests.h"

enum { MOST_STEPS = 1 << 20 }; /* steps of a request's path between two queries to other nodes */
#define PATIENCE_NS (30 * NS_PER_S)
#define CLOCKS_NS (2 * NS_PER_S)
#define WHOSE_NS (5 * NS_PER_S)

/* A node that has not joined its cluster yet knows its own traces only. */
static int open_cached(struct cli_far *far, struct cluster **out, struct err *e)
{
    struct cluster_cache *cache = atomic_load(&far->cache);
    *out = NULL;
    return cache ? cluster_open_cached(cache, out, e)
                 : err_set(e, ERR_NOTFOUND, "not connected to the cluster yet; retry");
}

/* Open path, and the data that it uses. */
struct handle {
    struct cluster *cluster;
    struct cluster_path *path;
    const struct cluster_path *seen; /* copy of `path`, set already during find */
    struct views_far_host *hosts;
    size_t n_hosts;
    const struct views_far_progress *progress; /* NULL, except during find */
};

static void drop(struct handle *h)
{
    cluster_path_free(h->path);
    cluster_close(h->cluster);
    free(h->hosts);
    free(h);
}

static size_t host_with(const struct cluster *c, uint64_t key)
{
    const struct cluster_host *hosts;
    size_t n = cluster_hosts(c, &hosts), i = 0;
    while (i < n && hosts[i].key != key)
        i++;
    return i < n ? i : SIZE_MAX;
}

static int relate(struct cluster *c, const struct views_far_question *q, struct err *e)
{
    struct clock_options o = clock_defaults();
    const struct cluster_host *hosts;
    size_t reference = host_with(c, q->reference);
    bool stale;
    if (reference == SIZE_MAX || host_with(c, q->host) == SIZE_MAX)
        return err_set(e, ERR_NOTFOUND, "this node's registry entry is not published yet; retry");
    cluster_hosts(c, &hosts);
    o.reference = hosts[reference].clock_name;
    return cluster_sync(c, &o, time_monotonic_ns() + CLOCKS_NS, &stale, e);
}

static void on_refined(void *arg, const struct cluster_path *path, uint64_t rounds)
{
    struct handle *h = arg;
    h->seen = path;
    h->progress->known(h->progress->arg, h, rounds);
}

static void on_moves_on(void *arg)
{
    const struct handle *h = arg;
    h->progress->moves_on(h->progress->arg);
}

static void list_hosts(struct handle *h)
{
    const struct cluster_host *hosts;
    h->n_hosts = cluster_hosts(h->cluster, &hosts);
    h->hosts = mem_zalloc((h->n_hosts + 1) * sizeof *h->hosts);
    for (size_t i = 0; i < h->n_hosts; i++)
        h->hosts[i] = (struct views_far_host){hosts[i].name, hosts[i].key};
}

static int ask(struct handle *h, const struct views_far_question *q, const atomic_bool *stop, struct err *e)
{
    struct cluster_path_options o = {.path = {.begin = q->begin, .end = q->end, .request = q->request},
        .assuming = q->assume_polling,
        .deadline_ns = time_monotonic_ns() + PATIENCE_NS,
        .stop = stop,
        .refined = on_refined,
        .moves_on = on_moves_on,
        .arg = h};
    int rc = relate(h->cluster, q, e);
    size_t host = rc ? SIZE_MAX : host_with(h->cluster, q->host);
    if (!rc && host == SIZE_MAX)
        rc = err_set(e, ERR_NOTFOUND, "this node has no registry entry any more");
    if (!rc)
        list_hosts(h);
    rc = rc ? rc : cluster_path_find(h->cluster, (int32_t)host, q->row, &o, &h->path, e);
    if (!rc && !atomic_load(stop))
        cluster_path_find_stacks(h->path, &(struct err){0}); /* tooltips lack those that are missing */
    return rc;
}

static uint64_t row_id(const struct views_far_path *p, struct path_row row)
{
    const struct handle *h = p->handle;
    return cluster_path_row_id(h->seen, row);
}

static struct views_far_path shown_of(struct handle *h, const struct path *path)
{
    return (struct views_far_path){.path = path,
        .source = cluster_path_source(h->seen),
        .hosts = h->hosts,
        .n_hosts = h->n_hosts,
        .row_id = row_id,
        .handle = h};
}

static int find(void *arg, const struct views_far_question *q, const struct views_far_progress *progress,
    const atomic_bool *stop, struct views_far_path *out, struct err *e)
{
    struct cli_far *far = arg;
    struct handle *h = mem_zalloc(sizeof *h);
    h->progress = progress;
    int rc = open_cached(far, &h->cluster, e);
    if (!rc)
        rc = ask(h, q, stop, e);
    if (rc) {
        drop(h);
        return rc;
    }
    h->seen = h->path;
    *out = shown_of(h, cluster_path_answer(h->path));
    return 0;
}

static void look(void *arg, void *finding, struct views_far_path *out)
{
    struct handle *h = finding;
    (void)arg;
    *out = shown_of(h, cluster_path_so_far(h->seen));
}

static void release(void *arg, struct views_far_path *p)
{
    (void)arg;
    drop(p->handle);
}

/* ---- thread of a path whose traces are not open here ---- */

static int whose(void *arg, uint64_t reference, const char *thread, int64_t begin, int64_t end,
    struct views_far_thread *out, struct err *e)
{
    struct cli_far *far = arg;
    const struct cluster_host *hosts;
    struct cluster *c = NULL;
    struct cluster_lives found = {0};
    int rc = open_cached(far, &c, e);
    if (!rc)
        rc = relate(c, &(struct views_far_question){.host = reference, .reference = reference}, e);
    if (!rc)
        rc = cluster_find_lives(c, thread, begin, end, time_monotonic_ns() + WHOSE_NS, &found, e);
    if (!rc && !found.n)
        rc = err_set(e, ERR_NOTFOUND, "%s: no such thread on any node", thread);
    if (!rc && found.n > 1)
        rc = err_set(
            e, ERR_AMBIGUOUS, "%s means %zu threads; say with begin and end which life is meant", thread, found.n);
    if (!rc)
        rc = cluster_relates(c, (size_t)found.v[0].host, e);
    if (!rc) {
        cluster_hosts(c, &hosts);
        *out = (struct views_far_thread){hosts[found.v[0].host].key, found.v[0].row};
    }
    vec_free(&found);
    cluster_close(c);
    return rc;
}

/* ---- batches of paths, for requests ---- */

struct requests_handle {
    struct cluster *cluster;
    struct cluster_path *path;
    const struct path **paths;
};

static void drop_requests(struct requests_handle *h)
{
    cluster_path_free(h->path);
    cluster_close(h->cluster);
    free(h->paths);
    free(h);
}

static int find_requests(void *arg, uint64_t reference, const struct views_far_request *r, size_t n,
    const atomic_bool *stop, struct request_paths *out, struct err *e)
{
    struct cli_far *far = arg;
    struct requests_handle *h = mem_zalloc(sizeof *h);
    struct cluster_path_start *starts = mem_zalloc((n + 1) * sizeof *starts);
    struct cluster_path_options o = {.deadline_ns = time_monotonic_ns() + PATIENCE_NS, .stop = stop};
    int rc = open_cached(far, &h->cluster, e);
    if (!rc)
        rc = relate(h->cluster, &(struct views_far_question){.host = reference, .reference = reference}, e);
    for (size_t i = 0; i < n && !rc; i++) {
        size_t host = host_with(h->cluster, r[i].host);
        starts[i] = (struct cluster_path_start){.host = (int32_t)host,
            .row = r[i].from,
            .receiver = r[i].thread,
            .most_steps = MOST_STEPS,
            .path = {.begin = r[i].begin, .end = r[i].end, .reached = PATH_REACHED_BY_MESSAGE, .request = true}};
        if (host == SIZE_MAX)
            rc = err_set(e, ERR_NOTFOUND, "this node's registry entry is not published yet; retry");
    }
    if (!rc)
        rc = cluster_paths_find(h->cluster, starts, n, &o, &h->path, e);
    h->paths = mem_zalloc((n + 1) * sizeof *h->paths);
    for (size_t i = 0; i < n && !rc; i++)
        h->paths[i] = cluster_paths_answer(h->path, i);
    free(starts);
    if (rc)
        drop_requests(h);
    else
        *out = (struct request_paths){h->paths, cluster_path_source(h->path), h};
    return rc;
}

static void release_requests(void *arg, struct request_paths *p)
{
    (void)arg;
    drop_requests(p->handle);
}

struct views_far cli_far_of(struct cli_far *far)
{
    return (struct views_far){far, find, look, release, whose, find_requests, release_requests};
}
