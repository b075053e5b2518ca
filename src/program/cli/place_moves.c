/* SPDX-License-Identifier: MIT */
/* The moves of `weft place`: which are asked for or advised, and making them. */
#include <string.h>

#include "base/mem.h"
#include "cli/critpath.h"
#include "cli/place.h"

static int find_host(const struct cli_asked *a, const char *name, size_t n, int32_t *out, struct err *e)
{
    *out = -1;
    for (size_t i = 0; i < a->n; i++)
        if (strlen(a->hosts[i].clock_name) == n && !strncmp(a->hosts[i].clock_name, name, n))
            *out = (int32_t)i;
    return *out < 0 ? err_set(e, ERR_ARG, "--move %s: no node has such a host; see `weft place --table hosts`", name)
                    : 0;
}

static int32_t node_named(const struct place_plan *p, const char *name)
{
    for (size_t i = 0; i < p->n_nodes; i++)
        if (!strcmp(p->nodes[i].name, name))
            return (int32_t)i;
    return -1;
}

/* "HOST=NODE"; neither has a '=' as a rule: the last one counts. */
static int add_move(
    const struct place_plan *p, const struct cli_asked *a, const char *s, struct place_lines *lines, struct err *e)
{
    const char *eq = strrchr(s, '=');
    struct place_line l = {0};
    if (!eq || eq == s || !eq[1])
        return err_set(e, ERR_ARG, "--move %s: give HOST=NODE", s);
    int rc = find_host(a, s, (size_t)(eq - s), &l.is.host, e);
    if (rc)
        return rc;
    l.is.to = node_named(p, eq + 1);
    if (l.is.to < 0)
        return err_set(e, ERR_ARG, "--move %s: the cluster has no node %s", s, eq + 1);
    l.is.from = p->hosts[l.is.host].node;
    l.is.bytes = p->hosts[l.is.host].bytes;
    for (size_t i = 0; i < p->n_talk; i++) {
        const struct place_talk *t = &p->talk[i];
        int32_t other = t->a == l.is.host ? t->b : t->b == l.is.host ? t->a : -1;
        if (other >= 0)
            l.is.saves += (int64_t)t->packets *
                ((p->hosts[other].node == l.is.to) - (p->hosts[other].node == l.is.from));
    }
    vec_push(lines, l);
    return 0;
}

/* The interval, on the reference clock, by the clock of each host; no more than it recorded. */
static int cut(const struct place_choice *c, const struct cli_asked *a, struct place_lines *lines, struct err *e)
{
    struct cli_span span = {INT64_MAX, INT64_MIN};
    int64_t begin = INT64_MIN, end = INT64_MAX;
    for (size_t i = 0; i < a->n; i++)
        cli_critpath_add_span(&span, cluster_clock_map(a->cluster, i), a->hosts[i].begin, a->hosts[i].end);
    int rc = cli_parse_window(c->begin, c->end, &span, &begin, &end, e);
    for (size_t i = 0; i < lines->n && !rc; i++) {
        struct place_line *l = &lines->v[i];
        const struct cluster_host *h = &a->hosts[l->is.host];
        const struct clock_map *map = cluster_clock_map(a->cluster, (size_t)l->is.host);
        int64_t from = map ? clock_from_reference(map, begin) : begin, to = map ? clock_from_reference(map, end) : end;
        l->excerpt = true;
        l->begin = from > h->begin ? from : h->begin;
        l->end = to < h->end ? to : h->end;
        if (l->begin > l->end)
            rc = err_set(e, ERR_ARG, "--begin, --end: %s recorded nothing then", h->clock_name);
    }
    return rc;
}

int cli_place_find_moves(const struct place_choice *c, const struct place_plan *p, const struct cli_asked *a,
    struct place_lines *lines, struct err *e)
{
    int rc = 0;
    for (size_t i = 0; i < c->moves.n && !rc; i++)
        rc = add_move(p, a, c->moves.v[i], lines, e);
    for (size_t i = 0; i < p->n_moves && !c->moves.n; i++)
        vec_push(lines, ((struct place_line){.is = p->moves[i]}));
    for (size_t i = 0; i < lines->n; i++) {
        lines->v[i].from = p->nodes[lines->v[i].is.from].name;
        lines->v[i].to = p->nodes[lines->v[i].is.to].name;
    }
    return rc || !place_is_excerpt(c) ? rc : cut(c, a, lines, e);
}

size_t cli_place_apply(struct cli_asked *a, struct place_lines *lines, int64_t patience_ns)
{
    size_t failed = 0;
    for (size_t i = 0; i < lines->n; i++) {
        struct place_line *l = &lines->v[i];
        const char *host = a->hosts[l->is.host].clock_name;
        struct place_move_options o = {
            .excerpt = l->excerpt, .begin = l->begin, .end = l->end, .patience_ns = patience_ns};
        cli_note("%s: from node %s to node %s", host, l->from, l->to);
        l->done = !place_move(a->cluster, (size_t)l->is.host, l->to, &o, &l->aside, &l->failed);
        failed += !l->done;
        if (!l->done)
            cli_note("moving %s failed: %s; repeat the command to continue, nothing is lost", host, l->failed.text);
    }
    return failed;
}

const char *cli_place_result(const struct place_line *l)
{
    return l->failed.code ? l->failed.text
        : !l->done        ? ""
        : l->excerpt      ? "the snip is there"
        : l->aside        ? "moved"
                          : "moved; the old copy is kept";
}
