/* SPDX-License-Identifier: MIT */
/* Sentence of an answer: at most three parts of the path, largest first, in plain words. Rules: docs/concepts.md. */
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/mem.h"
#include "base/order.h"
#include "base/text.h"
#include "graph/graph.h"
#include "show/sayings.h"
#include "show/show.h"

enum {
    MOST_CELLS = 140,
    MOST_GROUPS = 3,
    LEAST_PERCENT = 5, /* percentage of the path below which a part belongs to the rest */
};
/* Levels of shortening a group in a sentence that is too long. */
enum brevity { FULL, NO_EXAMPLES, NAMES_ONLY };

/* Divisions of the path. */
enum division { BY_MACHINE, BY_THREAD, BY_WORK };
struct group {
    int64_t duration;
    const struct show_kind *top;
    size_t hosts;
};

struct story {
    int64_t length;
    enum division division;
    struct show_kinds kinds;
    VEC(struct group) groups;
};

static uint64_t group_of(const struct story *s, const struct show_part *p)
{
    if (p->reason >= 0)
        return show_hash(p->peer, 1000 + (uint64_t)p->reason);
    if (show_is_network(p))
        return 2000;
    if (s->division == BY_WORK)
        return map_mix(3000 + p->state);
    if (s->division == BY_THREAD)
        return show_hash(p->tid < 0 ? NULL : p->comm, 4000 + (p->state == GRAPH_NETWORK));
    return show_hash(p->host, 5000);
}

static int larger_first(const void *pa, const void *pb)
{
    const struct group *a = pa, *b = pb;
    return order_of(b->duration, a->duration) ?: order_of(a->top, b->top);
}

static void divide(struct story *s, enum division division)
{
    struct map index = {0}, met = {0};
    s->division = division;
    s->groups.n = 0;
    for (size_t i = 0; i < s->kinds.n; i++) { /* the largest first, which becomes the group's top */
        const struct show_kind *k = &s->kinds.v[i];
        bool fresh;
        uint64_t key = group_of(s, &k->part), *at = map_put(&index, key, &fresh);
        if (fresh) {
            *at = s->groups.n;
            vec_push(&s->groups, ((struct group){.top = k}));
        }
        struct group *g = &s->groups.v[*at];
        g->duration += k->duration;
        map_put(&met, show_hash(k->part.host, key), &fresh);
        g->hosts += fresh;
    }
    if (s->groups.n)
        qsort(s->groups.v, s->groups.n, sizeof *s->groups.v, larger_first);
    map_fini(&index);
    map_fini(&met);
}

static bool is_on_one_machine(const struct story *s)
{
    for (size_t i = 0; i < s->kinds.n; i++)
        if (show_is_network(&s->kinds.v[i].part) || strcmp(s->kinds.v[i].part.host, s->kinds.v[0].part.host) != 0)
            return false;
    return true;
}

/* Chooses machines; for a single one its threads; for many threads with little each, kinds of work. */
static void choose_division(struct story *s)
{
    size_t machines = 0;
    int64_t three = 0, all = 0;
    divide(s, BY_MACHINE);
    for (size_t i = 0; i < s->groups.n; i++) {
        const struct group *g = &s->groups.v[i];
        if (g->top->part.reason >= 0 || show_is_network(&g->top->part))
            continue;
        all += g->duration;
        three += machines++ < MOST_GROUPS ? g->duration : 0;
    }
    if (is_on_one_machine(s))
        divide(s, BY_THREAD);
    else if (machines > MOST_GROUPS && three < all / 2)
        divide(s, BY_WORK);
}

/* ---- words ---- */

/* Rounded as shown. */
static int percent(const struct story *s, int64_t part)
{
    return (int)(((__int128)part * 200 + s->length) / ((__int128)s->length * 2));
}

/* Returns whether the name covers the whole share: no other part would show as another percentage. */
static bool is_whole(const struct story *s, const struct group *g)
{
    return percent(s, show_said_time(g->top)) == percent(s, g->duration);
}

static void put_network(struct text *t, const struct story *s, const struct group *g, enum brevity brief)
{
    text_puts(t, "network");
    if (is_whole(s, g) && brief < NAMES_ONLY && g->top->part.from) {
        text_puts(t, " from ");
        show_say_name(t, g->top->part.from, SAY_HOST_CELLS);
        text_puts(t, " to ");
        show_say_name(t, g->top->part.host, SAY_HOST_CELLS);
    }
}

static void put_subject(struct text *t, const struct story *s, const struct group *g)
{
    if (s->division == BY_MACHINE)
        show_say_name(t, g->top->part.host, SAY_HOST_CELLS);
    else
        show_say_who(t, g->top);
}

