/* SPDX-License-Identifier: MIT */
/* Frames of the backward walk, and early return.
 *
 * The explanation of a wait ends where the wait began, unless the chain comes back to the row that waits: an *arrival*
 * is a signal that the row sent in the stretch of running before its wait, and that the explanation, followed further
 * back than the wait, leads over. The explanation then goes down to the latest arrival, and the row goes on there.
 * Nothing unexplained may lie between. So the reach of an explanation is a function of the wait alone: it does not
 * depend on the question, its interval, or other waits examined. Only a wait that is not known to cross the bound needs
 * the look. */
#include <assert.h>
#include <stdlib.h>

#include "base/search.h"
#include "graph/graph.h"
#include "path/walk.h"

/* ---- frame to end next ---- */

/* Tree in an array: the leaves are at leaf_of, each inner node i holds the larger of 2i and 2i + 1. */
static size_t leaf_of(const struct walker *w, size_t frame)
{
    return w->lows.n / 2 + frame;
}

static void set_leaf(struct walker *w, size_t frame, int64_t low)
{
    int64_t *v = w->lows.v;
    size_t i = leaf_of(w, frame);
    v[i] = low;
    for (i /= 2; i; i /= 2) {
        int64_t most = walk_later(v[2 * i], v[2 * i + 1]);
        if (v[i] == most)
            break;
        v[i] = most;
    }
}

static void grow_leaves(struct walker *w)
{
    size_t n = w->lows.n ? 2 * w->lows.n : 32;
    w->lows.n = 0;
    vec_reserve(&w->lows, n);
    w->lows.n = n;
    for (size_t i = 0; i < n; i++)
        w->lows.v[i] = WALK_NEVER;
    for (size_t i = 0; i < w->frames.n; i++)
        set_leaf(w, i, w->frames.v[i].low);
}

static void set_low(struct walker *w, size_t frame, int64_t low)
{
    w->frames.v[frame].low = low;
    set_leaf(w, frame, low);
}

/* Outermost of the frames with the largest `low`, from the innermost looking one on. */
static size_t ends_next(const struct walker *w)
{
    const int64_t *v = w->lows.v;
    size_t half = w->lows.n / 2, i = leaf_of(w, w->lookers.v[w->lookers.n - 1]), best = i;
    for (; i > 1; i /= 2)
        if (i % 2 == 0 && v[i + 1] > v[best])
            best = i + 1;
    while (best < half)
        best = v[2 * best] >= v[2 * best + 1] ? 2 * best : 2 * best + 1;
    return best - half;
}

static void set_bound(struct walker *w)
{
    w->bound = w->frames.v[ends_next(w)].low;
}

void path_walk_check(const struct walker *w)
{
    const struct path_build *b = &w->build;
    assert(w->frames.n >= 1 && w->lookers.n >= 1 && w->lookers.v[0] == 0);
    assert(w->lookers.v[w->lookers.n - 1] < w->frames.n);
    assert(w->bound >= w->frames.v[w->lookers.v[w->lookers.n - 1]].low);
    assert(b->covered_from == INT64_MAX || b->covered_from <= walk_later(w->at.t, w->bound));
    assert(b->pieces.n == w->first_piece || b->pieces.v[b->pieces.n - 1].begin == b->covered_from);
    const struct walk_frame *f = &w->frames.v[w->frames.n - 1];
    assert(w->frames.n == 1 || f->end != WALK_TENTATIVE || f->low == f->slept);
}

/* ---- knowledge of waits ---- */

int64_t path_walk_stretch(struct walker *w, struct path_row row, int64_t t)
{
    if (w->request_since != WALK_NEVER)
        return t < w->request_since ? t : w->request_since;
    for (int i = 0; i < WALK_MOST_STRETCH && t > WALK_NEVER; i++) {
        struct path_interval iv;
        enum path_reply reply = w->source->interval(w->source->arg, row, t, t - 1, &iv);
        w->pending += reply == PATH_REPLY_PENDING;
        if (reply != PATH_REPLY_FOUND || !graph_is_awake(iv.state) || iv.begin >= t || iv.end < t)
            break;
        t = iv.begin;
    }
    return t;
}

static int64_t floor_of(struct walker *w, struct walk_frame *f)
{
    if (!f->floor_known)
        f->floor = path_walk_stretch(w, f->row, f->slept);
    f->floor_known = true;
    return f->floor;
}

static uint64_t key_of(struct path_row row, uint64_t id)
{
    return map_mix(map_mix((uint64_t)(uint32_t)row.host << 32 | (uint32_t)row.row) ^ id);
}

