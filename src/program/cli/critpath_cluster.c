/* SPDX-License-Identifier: MIT */
/* weft critpath --cluster: the path is asked for, node by node. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/time.h"
#include "cli/critpath.h"
#include "cluster/paths.h"

struct cluster_query {
    struct critpath_question *q;
    struct cli_asked asked;
    struct critpath_host *hosts;
    struct cluster_path *path, *second; /* second: of --compare */
    uint64_t rounds;                    /* shown: after so many */
};

static void close_all(struct cluster_query *a)
{
    cluster_path_free(a->path);
    cluster_path_free(a->second);
    cli_asked_close(&a->asked);
    free(a->hosts);
}

static int open_cluster(struct cluster_query *a, struct err *e)
{
    int rc = cli_cluster_ask(&a->q->cluster, &a->q->clocks, &a->asked, e);
    if (rc)
        return rc;
    cluster_use_excerpts(a->asked.cluster, a->q->snips, a->asked.deadline_ns);
    a->hosts = mem_zalloc((a->asked.n + 1) * sizeof *a->hosts);
    for (size_t i = 0; i < a->asked.n; i++)
        a->hosts[i] = (struct critpath_host){
            a->asked.hosts[i].name, cluster_clock_map(a->asked.cluster, i), a->asked.hosts[i].has_graph};
    return 0;
}

/* ---- choice of the thread ---- */

static struct path_lives lives_of(const struct cluster_query *a, const struct cluster_lives *found)
{
    struct path_lives out = {0};
    for (size_t i = 0; i < found->n; i++) {
        const struct cluster_life *l = &found->v[i];
        vec_push(&out,
            ((struct path_life){.row = {l->host, 0},
                .begin = l->begin,
                .end = l->end,
                .tid = l->tid,
                .host = a->hosts[l->host].name,
                .name = l->name}));
    }
    return out;
}

static int find_lives(
    struct cluster_query *a, const char *thread, int64_t begin, int64_t end, struct cluster_lives *found)
{
    struct err e = {0};
    found->n = 0;
    return cluster_find_lives(a->asked.cluster, thread, begin, end, a->asked.deadline_ns, found, &e) ? cli_fail(&e)
                                                                                                     : -1;
}

static bool some_within(const struct cluster_lives *found, int64_t begin, int64_t end)
{
    size_t i = 0;
    while (i < found->n && !(found->v[i].begin < end && found->v[i].end > begin))
        i++;
    return i < found->n;
}

static int refuse(const struct cluster_query *a, const char *thread, const struct cluster_lives *found, bool several)
{
    struct path_lives lives = lives_of(a, found);
    cli_asked_note_copies(&a->asked); /* the thread may be in the parts that copies lack */
    int code = several ? cli_critpath_refuse_several(thread, &lives) : cli_critpath_refuse_absent(thread, &lives);
    vec_free(&lives);
    return code;
}

/* -1 to go on, else the exit code. */
static int choose_thread(
    struct cluster_query *a, const char *thread, const struct path_options *o, struct cluster_life *life)
{
    struct cluster_lives found = {0};
    int code = find_lives(a, thread, o->begin, o->end, &found);
    if (code < 0 && !found.n) {
        struct cluster_lives ever = {0};
        code = find_lives(a, thread, INT64_MIN, INT64_MAX, &ever);
        if (code < 0 && some_within(&ever, o->begin, o->end)) /* tries again: its events may have come a moment ago */
            code = find_lives(a, thread, o->begin, o->end, &found);
        if (code < 0 && !found.n)
            code = refuse(a, thread, &ever, false);
        vec_free(&ever);
    }
    if (code < 0 && found.n > 1)
        code = refuse(a, thread, &found, true);
    if (code < 0)
        *life = found.v[0];
    vec_free(&found);
    return code;
}

/* ---- answering ---- */

