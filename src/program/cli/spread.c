/* SPDX-License-Identifier: MIT */
#include "cli/spread.h"

#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/mem.h"
#include "base/order.h"
#include "base/progress.h"
#include "base/time.h"
#include "cli/stop.h"
#include "share/share.h"

#define PATIENCE_NS (20 * NS_PER_S)

struct names {
    char **v;
    size_t n, cap;
};

static void names_fini(struct names *l)
{
    for (size_t i = 0; i < l->n; i++)
        free(l->v[i]);
    vec_free(l);
}

/* Sorted, without those that lie in another one. */
static void keep_highest(struct names *l)
{
    size_t kept = 0;
    if (l->n)
        qsort(l->v, l->n, sizeof *l->v, order_strings);
    for (size_t i = 0; i < l->n; i++) {
        bool inside = false;
        for (size_t k = kept; k-- > 0 && !inside;)
            inside = file_is_below(l->v[i], l->v[k]);
        if (inside)
            free(l->v[i]);
        else
            l->v[kept++] = l->v[i];
    }
    l->n = kept;
}

/* ---- work ----
 *
 * All traces of a host are indexed together, by one node. So the work is a list of directories: for each host the one
 * that a person would name for its session, in which further archives will appear too. If hosts lie mixed in a
 * directory, that one is listed for all of them. The path given makes no difference: nothing is listed under two
 * names. */

static void cut_name(char *path)
{
    char *slash = strrchr(path, '/');
    if (slash)
        *(slash == path ? slash + 1 : slash) = '\0';
}

static const char *dir_of(struct arena *a, const struct ctf_trace *t)
{
    size_t n = ctf_trace_directories(t);
    struct ctf_group g = {.dirs = arena_new(a, char *, n + 1), .n = n};
    for (size_t i = 0; i < n; i++)
        g.dirs[i] = (char *)ctf_trace_directory(t, i);
    return index_trace_dir(a, &g);
}

/* The lowest directory that has all of each host; but nothing above the root. */
static void add_work(const struct experiment *x, const char *root, struct names *work)
{
    const struct index_trace *traces;
    const struct index_host *hosts;
    struct arena a = {0};
    size_t n_traces = index_experiment_traces(x, &traces), n_hosts = index_experiment_hosts(x, &hosts);
    char **of = arena_new(&a, char *, n_hosts + 1);
    for (size_t i = 0; i < n_traces; i++) {
        const char *dir = dir_of(&a, traces[i].trace);
        dir = file_is_below(root, dir) ? root : dir;
        char **common = &of[traces[i].host];
        *common = *common ? *common : mem_strdup(dir);
        while (**common && !file_is_below(dir, *common))
            cut_name(*common);
    }
    for (size_t i = 0; i < n_hosts; i++)
        if (of[i])
            vec_push(work, of[i]);
    arena_fini(&a);
}

/* Finds the work; indexes nothing. */
static int find_work(char **paths, size_t n, const char *root, struct names *work, bool *partial, struct err *e)
{
    struct experiment *x;
    struct index_options o = {0};
    int rc = cli_open_traces(paths, n, &o, &x, e);
    if (rc)
        return rc;
    *partial = index_experiment_partial(x);
    add_work(x, root, work);
    index_experiment_close(x);
    keep_highest(work);
    return 0;
}

/* ---- paths of the shared directory ---- */

static int real_paths(char *const *paths, size_t n, const char *root, struct names *out, struct err *e)
{
    for (size_t i = 0; i < n; i++) {
        char *real = file_real_path(paths[i]);
        if (!real)
            return err_sys(e, "%s", paths[i]);
        vec_push(out, real);
        if (!file_is_below(real, root))
            return err_set(e, ERR_ARG,
                "%s is not below %s, so the nodes cannot find it there: give the directory that they see with --share",
                paths[i], root);
    }
    if (!n)
        vec_push(out, mem_strdup(root));
    return 0;
}

/* "." for the root itself. What links led to elsewhere is left out: the nodes would not go there. */
static void make_relative(struct names *l, const char *root, bool *partial)
{
    size_t n = strcmp(root, "/") ? strlen(root) + 1 : 1, kept = 0;
    for (size_t i = 0; i < l->n; i++) {
        char *path = l->v[i];
        if (file_is_below(path, root)) {
            const char *relative = strlen(path) > n ? path + n : ".";
            memmove(path, relative, strlen(relative) + 1);
            l->v[kept++] = path;
        } else {
            cli_note("%s is not below %s, but a link leads there: it is left out", path, root);
            *partial = true;
            free(path);
        }
    }
    l->n = kept;
}

/* ---- asking the nodes ---- */

struct spreading {
    struct cli_spread *s;
    struct cli_table *table;
    struct progress *progress;
    bool interrupted;
    size_t n, ended, failed, partly;
};

