/* SPDX-License-Identifier: MIT */
/* The bounded backward walk with early return.
 *
 * The walk keeps a position (a row and a time) and goes back from it: states that are no waits are copied; a wait that
 * something ended opens a *frame* and the walk continues at the origin of the signal. It goes down to the end of the
 * wait's explanation (walk_frames.c) or to the bound of the question. There the frame is left and the walk resumes on
 * the waiting row. Frame 0 is the question itself. struct walker states what holds between two steps. */
#include <assert.h>
#include <stdlib.h>

#include "graph/graph.h"
#include "path/walk.h"

enum { MAX_PIECES = 1 << 24 };

static bool is_wait(int state)
{
    return state == GRAPH_BLOCKED || state == GRAPH_NETWORK;
}

static bool is_asleep(int state)
{
    return is_wait(state) || state == GRAPH_TIMER || state == GRAPH_BLOCK_DEVICE || state == GRAPH_USER_INPUT;
}

static bool leads_on(const struct path_cause *c)
{
    return c->kind == PATH_CAUSE_WAKEUP || c->kind == PATH_CAUSE_FORK || c->kind == PATH_CAUSE_NETWORK;
}

/* Cause of the end of an interval, or of the creation of a row. */
struct ending {
    struct path_cause cause;
    int64_t sent; /* time since which the signal was under way: at most its arrival */
};

/* Returns whether the row was asleep at t, and afterwards. Data sent then had been written before, and waited in the
 * queue of the socket. */
static bool sleeps_on(const struct path_interval *iv, int64_t t)
{
    return iv->begin < t && t < iv->end && is_asleep(iv->state) && !(iv->polling && is_wait(iv->state));
}

/* Sets the time since which a message is under way: when its sender slept. Asked here, since it belongs to the message
 * even if the walk goes no further back. */
static void find_written(const struct walker *w, struct ending *e, int64_t bound)
{
    struct path_interval iv;
    if (e->sent == WALK_NEVER)
        return;
    enum path_reply reply = w->source->interval(
        w->source->arg, e->cause.from, e->sent, bound < e->sent ? bound : e->sent - 1, &iv);
    if (reply == PATH_REPLY_PENDING)
        e->cause = (struct path_cause){.kind = PATH_CAUSE_PENDING, .from = PATH_NOWHERE};
    else if (reply == PATH_REPLY_FOUND && sleeps_on(&iv, e->sent))
        e->sent = iv.begin;
}

/* Asks the source for the cause of the interval's end, or with `origin` for the creation of the row. */
static struct ending ending_of(
    const struct walker *w, struct path_row row, const struct path_interval *iv, int64_t bound, bool origin)
{
    struct ending e = {.cause = {.kind = PATH_CAUSE_NONE}};
    w->source->cause(w->source->arg, row, iv, bound, origin, &e.cause);
    e.sent = e.cause.ts < iv->end ? e.cause.ts : iv->end;
    if (e.cause.kind == PATH_CAUSE_NETWORK)
        find_written(w, &e, bound);
    if (e.cause.kind == PATH_CAUSE_PENDING)
        e.cause.reason = PATH_PENDING;
    return e;
}

/* Moves to the origin of the signal that reached `to` at the end of `iv`; its travel time is covered by the network, or
 * by that state of the receiver. */
static void follow(struct walker *w, struct path_row to, const struct path_interval *iv, const struct ending *e)
{
    struct path_build *b = &w->build;
    const struct path_cause *c = &e->cause;
    bool network = c->kind == PATH_CAUSE_NETWORK;
    int64_t ts = e->sent;
    path_build_link(b,
        network                          ? PATH_LINK_NETWORK
            : c->kind == PATH_CAUSE_FORK ? PATH_LINK_FORK
                                         : PATH_LINK_WAKEUP,
        c->from, ts, to, iv->end, c->ts > iv->end, iv->assumed);
    path_build_set_cover(b, to, iv);
    if (network) {
        b->cover.state = GRAPH_NETWORK;
        b->cover.detail = c->label;
        b->cover.sender = c->from;
    }
    struct walk_position was = w->at;
    walk_back_to(w, ts);
    w->at.row = c->from;
    w->at.reached = network ? PATH_REACHED_BY_MESSAGE : PATH_REACHED_BY_SIGNAL;
    if (ts >= was.t) {
        w->at.stalled = was.stalled + 1;
        w->at.checked = was.checked;
        w->at.circle = was.circle;
    }
    path_walk_arrive(w, was.t, c->from, ts);
}

/* Keeps the wait in the path: unexplained, for the reason in `c`, or (gap = false) as an answer in itself. */
static void keep_wait(struct walker *w, const struct path_interval *iv, bool gap, const struct path_cause *c)
{
    if (gap && walk_looks(w)) {
        path_walk_stop_looking(w, c);
        return;
    }
    path_build_set_cover(&w->build, w->at.row, iv);
    w->build.cover.gap = gap;
    w->build.cover.reason = c ? c->reason : PATH_NO_WAKER;
    w->build.cover.peer = c ? c->label : NULL;
    walk_back_to(w, iv->begin);
}

