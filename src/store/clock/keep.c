/* SPDX-License-Identifier: MIT */
#include "clock/keep.h"

#include <stdlib.h>
#include <string.h>

#include "base/order.h"

enum { SETTLE_AT_LEAST = 512 };

void clock_span_extend(struct net_span *s, int64_t t)
{
    s->begin = !s->known || t < s->begin ? t : s->begin;
    s->end = !s->known || t > s->end ? t : s->end;
    s->known = true;
}

void clock_keep_init(struct clock_told *t, double prior_ppm)
{
    double p = prior_ppm * 1e-6;
    *t = (struct clock_told){.prior = prior_ppm >= 0};
    if (t->prior) { /* bounds either clock against the other */
        t->low = slope_from(-p);
        t->high = slope_from(p / (1 - p));
    }
}

void clock_keep_fini(struct clock_told *t)
{
    vec_free(&t->sent.v);
    vec_free(&t->received.v);
    *t = (struct clock_told){0};
}

static int compare_messages(const void *a, const void *b)
{
    const struct net_message *p = a, *q = b;
    return order_of(p->x, q->x) ?: order_of(p->y, q->y);
}

static void sort_messages(struct net_message *v, size_t n)
{
    for (size_t i = 1; i < n; i++)
        if (compare_messages(&v[i - 1], &v[i]) > 0) {
            qsort(v, n, sizeof *v, compare_messages);
            return;
        }
}

/* Sorts; the first `sorted` are sorted already. */
static void sort_new(struct net_message *v, size_t sorted, size_t n)
{
    size_t left = n - sorted;
    sort_messages(v + sorted, left);
    if (!sorted || !left || compare_messages(&v[sorted - 1], &v[sorted]) <= 0)
        return;
    struct net_message *new = mem_alloc(left * sizeof *new);
    memcpy(new, v + sorted, left * sizeof *new);
    while (left)
        if (sorted && compare_messages(&v[sorted - 1], &new[left - 1]) > 0) {
            v[sorted + left - 1] = v[sorted - 1];
            sorted--;
        } else {
            v[sorted + left - 1] = new[left - 1];
            left--;
        }
    free(new);
}

/* Removes duplicates of sorted messages. */
static size_t drop_copies(struct net_message *v, size_t n)
{
    size_t k = 0;
    for (size_t i = 0; i < n; i++)
        if (!k || compare_messages(&v[k - 1], &v[i]))
            v[k++] = v[i];
    return k;
}

/* ---- half hull of times that may be 2^63 apart ---- */

static i128 gain(struct net_message m)
{
    return (i128)m.y - m.x;
}

/* Sign of rise_a / run_a - rise_b / run_b: runs <= 2^63, rises <= 2^64, so the products need all of 128 bits. */
static int compare_slopes(i128 rise_a, u128 run_a, i128 rise_b, u128 run_b)
{
    if ((rise_a < 0) != (rise_b < 0))
        return rise_a < 0 ? -1 : 1;
    bool falls = rise_a < 0;
    u128 a = (u128)(falls ? -rise_a : rise_a) * run_b, b = (u128)(falls ? -rise_b : rise_b) * run_a;
    return a == b ? 0 : (a < b) == falls ? 1 : -1;
}

/* Returns whether b is above (up > 0: on or above; else below) the line from a to c. */
static bool off_hull(struct net_message a, struct net_message b, struct net_message c, int up)
{
    int turn = compare_slopes(gain(b) - gain(a), (u128)((i128)b.x - a.x), gain(c) - gain(a), (u128)((i128)c.x - a.x));
    return up > 0 ? turn >= 0 : turn <= 0;
}