static bool is_interrupted(void *arg)
{
    struct spreading *s = arg;
    return cli_stop_asked(&s->interrupted);
}

static void add_result(void *arg, const struct share_work *w)
{
    static const char *const words[] = {"", "built", "up to date", "partly", "failed"};
    struct spreading *s = arg;
    bool failed = w->state == SHARE_WORK_FAILED, partly = w->state == SHARE_WORK_PARTLY;
    s->ended++;
    s->failed += failed;
    s->partly += partly;
    if (failed || partly) {
        progress_hide(s->progress);
        cli_note("%s, %s by node %s: %s", w->path, failed ? "not indexed" : "indexed in part", w->node, w->text);
    }
    cli_table_cell(s->table, "%s", w->path);
    cli_table_cell(s->table, "%s", w->node);
    cli_table_number(s->table, (int64_t)w->events);
    cli_table_duration(s->table, s->s->format, w->took_ns);
    cli_table_cell(s->table, "%s", words[w->state]);
    cli_table_cell(s->table, "%s", w->text);
    progress_add(s->progress, 1);
}

static int spread_over(struct spreading *s, struct bus *bus, const struct names *work, struct err *e)
{
    struct share_index_options o = {.cluster = s->s->cluster.name,
        .force = s->s->force,
        .keep_ns = s->s->keep_ns,
        .patience_ns = PATIENCE_NS,
        .ended = add_result,
        .stop = is_interrupted,
        .arg = s};
    s->n = work->n;
    s->progress = progress_new("indexing");
    progress_count(s->progress, work->n);
    int rc = share_index(bus, &o, (const char *const *)work->v, work->n, e);
    progress_free(s->progress);
    if (rc == ERR_CANCELLED)
        err_set(e, rc, "stopped: %zu of %zu traces are indexed; the waiting ones are withdrawn", s->ended - s->failed,
            s->n);
    else if (rc)
        err_wrap(e, "%zu of %zu traces are indexed", s->ended - s->failed, s->n);
    return rc;
}

static int show(struct spreading *s, int rc, const struct err *e, bool partial)
{
    struct text out = TEXT_TO(1);
    cli_table_write(s->table, s->s->format, &out);
    int code = cli_finish(&out, partial || s->failed || s->partly ? CLI_PARTIAL : CLI_OK);
    if (rc)
        return cli_fail(e);
    if (s->failed)
        cli_note("%zu of %zu traces indexed, %zu failed", s->ended - s->failed, s->n, s->failed);
    return s->failed == s->n ? CLI_FAILED : code;
}

static int index_places(struct cli_spread *o, struct bus *bus, const char *root, const struct names *bases)
{
    static const struct cli_column columns[] = {{"trace", false, false}, {"node", false, false}, {"events", true, true},
        {"time", true, true}, {"done", false, false}, {"problem", false, false}};
    struct spreading s = {.s = o, .table = cli_table_new(columns, 6)};
    struct names work = {0};
    struct err e = {0};
    bool partial = false;
    cli_stop_hold(false);
    int rc = find_work(bases->v, bases->n, root, &work, &partial, &e);
    cli_stop_hold(true);
    make_relative(&work, root, &partial);
    if (!rc && !work.n)
        rc = err_set(&e, ERR_NOTFOUND, "nothing of it lies below %s", root);
    int code = rc ? cli_fail(&e) : (rc = spread_over(&s, bus, &work, &e), show(&s, rc, &e, partial));
    cli_table_free(s.table);
    names_fini(&work);
    return code;
}

static int forget_places(struct cli_spread *o, struct bus *bus, const char *root, struct names *bases)
{
    size_t forgotten = 0;
    bool ignored;
    struct err e = {0};
    make_relative(bases, root, &ignored);
    int rc = share_remove(bus, o->cluster.name, (const char *const *)bases->v, bases->n, &forgotten, &e);
    if (rc)
        return cli_fail(&e);
    cli_note("%zu traces are closed on the nodes; their stores stay", forgotten);
    return CLI_OK;
}

int cli_spread_index(struct cli_spread *o, char **paths, size_t n)
{
    struct names bases = {0};
    struct bus *bus = NULL;
    struct err e = {0};
    char *root = o->share ? file_real_path(o->share) : NULL;
    int rc = 0;
    if (!o->share)
        rc = err_set(&e, ERR_ARG, "--share is missing: give the shared directory's path on this machine");
    else if (!root)
        rc = err_sys(&e, "--share %s", o->share);
    else
        rc = real_paths(paths, n, root, &bases, &e);
    if (!rc) {
        cli_stop_hold(true);
        rc = cli_cluster_connect(&o->cluster, "weft index", false, &bus, &e);
    }
    int code = rc ? cli_fail(&e) : o->forget ? forget_places(o, bus, root, &bases) : index_places(o, bus, root, &bases);
    if (bus)
        bus_close(bus);
    names_fini(&bases);
    free(root);
    return code;
}
