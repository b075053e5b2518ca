#include "path/build.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/order.h"
#include "graph/graph.h"

void path_build_init(struct path_build *b, const struct path_source *source, int64_t end)
{
    *b = (struct path_build){.source = source, .owner = mem_zalloc(sizeof *b->owner), .covered_from = end};
}

void path_build_fini(struct path_build *b)
{
    vec_free(&b->segments);
    vec_free(&b->links);
    vec_free(&b->gaps);
    if (b->owner)
        path_free(&b->owner->path);
    b->owner = NULL;
}

void path_free(struct path *p)
{
    if (!p)
        return;
    struct path_owner *o = (struct path_owner *)p;
    free(o->segments);
    free(o->links);
    free(o->totals);
    free(o->gaps);
    map_fini(&o->by_pointer);
    strings_fini(&o->names);
    free(o);
}

/* The path's own copy of a source's string: equal strings get equal pointers. */
static const char *own_string(struct path_owner *o, const char *s)
{
    if (!s)
        return NULL;
    bool fresh;
    uint64_t *number = map_put(&o->by_pointer, (uint64_t)(uintptr_t)s, &fresh);
    if (fresh)
        *number = strings_intern(&o->names, s, strlen(s));
    return strings_get(&o->names, (uint32_t)*number);
}

static void add_gap(struct path_build *b, const struct path_cover *c, int64_t begin, int64_t end)
{
    const char *peer = own_string(b->owner, c->peer);
    struct path_gap *last = b->gaps.n ? &b->gaps.v[b->gaps.n - 1] : NULL;
    if (last && last->begin == end && last->reason == c->reason && last->peer == peer)
        last->begin = begin;
    else
        vec_push(&b->gaps, ((struct path_gap){.begin = begin, .end = end, .reason = c->reason, .peer = peer}));
}

static void add_segment(struct path_build *b, const struct path_cover *c, int64_t begin, int64_t end)
{
    const char *detail = own_string(b->owner, c->detail);
    struct path_segment *last = b->segments.n ? &b->segments.v[b->segments.n - 1] : NULL;
    if (last && last->begin == end && last->state == c->state && last->detail == detail &&
        last->assumed == c->assumed && path_row_equal(last->row, c->row) && path_row_equal(last->sender, c->sender)) {
        last->begin = begin;
        if (last->cpu != c->cpu)
            last->cpu = -1;
        return;
    }
    vec_push(&b->segments,
        ((struct path_segment){.row = c->row,
            .begin = begin,
            .end = end,
            .state = c->state,
            .cpu = c->cpu,
            .detail = detail,
            .sender = c->sender,
            .assumed = c->assumed}));
}

void path_build_set_cover(struct path_build *b, struct path_row row, const struct path_interval *iv)
{
    b->cover = (struct path_cover){.row = row,
        .sender = PATH_NOWHERE,
        .detail = iv->detail,
        .cpu = iv->cpu,
        .state = iv->state,
        .assumed = iv->assumed};
    b->undescribed = (struct path_interval){0};
    if (iv->state == GRAPH_PREEMPTED && b->source->describe_preempted)
        b->undescribed = *iv;
}

void path_build_cover(struct path_build *b, int64_t begin)
{
    if (begin >= b->covered_from)
        return;
    if (b->undescribed.state == GRAPH_PREEMPTED) {
        b->source->describe_preempted(b->source->arg, b->cover.row, &b->undescribed);
        b->cover.cpu = b->undescribed.cpu;
        if (b->cover.state == GRAPH_PREEMPTED) /* not a message that reached the row then */
            b->cover.detail = b->undescribed.detail;
        b->undescribed.state = 0;
    }
    if (b->cover.gap)
        add_gap(b, &b->cover, begin, b->covered_from);
    add_segment(b, &b->cover, begin, b->covered_from);
    b->covered_from = begin;
}