/* Marks the lower (up > 0) or upper half hull of sorted messages. */
static void mark_hull(const struct net_message *v, size_t n, int up, size_t *stack, bool *kept)
{
    size_t k = 0;
    for (size_t i = 0; i < n; i++) {
        if (k && v[stack[k - 1]].x == v[i].x) {
            if (up > 0)
                continue; /* the first of an instant is the lowest, the last one the highest */
            k--;
        }
        while (k >= 2 && off_hull(v[stack[k - 2]], v[stack[k - 1]], v[i], up))
            k--;
        stack[k++] = i;
    }
    for (size_t i = 0; i < k; i++)
        kept[stack[i]] = true;
}

/* ---- cones ---- */

/* Crossing of the cone's side of that slope with x = 0, times 2^62; for received messages upside down. */
static i128 side_at_zero(struct net_message m, int64_t slope, int up)
{
    i128 at = gain(m) * Q62 - (i128)slope * m.x;
    return up > 0 ? at : -at;
}

/* Smallest few of the values seen, in order. */
struct least {
    i128 v[KEEP_LAYERS];
    size_t n;
};

static void least_add(struct least *l, i128 v)
{
    size_t i = l->n;
    while (i && l->v[i - 1] > v)
        i--;
    if (i == KEEP_LAYERS)
        return;
    l->n += l->n < KEEP_LAYERS;
    memmove(&l->v[i + 1], &l->v[i], (l->n - i - 1) * sizeof *l->v);
    l->v[i] = v;
}

static uint8_t count_at_most(const struct least *l, i128 v)
{
    uint8_t n = 0;
    while (n < l->n && l->v[n] <= v)
        n++;
    return n;
}

static uint8_t count_below(const struct least *l, i128 v)
{
    uint8_t n = 0;
    while (n < l->n && l->v[n] < v)
        n++;
    return n;
}

/* Marks the messages of a cell that lie on fewer than KEEP_LAYERS cones of others; cones: room for n. A message lies on
 * the cone of an earlier one if it is on the far side of the side that opens to the right; with later ones accordingly.
 * The sides that open to the left do not belong to the cone: of two messages, each on the other's (a prior of 0), one
 * is left. */
static void mark_cell(
    const struct net_message *v, size_t n, const struct clock_told *t, int up, uint8_t *cones, bool *kept)
{
    struct least earlier = {.n = 0}, later = {.n = 0};
    int64_t right = up > 0 ? t->high : t->low, left = up > 0 ? t->low : t->high;
    for (size_t i = 0; i < n; i++) {
        i128 at = side_at_zero(v[i], right, up);
        cones[i] = count_at_most(&earlier, at);
        least_add(&earlier, at);
    }
    for (size_t i = n; i--;) {
        i128 at = side_at_zero(v[i], left, up);
        kept[i] = kept[i] || cones[i] + count_below(&later, at) < KEEP_LAYERS;
        least_add(&later, at);
    }
}

static void mark_cells(
    const struct net_message *v, size_t n, const struct clock_told *t, int up, uint8_t *cones, bool *kept)
{
    for (size_t from = 0, to; from < n; from = to) {
        for (to = from + 1; to < n && v[to].x >> KEEP_CELL_BITS == v[from].x >> KEEP_CELL_BITS;)
            to++;
        mark_cell(v + from, to - from, t, up, cones, kept + from);
    }
}

/* ---- sides ---- */

static void settle(const struct clock_told *t, struct keep_side *s, int up)
{
    struct net_message *v = s->v.v;
    if (s->v.n == s->settled)
        return;
    sort_new(v, s->settled, s->v.n);
    size_t n = drop_copies(v, s->v.n), left = 0, *stack = mem_alloc(n * sizeof *stack);
    bool *kept = mem_zalloc(n);
    uint8_t *cones = mem_alloc(n);
    if (t->prior)
        mark_cells(v, n, t, up, cones, kept);
    mark_hull(v, n, up, stack, kept);
    for (size_t i = 0; i < n; i++)
        if (kept[i])
            v[left++] = v[i];
    s->v.n = s->settled = left;
    free(stack);
    free(kept);
    free(cones);
}

