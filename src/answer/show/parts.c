/* SPDX-License-Identifier: MIT */
#include "show/parts.h"

#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/mem.h"
#include "base/order.h"
#include "graph/graph.h"

struct gathering {
    const struct path *path;
    const struct path_source *source;
    VEC(struct show_part) parts;
    struct map index;
};

static int by_duration(const void *pa, const void *pb)
{
    const struct show_part *a = pa, *b = pb;
    return order_of(b->duration, a->duration) ?: strcmp(a->host, b->host) ?: order_of(a->tid, b->tid)
        ?: order_of(a->state, b->state) ?: strcmp(a->from ? a->from : "", b->from ? b->from : "")
        ?: order_of(a->reason, b->reason);
}

/* Part with that key; a new one like `like` if there is none. */
static struct show_part *part_of(struct gathering *g, const uint64_t key[2], const struct show_part *like, bool *fresh)
{
    uint64_t *at = map_put(&g->index, map_hash(key, 2 * sizeof *key), fresh);
    if (*fresh) {
        *at = g->parts.n;
        vec_push(&g->parts, *like);
    }
    return &g->parts.v[*at];
}

static bool same_words(const char *a, const char *b)
{
    return a == b || (a && b && !strcmp(a, b));
}

static uint64_t kind_of(uint8_t state, bool assumed, int reason)
{
    return (uint64_t)state << 16 | (uint64_t)assumed << 8 | (uint8_t)reason;
}

static uint64_t row_key(struct path_row row)
{
    return (uint64_t)(uint32_t)row.host << 32 | (uint32_t)row.row;
}

static void add_messages(struct gathering *g, const struct path_segment *s, const struct path_gap *gap)
{
    int reason = gap ? gap->reason : -1;
    struct show_part new = {.host = g->source->host_name(g->source->arg, s->row.host),
        .tid = -1,
        .state = s->state,
        .assumed = s->assumed,
        .reason = (int8_t)reason,
        .detail = s->detail,
        .peer = gap ? gap->peer : NULL,
        .from = s->sender.host < 0 ? NULL : g->source->host_name(g->source->arg, s->sender.host)};
    uint64_t key[2] = {
        (uint64_t)(uint32_t)s->sender.host << 32 | (uint32_t)s->row.host, kind_of(s->state, s->assumed, reason)};
    bool fresh;
    struct show_part *part = part_of(g, key, &new, &fresh);
    part->duration += s->end - s->begin;
    part->messages++;
    part->detail = same_words(part->detail, s->detail) ? part->detail : NULL;
    part->peer = same_words(part->peer, new.peer) ? part->peer : NULL;
}

static void add_state(struct gathering *g, const struct path_segment *s, const struct path_gap *gap)
{
    int reason = gap ? gap->reason : -1;
    struct show_part new = {
        .state = s->state, .assumed = s->assumed, .reason = (int8_t)reason, .peer = gap ? gap->peer : NULL};
    uint64_t key[2] = {row_key(s->row), kind_of(s->state, s->assumed, reason) | UINT64_C(1) << 32};
    bool fresh;
    struct show_part *part = part_of(g, key, &new, &fresh);
    if (fresh) {
        part->host = g->source->host_name(g->source->arg, s->row.host);
        g->source->row_name(g->source->arg, s->row, g->path->end, g->path->end, &part->tid, &part->comm);
    }
    part->duration += s->end - s->begin;
    part->peer = same_words(part->peer, new.peer) ? part->peer : NULL;
}

/* Adds the details that the path gives for more than half of a row's time in a state. */
static void add_details(struct gathering *g)
{
    for (size_t i = 0; i < g->path->n_totals; i++) {
        const struct path_total *t = &g->path->totals[i];
        uint64_t key[2] = {row_key(t->row), kind_of(t->state, t->assumed, -1) | UINT64_C(1) << 32};
        const uint64_t *at = map_find(&g->index, map_hash(key, sizeof key));
        if (at)
            g->parts.v[*at].detail = t->detail;
    }
}

/* Returns whether the state is a wait, which may be unexplained; all others are known in themselves. */
static bool waits(uint8_t state)
{
    return state == GRAPH_BLOCKED || state == GRAPH_NETWORK || state == GRAPH_UNKNOWN;
}

struct show_parts show_parts(const struct path *p, const struct path_source *source, struct arena *a)
{
    struct gathering g = {.path = p, .source = source};
    size_t gap = 0;
    for (size_t i = 0; i < p->n_segments; i++) {
        const struct path_segment *s = &p->segments[i];
        while (gap < p->n_gaps && p->gaps[gap].end <= s->begin)
            gap++;
        bool within = waits(s->state) && gap < p->n_gaps && p->gaps[gap].begin <= s->begin &&
            s->end <= p->gaps[gap].end && p->gaps[gap].reason != PATH_NO_WAKER;
        (s->state == GRAPH_NETWORK ? add_messages : add_state)(&g, s, within ? &p->gaps[gap] : NULL);
    }
    add_details(&g);
    if (g.parts.n)
        qsort(g.parts.v, g.parts.n, sizeof *g.parts.v, by_duration);
    struct show_part *v = arena_new(a, struct show_part, g.parts.n + 1);
    if (g.parts.n)
        memcpy(v, g.parts.v, g.parts.n * sizeof *v);
    struct show_parts out = {v, g.parts.n};
    vec_free(&g.parts);
    map_fini(&g.index);
    return out;
}

uint64_t show_hash(const char *s, uint64_t seed)
{
    return map_mix(seed ^ (s ? map_hash(s, strlen(s)) : 1));
}

const char *show_part_detail(const struct show_part *p)
{
    return p->reason >= 0 ? p->peer : p->detail;
}

bool show_is_network(const struct show_part *p)
{
    return p->state == GRAPH_NETWORK && p->reason < 0 && (!p->from || strcmp(p->from, p->host) != 0);
}

uint64_t show_kind_key(const struct show_part *p)
{
    uint64_t key = map_mix((uint64_t)p->state << 16 | (uint64_t)p->assumed << 8 | (uint8_t)p->reason);
    return show_hash(p->from, show_hash(p->host, show_hash(p->tid < 0 ? NULL : p->comm, key)));
}

static int larger_kind_first(const void *pa, const void *pb)
{
    const struct show_kind *a = pa, *b = pb;
    return order_of(b->duration, a->duration) ?: by_duration(&a->part, &b->part);
}

struct show_kinds show_kinds(const struct show_parts *parts, struct arena *a)
{
    struct show_kind *v = arena_new(a, struct show_kind, parts->n + 1);
    struct map index = {0};
    size_t n = 0;
    for (size_t i = 0; i < parts->n; i++) { /* parts are sorted, the largest first */
        bool fresh;
        uint64_t *at = map_put(&index, show_kind_key(&parts->v[i]), &fresh);
        if (fresh) {
            *at = n;
            v[n++] = (struct show_kind){.part = parts->v[i]};
        }
        v[*at].duration += parts->v[i].duration;
        v[*at].threads++;
    }
    if (n)
        qsort(v, n, sizeof *v, larger_kind_first);
    map_fini(&index);
    return (struct show_kinds){v, n};
}
