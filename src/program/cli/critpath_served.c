/* SPDX-License-Identifier: MIT */
/* weft critpath --requests --cluster: nodes report the requests that their hosts served, and their parts of the
 * paths. */
#include <stdlib.h>

#include "base/mem.h"
#include "cli/critpath.h"
#include "cluster/paths.h"
#include "cluster/requests.h"
#include "path/remote.h"

enum { MOST_STEPS = 1 << 20 }; /* steps of a path between two queries to other nodes; the limit of a local path */

struct served_asking {
    const struct cli_asked *asked;
    const struct cluster_requests *served; /* rows of requests are numbers of these */
    bool by_container;
    size_t untold; /* machines whose containers are unknown, at most */
    struct err why;
};
struct told_paths {
    struct cluster_path *path;
    const struct path **paths;
};

static void drop(struct told_paths *t)
{
    cluster_path_free(t->path);
    free(t->paths);
    free(t);
}

static int walk(void *arg, const struct request_walk *w, size_t n, struct request_paths *out, struct err *e)
{
    struct served_asking *a = arg;
    struct told_paths *t = mem_zalloc(sizeof *t);
    struct cluster_path_start *starts = mem_zalloc((n + 1) * sizeof *starts);
    for (size_t i = 0; i < n; i++) {
        uint64_t row = a->served->v[w[i].thread.row].row;
        starts[i] = (struct cluster_path_start){.host = w[i].thread.host,
            .row = w[i].from.row < 0 ? path_remote_cpu(w[i].from.row) : row,
            .receiver = row,
            .most_steps = MOST_STEPS,
            .path = {.begin = w[i].begin, .end = w[i].end, .reached = PATH_REACHED_BY_MESSAGE, .request = true}};
    }
    t->paths = mem_zalloc((n + 1) * sizeof *t->paths);
    int rc = cluster_paths_find(a->asked->cluster, starts, n,
        &(struct cluster_path_options){.deadline_ns = a->asked->deadline_ns}, &t->path, e);
    free(starts);
    if (rc) {
        drop(t);
        return rc;
    }
    for (size_t i = 0; i < n; i++)
        t->paths[i] = cluster_paths_answer(t->path, i);
    struct err why = {0};
    size_t untold = a->by_container ? cluster_paths_contain(t->path, &why) : 0;
    if (untold > a->untold) {
        a->untold = untold;
        a->why = why;
    }
    *out = (struct request_paths){t->paths, cluster_path_source(t->path), t};
    return 0;
}

static void release(void *arg, struct request_paths *p)
{
    (void)arg;
    drop(p->handle);
}

static struct requests *list_of(const struct cli_asked *asked, const struct cluster_requests *served)
{
    const char **names = mem_zalloc((asked->n + 1) * sizeof *names);
    struct served_request *v = mem_zalloc((served->n + 1) * sizeof *v);
    for (size_t i = 0; i < asked->n; i++)
        names[i] = asked->hosts[i].name;
    for (size_t i = 0; i < served->n; i++) {
        const struct cluster_request *r = &served->v[i];
        v[i] = (struct served_request){.thread = {r->host, (int32_t)i},
            .begin = r->begin,
            .end = r->end,
            .first_in = i,
            .by_interrupt = r->by_interrupt,
            .comm = r->name};
    }
    struct requests *list = path_requests_told(names, asked->n, v, served->n);
    free(names);
    free(v);
    return list;
}

bool cli_critpath_note_containers(size_t machines, const struct err *why)
{
    if (machines)
        cli_note("the containers of %zu machine%s are not known, their threads count to none: %s", machines,
            machines > 1 ? "s" : "", why->text);
    return machines > 0;
}

/* away: hosts that nobody answered for. */
static int sum(const struct cli_asked *asked, const char *set, int64_t begin, int64_t end, struct critpath_set *out,
    size_t *away, struct err *e)
{
    struct arena arena = {0};
    struct cluster_requests served = {0};
    struct err why = {0};
    int rc = cluster_find_requests(
        asked->cluster, cli_critpath_requests_host(set, &arena), begin, end, asked->deadline_ns, &served, away, &why);
    if (rc) {
        *e = why;
    } else {
        out->missing |= cli_asked_note_copies(asked);
        struct served_asking asking = {.asked = asked, .served = &served, .by_container = out->sums.by_container};
        struct requests *found = list_of(asked, &served);
        rc = cli_critpath_sum_requests(set, found, &(struct requests_far){&asking, walk, release}, out, e);
        path_requests_free(found);
        if (!rc)
            out->missing |= cli_critpath_note_containers(asking.untold, &asking.why);
        if (!rc && *away)
            cli_note("requests of %zu machine%s are missing: %s", *away, *away > 1 ? "s" : "", why.text);
    }
    vec_free(&served);
    arena_fini(&arena);
    return rc;
}

int cli_critpath_ask_served(
    const struct critpath_question *q, const struct cli_asked *asked, int64_t begin, int64_t end)
{
    struct critpath_set sets[CRITPATH_SETS] = {0};
    struct err e = {0};
    struct text out = TEXT_TO(1);
    bool missing = false;
    int rc = 0;
    for (size_t i = 0; i < CRITPATH_SETS && cli_critpath_set_asked(q, i) && !rc; i++) {
        size_t away = 0;
        sets[i].sums.by_container = q->by;
        rc = sum(asked, cli_critpath_set_asked(q, i), begin, end, &sets[i], &away, &e);
        missing |= away || sets[i].missing;
    }
    if (!rc)
        cli_critpath_write_requests(q, sets, &out);
    for (size_t i = 0; i < CRITPATH_SETS; i++)
        cli_critpath_set_fini(&sets[i]);
    if (rc) {
        text_fini(&out);
        return cli_fail(&e);
    }
    return cli_asked_finish(asked, &out, missing);
}
