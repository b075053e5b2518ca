/* SPDX-License-Identifier: MIT */
#include "views/critical_names.h"

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/map.h"
#include "base/mem.h"

/* Name of a row within an interval. */
struct name {
    struct path_row row;
    int64_t begin, end; /* interval */
    int32_t tid;
    const char *comm;
};

struct critical_names {
    struct path_source source;
    struct arena arena;
    struct strings strings;
    const char **hosts;
    size_t n_hosts;
    int64_t end; /* end of the path */
    VEC(struct name) v;
    struct map by_question; /* hash of row, begin and end -> number + 1; next hash on a collision */
};

static uint64_t hash_of(struct path_row row, int64_t begin, int64_t end)
{
    uint64_t h = map_mix((uint64_t)(uint32_t)row.host << 32 | (uint32_t)row.row);
    return map_mix(map_mix(h ^ (uint64_t)begin) ^ (uint64_t)end);
}

/* Returns the name, or NULL and its free hash in *vacant. */
static const struct name *find(
    const struct critical_names *names, struct path_row row, int64_t begin, int64_t end, uint64_t *vacant)
{
    const uint64_t *at;
    uint64_t hash = hash_of(row, begin, end);
    for (; (at = map_find(&names->by_question, hash)); hash++) {
        const struct name *n = &names->v.v[*at - 1];
        if (n->row.host == row.host && n->row.row == row.row && n->begin == begin && n->end == end)
            return n;
    }
    *vacant = hash;
    return NULL;
}

static void note(
    struct critical_names *names, const struct path_source *from, struct path_row row, int64_t begin, int64_t end)
{
    struct name n = {.row = row, .begin = begin, .end = end};
    uint64_t vacant;
    if (row.host < 0 || find(names, row, begin, end, &vacant))
        return;
    from->row_name(from->arg, row, begin, end, &n.tid, &n.comm);
    n.comm = strings_get(&names->strings, strings_intern(&names->strings, n.comm, strlen(n.comm)));
    vec_push(&names->v, n);
    *map_put(&names->by_question, vacant, NULL) = names->v.n;
}

static void note_path(struct critical_names *names, const struct path *p, const struct path_source *from)
{
    for (size_t i = 0; i < p->n_segments; i++) {
        const struct path_segment *s = &p->segments[i];
        note(names, from, s->row, s->begin, s->end);
        note(names, from, s->row, p->end, p->end);
        note(names, from, s->sender, s->begin, s->begin);
        note(names, from, s->sender, p->end, p->end);
    }
    for (size_t i = 0; i < p->n_links; i++) {
        const struct path_link *l = &p->links[i];
        note(names, from, l->from, l->from_ts, l->from_ts);
        note(names, from, l->from, p->end, p->end);
        note(names, from, l->to, l->to_ts, l->to_ts);
        note(names, from, l->to, p->end, p->end);
    }
}

/* ---- the source ---- */

static const char *host_name(void *arg, int32_t host)
{
    const struct critical_names *names = arg;
    return host >= 0 && (size_t)host < names->n_hosts ? names->hosts[host] : "";
}

/* Name of a row. Intervals that are not on the path get the name at the path's end. */
static void row_name(void *arg, struct path_row row, int64_t begin, int64_t end, int32_t *tid, const char **comm)
{
    const struct critical_names *names = arg;
    uint64_t vacant;
    const struct name *n = find(names, row, begin, end, &vacant);
    if (!n)
        n = find(names, row, names->end, names->end, &vacant);
    *tid = n ? n->tid : -1;
    *comm = n ? n->comm : "";
}

struct critical_names *critical_names_new(const struct views_far_path *far)
{
    struct critical_names *names = mem_zalloc(sizeof *names);
    names->source = (struct path_source){.arg = names, .host_name = host_name, .row_name = row_name};
    names->end = far->path->end;
    names->hosts = arena_new(&names->arena, const char *, far->n_hosts + 1);
    names->n_hosts = far->n_hosts;
    for (size_t i = 0; i < far->n_hosts; i++)
        names->hosts[i] = arena_strdup(&names->arena, far->hosts[i].name);
    note_path(names, far->path, far->source);
    return names;
}

void critical_names_free(struct critical_names *names)
{
    if (!names)
        return;
    vec_free(&names->v);
    map_fini(&names->by_question);
    strings_fini(&names->strings);
    arena_fini(&names->arena);
    free(names);
}

const struct path_source *critical_names_source(const struct critical_names *names)
{
    return &names->source;
}
