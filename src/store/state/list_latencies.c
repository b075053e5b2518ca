/* SPDX-License-Identifier: MIT */
/* Latencies of a list of chunks. A chunk stores those that ended in it; those that began in an earlier chunk are sorted
 * into the latencies of that one. */
#include <stdatomic.h>
#include <stdlib.h>

#include "base/map.h"
#include "base/mem.h"
#include "base/order.h"
#include "state/figures.h"
#include "state/list.h"
#include "state/list_tables.h"

static const struct state_chunk *chunk_of(const struct state_store *s, size_t part)
{
    return s->parts[part].chunk;
}

static size_t early_of(const struct state_chunk *c, int kind)
{
    return state_latency_table(c, kind)->early;
}

/* Number of a chunk's own latencies. */
static size_t own_of(const struct state_chunk *c, int kind)
{
    return state_chunk_latencies(c, kind) - early_of(c, kind);
}

static void make_latencies(const struct state_store *, int kind);

/* Made at the first request: many users of a list request no latencies. */
static inline const struct list_latencies *latencies(const struct state_store *s, int kind)
{
    struct list_latencies *l = &s->tables->latencies[kind];
    if (!atomic_load_explicit(&l->made, memory_order_acquire))
        make_latencies(s, kind);
    return l;
}

static const struct state_disk_aside *guest_latency(const struct state_store *s, int kind, const struct list_guest *g)
{
    const struct state_chunk *c = chunk_of(s, g->part);
    return &c->aside[c->first_aside[kind] + g->early];
}

/* ---- places of guests ---- */

/* By chunk: lower limit of the begins of latencies that were opened in it in time. */
static int64_t *begins_of(const struct state_store *s, int kind)
{
    int64_t *from = mem_alloc(s->n * sizeof *from);
    for (size_t k = 0; k < s->n; k++) {
        from[k] = state_latency_table(chunk_of(s, k), kind)->from;
        if (k && from[k] == INT64_MIN) /* does not continue the chunk before */
            from[k] = s->parts[k].begin;
        from[k] = k && from[k] < from[k - 1] ? from[k - 1] : from[k];
    }
    return from;
}

/* Finds the guest's place among the latencies open at the chunk's end. */
static bool find_open(const struct state_chunk *c, int kind, struct list_guest *g)
{
    size_t end = c->first_open[kind + 1],
           i = search_first(k, c->first_open[kind], end,
               c->open[k].begin > g->begin || (c->open[k].begin == g->begin && c->open[k].rank >= g->rank));
    if (i == end || c->open[i].begin != g->begin || c->open[i].rank != g->rank)
        return false;
    g->place = c->open[i].index - early_of(c, kind);
    return c->open[i].index >= early_of(c, kind);
}

/* Places a guest; from: see begins_of. A latency opened in time is listed among the open ones of the chunk that opened
 * it; several chunks need a look only if nothing began meanwhile. A late one comes behind all that began no later. One
 * whose chunk is missing comes before all that did not begin before it. */
static void place_guest(const struct state_store *s, int kind, const int64_t *from, struct list_guest *g)
{
    size_t behind = search_first(k, 0, g->part, from[k] > g->begin), k = behind ? behind - 1 : 0;
    for (size_t i = k + 1; i-- > 0 && g->rank < STATE_RANK_LATE;) {
        g->segment = (uint32_t)i;
        if (find_open(chunk_of(s, i), kind, g))
            return;
        if (from[i] < g->begin)
            break;
    }
    const struct state_chunk *c = chunk_of(s, k);
    size_t own = own_of(c, kind), early = early_of(c, kind), before = state_chunk_latencies(c, kind);
    if (g->rank < STATE_RANK_LATE || g->begin < INT64_MAX)
        before = state_chunk_latency_find(c, kind, g->begin + (g->rank >= STATE_RANK_LATE));
    before = before > early ? before - early : 0;
    g->segment = (uint32_t)k;
    g->place = behind ? before < own ? before : own : 0;
}

static int by_place(const void *a, const void *b)
{
    const struct list_guest *x = a, *y = b;
    return order_of(x->segment, y->segment) ?: order_of(x->place, y->place) ?: order_of(x->begin, y->begin)
        ?: order_of(x->rank, y->rank) ?: order_of(x->part, y->part) ?: order_of(x->early, y->early);
}