/* Keeps the wait of a row woken while it still ran: it waited for nobody, only until the wake took effect. A link names
 * the waker, and the row's own past continues. */
static void keep_wait_of_woken(struct walker *w, const struct path_interval *iv, const struct path_cause *c)
{
    path_build_link(&w->build, PATH_LINK_WAKEUP, c->from, c->ts, w->at.row, iv->end, false, false);
    keep_wait(w, iv, false, NULL);
    w->build.cover.detail = "woken before it slept";
}

static void explain(struct walker *w, const struct path_interval *iv)
{
    if (path_walk_is_waiting(w, iv->id)) {
        keep_wait(w, iv, true, NULL);
        return;
    }
    struct walk_frame f = path_walk_frame_of(w, iv);
    struct ending e = ending_of(w, w->at.row, iv, path_walk_wanted(w, &f), false);
    struct path_cause c = e.cause;
    if (c.kind == PATH_CAUSE_PENDING)
        path_walk_note_pending(w, false);
    if (!leads_on(&c) || (c.kind != PATH_CAUSE_NETWORK && path_row_equal(c.from, w->at.row))) {
        keep_wait(w, iv, c.kind != PATH_CAUSE_TERMINAL && c.kind != PATH_CAUSE_WAKEUP, &c);
    } else if (c.kind == PATH_CAUSE_WAKEUP && c.ts <= iv->begin) {
        keep_wait_of_woken(w, iv, &c);
    } else {
        if (c.is_reply && c.asked <= e.sent)
            path_walk_frame_asked(w, &f, c.asked);
        path_walk_enter(w, f);
        follow(w, w->at.row, iv, &e);
    }
}

/* Links the message that ended a stretch of polling with its sender. Returns the gap if the sender's node is away: the
 * stretch then lacks a link. */
static struct path_cause link_polled(struct walker *w, const struct path_interval *iv)
{
    struct ending e = ending_of(w, w->at.row, iv, w->at.t, false);
    if (e.cause.kind == PATH_CAUSE_PENDING)
        path_walk_note_pending(w, false);
    if (e.cause.kind == PATH_CAUSE_NETWORK)
        path_build_link(&w->build, PATH_LINK_NETWORK, e.cause.from, e.sent, w->at.row, iv->end, false, false);
    return e.cause;
}

/* Copies a state that is no wait into the path. */
static void copy(struct walker *w, const struct path_interval *iv)
{
    struct path_build *b = &w->build;
    struct path_row row = w->at.row;
    struct walk_doubt doubt = w->at.doubt;
    struct path_cause polled = {.kind = PATH_CAUSE_TERMINAL};
    if (iv->polling && iv->end == w->at.t)
        polled = link_polled(w, iv);
    path_build_set_cover(b, row, iv);
    if (polled.kind == PATH_CAUSE_NONE && polled.reason == PATH_OFFLINE_NODE) {
        b->cover.doubt = true;
        b->cover.reason = PATH_OFFLINE_NODE;
        b->cover.peer = polled.label;
    }
    if (iv->state == GRAPH_UNKNOWN) { /* the row was just met, or events were lost: only that is worth reporting */
        struct path_cause c = ending_of(w, row, iv, w->bound, false).cause;
        if (c.kind == PATH_CAUSE_PENDING)
            path_walk_note_pending(w, false);
        b->cover.gap = c.kind == PATH_CAUSE_PENDING || (c.kind == PATH_CAUSE_NONE && c.reason != PATH_NO_WAKER);
        b->cover.reason = c.reason;
        b->cover.peer = c.label;
    }
    if (doubt.peer && !b->cover.gap) {
        b->cover.doubt = true;
        b->cover.reason = PATH_OFFLINE_NODE;
        b->cover.peer = doubt.peer;
    }
    walk_back_to(w, iv->begin);
    w->at.from_id = iv->id;
    if (doubt.peer && doubt.floor < iv->begin)
        w->at.doubt = doubt;
}

/* Handles a path that reaches a row in the middle of a wait in which it polled: the row was active there. */
static void copy_awake(struct walker *w, const struct path_interval *iv)
{
    struct path_interval awake = *iv;
    awake.state = GRAPH_RUNNING;
    awake.assumed = false;
    copy(w, &awake);
}

/* Covers the rest as unknown: nothing is known of the row before the walk's position. */
static void keep_unknown(struct walker *w, const struct path_cause *c)
{
    struct path_interval nothing = {.begin = WALK_NEVER, .end = w->at.t, .state = GRAPH_UNKNOWN, .cpu = -1};
    if (c->kind == PATH_CAUSE_PENDING)
        path_walk_note_pending(w, true);
    keep_wait(w, &nothing, true, c);
}

