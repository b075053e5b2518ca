/* SPDX-License-Identifier: MIT */
/* Query of a path, answered in steps: a first walk, then for each pending piece a walk of its own, whose result
 * replaces the piece. */
#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>

#include "base/time.h"
#include "graph/graph.h"
#include "path/walk.h"

struct view_list { /* newest first */
    struct path_view *v;
    size_t n, cap;
};

static void add_view(struct view_list *views, struct path_view v)
{
    vec_push(views, v);
}

enum state { NOT_BEGUN, FIRST_WALK, ROUND, IDLE };

struct path_query {
    struct walker walker;
    struct path_row row;
    struct path_options options;
    enum state state;
    int64_t begin, end;             /* bounds, once begun: clipped to the row's life */
    struct view_list views;         /* known parts; after the first walk they cover the question */
    VEC(struct walk_pending) round; /* pieces to walk again, newest first; the first `done` are walked */
    size_t done;
    bool in_piece; /* piece number `done` is being walked */
    struct view_list fresh;
    double seconds;
};

struct path_query *path_query_new(
    const struct path_source *source, struct path_row row, const struct path_options *options)
{
    struct path_query *q = mem_zalloc(sizeof *q);
    q->walker.source = source;
    q->walker.no_early_return = options->no_early_return;
    q->walker.request_since = WALK_NEVER;
    q->row = row;
    q->options = *options;
    q->begin = q->end = options->end;
    return q;
}

void path_query_free(struct path_query *q)
{
    if (!q)
        return;
    path_walk_fini(&q->walker);
    vec_free(&q->views);
    vec_free(&q->round);
    vec_free(&q->fresh);
    free(q);
}

/* View of what the walk has found so far of the time down to `begin`. */
static struct path_view view_of(const struct walker *w, int64_t begin, int64_t end)
{
    return (struct path_view){{w->first_piece, w->build.pieces.n}, {w->first_arrow, w->build.arrows.n}, begin, end};
}

/* ---- walks ---- */

static enum path_reply clip_to_life(struct path_query *q, struct err *e, int *code)
{
    const struct path_source *s = q->walker.source;
    const struct path_options *o = &q->options;
    int64_t begin = o->begin, end = o->end;
    *code = 0;
    if (o->begin > o->end) {
        *code = err_set(e, ERR_ARG, "the interval ends before it begins");
        return PATH_REPLY_NONE;
    }
    enum path_reply reply = o->reached == PATH_REACHED_BY_NOTHING ? s->life(s->arg, q->row, &begin, &end)
                                                                  : PATH_REPLY_FOUND;
    if (reply == PATH_REPLY_PENDING)
        return reply;
    if (reply == PATH_REPLY_NONE)
        *code = err_set(e, ERR_NOTFOUND, "there is no such thread");
    else if (begin > o->end || end < o->begin)
        *code = err_set(e, ERR_NOTFOUND,
            "the thread does not live in the interval: it was seen from %" PRId64 " to %" PRId64 " ns", begin, end);
    q->begin = walk_later(begin, o->begin);
    q->end = end < o->end ? end : o->end;
    return reply;
}

static void begin_first_walk(struct path_query *q)
{
    struct walk_position at = {
        .row = q->row, .t = q->end, .from_id = PATH_ID_NONE, .reached = q->options.reached, .circle = PATH_NOWHERE};
    if (q->options.request)
        q->walker.request_since = q->begin;
    path_walk_start(&q->walker, &at, q->begin);
    if (at.reached == PATH_REACHED_BY_MESSAGE)
        q->walker.build.cover = (struct path_cover){.row = q->options.receiver,
            .sender = q->row,
            .detail = q->options.label,
            .cpu = -1,
            .state = GRAPH_NETWORK};
    q->state = FIRST_WALK;
}

/* Begins to walk all pending pieces again. */
static void begin_round(struct path_query *q)
{
    struct walker *w = &q->walker;
    q->round.n = q->fresh.n = q->done = 0;
    for (size_t i = 0; i < w->asked.n; i++) {
        const struct walk_pending *p = &w->asked.v[i];
        if (!i || p->at.t != p[-1].at.t || p->whole != p[-1].whole || !path_row_equal(p->at.row, p[-1].at.row))
            vec_push(&q->round, *p);
    }
    w->asked.n = 0;
    q->state = ROUND;
}

/* Begins the next piece. If it overlaps the one before, that one counts. Returns false if nothing is left of it. */
static bool begin_piece(struct path_query *q)
{
    struct walker *w = &q->walker;
    const struct walk_pending *p = &q->round.v[q->done];
    int64_t above = q->fresh.n ? q->fresh.v[q->fresh.n - 1].begin : q->end, end = p->end < above ? p->end : above,
            begin;
    if (!path_walk_extent(w, p, q->begin, &begin))
        vec_push(&w->asked, *p);
    else if (above <= begin)
        return false;
    path_walk_start(w, &p->at, begin);
    add_view(&q->fresh, view_of(w, begin < end ? begin : end, end));
    return true;
}

