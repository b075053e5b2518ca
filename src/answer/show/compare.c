/* SPDX-License-Identifier: MIT */
/* Comparison of two paths: differences of their parts, and a sentence. */
#include "show/compare.h"

#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/order.h"
#include "base/text.h"
#include "graph/graph.h"
#include "show/sayings.h"

enum {
    MOST_CELLS = 140,
    MOST_TOLD = 3,
    LEAST_PERCENT = 5 /* of all changes in either direction */
};

static int64_t change_of(const struct show_difference *d)
{
    return d->ns[1] - d->ns[0];
}

static int64_t size_of(int64_t change)
{
    return change < 0 ? -change : change;
}

static int largest_first(const void *pa, const void *pb)
{
    const struct show_difference *a = pa, *b = pb;
    const struct show_part *p = &a->kind.part, *q = &b->kind.part;
    return order_of(size_of(change_of(b)), size_of(change_of(a))) ?: order_of(b->ns[0] + b->ns[1], a->ns[0] + a->ns[1])
        ?: strcmp(p->host, q->host) ?: strcmp(p->comm ? p->comm : "", q->comm ? q->comm : "")
        ?: order_of(p->state, q->state) ?: strcmp(p->from ? p->from : "", q->from ? q->from : "");
}

/* ---- parts of a path that is known elsewhere ---- */

static int number_of(const char *name, const char *(*name_of)(int), int n)
{
    int i = 0;
    while (i < n && strcmp(name_of(i), name) != 0)
        i++;
    return i < n ? i : -1;
}

static int state_of(const struct show_change *c)
{
    return c->state ? number_of(c->state, graph_state_name, GRAPH_STATE_COUNT) : -1;
}

static int reason_of(const struct show_change *c)
{
    return c->reason ? number_of(c->reason, path_reason_name, PATH_PENDING + 1) : -1;
}

bool show_told(const struct show_change *c)
{
    int state = state_of(c);
    return c->host && state >= 0 && !(state == GRAPH_NETWORK && c->comm) && c->a >= 0 &&
        (!c->reason || reason_of(c) >= 0);
}

/* Several threads of one name have no number in a change; interrupts have no name. */
static struct show_kind kind_told(const struct show_change *c)
{
    enum { SOME_THREAD = 0, SEVERAL = 2 };
    int reason = reason_of(c);
    bool several = c->tid < 0 && c->comm && *c->comm;
    struct show_part part = {.duration = c->a,
        .host = c->host,
        .comm = c->comm,
        .tid = several ? SOME_THREAD : c->tid,
        .state = (uint8_t)state_of(c),
        .assumed = c->assumed,
        .reason = (int8_t)reason,
        .detail = reason < 0 ? c->detail : NULL,
        .peer = reason < 0 ? NULL : c->detail,
        .from = c->from};
    return (struct show_kind){part, c->a, several ? SEVERAL : 1};
}

static struct show_kinds kinds_of(const struct show_side *side, int64_t *length, struct arena *arena)
{
    if (side->path) {
        struct show_parts parts = show_parts(side->path, side->source, arena);
        *length = side->path->end - side->path->begin;
        return show_kinds(&parts, arena);
    }
    struct show_kind *v = arena_new(arena, struct show_kind, side->n + 1);
    *length = 0;
    for (size_t i = 0; i < side->n; i++) {
        v[i] = kind_told(&side->told[i]);
        *length += v[i].duration;
    }
    return (struct show_kinds){v, side->n};
}

/* ---- differences ---- */

struct show_differences show_compare(const struct show_side *a, const struct show_side *b, struct arena *arena)
{
    struct show_differences out = {0};
    struct show_kinds kinds[2] = {kinds_of(a, &out.length[0], arena), kinds_of(b, &out.length[1], arena)};
    struct map index = {0};
    struct show_difference *v = arena_new(arena, struct show_difference, kinds[0].n + kinds[1].n + 1);
    size_t n = 0;
    for (int i = 0; i < 2; i++)
        for (size_t k = 0; k < kinds[i].n; k++) {
            const struct show_kind *kind = &kinds[i].v[k];
            int32_t tid = kind->threads == 1 ? kind->part.tid : -1;
            bool fresh;
            uint64_t *at = map_put(&index, show_kind_key(&kind->part), &fresh);
            if (fresh) {
                *at = n;
                v[n++] = (struct show_difference){.kind = *kind, .tid = tid};
            }
            struct show_difference *d = &v[*at];
            d->ns[i] += kind->duration;
            d->tid = d->tid == tid ? tid : -1;
            if (i && d->ns[1] > d->ns[0])
                d->kind = *kind;
        }
    if (n)
        qsort(v, n, sizeof *v, largest_first);
    map_fini(&index);
    out.v = v;
    out.n = n;
    return out;
}