static const struct walk_known *find_known(const struct walker *w, struct path_row row, uint64_t id)
{
    const uint64_t *at = w->known.n ? map_find(&w->known_at, key_of(row, id)) : NULL;
    for (uint64_t i = at ? *at : 0; i; i = w->known.v[i - 1].next) {
        const struct walk_known *k = &w->known.v[i - 1];
        if (path_row_equal(k->row, row) && k->id == id)
            return k;
    }
    return NULL;
}

/* Remembers the result of a look for frame f, only if another look may drop it. */
static void remember(struct walker *w, const struct walk_frame *f, int64_t low, const char *doubt)
{
    if (!walk_looks(w) || f->pending != w->pending)
        return;
    uint64_t *at = map_put(&w->known_at, key_of(f->row, f->id), NULL);
    vec_push(&w->known, ((struct walk_known){f->row, f->id, low, f->arrival.by, doubt, *at}));
    *at = w->known.n;
}

/* ---- entering and leaving ---- */

static uint64_t home_key(struct path_row row)
{
    return (uint64_t)(uint32_t)row.host << 32 | (uint32_t)row.row;
}

static void push_frame(struct walker *w, struct walk_frame f)
{
    vec_push(&w->frames, f);
    if (w->frames.n > w->lows.n / 2)
        grow_leaves(w);
    else
        set_leaf(w, w->frames.n - 1, f.low);
    w->bound = walk_later(w->bound, f.low);
}

void path_walk_reset_frames(struct walker *w, struct path_row row, int64_t bound)
{
    for (size_t i = 1; i < w->frames.n; i++)
        map_remove(&w->homes, home_key(w->frames.v[i].row));
    w->frames.n = w->lookers.n = w->trail.n = w->changes.n = w->lows.n = 0;
    w->bound = bound;
    push_frame(w, (struct walk_frame){.row = row, .low = bound, .arrival.t = WALK_NEVER, .end = WALK_SETTLED});
    vec_push(&w->lookers, 0);
}

struct walk_frame path_walk_frame_of(struct walker *w, const struct path_interval *wait)
{
    const struct walk_known *k = find_known(w, w->at.row, wait->id);
    struct walk_frame f = {.row = w->at.row,
        .id = wait->id,
        .slept = wait->begin,
        .low = k ? k->low : wait->begin,
        .arrival.t = WALK_NEVER,
        .end = k || w->no_early_return ? WALK_SETTLED : WALK_TENTATIVE,
        .pending = w->pending,
        .doubts = w->doubts,
        .doubt = k ? k->doubt : NULL,
        .at = w->at};
    if (k && k->low < f.slept)
        f.arrival = (struct walk_arrival){k->low, k->by};
    if (f.end == WALK_TENTATIVE && f.slept > w->bound)
        floor_of(w, &f);
    return f;
}

void path_walk_frame_asked(const struct walker *w, struct walk_frame *f, int64_t asked)
{
    if (f->end != WALK_TENTATIVE || asked < w->request_since || w->request_since == WALK_NEVER || asked > f->slept)
        return;
    f->low = asked;
    f->end = WALK_SETTLED;
}

int64_t path_walk_wanted(const struct walker *w, const struct walk_frame *f)
{
    return f->floor_known ? f->floor : walk_later(w->bound, f->low);
}

void path_walk_enter(struct walker *w, struct walk_frame f)
{
    uint64_t *home = map_put(&w->homes, home_key(f.row), NULL);
    f.around = *home;
    *home = w->frames.n;
    push_frame(w, f);
}

bool path_walk_is_waiting(const struct walker *w, uint64_t id)
{
    const uint64_t *home = map_find(&w->homes, home_key(w->at.row));
    for (size_t i = home ? *home : 0; i; i = w->frames.v[i].around)
        if (w->frames.v[i].id == id)
            return true;
    return false;
}

/* Sets the latest arrival at frame j; if the frame looks, this is its new low. */
static void set_arrival(struct walker *w, size_t j, struct walk_arrival arrival)
{
    struct walk_frame *f = &w->frames.v[j];
    f->arrival = arrival;
    if (f->end == WALK_LOOKING)
        set_low(w, j, walk_later(f->floor, arrival.t));
}

/* Removes what was written and changed at times before t. */
static void rewind_to(struct walker *w, int64_t t)
{
    path_build_rewind(&w->build, w->first_piece, w->first_arrow, t);
    while (w->trail.n && w->trail.v[w->trail.n - 1] <= t)
        w->trail.n--;
    while (w->changes.n && w->changes.v[w->changes.n - 1].t <= t) {
        const struct walk_change *c = &w->changes.v[--w->changes.n];
        if (c->frame < w->frames.n)
            set_arrival(w, c->frame, c->arrival);
    }
}

/* Leaves frame j and all inside at t: the waiting row continues there. An arrow with zero travel time home stays,
 * although it ends where everything else is removed. */
