/* The bounded backward walk with early return.
 *
 * The walk keeps a position (a row and a time) and goes back from it: states that are no waits are copied; a wait that
 * something ended opens a *frame* and the walk goes on where the signal came from, down to the frame's *bound*: the
 * start of the wait, or the bound of the frame around it when that is later. There the frame is left and the walk
 * resumes on the waiting row before its wait (walk_frames.c). Frame 0 is the question itself. struct walker states what
 * holds between two steps. */
#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>

#include "base/time.h"
#include "graph/graph.h"
#include "path/walk.h"

enum {
    MAX_SEGMENTS = 1 << 24,
    MAX_STALLED = 64 /* signals followed in a row without a step back in time: only false matches go in such circles */
};

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

/* Asks the source what ended the interval, or with `origin` what created the row. */
static struct path_cause cause_of(
    const struct walker *w, struct path_row row, const struct path_interval *iv, bool origin)
{
    struct path_cause c = {.kind = PATH_CAUSE_NONE};
    w->source->cause(w->source->arg, row, iv, walk_bound(w), origin, &c);
    return c;
}

/* Goes to where the signal came from that reached `to` at the end of `iv`; the time it took is covered by the network,
 * or by that state of the receiver. */
static void follow(struct walker *w, struct path_row to, const struct path_interval *iv, const struct path_cause *c)
{
    struct path_build *b = &w->build;
    bool network = c->kind == PATH_CAUSE_NETWORK;
    int64_t ts = c->ts < iv->end ? c->ts : iv->end;
    b->clamped |= c->ts > iv->end;
    path_build_link(b,
        network                          ? PATH_LINK_NETWORK
            : c->kind == PATH_CAUSE_FORK ? PATH_LINK_FORK
                                         : PATH_LINK_WAKEUP,
        c->from, ts, to, iv->end, iv->assumed);
    path_build_set_cover(b, to, iv);
    if (network) {
        b->cover.state = GRAPH_NETWORK;
        b->cover.detail = c->label;
        b->cover.sender = c->from;
    }
    w->at = (struct walk_position){.row = c->from,
        .t = ts,
        .from_id = UINT64_MAX,
        .by_message = network,
        .stalled = ts < b->covered_from ? 0 : w->at.stalled + 1};
    walk_return(w);
}

/* The wait stays as it is: unexplained, for the reason that `c` gives, or (gap = false) an answer in itself. */
static void keep_wait(struct walker *w, const struct path_interval *iv, bool gap, const struct path_cause *c)
{
    if (gap && w->looking) {
        walk_stop_looking(w);
        return;
    }
    path_build_set_cover(&w->build, w->at.row, iv);
    w->build.cover.gap = gap;
    w->build.cover.reason = c ? c->reason : PATH_NO_WAKER;
    w->build.cover.peer = c ? c->label : NULL;
    walk_back_to(w, iv->begin);
}

/* Woken while it still ran: it waited for nobody, only until the wake took effect. A link names who woke it, and the
 * row's own past goes on. */
static void keep_wait_of_woken(struct walker *w, const struct path_interval *iv, const struct path_cause *c)
{
    path_build_link(&w->build, PATH_LINK_WAKEUP, c->from, c->ts, w->at.row, iv->end, false);
    keep_wait(w, iv, false, NULL);
    w->build.cover.detail = "woken before it slept";
}

static void explain(struct walker *w, const struct path_interval *iv)
{
    if (w->depth == WALK_MAX_DEPTH || walk_is_waiting(w, iv->id)) {
        keep_wait(w, iv, true, NULL);
        return;
    }
    struct path_cause c = cause_of(w, w->at.row, iv, false);
    if (c.kind == PATH_CAUSE_PENDING)
        c.reason = PATH_PENDING;
    if (!leads_on(&c) || (c.kind != PATH_CAUSE_NETWORK && path_row_equal(c.from, w->at.row))) {
        keep_wait(w, iv, c.kind != PATH_CAUSE_TERMINAL && c.kind != PATH_CAUSE_WAKEUP, &c);
    } else if (c.kind == PATH_CAUSE_WAKEUP && c.ts <= iv->begin) {
        keep_wait_of_woken(w, iv, &c);
    } else {
        walk_enter(w, iv);
        follow(w, w->at.row, iv, &c);
    }
}

/* The message that led here was sent while the sender slept: its bytes had been written before and waited in the queue
 * of the socket. */
static void sent_asleep(struct walker *w, const struct path_interval *iv)
{
    w->build.links.v[w->build.links.n - 1].from_ts = iv->begin;
    walk_back_to(w, iv->begin);
    walk_return(w);
}

/* A state that is no wait becomes part of the path as it is. */
static void copy(struct walker *w, const struct path_interval *iv)
{
    struct path_build *b = &w->build;
    struct path_row row = w->at.row;
    if (w->depth > 1 && !w->looking && iv->end == w->at.t)
        vec_push(&w->alternatives,
            ((struct walk_alternative){row, *iv, path_build_mark(b), w->effort.steps, w->at.stalled}));
    if (iv->polling && iv->end <= b->covered_from) {
        struct path_cause c = cause_of(w, row, iv, false);
        if (c.kind == PATH_CAUSE_NETWORK)
            path_build_link(b, PATH_LINK_NETWORK, c.from, c.ts < iv->end ? c.ts : iv->end, row, iv->end, false);
    }
    path_build_set_cover(b, row, iv);
    if (iv->state ==
        GRAPH_UNKNOWN) { /* because the row was just met, or events were lost: only that is worth telling */
        struct path_cause c = cause_of(w, row, iv, false);
        b->cover.gap = c.kind == PATH_CAUSE_NONE && c.reason != PATH_NO_WAKER;
        b->cover.reason = c.reason;
        b->cover.peer = c.label;
    }
    walk_back_to(w, iv->begin);
    w->at.from_id = iv->id;
}

