/* SPDX-License-Identifier: MIT */
#include "path/build.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/order.h"
#include "base/search.h"
#include "graph/graph.h"

/* ---- output of the walk ---- */

void path_build_fini(struct path_build *b)
{
    vec_free(&b->pieces);
    vec_free(&b->arrows);
}

void path_build_start(struct path_build *b)
{
    b->covered_from = INT64_MAX;
    b->apart = b->pieces.n;
    b->hidden = NULL;
    b->written = true;
}

static bool lacks_a_node(const struct path_cover *c)
{
    return (c->gap || c->doubt) && c->reason == PATH_OFFLINE_NODE;
}

void path_build_set_cover(struct path_build *b, struct path_row row, const struct path_interval *iv)
{
    if (!b->written && lacks_a_node(&b->cover))
        b->hidden = b->cover.peer ? b->cover.peer : "";
    b->written = false;
    b->cover = (struct path_cover){.row = row,
        .sender = PATH_NOWHERE,
        .detail = iv->detail,
        .id = iv->id,
        .cpu = iv->cpu,
        .state = iv->state,
        .assumed = iv->assumed};
}

/* Returns whether pieces of these covers are one, whatever the CPU. A preempted one stays separate until it is
 * described. */
static bool same_cover(const struct path_cover *a, const struct path_cover *b)
{
    return a->state == b->state && a->state != GRAPH_PREEMPTED && a->detail == b->detail && a->assumed == b->assumed &&
        path_row_equal(a->row, b->row) && path_row_equal(a->sender, b->sender) && a->gap == b->gap &&
        a->doubt == b->doubt && (!(a->gap || a->doubt) || (a->reason == b->reason && a->peer == b->peer));
}

void path_build_cover(struct path_build *b, int64_t begin)
{
    if (begin >= b->covered_from)
        return;
    if (b->hidden && !b->cover.gap) {
        b->cover.doubt = true;
        b->cover.reason = PATH_OFFLINE_NODE;
        b->cover.peer = b->hidden;
    }
    b->hidden = NULL;
    b->written = true;
    struct path_piece *last = b->pieces.n > b->apart ? &b->pieces.v[b->pieces.n - 1] : NULL;
    if (last && same_cover(&last->cover, &b->cover)) {
        last->begin = begin;
        if (last->cover.cpu != b->cover.cpu)
            last->cover.cpu = -1;
    } else {
        vec_push(&b->pieces, ((struct path_piece){b->cover, begin, b->covered_from}));
    }
    b->covered_from = begin;
}

void path_build_link(struct path_build *b, int kind, struct path_row from, int64_t from_ts, struct path_row to,
    int64_t to_ts, bool clamped, bool assumed)
{
    struct path_link link = {
        .from = from, .to = to, .from_ts = from_ts, .to_ts = to_ts, .kind = (uint8_t)kind, .assumed = assumed};
    vec_push(&b->arrows, ((struct path_arrow){link, clamped}));
}

void path_build_rewind(struct path_build *b, size_t first, size_t first_arrow, int64_t t)
{
    while (b->arrows.n > first_arrow && b->arrows.v[b->arrows.n - 1].link.to_ts <= t)
        b->arrows.n--;
    if (b->covered_from >= t)
        return;
    while (b->pieces.n > first && b->pieces.v[b->pieces.n - 1].end <= t)
        b->pieces.n--;
    if (b->pieces.n > first && b->pieces.v[b->pieces.n - 1].begin < t)
        b->pieces.v[b->pieces.n - 1].begin = t;
    b->covered_from = t;
}

/* ---- the answer ---- */

/* Answer with the memory it owns. */
struct owner {
    struct path path; /* first: a struct path * is a struct owner * */
    struct strings names;
    struct map by_pointer; /* a source's string -> its number in names */
    VEC(struct path_segment) segments;
    VEC(struct path_link) links;
    VEC(struct path_gap) gaps;
    struct path_total *totals;
};

void path_free(struct path *p)
{
    if (!p)
        return;
    struct owner *o = (struct owner *)p;
    vec_free(&o->segments);
    vec_free(&o->links);
    vec_free(&o->gaps);
    free(o->totals);
    map_fini(&o->by_pointer);
    strings_fini(&o->names);
    free(o);
}

/* The path's own copy of a source's string: equal strings have equal pointers. */
static const char *own_string(struct owner *o, const char *s)
{
    if (!s)
        return NULL;
    bool fresh;
    uint64_t *number = map_put(&o->by_pointer, (uint64_t)(uintptr_t)s, &fresh);
    if (fresh)
        *number = strings_intern(&o->names, s, strlen(s));
    return strings_get(&o->names, (uint32_t)*number);
}