static struct critpath_shown shown_of(
    const struct cluster_query *a, const struct path *p, const struct path_source *source)
{
    return (struct critpath_shown){.path = p,
        .source = source,
        .hosts = a->hosts,
        .n = a->asked.n,
        .synced = cluster_clocks(a->asked.cluster) != NULL,
        .method = a->q->method ? a->q->method : "index"};
}

static void show_refined(void *arg, const struct cluster_path *path, uint64_t rounds)
{
    struct cluster_query *a = arg;
    if (rounds == a->rounds)
        return;
    a->rounds = rounds;
    struct path *p = cluster_path_so_far(path);
    struct critpath_shown shown = shown_of(a, p, cluster_path_source(path));
    struct text out = TEXT_TO(1);
    if (a->q->format == CLI_TABLE)
        text_printf(&out, "After round %" PRIu64 ":\n", rounds);
    cli_critpath_write(&shown, a->q, &out);
    cli_finish(&out, CLI_OK);
    path_free(p);
}

static bool is_missing(const struct path_gap *g)
{
    return g->reason == PATH_OFFLINE_NODE || g->reason == PATH_PENDING;
}

/* "web" of "web (10.0.0.1:80)" */
static size_t node_length(const struct path_gap *g)
{
    const char *address = g->peer ? strrchr(g->peer, '(') : NULL;
    return address && address > g->peer ? (size_t)(address - 1 - g->peer) : g->peer ? strlen(g->peer) : 0;
}

/* Returns whether an earlier gap has the same node. */
static bool is_named(const struct path *p, size_t i)
{
    size_t n = node_length(&p->gaps[i]), k = 0;
    while (k < i &&
        !(is_missing(&p->gaps[k]) && node_length(&p->gaps[k]) == n && !strncmp(p->gaps[k].peer, p->gaps[i].peer, n)))
        k++;
    return k < i || !n;
}

/* Reports missing parts that some node has. Returns whether there are any. */
static bool note_missing(const struct path *p)
{
    struct text nodes = {.fd = -1}, time = {.fd = -1};
    int64_t duration = 0;
    for (size_t i = 0; i < p->n_gaps; i++) {
        const struct path_gap *g = &p->gaps[i];
        duration += is_missing(g) ? g->end - g->begin : 0;
        if (is_missing(g) && !is_named(p, i))
            text_printf(&nodes, "%s%.*s", nodes.n ? ", " : "", (int)node_length(g), g->peer);
    }
    text_duration(&time, duration);
    if (duration)
        cli_note(
            "%s of the path are missing: no answer from %s", text_cstr(&time), nodes.n ? text_cstr(&nodes) : "a node");
    text_fini(&nodes);
    text_fini(&time);
    return duration > 0;
}

static bool is_on_path(const struct path *p, int32_t host)
{
    bool is = p->start.host == host;
    for (size_t i = 0; i < p->n_segments && !is; i++)
        is = p->segments[i].row.host == host;
    return is;
}

/* Reports excerpts and lesser copies that were queried. Returns whether the interval asked for the thread reaches
 * beyond one. */
static bool note_parts(const struct cluster_query *a, const struct path *p, const struct path_options *o)
{
    bool cut = false;
    for (size_t i = 0; i < a->asked.n; i++) {
        const struct cluster_host *h = &a->asked.hosts[i];
        const char *why = a->q->snips && !h->part ? "was not asked" : "does not answer";
        if (is_on_path(p, (int32_t)i) && cli_asked_note_part(h, why))
            cut |= p->start.host == (int32_t)i && (p->begin > o->begin || p->end < o->end);
    }
    return cut;
}

static int parse_interval(
    const struct cluster_query *a, const struct critpath_question *q, struct path_options *o, struct err *e)
{
    struct cli_span span = {INT64_MAX, INT64_MIN};
    for (size_t i = 0; i < a->asked.n; i++)
        cli_critpath_add_span(&span, a->hosts[i].map, a->asked.hosts[i].begin, a->asked.hosts[i].end);
    return cli_critpath_parse_interval(q, &span, o, e);
}