/* The path comes to a row in the midst of a wait that is only assumed: the row did something there. */
static void copy_awake(struct walker *w, const struct path_interval *iv)
{
    struct path_interval awake = *iv;
    awake.state = GRAPH_RUNNING;
    awake.assumed = false;
    copy(w, &awake);
}

/* The last thing that reached one of the rows passed in this frame, nearest to the dead end first. */
static bool try_alternatives(struct walker *w)
{
    while (w->alternatives.n > walk_top(w)->alternatives && walk_may_try(w)) {
        struct walk_alternative a = w->alternatives.v[--w->alternatives.n];
        w->effort.tried++;
        if (a.stalled > MAX_STALLED)
            continue;
        struct path_cause c = cause_of(w, a.row, &a.interval, false);
        if (!leads_on(&c) || path_row_equal(c.from, a.row))
            continue;
        path_build_rewind(&w->build, &a.mark);
        w->effort.tried += w->effort.steps - a.steps;
        w->effort.steps = a.steps;
        w->at.stalled = a.stalled;
        follow(w, a.row, &a.interval, &c);
        return true;
    }
    return false;
}

/* The row has no state before the walk's position: it began there. */
static void dead_end(struct walker *w)
{
    int64_t t = w->at.t;
    struct path_interval head = {.begin = t, .end = t, .state = GRAPH_UNKNOWN, .cpu = -1, .id = w->at.from_id};
    struct path_cause c = {.kind = PATH_CAUSE_NONE};
    if (w->at.stalled <= MAX_STALLED)
        c = cause_of(w, w->at.row, &head, true);
    if (leads_on(&c) && !path_row_equal(c.from, w->at.row)) {
        follow(w, w->at.row, &head, &c);
    } else if (w->looking) {
        walk_stop_looking(w);
    } else if (!try_alternatives(w)) {
        head.begin = walk_top(w)->bound;
        keep_wait(w, &head, true, &c);
    }
}

static void step(struct walker *w)
{
    struct path_interval iv;
    int64_t t = w->at.t;
    ++*(w->looking ? &w->effort.tried : &w->effort.steps);
    /* The wait that crosses the end of the question is explained by what came later. */
    bool first = w->effort.tried + w->effort.steps == 1;
    if (w->looking && !walk_may_try(w))
        walk_stop_looking(w);
    else if (w->source->interval(w->source->arg, w->at.row, t, walk_bound(w), &iv) != PATH_REPLY_FOUND ||
        iv.begin >= t || iv.end < t)
        dead_end(w);
    else if (iv.end > t && iv.assumed && !first) /* it did something there: no wait */
        copy_awake(w, &iv);
    else if (iv.end > t && w->at.by_message && is_asleep(iv.state))
        sent_asleep(w, &iv);
    else if (!is_wait(iv.state))
        copy(w, &iv);
    else if (iv.end > t && !first)
        keep_wait(w, &iv, true, NULL);
    else
        explain(w, &iv);
}

static int run(struct walker *w, struct err *e)
{
    for (;;) {
        int64_t bound = walk_top(w)->bound;
        path_build_cover(&w->build, walk_later(w->at.t, bound));
        walk_check(w);
        if (w->at.t <= bound) {
            if (!walk_leave(w))
                return 0;
        } else if (w->build.segments.n > MAX_SEGMENTS) {
            return err_set(e, ERR_LIMIT, "the path has more than %d segments: choose a shorter interval", MAX_SEGMENTS);
        } else {
            step(w);
        }
    }
}

int path_walk(const struct path_source *source, struct path_row row, const struct path_options *options,
    struct path **out, struct err *e)
{
    int64_t begin, end, started = time_monotonic_ns();
    *out = NULL;
    if (options->begin > options->end)
        return err_set(e, ERR_ARG, "the interval ends before it begins");
    if (source->life(source->arg, row, &begin, &end) != PATH_REPLY_FOUND)
        return err_set(e, ERR_NOTFOUND, "there is no such thread");
    if (begin > options->end || end < options->begin)
        return err_set(e, ERR_NOTFOUND,
            "the thread does not live in the interval: it was seen from %" PRId64 " to %" PRId64 " ns", begin, end);
    begin = walk_later(begin, options->begin);
    end = end < options->end ? end : options->end;

    struct walker *w = mem_zalloc(sizeof *w);
    w->source = source;
    w->no_early_return = options->no_early_return;
    path_build_init(&w->build, source, end);
    w->frames[0] = (struct walk_frame){.row = row, .slept = begin, .bound = begin};
    w->depth = 1;
    w->at = (struct walk_position){.row = row, .t = end};
    int code = run(w, e);
    if (code == 0) {
        *out = path_build_finish(&w->build, row, begin, end);
        (*out)->cost.seconds = (double)(time_monotonic_ns() - started) / 1e9;
        assert(path_covers(*out, NULL));
    }
    path_build_fini(&w->build);
    vec_free(&w->alternatives);
    free(w);
    return code;
}