/* Returns whether rows seem to have created each other at the same time, without an order of causes. */
static bool in_circle(struct walker *w)
{
    struct walk_position *at = &w->at;
    if (at->stalled && path_row_equal(at->row, at->circle))
        return true;
    if (at->stalled >= 2 * at->checked) {
        at->checked = at->stalled + 1;
        at->circle = at->row;
    }
    return false;
}

/* Handles the begin of a row: it has no state before the walk's position. */
static void dead_end(struct walker *w)
{
    int64_t t = w->at.t;
    struct path_interval head = {.begin = t, .end = t, .state = GRAPH_UNKNOWN, .cpu = -1, .id = w->at.from_id};
    struct ending e = {.cause = {.kind = PATH_CAUSE_NONE}};
    if (!in_circle(w))
        e = ending_of(w, w->at.row, &head, w->bound, true);
    if (leads_on(&e.cause) && !path_row_equal(e.cause.from, w->at.row))
        follow(w, w->at.row, &head, &e);
    else
        keep_unknown(w, &e.cause);
}

static void step(struct walker *w)
{
    struct path_interval iv;
    int64_t t = w->at.t;
    enum path_reply reply = w->source->interval(w->source->arg, w->at.row, t, w->bound, &iv);
    if (walk_looks(w))
        vec_push(&w->trail, t);
    else
        w->trail.n = w->changes.n = 0;
    if (reply == PATH_REPLY_PENDING)
        keep_unknown(w, &(struct path_cause){.kind = PATH_CAUSE_PENDING, .reason = PATH_PENDING});
    else if (reply == PATH_REPLY_NONE || iv.begin >= t || iv.end < t)
        dead_end(w);
    else if (iv.end > t && iv.polling && is_wait(iv.state) &&
        w->at.reached != PATH_REACHED_BY_NOTHING) /* the row was active there: no wait */
        copy_awake(w, &iv);
    else if (w->at.reached == PATH_REACHED_BY_MESSAGE && sleeps_on(&iv, t)) /* message of the question; the walk knows
                                                                             * those of signals that it follows */
        walk_back_to(w, iv.begin);
    else if (!is_wait(iv.state))
        copy(w, &iv);
    else if (iv.end > t && w->at.reached != PATH_REACHED_BY_NOTHING)
        keep_wait(w, &iv, true, NULL);
    else
        explain(w, &iv);
}

void path_walk_start(struct walker *w, const struct walk_position *at, int64_t bound)
{
    w->at = *at;
    w->first_piece = w->build.pieces.n;
    w->first_arrow = w->build.arrows.n;
    path_build_start(&w->build);
    path_walk_reset_frames(w, at->row, bound);
}

/* Returns whether the cover, down to `low`, makes the look in vain. The cover is further back than the wait. */
static bool is_in_vain(const struct walker *w, int64_t low)
{
    return walk_looks(w) && w->build.cover.gap && low < w->build.covered_from;
}

int path_walk_run(struct walker *w, uint64_t *steps, struct err *e)
{
    for (;;) {
        int64_t low = walk_later(w->at.t, w->bound);
        if (is_in_vain(w, low) || path_walk_looks_too_far(w)) {
            const struct path_cover *c = &w->build.cover;
            struct path_cause why = {.reason = c->reason, .label = c->peer};
            path_walk_stop_looking(w, is_in_vain(w, low) ? &why : NULL);
            continue;
        }
        if (walk_looks(w))
            w->build.apart = w->build.pieces.n;
        path_build_cover(&w->build, low);
        path_walk_check(w);
        if (w->at.t <= w->bound) {
            if (!path_walk_leave(w))
                return 1;
        } else if (w->build.pieces.n > MAX_PIECES) {
            return err_set(e, ERR_LIMIT, "the path has more than %d segments: choose a shorter interval", MAX_PIECES);
        } else if (*steps == 0) {
            return 0;
        } else {
            --*steps;
            step(w);
        }
    }
}

bool path_walk_extent(struct walker *w, const struct walk_pending *p, int64_t bound, int64_t *begin)
{
    struct path_interval iv;
    uint64_t pending = w->pending;
    *begin = bound;
    if (p->whole || w->source->interval(w->source->arg, p->at.row, p->at.t, bound, &iv) != PATH_REPLY_FOUND)
        return true;
    *begin = walk_later(bound, w->no_early_return ? iv.begin : path_walk_stretch(w, p->at.row, iv.begin));
    return pending == w->pending || *begin == bound;
}

void path_walk_fini(struct walker *w)
{
    path_build_fini(&w->build);
    vec_free(&w->frames);
    vec_free(&w->lookers);
    vec_free(&w->lows);
    vec_free(&w->trail);
    vec_free(&w->changes);
    vec_free(&w->known);
    vec_free(&w->asked);
    map_fini(&w->homes);
    map_fini(&w->known_at);
}