/* Returns their number. */
static size_t find_guests(const struct state_store *s, int kind, struct list_latencies *l)
{
    size_t n = 0, all = 0;
    int64_t *from = begins_of(s, kind);
    for (size_t k = 0; k < s->n; k++)
        all += early_of(chunk_of(s, k), kind);
    l->guests = mem_alloc((all + 1) * sizeof *l->guests);
    for (size_t k = 0; k < s->n; k++) {
        const struct state_disk_aside *early = chunk_of(s, k)->aside + chunk_of(s, k)->first_aside[kind];
        for (size_t i = 0; i < early_of(chunk_of(s, k), kind); i++) {
            struct list_guest *g = &l->guests[n++];
            *g = (struct list_guest){
                .begin = early[i].begin, .rank = early[i].rank, .part = (uint32_t)k, .early = (uint32_t)i};
            place_guest(s, kind, from, g);
            size_t own = own_of(chunk_of(s, g->segment), kind);
            g->place = g->place < own ? g->place : own;
        }
    }
    if (n)
        qsort(l->guests, n, sizeof *l->guests, by_place);
    free(from);
    return n;
}

/* Begin of a chunk's first own latency. */
static int64_t own_begin(const struct state_chunk *c, int kind)
{
    const struct state_disk_table *t = state_latency_table(c, kind);
    size_t aside = c->first_aside[kind] + t->early;
    int64_t begin = t->n ? c->heads[t->first_head].first : INT64_MAX;
    return aside < c->first_aside[kind + 1] && c->aside[aside].begin < begin ? c->aside[aside].begin : begin;
}

static void make_segments(const struct state_store *s, int kind, struct list_latencies *l, size_t n_guests)
{
    uint64_t first = 0;
    size_t guest = 0;
    l->segments = mem_alloc((s->n + 1) * sizeof *l->segments);
    for (size_t k = 0; k <= s->n; k++) {
        l->segments[k] = (struct list_segment){first, guest, INT64_MAX};
        if (k == s->n)
            break;
        size_t own = own_of(chunk_of(s, k), kind), from = guest;
        if (own)
            l->segments[k].begin = own_begin(chunk_of(s, k), kind);
        while (guest < n_guests && l->guests[guest].segment == k)
            guest++;
        if (guest > from && l->guests[from].begin < l->segments[k].begin)
            l->segments[k].begin = l->guests[from].begin;
        first += own + (guest - from);
    }
    for (size_t k = s->n; k-- > 0;)
        if (l->segments[k].first == l->segments[k + 1].first)
            l->segments[k].begin = l->segments[k + 1].begin;
}

/* ---- names ---- */

/* Names by source of their codes. */
struct name_list {
    struct strings texts;
    struct map by_ref;
    VEC(const char *) v;
};

static void add_name(struct name_list *names, const struct state_store *s, int kind, size_t part, uint32_t code)
{
    const struct state_chunk *c = chunk_of(s, part);
    if (code >= c->n_codes || c->latency_names[kind].of[code] == STATE_NO_NAME)
        return;
    uint32_t *name = &s->tables->latencies[kind].name_of[part][c->latency_names[kind].of[code]];
    if (*name != STATE_NO_NAME)
        return;
    const struct state_disk_code *d = &c->disk_codes[code];
    const char *text = c->codes[code].name ? c->codes[code].name : "";
    uint32_t number = d->of == STATE_CODE_ITSELF ? strings_intern(&names->texts, text, strlen(text)) : d->ref;
    bool fresh;
    uint64_t *index = map_put(&names->by_ref, (uint64_t)d->of << 32 | number, &fresh);
    if (fresh) {
        *index = names->v.n;
        vec_push(&names->v, text);
    }
    *name = (uint32_t)*index;
}

static void find_names(const struct state_store *s, int kind, struct list_latencies *l)
{
    struct name_list names = {0};
    l->name_of = mem_alloc(s->n * sizeof *l->name_of);
    for (size_t k = 0; k < s->n; k++) {
        size_t n = state_chunk_latency_names(chunk_of(s, k), kind);
        l->name_of[k] = mem_alloc((n + 1) * sizeof **l->name_of);
        for (size_t i = 0; i < n; i++)
            l->name_of[k][i] = STATE_NO_NAME;
    }
    for (size_t k = 0; k < s->n; k++) {
        const struct state_chunk *c = chunk_of(s, k);
        size_t i = c->first_first[kind], g = l->segments[k].first_guest;
        while (i < c->first_first[kind + 1] || g < l->segments[k + 1].first_guest) {
            const struct list_guest *guest = &l->guests[g];
            if (g < l->segments[k + 1].first_guest &&
                (i == c->first_first[kind + 1] || guest->place + early_of(c, kind) <= c->firsts[i].index)) {
                add_name(&names, s, kind, guest->part, guest_latency(s, kind, guest)->code);
                g++;
            } else {
                add_name(&names, s, kind, k, c->firsts[i++].code);
            }
        }
    }
    strings_fini(&names.texts);
    map_fini(&names.by_ref);
    l->names = names.v.v;
    l->n_names = names.v.n;
}