static void end_piece(struct path_query *q)
{
    struct path_view *v = &q->fresh.v[q->fresh.n - 1];
    *v = view_of(&q->walker, v->begin, v->end);
    q->in_piece = false;
    q->done++;
}

/* Replaces the old pieces by the new ones. */
static void end_round(struct path_query *q)
{
    struct view_list old = q->views;
    size_t at = 0;
    int64_t top = q->end;
    q->views = (struct view_list){0};
    for (size_t i = 0; i <= q->fresh.n; i++) {
        int64_t low = i < q->fresh.n ? q->fresh.v[i].end : q->begin;
        for (; at < old.n && old.v[at].end > low; at++) {
            struct path_view v = old.v[at];
            v.begin = walk_later(v.begin, low);
            v.end = v.end < top ? v.end : top;
            if (v.begin < v.end)
                add_view(&q->views, v);
            if (old.v[at].begin < low)
                break; /* the rest of it is further back */
        }
        if (i == q->fresh.n)
            break;
        if (q->fresh.v[i].begin < q->fresh.v[i].end)
            add_view(&q->views, q->fresh.v[i]);
        top = q->fresh.v[i].begin;
    }
    vec_free(&old);
    q->fresh.n = 0;
    q->state = IDLE;
}

/* Returns 1 if the round is over, else as path_walk_run. */
static int run_round(struct path_query *q, uint64_t *steps, struct err *e)
{
    while (q->done < q->round.n) {
        if (!q->in_piece && !begin_piece(q)) {
            q->done++;
            continue;
        }
        q->in_piece = true;
        int rc = path_walk_run(&q->walker, steps, e);
        if (rc != 1)
            return rc;
        end_piece(q);
    }
    end_round(q);
    return 1;
}

static int run_first(struct path_query *q, uint64_t *steps, struct err *e)
{
    int rc = path_walk_run(&q->walker, steps, e);
    if (rc == 1 && q->begin < q->end)
        add_view(&q->views, view_of(&q->walker, q->begin, q->end));
    if (rc == 1)
        q->state = IDLE;
    return rc;
}

static int run(struct path_query *q, uint64_t steps, struct err *e)
{
    if (q->state == NOT_BEGUN) {
        int code;
        if (clip_to_life(q, e, &code) == PATH_REPLY_PENDING)
            return PATH_AWAITS;
        if (code)
            return code;
        begin_first_walk(q);
    } else if (q->state == IDLE) {
        begin_round(q);
    }
    int rc = q->state == ROUND ? run_round(q, &steps, e) : run_first(q, &steps, e);
    return rc < 0 ? rc : rc == 0 ? PATH_MORE : q->walker.asked.n ? PATH_AWAITS : PATH_DONE;
}

int path_query_run(struct path_query *q, uint64_t max_steps, struct err *e)
{
    int64_t started = time_monotonic_ns();
    int rc = run(q, max_steps, e);
    q->seconds += (double)(time_monotonic_ns() - started) / 1e9;
    return rc;
}

/* ---- the answer ---- */

/* View of a walk under way: only what it has covered for good, not what a look tries. */
static struct path_view under_way(const struct path_query *q)
{
    const struct walker *w = &q->walker;
    int64_t low = walk_looks(w) ? w->frames.v[w->lookers.v[1]].slept : w->build.covered_from;
    low = walk_later(walk_later(low, w->build.covered_from), q->begin);
    return view_of(w, low < q->end ? low : q->end, q->end);
}

struct path *path_query_answer(const struct path_query *q)
{
    struct path_view first = under_way(q);
    bool begun = q->state == FIRST_WALK && first.begin < first.end;
    struct path *p = path_build_answer(&q->walker.build, q->walker.source, begun ? &first : q->views.v,
        begun ? 1 : q->views.n, q->row, q->state == NOT_BEGUN ? q->end : q->begin, q->end);
    p->partial |= q->state != IDLE || q->walker.asked.n;
    p->cost.seconds = q->seconds;
    assert(path_covers(p, NULL));
    return p;
}

int path_walk(const struct path_source *source, struct path_row row, const struct path_options *options,
    struct path **out, struct err *e)
{
    struct path_query *q = path_query_new(source, row, options);
    int rc = path_query_run(q, UINT64_MAX, e);
    *out = rc < 0 ? NULL : path_query_answer(q);
    path_query_free(q);
    return rc < 0 ? rc : 0;
}