static void add_gap(struct owner *o, const struct path_cover *c, int64_t begin, int64_t end)
{
    const char *peer = own_string(o, c->peer);
    struct path_gap *last = o->gaps.n ? &o->gaps.v[o->gaps.n - 1] : NULL;
    o->path.partial |= c->reason == PATH_PENDING;
    if (last && last->end == begin && last->reason == c->reason && last->peer == peer)
        last->end = end;
    else
        vec_push(&o->gaps, ((struct path_gap){.begin = begin, .end = end, .reason = c->reason, .peer = peer}));
}

static void add_segment(
    struct owner *o, const struct path_cover *c, int32_t cpu, const char *detail, int64_t begin, int64_t end)
{
    struct path_segment *last = o->segments.n ? &o->segments.v[o->segments.n - 1] : NULL;
    detail = own_string(o, detail);
    if (last && last->state == c->state && last->detail == detail && last->assumed == c->assumed &&
        path_row_equal(last->row, c->row) && path_row_equal(last->sender, c->sender)) {
        last->end = end;
        if (last->cpu != cpu)
            last->cpu = -1;
        return;
    }
    vec_push(&o->segments,
        ((struct path_segment){.row = c->row,
            .begin = begin,
            .end = end,
            .state = c->state,
            .cpu = cpu,
            .detail = detail,
            .sender = c->sender,
            .assumed = c->assumed}));
}

/* Appends the piece, cut to [begin, end]. */
static void add_piece(
    struct owner *o, const struct path_source *source, const struct path_cover *c, int64_t begin, int64_t end)
{
    struct path_interval iv = {
        .begin = begin, .end = end, .state = c->state, .cpu = c->cpu, .detail = c->detail, .id = c->id};
    if (c->state == GRAPH_PREEMPTED && source->describe_preempted)
        source->describe_preempted(source->arg, c->row, &iv);
    if (c->gap || c->doubt)
        add_gap(o, c, begin, end);
    add_segment(o, c, iv.cpu, iv.detail, begin, end);
}

/* An arrow belongs to the time before its end. One completely behind the end of the question belongs to the wait that
 * crosses it, not to the answer. */
static void add_arrows(struct owner *o, const struct path_build *b, const struct path_view *v, int64_t end)
{
    size_t first = v->arrows[0], past = v->arrows[1];
    if (v->end < end)
        first = search_first(i, first, past, b->arrows.v[i].link.to_ts <= v->end);
    past = search_first(i, first, past, b->arrows.v[i].link.to_ts <= v->begin);
    for (size_t i = past; i-- > first;) {
        const struct path_arrow *a = &b->arrows.v[i];
        if (a->link.to_ts > end && a->link.from_ts >= end)
            continue;
        vec_push(&o->links, a->link);
        o->path.clamped |= a->clamped;
    }
}

static void add_view(struct owner *o, const struct path_build *b, const struct path_source *source,
    const struct path_view *v, int64_t end)
{
    size_t first = search_first(i, v->pieces[0], v->pieces[1], b->pieces.v[i].begin < v->end);
    size_t past = search_first(i, first, v->pieces[1], b->pieces.v[i].end <= v->begin);
    for (size_t i = past; i-- > first;) {
        const struct path_piece *p = &b->pieces.v[i];
        add_piece(o, source, &p->cover, p->begin > v->begin ? p->begin : v->begin, p->end < v->end ? p->end : v->end);
    }
    add_arrows(o, b, v, end);
}

/* ---- totals ---- */

struct total {
    struct path_total is;
    size_t met; /* number of its first segment: the same wherever the graphs are */
};

static int by_duration(const void *pa, const void *pb)
{
    const struct total *a = pa, *b = pb;
    return order_of(b->is.duration, a->is.duration) ?: order_of(a->met, b->met);
}

/* Key of a total, exact: 27 bits of host, 32 of row, 1 of assumed, 4 of state. Rows are few and states fewer. */
static uint64_t total_key(const struct path_segment *s)
{
    return (uint64_t)(uint32_t)s->row.host << 37 | (uint64_t)(uint32_t)s->row.row << 5 | (uint64_t)s->assumed << 4 |
        (s->state & 15);
}

/* Sorts, largest first. */
static struct path_total *sort_totals(const struct path_total *v, size_t n)
{
    struct total *all = mem_alloc((n + 1) * sizeof *all);
    struct path_total *out = mem_alloc((n + 1) * sizeof *out);
    for (size_t i = 0; i < n; i++)
        all[i] = (struct total){v[i], i};
    qsort(all, n, sizeof *all, by_duration);
    for (size_t i = 0; i < n; i++)
        out[i] = all[i].is;
    free(all);
    return out;
}

/* Sums by (row, state). The detail of a total is the one that makes up more than half of it: found by a weighted
 * majority vote, then counted. */