size_t state_latency_names(const struct state_store *s, int kind)
{
    return latencies(s, kind)->n_names;
}

const char *state_latency_name(const struct state_store *s, int kind, size_t name)
{
    return latencies(s, kind)->names[name];
}

/* ---- access by number and time ---- */

size_t state_latencies(const struct state_store *s, int kind)
{
    return latencies(s, kind)->segments[s->n].first;
}

/* Place in a segment. guest, own: the first guest, and the first of the chunk's own, that is not before it; is_guest:
 * the place is the guest's. */
struct list_spot {
    size_t guest, own;
    bool is_guest;
};

static struct list_spot spot_in(const struct state_store *s, int kind, size_t segment, uint64_t i)
{
    const struct list_latencies *l = latencies(s, kind);
    const struct list_segment *x = &l->segments[segment];
    uint64_t at = i - x->first;
    size_t guest = x->first_guest;
    if (guest < x[1].first_guest && l->guests[guest].place < at) /* most are last, since they were open at the end */
        guest = search_first(g, guest + 1, x[1].first_guest, l->guests[g].place + (g - x->first_guest) >= at);
    bool is_guest = guest < x[1].first_guest && l->guests[guest].place + (guest - x->first_guest) == at;
    return (struct list_spot){guest, at - (guest - x->first_guest) + early_of(chunk_of(s, segment), kind), is_guest};
}

static size_t segment_of(const struct state_store *s, int kind, uint64_t i)
{
    const struct list_segment *v = latencies(s, kind)->segments;
    return search_first(k, 0, s->n, v[k + 1].first > i);
}

void state_latency(const struct state_store *s, int kind, size_t i, struct state_latency *out)
{
    size_t segment = segment_of(s, kind, i);
    struct list_spot at = spot_in(s, kind, segment, i);
    const struct list_guest *g = &latencies(s, kind)->guests[at.guest];
    const struct state_part *p = &s->parts[at.is_guest ? g->part : segment];
    state_chunk_latency(p->chunk, kind, at.is_guest ? g->early : at.own, out);
    out->thread = state_host_row(p, out->thread);
}

size_t state_latency_find(const struct state_store *s, int kind, int64_t t)
{
    const struct list_latencies *l = latencies(s, kind);
    size_t next = search_first(k, 0, s->n, l->segments[k].begin >= t);
    if (!next)
        return 0;
    const struct list_segment *x = &l->segments[next - 1];
    const struct state_chunk *c = chunk_of(s, next - 1);
    size_t own = state_chunk_latency_find(c, kind, t), early = early_of(c, kind);
    size_t guest = search_first(g, x->first_guest, x[1].first_guest, l->guests[g].begin >= t);
    return x->first + (own > early ? own - early : 0) + (guest - x->first_guest);
}

/* ---- ranges ---- */

/* Range of latencies in a segment: some of the chunk's own and some guests. */
struct list_range {
    size_t segment, own, own_end, guest, guest_end;
};

/* Part of first … end - 1 in segment k. */
static struct list_range range_in(const struct state_store *s, int kind, size_t k, uint64_t first, uint64_t end)
{
    const struct list_segment *x = &latencies(s, kind)->segments[k];
    struct list_spot a = spot_in(s, kind, k, first > x->first ? first : x->first),
                     b = spot_in(s, kind, k, end < x[1].first ? end : x[1].first);
    return (struct list_range){k, a.own, b.own, a.guest, b.guest};
}

static uint32_t name_of_guest(const struct state_store *s, int kind, const struct list_guest *g)
{
    const struct state_chunk *c = chunk_of(s, g->part);
    uint32_t code = guest_latency(s, kind, g)->code,
             name = code < c->n_codes ? c->latency_names[kind].of[code] : STATE_NO_NAME;
    return name == STATE_NO_NAME ? STATE_NO_NAME : latencies(s, kind)->name_of[g->part][name];
}

static void measure(const struct state_store *s, int kind, const struct list_range *r, struct state_measure *out)
{
    const struct list_latencies *l = latencies(s, kind);
    state_chunk_measure(chunk_of(s, r->segment), kind, r->own, r->own_end, l->name_of[r->segment], out);
    for (size_t i = r->guest; i < r->guest_end; i++) {
        uint32_t name = name_of_guest(s, kind, &l->guests[i]);
        const struct state_disk_aside *x = guest_latency(s, kind, &l->guests[i]);
        if (name != STATE_NO_NAME)
            state_measure_add(&out[name], x->begin, x->duration);
    }
}

static void join_all(struct state_measure *to, const struct state_measure *more, size_t n)
{
    for (size_t i = 0; i < n; i++)
        state_measure_join(&to[i], &more[i]);
}