void path_build_link(struct path_build *b, int kind, struct path_row from, int64_t from_ts, struct path_row to,
    int64_t to_ts, bool assumed)
{
    vec_push(&b->links,
        ((struct path_link){
            .from = from, .to = to, .from_ts = from_ts, .to_ts = to_ts, .kind = (uint8_t)kind, .assumed = assumed}));
}

struct path_mark path_build_mark(const struct path_build *b)
{
    return (struct path_mark){
        .segments = b->segments.n,
        .links = b->links.n,
        .gaps = b->gaps.n,
        .segment_begin = b->segments.n ? b->segments.v[b->segments.n - 1].begin : 0,
        .gap_begin = b->gaps.n ? b->gaps.v[b->gaps.n - 1].begin : 0,
        .covered_from = b->covered_from,
    };
}

void path_build_rewind(struct path_build *b, const struct path_mark *m)
{
    b->segments.n = m->segments;
    b->links.n = m->links;
    b->gaps.n = m->gaps;
    if (m->segments)
        b->segments.v[m->segments - 1].begin = m->segment_begin;
    if (m->gaps)
        b->gaps.v[m->gaps - 1].begin = m->gap_begin;
    b->covered_from = m->covered_from;
}

/* ---- totals ---- */

static int by_duration(const void *pa, const void *pb)
{
    const struct path_total *a = pa, *b = pb;
    return order_of(b->duration, a->duration) ?: order_of(a->row.host, b->row.host) ?: order_of(a->row.row, b->row.row)
        ?: order_of(a->state, b->state) ?: order_of(a->assumed, b->assumed);
}

/* Rows are few and states fewer; the key is exact: 27 bits of host, 32 of row, 1 of assumed, 4 of state. */
static uint64_t total_key(const struct path_segment *s)
{
    return (uint64_t)(uint32_t)s->row.host << 37 | (uint64_t)(uint32_t)s->row.row << 5 | (uint64_t)s->assumed << 4 |
        (s->state & 15);
}

/* Sums by (row, state). The detail of a total is that which makes up more than half of it: found by a weighted majority
 * vote, then counted. */
static void sum_up(struct path_owner *o)
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
    if (totals.n)
        qsort(totals.v, totals.n, sizeof *totals.v, by_duration);
    o->totals = totals.v;
    p->totals = totals.v;
    p->n_totals = totals.n;
    vec_free(&votes);
    map_fini(&index);
}

#define REVERSE(v, n, type) \
    for (size_t lo_ = 0, hi_ = (n); lo_ + 1 < hi_; lo_++) { \
        hi_--; \
        type swap_ = (v)[lo_]; \
        (v)[lo_] = (v)[hi_]; \
        (v)[hi_] = swap_; \
    }

/* Links that lie wholly behind the end of the question belong to the wait that crosses it, not to the answer. */
static void drop_links_behind(struct path_build *b, int64_t end)
{
    size_t n = 0;
    for (size_t i = 0; i < b->links.n; i++)
        if (b->links.v[i].to_ts <= end || b->links.v[i].from_ts < end)
            b->links.v[n++] = b->links.v[i];
    b->links.n = n;
}

struct path *path_build_finish(struct path_build *b, struct path_row start, int64_t begin, int64_t end)
{
    struct path_owner *o = b->owner;
    struct path *p = &o->path;
    drop_links_behind(b, end);
    REVERSE(b->segments.v, b->segments.n, struct path_segment)
    REVERSE(b->links.v, b->links.n, struct path_link)
    REVERSE(b->gaps.v, b->gaps.n, struct path_gap)
    p->start = start;
    p->begin = begin;
    p->end = end;
    p->clamped = b->clamped;
    p->segments = o->segments = b->segments.v;
    p->n_segments = b->segments.n;
    p->links = o->links = b->links.v;
    p->n_links = b->links.n;
    p->gaps = o->gaps = b->gaps.v;
    p->n_gaps = b->gaps.n;
    memset(b, 0, sizeof *b);
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