static void sum_up(struct owner *o)
{
    struct path *p = &o->path;
    struct map index = {0};
    VEC(struct path_total) totals = {0};
    VEC(int64_t) votes = {0};
    for (size_t i = 0; i < p->n_segments; i++) {
        const struct path_segment *s = &p->segments[i];
        int64_t length = s->end - s->begin;
        bool fresh;
        uint64_t *at = map_put(&index, total_key(s), &fresh);
        if (fresh) {
            *at = totals.n;
            vec_push(&totals, ((struct path_total){.row = s->row, .state = s->state, .assumed = s->assumed}));
            vec_push(&votes, 0);
        }
        struct path_total *t = &totals.v[*at];
        t->duration += length;
        int64_t *vote = &votes.v[*at];
        if (*vote > 0 && t->detail != s->detail) {
            *vote -= length;
            if (*vote >= 0)
                continue;
            *vote = -*vote;
        } else {
            *vote += length;
        }
        t->detail = s->detail;
    }
    for (size_t i = 0; i < totals.n; i++)
        votes.v[i] = 0;
    for (size_t i = 0; i < p->n_segments; i++) {
        size_t at = *map_find(&index, total_key(&p->segments[i]));
        if (totals.v[at].detail == p->segments[i].detail)
            votes.v[at] += p->segments[i].end - p->segments[i].begin;
    }
    for (size_t i = 0; i < totals.n; i++)
        if (votes.v[i] <= totals.v[i].duration / 2)
            totals.v[i].detail = NULL;
    o->totals = sort_totals(totals.v, totals.n);
    p->totals = o->totals;
    p->n_totals = totals.n;
    vec_free(&totals);
    vec_free(&votes);
    map_fini(&index);
}

struct path *path_build_answer(const struct path_build *b, const struct path_source *source,
    const struct path_view *views, size_t n, struct path_row start, int64_t begin, int64_t end)
{
    struct owner *o = mem_zalloc(sizeof *o);
    struct path *p = &o->path;
    int64_t known = n ? views[n - 1].begin : end;
    struct path_cover unknown = {
        .row = start, .sender = PATH_NOWHERE, .cpu = -1, .state = GRAPH_UNKNOWN, .gap = true, .reason = PATH_PENDING};
    if (known > begin)
        add_piece(o, source, &unknown, begin, known);
    for (size_t i = n; i-- > 0;)
        add_view(o, b, source, &views[i], end);
    p->start = start;
    p->begin = begin;
    p->end = end;
    p->segments = o->segments.v;
    p->n_segments = o->segments.n;
    p->links = o->links.v;
    p->n_links = o->links.n;
    p->gaps = o->gaps.v;
    p->n_gaps = o->gaps.n;
    sum_up(o);
    return p;
}

/* ---- invariant ---- */

bool path_covers(const struct path *p, struct err *e)
{
    int64_t at = p->begin, sum = 0;
    for (size_t i = 0; i < p->n_segments; i++) {
        const struct path_segment *s = &p->segments[i];
        if (s->begin != at || s->end <= s->begin || s->state >= GRAPH_STATE_COUNT) {
            err_set(e, ERR_FORMAT, "segment %zu of the path spans %" PRId64 " to %" PRId64 " where %" PRId64 " was due",
                i, s->begin, s->end, at);
            return false;
        }
        at = s->end;
    }
    if (at != p->end) {
        err_set(e, ERR_FORMAT, "the path ends at %" PRId64 " instead of %" PRId64, at, p->end);
        return false;
    }
    for (size_t i = 0; i < p->n_totals; i++)
        sum += p->totals[i].duration;
    if (sum != p->end - p->begin) {
        err_set(
            e, ERR_FORMAT, "the totals of the path sum to %" PRId64 " ns instead of %" PRId64, sum, p->end - p->begin);
        return false;
    }
    for (size_t i = 0; i < p->n_gaps; i++)
        if (p->gaps[i].begin < p->begin || p->gaps[i].end > p->end || p->gaps[i].begin >= p->gaps[i].end) {
            err_set(e, ERR_FORMAT, "gap %zu of the path lies outside of it", i);
            return false;
        }
    return true;
}

const char *path_reason_name(int reason)
{
    static const char *const names[] = {
        [PATH_NO_WAKER] = "no-waker",
        [PATH_UNTRACED_PEER] = "untraced-peer",
        [PATH_OFFLINE_NODE] = "offline-node",
        [PATH_LOST_EVENTS] = "lost-events",
        [PATH_NO_CLOCK] = "no-clock",
        [PATH_PENDING] = "pending",
    };
    return reason >= 0 && reason < (int)(sizeof names / sizeof *names) ? names[reason] : "no-waker";
}

const char *path_link_name(int kind)
{
    static const char *const names[] = {
        [PATH_LINK_WAKEUP] = "wakeup",
        [PATH_LINK_FORK] = "fork",
        [PATH_LINK_NETWORK] = "network",
        [PATH_LINK_DISK] = "disk",
        [PATH_LINK_VM] = "vm",
        [PATH_LINK_SPAN] = "span",
    };
    return kind >= 0 && kind < (int)(sizeof names / sizeof *names) ? names[kind] : "wakeup";
}