/* Segment k is the leaf `leaves` + k of a binary tree whose root is node 1; a node has n_names figures. */
static struct state_measure *make_tree(const struct state_store *s, int kind, size_t leaves)
{
    const struct list_latencies *l = latencies(s, kind);
    struct state_measure *tree = mem_zalloc((2 * leaves * l->n_names + 1) * sizeof *tree);
    for (size_t k = 0; k < s->n; k++) {
        struct list_range r = range_in(s, kind, k, l->segments[k].first, l->segments[k + 1].first);
        measure(s, kind, &r, tree + (leaves + k) * l->n_names);
    }
    for (size_t node = 2 * leaves; --node > 1;)
        join_all(tree + node / 2 * l->n_names, tree + node * l->n_names, l->n_names);
    return tree;
}

static size_t leaves_of(const struct state_store *s)
{
    size_t leaves = 1;
    while (leaves < s->n)
        leaves *= 2;
    return leaves;
}

static const struct state_measure *tree_of(const struct state_store *s, int kind)
{
    struct list_latencies *l = (struct list_latencies *)(uintptr_t)latencies(s, kind);
    struct state_measure *tree = atomic_load_explicit(&l->tree, memory_order_acquire);
    if (tree)
        return tree;
    pthread_mutex_lock(&s->tables->lock);
    tree = atomic_load_explicit(&l->tree, memory_order_relaxed);
    if (!tree) {
        tree = make_tree(s, kind, leaves_of(s));
        atomic_store_explicit(&l->tree, tree, memory_order_release);
    }
    pthread_mutex_unlock(&s->tables->lock);
    return tree;
}

/* Joins whole segments [k, end). */
static void join_segments(const struct state_store *s, int kind, size_t k, size_t end, struct state_measure *out)
{
    size_t n = latencies(s, kind)->n_names, from = k + leaves_of(s), to = end + leaves_of(s);
    const struct state_measure *tree = tree_of(s, kind);
    for (; from < to; from /= 2, to /= 2) {
        if (from % 2)
            join_all(out, tree + from++ * n, n);
        if (to % 2)
            join_all(out, tree + --to * n, n);
    }
}

void state_latency_figures(const struct state_store *s, int kind, size_t first, size_t end, struct figures *out)
{
    const struct list_latencies *l = latencies(s, kind);
    struct state_measure *v = mem_zalloc((l->n_names + 1) * sizeof *v);
    size_t k = segment_of(s, kind, first), behind = search_first(i, k, s->n, l->segments[i + 1].first > end);
    for (; k < s->n && l->segments[k].first < end; k++) {
        if (l->segments[k].first >= first && k + 1 < behind) {
            join_segments(s, kind, k, behind, v);
            k = behind - 1;
            continue;
        }
        struct list_range r = range_in(s, kind, k, first, end);
        measure(s, kind, &r, v);
    }
    for (size_t i = 0; i < l->n_names; i++)
        out[i] = state_measure_figures(&v[i]);
    free(v);
}

void state_latency_histogram(
    const struct state_store *s, int kind, size_t first, size_t end, int64_t width, size_t n, uint64_t *counts)
{
    const struct list_latencies *l = latencies(s, kind);
    for (size_t k = segment_of(s, kind, first); k < s->n && l->segments[k].first < end; k++) {
        struct list_range r = range_in(s, kind, k, first, end);
        state_chunk_latency_histogram(chunk_of(s, k), kind, r.own, r.own_end, width, n, counts);
        for (size_t i = r.guest; i < r.guest_end; i++)
            counts[figures_range(guest_latency(s, kind, &l->guests[i])->duration, width, n)]++;
    }
}

/* ---- setup ---- */

static void make_latencies(const struct state_store *s, int kind)
{
    struct list_latencies *l = &s->tables->latencies[kind];
    pthread_mutex_lock(&s->tables->lock);
    if (!atomic_load_explicit(&l->made, memory_order_relaxed)) {
        size_t n_guests = find_guests(s, kind, l);
        make_segments(s, kind, l, n_guests);
        find_names(s, kind, l);
        atomic_store_explicit(&l->made, true, memory_order_release);
    }
    pthread_mutex_unlock(&s->tables->lock);
}

void state_list_latencies_fini(struct state_store *s)
{
    for (int kind = 0; kind < STATE_LATENCY_KINDS; kind++) {
        struct list_latencies *l = &s->tables->latencies[kind];
        for (size_t k = 0; l->name_of && k < s->n; k++)
            free(l->name_of[k]);
        free(l->name_of);
        free(l->names);
        free(l->segments);
        free(l->guests);
        free(atomic_load_explicit(&l->tree, memory_order_relaxed));
    }
}