/* -1: found; else the exit code. */
static int find(
    struct cluster_query *a, const struct critpath_question *q, struct path_options *asked, struct cluster_path **out)
{
    struct cluster_path_options o = {
        .method = q->method && !strcmp(q->method, "broadcast") ? CLUSTER_BROADCAST : CLUSTER_INDEX,
        .assuming = q->polling,
        .count_windows = q->format == CLI_JSON,
        .deadline_ns = a->asked.deadline_ns,
        .refined = q->refine ? show_refined : NULL,
        .arg = a};
    struct cluster_life life = {0};
    struct err e = {0};
    if (parse_interval(a, q, &o.path, &e))
        return cli_fail(&e);
    *asked = o.path;
    int code = choose_thread(a, q->thread, &o.path, &life);
    if (code >= 0)
        return code;
    return cluster_relates(a->asked.cluster, (size_t)life.host, &e) ||
            cluster_path_find(a->asked.cluster, life.host, life.row, &o, out, &e)
        ? cli_fail(&e)
        : -1;
}

/* Returns whether some are missing. */
static bool find_stacks(const struct critpath_question *q, const struct cluster_path *path)
{
    struct err e = {0};
    bool shown = !q->by && !q->aggregate && q->format != CLI_CSV;
    size_t away = shown ? cluster_path_find_stacks(path, &e) : 0;
    if (away)
        cli_note("the call stacks of %zu machine%s are missing: %s", away, away > 1 ? "s" : "", e.text);
    return away > 0;
}

static int compare(struct cluster_query *a, const struct critpath_shown *first, bool missing)
{
    struct arena arena = {0};
    struct critpath_question second;
    struct path_options asked;
    struct err e = {0};
    int code = cli_critpath_second(a->q, &arena, &second, &e) ? cli_fail(&e) : find(a, &second, &asked, &a->second);
    arena_fini(&arena);
    if (code >= 0)
        return code;
    struct critpath_shown shown = shown_of(a, cluster_path_answer(a->second), cluster_path_source(a->second));
    missing |= note_missing(shown.path);
    missing |= note_parts(a, shown.path, &asked);
    missing |= find_stacks(a->q, a->second);
    struct text out = TEXT_TO(1);
    cli_critpath_write_compared(first, &shown, a->q, &out);
    return cli_asked_finish(&a->asked, &out, missing);
}

static int answer(struct cluster_query *a)
{
    const struct critpath_question *q = a->q;
    struct path_options asked;
    struct err e = {0};
    int code = find(a, q, &asked, &a->path);
    if (code >= 0)
        return code;
    struct critpath_shown shown = shown_of(a, cluster_path_answer(a->path), cluster_path_source(a->path));
    if (q->svg && cli_critpath_write_svg(&shown, q->svg, &e))
        return cli_fail(&e);
    cli_critpath_note_clocks(&shown);
    bool missing = note_missing(shown.path);
    missing |= note_parts(a, shown.path, &asked);
    if (q->by)
        missing |= cli_critpath_note_containers(cluster_paths_contain(a->path, &e), &e);
    missing |= find_stacks(q, a->path);
    if (q->compare)
        return compare(a, &shown, missing);
    struct text out = TEXT_TO(1);
    cli_critpath_write(&shown, q, &out);
    return cli_asked_finish(&a->asked, &out, missing);
}

static int sum_requests(struct cluster_query *a)
{
    struct path_options o;
    struct err e = {0};
    return parse_interval(a, a->q, &o, &e) ? cli_fail(&e) : cli_critpath_ask_served(a->q, &a->asked, o.begin, o.end);
}

int cli_critpath_ask_cluster(struct critpath_question *q)
{
    struct cluster_query a = {.q = q};
    struct err e = {0};
    int code = open_cluster(&a, &e) ? cli_fail(&e) : q->requests ? sum_requests(&a) : answer(&a);
    close_all(&a);
    return code;
}