static void leave(struct walker *w, size_t j, int64_t t)
{
    struct walk_arrival home = w->frames.v[j].arrival;
    rewind_to(w, t);
    if (home.t == t && home.by.link.to_ts <= t)
        vec_push(&w->build.arrows, home.by);
    if (j == 1 && w->pending != w->frames.v[1].pending) {
        const struct walk_position *at = &w->frames.v[1].at;
        vec_push(&w->asked, ((struct walk_pending){*at, at->t, false}));
    }
    while (w->frames.n > j) {
        const struct walk_frame *f = &w->frames.v[w->frames.n - 1];
        *map_put(&w->homes, home_key(f->row), NULL) = f->around;
        set_leaf(w, --w->frames.n, WALK_NEVER);
    }
    while (w->lookers.v[w->lookers.n - 1] >= j)
        w->lookers.n--;
    w->at.row = w->frames.v[j].row;
    walk_back_to(w, t);
    set_bound(w);
}

/* ---- looking ---- */

void path_walk_arrive(struct walker *w, int64_t t, struct path_row row, int64_t sent)
{
    const uint64_t *home = w->no_early_return ? NULL : map_find(&w->homes, home_key(row));
    for (size_t i = home ? *home : 0; i; i = w->frames.v[i].around) {
        struct walk_frame *f = &w->frames.v[i];
        if (f->end == WALK_SETTLED || sent >= f->slept || sent <= f->arrival.t || sent < floor_of(w, f))
            continue;
        if (walk_looks(w))
            vec_push(&w->changes, ((struct walk_change){t, i, f->arrival}));
        set_arrival(w, i, (struct walk_arrival){sent, w->build.arrows.v[w->build.arrows.n - 1]});
        set_bound(w);
    }
}

void path_walk_note_pending(struct walker *w, bool whole)
{
    w->pending++;
    if (w->frames.n == 1)
        vec_push(&w->asked, ((struct walk_pending){w->at, w->at.t, whole}));
}

/* Leaves a frame whose wait ends where it began, as far as is known without `peer`. */
static void leave_in_doubt(struct walker *w, size_t j, const char *peer)
{
    struct walk_frame *f = &w->frames.v[j];
    struct walk_doubt doubt = {peer, floor_of(w, f)};
    int64_t slept = f->slept;
    leave(w, j, slept);
    w->doubts++;
    w->away = peer;
    if (doubt.floor < slept)
        w->at.doubt = doubt;
}

static void settle(struct walker *w, size_t j, int64_t low)
{
    struct walk_frame f = w->frames.v[j];
    const char *doubt = low == f.slept && w->doubts != f.doubts ? w->away : NULL;
    if (doubt)
        leave_in_doubt(w, j, doubt);
    else
        leave(w, j, low);
    remember(w, &f, low, doubt);
}

void path_walk_stop_looking(struct walker *w, const struct path_cause *c)
{
    size_t j = w->lookers.v[w->lookers.n - 1];
    if (c && c->reason == PATH_OFFLINE_NODE) {
        w->doubts++;
        w->away = c->label ? c->label : "";
    }
    w->build.cover.gap = w->build.cover.doubt = false;
    settle(w, j, w->frames.v[j].slept);
}

bool path_walk_looks_too_far(const struct walker *w)
{
    return walk_looks(w) && w->trail.n > w->frames.v[w->lookers.v[w->lookers.n - 1]].trail + WALK_MOST_STEPS;
}

/* Lets frame j continue past the beginning of its wait, where the walk is, or was: a look inside may have come
 * further. */
static void look_back(struct walker *w, size_t j)
{
    struct walk_frame *f = &w->frames.v[j];
    if (f->pending != w->pending || floor_of(w, f) >= f->slept || f->pending != w->pending) {
        leave(w, j, f->slept);
        return;
    }
    f->end = WALK_LOOKING;
    f->trail = search_first(i, 0, w->trail.n, w->trail.v[i] <= f->slept);
    vec_push(&w->lookers, j);
    set_low(w, j, walk_later(f->floor, f->arrival.t));
    set_bound(w);
}

bool path_walk_leave(struct walker *w)
{
    size_t j = ends_next(w);
    if (j == 0) {
        if (w->frames.n > 1)
            leave(w, 1, w->bound);
        return false;
    }
    struct walk_frame *f = &w->frames.v[j];
    if (f->end == WALK_TENTATIVE)
        look_back(w, j);
    else if (f->end == WALK_SETTLED && f->doubt)
        leave_in_doubt(w, j, f->doubt);
    else if (f->end == WALK_SETTLED)
        leave(w, j, f->low);
    else if (f->arrival.t == f->low)
        settle(w, j, f->low);
    else
        path_walk_stop_looking(w, NULL);
    return true;
}