void clock_keep_settle(struct clock_told *t)
{
    settle(t, &t->sent, 1);
    settle(t, &t->received, -1);
}

static void settle_if_many(const struct clock_told *t, struct keep_side *s, int up)
{
    if (s->v.n >= 2 * s->settled + SETTLE_AT_LEAST)
        settle(t, s, up);
}

bool clock_keep_in_range(int64_t t)
{
    return t >= -CLOCK_TIME_LIMIT && t <= CLOCK_TIME_LIMIT;
}

void clock_tell(struct clock_told *t, bool by_a, int64_t sent, int64_t received)
{
    struct net_message m = by_a ? (struct net_message){sent, received} : (struct net_message){received, sent};
    struct keep_side *s = by_a ? &t->sent : &t->received;
    if (!clock_keep_in_range(sent) || !clock_keep_in_range(received)) {
        t->dropped++;
        return;
    }
    s->all++;
    clock_span_extend(&t->span_a, m.x);
    clock_span_extend(&t->span_b, m.y);
    vec_push(&s->v, m);
    settle_if_many(t, s, by_a ? 1 : -1);
}

/* `settled`: the other has no redundant messages. */
static void join_side(struct clock_told *t, struct keep_side *s, const struct keep_side *other, int up, bool settled)
{
    s->all += other->all;
    if (!other->v.n)
        return;
    if (!s->v.n && settled)
        s->settled = other->settled;
    vec_reserve(&s->v, other->v.n);
    memcpy(s->v.v + s->v.n, other->v.v, other->v.n * sizeof *s->v.v);
    s->v.n += other->v.n;
    settle_if_many(t, s, up);
}

bool clock_keep_take(struct clock_told *t, bool by_a, const struct net_message *v, size_t n, double prior_ppm)
{
    struct keep_side *s = by_a ? &t->sent : &t->received;
    struct clock_told like;
    clock_keep_init(&like, prior_ppm);
    if (s->v.n || like.prior != t->prior || like.low != t->low || like.high != t->high)
        return false;
    for (size_t i = 0; i < n; i++)
        if (!clock_keep_in_range(v[i].x) || !clock_keep_in_range(v[i].y) ||
            (i && compare_messages(&v[i - 1], &v[i]) >= 0))
            return false;
    for (size_t i = 0; i < n; i++) {
        clock_span_extend(&t->span_a, v[i].x);
        clock_span_extend(&t->span_b, v[i].y);
    }
    vec_reserve(&s->v, n + 1);
    if (n)
        memcpy(s->v.v, v, n * sizeof *v);
    s->v.n = s->settled = n;
    s->all += n;
    return true;
}

static void join_span(struct net_span *s, const struct net_span *other)
{
    if (other->known) {
        clock_span_extend(s, other->begin);
        clock_span_extend(s, other->end);
    }
}

void clock_keep_join(struct clock_told *t, const struct clock_told *other)
{
    t->dropped += other->dropped;
    join_span(&t->span_a, &other->span_a);
    join_span(&t->span_b, &other->span_b);
    bool same = t->prior == other->prior && t->low == other->low && t->high == other->high;
    join_side(t, &t->sent, &other->sent, 1, same && other->sent.settled == other->sent.v.n);
    join_side(t, &t->received, &other->received, -1, same && other->received.settled == other->received.v.n);
}

struct clock_told *clock_told_new(double prior_ppm)
{
    struct clock_told *t = mem_alloc(sizeof *t);
    clock_keep_init(t, prior_ppm);
    return t;
}

void clock_told_free(struct clock_told *t)
{
    if (!t)
        return;
    clock_keep_fini(t);
    free(t);
}

void clock_told_settle(struct clock_told *t)
{
    clock_keep_settle(t);
}

void clock_told_add(struct clock_told *t, const struct clock_told *other)
{
    clock_keep_join(t, other);
}