/* ---- words ---- */

static void put_change(struct text *t, int64_t ns)
{
    text_puts(t, ns < 0 ? " −" : " +");
    text_duration(t, size_of(ns));
}

static void put_difference(struct text *t, const struct show_difference *d, bool whole)
{
    const struct show_part *p = &d->kind.part;
    if (p->reason >= 0) {
        show_say_reason(t, p);
    } else if (show_is_network(p)) {
        text_puts(t, "network from ");
        show_say_name(t, p->from, SAY_HOST_CELLS);
        text_puts(t, " to ");
        show_say_name(t, p->host, SAY_HOST_CELLS);
    } else {
        show_say_name(t, p->host, SAY_HOST_CELLS);
        if (whole && p->comm && p->tid >= 0) {
            text_puts(t, " ");
            show_say_name(t, p->comm, SAY_NAME_CELLS);
        }
        text_puts(t, " ");
        show_say_done(t, p);
    }
    put_change(t, change_of(d));
}

static void put_all(struct text *t, const struct show_differences *all, size_t told, bool whole)
{
    int64_t change = all->length[1] - all->length[0], rest = change;
    int64_t least = (all->length[0] > all->length[1] ? all->length[0] : all->length[1]) / 100; /* minimum */
    if (size_of(change) < least) {
        text_puts(t, "as long");
    } else {
        text_duration(t, size_of(change));
        text_puts(t, change < 0 ? " shorter" : " longer");
    }
    text_puts(t, " (");
    text_duration(t, all->length[0]);
    text_puts(t, " → ");
    text_duration(t, all->length[1]);
    text_putc(t, ')');
    for (size_t i = 0; i < told; i++) {
        text_puts(t, i ? " · " : ": ");
        put_difference(t, &all->v[i], whole);
        rest -= change_of(&all->v[i]);
    }
    if (told && told < all->n && size_of(rest) >= least) {
        text_puts(t, " · rest");
        put_change(t, rest);
    }
}

void show_compare_sentence(const struct show_differences *all, struct text *out)
{
    struct text t = {.fd = -1};
    int64_t changed = 0;
    size_t told = 0;
    for (size_t i = 0; i < all->n; i++)
        changed += size_of(change_of(&all->v[i]));
    while (told < all->n && told < MOST_TOLD && change_of(&all->v[told]) != 0 &&
        size_of(change_of(&all->v[told])) >= changed / 100 * LEAST_PERCENT)
        told++;
    put_all(&t, all, told, true);
    for (size_t fewer = told; fewer && text_cells(t.v, t.n) > MOST_CELLS; fewer--) {
        t.n = 0;
        put_all(&t, all, fewer, false);
    }
    text_put(out, t.v, t.n);
    text_fini(&t);
}

struct show_changes show_changes(const struct show_side *a, const struct show_side *b, struct arena *arena)
{
    struct show_differences all = show_compare(a, b, arena);
    struct show_change *v = arena_new(arena, struct show_change, all.n + 1);
    struct text sentence = {.fd = -1};
    for (size_t i = 0; i < all.n; i++) {
        const struct show_part *p = &all.v[i].kind.part;
        v[i] = (struct show_change){.key = show_kind_key(p),
            .host = p->host,
            .comm = p->comm,
            .state = graph_state_name(p->state),
            .detail = show_part_detail(p),
            .from = p->from,
            .reason = p->reason >= 0 ? path_reason_name(p->reason) : NULL,
            .tid = all.v[i].tid,
            .assumed = p->assumed,
            .a = all.v[i].ns[0],
            .b = all.v[i].ns[1]};
    }
    show_compare_sentence(&all, &sentence);
    struct show_changes out = {v, all.n, arena_strdup(arena, text_cstr(&sentence))};
    text_fini(&sentence);
    return out;
}
