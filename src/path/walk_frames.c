/* Frames of the backward walk, and early return: before a frame is left the walk may look further back. If the chain
 * comes back by a signal to the waiting row, at a time in the stretch of running that ended in the wait, it resumes at
 * that signal; else what was looked at is dropped. Looking is paid from a credit that grows with the path, so that the
 * whole stays proportional to it. */
#include <assert.h>

#include "graph/graph.h"
#include "path/walk.h"

enum { TRY_FIRST = 4096, TRY_PER_STEP = 8 };

void walk_check(const struct walker *w)
{
    const struct walk_frame *f = &w->frames[w->depth - 1], *outer = w->depth > 1 ? f - 1 : f;
    const struct path_build *b = &w->build;
    assert(w->depth >= 1 && w->depth <= WALK_MAX_DEPTH && w->looking < w->depth);
    assert(f->bound >= outer->bound && w->alternatives.n >= f->alternatives);
    assert(f->looking ? f->bound < f->slept && w->looking : f->bound == walk_later(f->slept, outer->bound));
    assert(b->covered_from >= w->frames[0].bound && b->covered_from <= walk_later(w->at.t, f->bound));
    assert(!b->segments.n || b->segments.v[b->segments.n - 1].begin == b->covered_from);
    assert(!b->undescribed.state || b->cover.state == GRAPH_PREEMPTED || b->cover.state == GRAPH_NETWORK);
    assert(!w->at.by_message ||
        (b->links.n && path_row_equal(b->links.v[b->links.n - 1].from, w->at.row) &&
            b->links.v[b->links.n - 1].from_ts == w->at.t));
}

/* Wants the CPU or has it. */
static bool is_runnable(int state)
{
    return state == GRAPH_RUNNING || state == GRAPH_PREEMPTED || state == GRAPH_INTERRUPTED || state == GRAPH_STOLEN ||
        state == GRAPH_HYPERVISOR;
}

bool walk_may_try(const struct walker *w)
{
    return w->effort.tried < TRY_FIRST + TRY_PER_STEP * w->effort.steps;
}

void walk_enter(struct walker *w, const struct path_interval *iv)
{
    w->frames[w->depth] = (struct walk_frame){.row = w->at.row,
        .id = iv->id,
        .slept = iv->begin,
        .bound = walk_later(walk_top(w)->bound, iv->begin),
        .alternatives = w->alternatives.n};
    w->depth++;
}

bool walk_is_waiting(const struct walker *w, uint64_t id)
{
    for (size_t i = w->depth; i-- > 1;)
        if (w->frames[i].id == id && path_row_equal(w->frames[i].row, w->at.row))
            return true;
    return false;
}

/* Leaves frame j and everything in it; the walk goes on on the row that waited, at `t`. */
static void leave(struct walker *w, size_t j, int64_t t)
{
    for (size_t i = j; i < w->depth; i++)
        w->looking -= w->frames[i].looking;
    w->alternatives.n = w->frames[j].alternatives;
    w->depth = j;
    w->at.row = w->frames[j].row;
    walk_back_to(w, t);
}

static void stop_looking(struct walker *w, size_t j)
{
    path_build_rewind(&w->build, &w->frames[j].mark);
    leave(w, j, w->frames[j].slept);
}

void walk_stop_looking(struct walker *w)
{
    size_t j = w->depth - 1;
    while (!w->frames[j].looking)
        j--;
    stop_looking(w, j);
}

/* Start of the stretch in which the row wanted the CPU or had it without a break until `t`, but not before `floor`. */
static int64_t stretch_begin(struct walker *w, struct path_row row, int64_t t, int64_t floor)
{
    struct path_interval iv;
    while (t > floor && walk_may_try(w) &&
        w->source->interval(w->source->arg, row, t, floor, &iv) == PATH_REPLY_FOUND && is_runnable(iv.state) &&
        iv.begin < t) {
        t = iv.begin;
        w->effort.tried++;
    }
    return walk_later(t, floor);
}

/* Does the row, whose wait of frame f began at f->slept, run without a break from t until then? An empty stretch is
 * none. */
static bool in_stretch(struct walker *w, const struct walk_frame *f, int64_t t)
{
    if (t > f->slept)
        return false;
    if (t < f->slept)
        return (f->looking && t >= f->bound) || stretch_begin(w, f->row, f->slept, t) == t;
    return stretch_begin(w, f->row, t, t - 1) < t;
}

bool walk_return(struct walker *w)
{
    for (size_t j = w->depth; !w->no_early_return && j-- > 1;) {
        const struct walk_frame *f = &w->frames[j];
        int64_t t = w->at.t;
        if (!path_row_equal(f->row, w->at.row) || !in_stretch(w, f, t))
            continue;
        path_build_cover(&w->build, walk_later(t, w->frames[j - 1].bound));
        leave(w, j, t);
        return true;
    }
    return false;
}

/* Frame j, whose bound is reached, looks further back for an early return. False when that is not worth it: nothing can
 * come back, or the way back leads over what nobody explains. */
static bool look_back(struct walker *w, size_t j)
{
    struct walk_frame *f = &w->frames[j];
    const struct path_build *b = &w->build;
    if (w->no_early_return || !walk_may_try(w))
        return false;
    int64_t floor = stretch_begin(w, f->row, f->slept, w->frames[j - 1].bound), bound = floor;
    for (size_t i = j + 1; i < w->depth; i++)
        bound = walk_later(bound, w->frames[i].slept);
    if (floor >= f->slept || (w->at.t < floor && bound == floor) ||
        (b->cover.gap && w->at.t < b->covered_from && bound < b->covered_from))
        return false;
    f->looking = true;
    w->looking++;
    f->mark = path_build_mark(b);
    f->bound = floor;
    for (size_t i = j + 1; i < w->depth; i++)
        w->frames[i].bound = walk_later(w->frames[i - 1].bound, w->frames[i].slept);
    walk_return(w);
    return true;
}

bool walk_leave(struct walker *w)
{
    size_t j = w->depth - 1; /* the outermost frame with this bound */
    while (j > 0 && w->frames[j - 1].bound == w->frames[j].bound)
        j--;
    for (size_t i = j; w->looking && i < w->depth; i++)
        if (w->frames[i].looking) {
            stop_looking(w, i);
            return true;
        }
    if (j == 0)
        return false;
    if (!look_back(w, j))
        leave(w, j, w->frames[j].slept);
    return true;
}