/* Writes a group that is all by its top. */
static void put_whole(struct text *t, const struct story *s, const struct group *g, enum brevity brief)
{
    const struct show_part *p = &g->top->part;
    put_subject(t, s, g);
    text_putc(t, ' ');
    if (s->division == BY_THREAD && p->tid < 0)
        text_puts(t, "took");
    else
        show_say_done(t, p);
    if (s->division == BY_MACHINE && brief == FULL) {
        text_puts(t, " (");
        if (p->tid >= 0) {
            show_say_who(t, g->top);
            text_puts(t, ", ");
        }
        show_say_time(t, g->top);
        text_putc(t, ')');
    } else if (s->division == BY_THREAD && brief < NAMES_ONLY) {
        text_putc(t, ' ');
        show_say_time(t, g->top);
    }
}

static void put_mixed(struct text *t, const struct story *s, const struct group *g, enum brevity brief)
{
    const struct show_part *p = &g->top->part;
    put_subject(t, s, g);
    if (brief == NO_EXAMPLES && g->top->duration > g->duration / 2) {
        text_puts(t, " mostly ");
        show_say_done(t, p);
    }
    if (brief > FULL)
        return;
    text_puts(t, ", of which ");
    if (s->division == BY_MACHINE)
        show_say_who(t, g->top);
    else
        text_puts(t, "it");
    text_putc(t, ' ');
    if (p->tid < 0)
        text_puts(t, "took");
    else
        show_say_done(t, p);
    text_putc(t, ' ');
    show_say_time(t, g->top);
}

static void put_work(struct text *t, const struct group *g, enum brevity brief)
{
    struct show_part p = g->top->part;
    p.detail = NULL;
    show_say_done(t, &p);
    if (brief == NAMES_ONLY || g->hosts < 2)
        return;
    text_printf(t, " on %zu machines", g->hosts);
    if (brief == FULL) {
        text_puts(t, " (most on ");
        show_say_name(t, p.host, SAY_HOST_CELLS);
        text_puts(t, ", ");
        show_say_time(t, g->top);
        text_putc(t, ')');
    }
}

static void put_percent(struct text *t, const struct story *s, int64_t part)
{
    text_printf(t, "%d %% ", percent(s, part));
}

static void put_group(struct text *t, const struct story *s, const struct group *g, enum brevity brief)
{
    put_percent(t, s, g->duration);
    if (g->top->part.reason >= 0)
        show_say_reason(t, &g->top->part);
    else if (show_is_network(&g->top->part))
        put_network(t, s, g, brief);
    else if (s->division == BY_WORK)
        put_work(t, g, brief);
    else
        (is_whole(s, g) ? put_whole : put_mixed)(t, s, g, brief);
}

static void put_story(struct text *t, const struct story *s, size_t told, const uint8_t brief[])
{
    int64_t rest = s->length;
    text_duration(t, s->length);
    for (size_t i = 0; i < told; i++) {
        text_puts(t, i ? " · " : ": ");
        put_group(t, s, &s->groups.v[i], brief[i]);
        rest -= s->groups.v[i].duration;
    }
    if (rest >= s->length / 100) {
        text_puts(t, " · ");
        put_percent(t, s, rest);
        text_puts(t, "rest");
    }
}

/* Writes as much as fits: shortens the last of the groups with the longest text first. */
static void tell(struct text *t, const struct story *s)
{
    uint8_t brief[MOST_GROUPS] = {FULL};
    size_t told = s->groups.n > 0;
    while (told < s->groups.n && told < MOST_GROUPS && s->groups.v[told].duration >= s->length / 100 * LEAST_PERCENT)
        told++;
    put_story(t, s, told, brief);
    for (enum brevity most = FULL; most < NAMES_ONLY; most++)
        for (size_t i = told; i-- && text_cells(t->v, t->n) > MOST_CELLS;) {
            brief[i] = (uint8_t)(most + 1);
            t->n = 0;
            put_story(t, s, told, brief);
        }
}

void show_sentence(const struct path *p, const struct path_source *source, struct text *out)
{
    struct story s = {.length = p->end - p->begin};
    struct arena arena = {0};
    struct text t = {.fd = -1};
    if (s.length <= 0)
        return;
    struct show_parts parts = show_parts(p, source, &arena);
    s.kinds = show_kinds(&parts, &arena);
    choose_division(&s);
    tell(&t, &s);
    text_put(out, t.v, t.n);
    text_fini(&t);
    vec_free(&s.groups);
    arena_fini(&arena);
}
