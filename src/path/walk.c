/* The bounded backward walk with early return.
 *
 * The walk keeps a place (a row and a time) and goes back from it: states that are no waits are copied; a wait that
 * something ended opens a *frame* and the walk goes on where the signal came from, down to the frame's *bound*: the
 * start of the wait, or the bound of the frame around it when that is later. There the frame is left and the walk
 * resumes on the waiting row before its wait. Frame 0 is the question itself.
 *
 * Early return: before a frame is left the walk may *look* further back. If the chain comes back by a signal to the
 * waiting row, at a time in the stretch of running that ended in the wait, it resumes at that signal; else what was
 * looked at is dropped. Looking is paid from a credit that grows with the path, so that the whole stays proportional to
 * it. */
#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>

#include "base/time.h"
#include "graph/graph.h"
#include "path/build.h"

enum {
    MAX_DEPTH = 512, /* waits inside waits; deeper ones stay as they are */
    MAX_SEGMENTS = 1 << 24,
    MAX_STALLED = 64, /* signals followed in a row without a step back in time: only false matches go in such circles */
    LOOK_FIRST = 4096,
    LOOK_PER_STEP = 8
};

struct frame {
    struct path_row row; /* who waits */
    uint64_t id;         /* in which interval */
    int64_t slept;       /* since when */
    int64_t bound;
    size_t alternatives;   /* those above belong to this frame */
    bool looking;          /* bound is now the furthest early return */
    struct path_mark mark; /* where looking began, and what was covered then */
    int64_t covered;
};

/* A state that was copied and may have been reached by a signal: tried when the row's past leads nowhere. */
struct alternative {
    struct path_row row;
    struct path_interval interval;
    struct path_mark mark;
    int64_t covered;
    uint64_t steps;
    unsigned stalled;
};

struct walk {
    const struct path_source *source;
    struct path_build build;
    struct frame frames[MAX_DEPTH];
    size_t depth, looking; /* frames in use; how many of them look */
    VEC(struct alternative) alternatives;
    struct path_row row; /* the place */
    int64_t t;
    uint64_t from_id; /* interval of the row that the walk came down from; UINT64_MAX when it came by a signal */
    bool by_message;  /* it was reached by a message, whose link is the last one */
    bool first; /* nothing was taken yet: the wait that crosses the end of the question is explained by what came later
                 */
    int64_t covered;             /* all from here to the end of the question is covered */
    struct path_cover cover;     /* what covers [t, covered] */
    struct path_interval untold; /* the preempted state that is the cover, before it is told more of; else no state */
    uint64_t steps, looked;      /* that are part of the answer; that were only tried */
    unsigned stalled;
    bool no_early_return, clamped;
};

static bool is_wait(int state)
{
    return state == GRAPH_BLOCKED || state == GRAPH_NETWORK;
}

static bool is_asleep(int state)
{
    return is_wait(state) || state == GRAPH_TIMER || state == GRAPH_BLOCK_DEVICE || state == GRAPH_USER_INPUT;
}

/* Wants the CPU or has it. */
static bool is_runnable(int state)
{
    return state == GRAPH_RUNNING || state == GRAPH_PREEMPTED || state == GRAPH_INTERRUPTED || state == GRAPH_STOLEN ||
        state == GRAPH_HYPERVISOR;
}

static struct frame *top(struct walk *w)
{
    return &w->frames[w->depth - 1];
}
static int64_t later(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static void spend(struct walk *w)
{
    if (w->looking)
        w->looked++;
    else
        w->steps++;
}

static bool may_look(const struct walk *w)
{
    return w->looked < LOOK_FIRST + LOOK_PER_STEP * w->steps;
}

static void cover_down_to(struct walk *w, int64_t bound)
{
    int64_t to = later(w->t, bound);
    if (to >= w->covered)
        return;
    if (w->untold.state == GRAPH_PREEMPTED) {
        w->source->describe_preempted(w->source->arg, w->cover.row, &w->untold);
        w->cover.cpu = w->untold.cpu;
        if (w->cover.state == GRAPH_PREEMPTED) /* not a message that reached the row then */
            w->cover.detail = w->untold.detail;
        w->untold.state = 0;
    }
    path_build_cover(&w->build, &w->cover, to, w->covered);
    w->covered = to;
}

static void set_cover(struct walk *w, struct path_row row, const struct path_interval *iv)
{
    w->cover = (struct path_cover){
        .row = row, .sender = PATH_NOWHERE, .detail = iv->detail, .cpu = iv->cpu, .state = iv->state};
    w->untold = (struct path_interval){0};
    if (iv->state == GRAPH_PREEMPTED && w->source->describe_preempted)
        w->untold = *iv;
}

/* ---- frames ---- */

/* Leaves frame j and everything in it; the walk goes on on the row that waited, at `t`. */
static void leave(struct walk *w, size_t j, int64_t t)
{
    for (size_t i = j; i < w->depth; i++)
        w->looking -= w->frames[i].looking;
    w->alternatives.n = w->frames[j].alternatives;
    w->depth = j;
    w->row = w->frames[j].row;
    w->t = t;
    w->by_message = false;
    w->stalled = 0;
}

static void stop_looking(struct walk *w, size_t j)
{
    path_build_rewind(&w->build, &w->frames[j].mark);
    w->covered = w->frames[j].covered;
    leave(w, j, w->frames[j].slept);
}

static void stop_looking_innermost(struct walk *w)
{
    size_t j = w->depth - 1;
    while (!w->frames[j].looking)
        j--;
    stop_looking(w, j);
}

/* Start of the stretch in which the row wanted the CPU or had it without a break until `t`, but not before `floor`. */
static int64_t stretch_begin(struct walk *w, struct path_row row, int64_t t, int64_t floor)
{
    struct path_interval iv;
    while (t > floor && may_look(w) && w->source->interval(w->source->arg, row, t, &iv) && is_runnable(iv.state) &&
        iv.begin < t) {
        t = iv.begin;
        w->looked++;
    }
    return later(t, floor);
}

/* Does the row, whose wait of frame f began at f->slept, run without a break from t until then? An empty stretch is
 * none. */
static bool in_stretch(struct walk *w, const struct frame *f, int64_t t)
{
    if (t > f->slept)
        return false;
    if (t < f->slept)
        return (f->looking && t >= f->bound) || stretch_begin(w, f->row, f->slept, t) == t;
    return stretch_begin(w, f->row, t, t - 1) < t;
}

/* Did the chain come back to a row that waits for it, into the stretch of running before its wait? Then everything
 * since is part of the path, even where the signal is older than the bounds of the frames around. */
static bool returned(struct walk *w)
{
    for (size_t j = w->depth; !w->no_early_return && j-- > 1;) {
        const struct frame *f = &w->frames[j];
        int64_t t = w->t;
        if (!path_row_equal(f->row, w->row) || !in_stretch(w, f, t))
            continue;
        cover_down_to(w, later(t, w->frames[j - 1].bound));
        leave(w, j, t);
        return true;
    }
    return false;
}

static bool look_back(struct walk *w, size_t j)
{
    struct frame *f = &w->frames[j];
    if (w->no_early_return || !may_look(w))
        return false;
    int64_t floor = stretch_begin(w, f->row, f->slept, w->frames[j - 1].bound), bound = floor;
    for (size_t i = j + 1; i < w->depth; i++)
        bound = later(bound, w->frames[i].slept);
    if (floor >= f->slept || (w->t < floor && bound == floor) ||
        (w->cover.gap && w->t < w->covered && bound < w->covered))
        return false;
    f->looking = true;
    w->looking++;
    f->mark = path_build_mark(&w->build);
    f->covered = w->covered;
    f->bound = floor;
    for (size_t i = j + 1; i < w->depth; i++)
        w->frames[i].bound = later(w->frames[i - 1].bound, w->frames[i].slept);
    returned(w);
    return true;
}

/* The bound of the innermost frame is reached. False when that is the bound of the question. */
static bool reach(struct walk *w)
{
    size_t j = w->depth - 1;
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

static bool on_stack(const struct walk *w, uint64_t id)
{
    for (size_t i = w->depth; i-- > 1;)
        if (w->frames[i].id == id && path_row_equal(w->frames[i].row, w->row))
            return true;
    return false;
}

/* ---- steps ---- */

/* Goes to where the signal came from that reached `to` at `to_ts`; the time it took is covered by the network, or by
 * the state `iv` of the receiver. */
static void follow(struct walk *w, struct path_row to, const struct path_interval *iv, const struct path_cause *c)
{
    int64_t ts = c->ts;
    if (ts > iv->end) {
        ts = iv->end;
        w->clamped = true;
    }
    bool network = c->kind == PATH_CAUSE_NETWORK;
    uint8_t kind = network ? PATH_LINK_NETWORK : c->kind == PATH_CAUSE_FORK ? PATH_LINK_FORK : PATH_LINK_WAKEUP;
    vec_push(&w->build.links,
        ((struct path_link){.from = c->from, .to = to, .from_ts = ts, .to_ts = iv->end, .kind = kind}));
    set_cover(w, to, iv);
    if (network) {
        w->cover.state = GRAPH_NETWORK;
        w->cover.detail = c->label;
        w->cover.sender = c->from;
    }
    w->stalled = ts < w->covered ? 0 : w->stalled + 1;
    w->row = c->from;
    w->t = ts;
    w->from_id = UINT64_MAX;
    w->by_message = network;
    returned(w);
}

static bool leads_on(const struct path_cause *c)
{
    return c->kind == PATH_CAUSE_WAKEUP || c->kind == PATH_CAUSE_FORK || c->kind == PATH_CAUSE_NETWORK;
}

/* The wait stays as it is. */
static void keep(struct walk *w, const struct path_interval *iv, bool gap, const struct path_cause *c)
{
    if (gap && w->looking) {
        stop_looking_innermost(w);
        return;
    }
    set_cover(w, w->row, iv);
    w->cover.gap = gap;
    w->cover.reason = c ? c->reason : PATH_NO_WAKER;
    w->cover.peer = c ? c->label : NULL;
    w->t = iv->begin;
    w->by_message = false;
    w->stalled = 0;
}

/* Woken while it still ran: it waited for nobody, only until the wake took effect. Who woke it is told, and the row's
 * own past goes on. */
static void keep_late(struct walk *w, const struct path_interval *iv, const struct path_cause *c)
{
    vec_push(&w->build.links,
        ((struct path_link){
            .from = c->from, .to = w->row, .from_ts = c->ts, .to_ts = iv->end, .kind = PATH_LINK_WAKEUP}));
    keep(w, iv, false, NULL);
    w->cover.detail = "woken before it slept";
}

static void explain(struct walk *w, const struct path_interval *iv)
{
    struct path_cause c = {.kind = PATH_CAUSE_NONE};
    if (w->depth == MAX_DEPTH || on_stack(w, iv->id)) {
        keep(w, iv, true, NULL);
        return;
    }
    w->source->cause(w->source->arg, w->row, iv, false, &c);
    if (c.kind == PATH_CAUSE_PENDING)
        c.reason = PATH_PENDING;
    if (!leads_on(&c) || (c.kind != PATH_CAUSE_NETWORK && path_row_equal(c.from, w->row))) {
        keep(w, iv, c.kind != PATH_CAUSE_TERMINAL && c.kind != PATH_CAUSE_WAKEUP, &c);
        return;
    }
    if (c.kind == PATH_CAUSE_WAKEUP && c.ts <= iv->begin) {
        keep_late(w, iv, &c);
        return;
    }
    w->frames[w->depth] = (struct frame){.row = w->row,
        .id = iv->id,
        .slept = iv->begin,
        .bound = later(top(w)->bound, iv->begin),
        .alternatives = w->alternatives.n};
    w->depth++;
    follow(w, w->row, iv, &c);
}

/* The message that led here was sent while the sender slept: its bytes had been written before and waited in the queue
 * of the socket. */
static void sent_asleep(struct walk *w, const struct path_interval *iv)
{
    struct path_link *link = &w->build.links.v[w->build.links.n - 1];
    link->from_ts = iv->begin;
    w->t = iv->begin;
    w->by_message = false;
    w->stalled = 0;
    returned(w);
}

/* A state is not known because the row was just met, or because events were lost: only that is worth telling. */
static void tell_why_unknown(struct walk *w, const struct path_interval *iv)
{
    struct path_cause c = {.kind = PATH_CAUSE_NONE};
    w->source->cause(w->source->arg, w->row, iv, false, &c);
    w->cover.gap = c.kind == PATH_CAUSE_NONE && c.reason != PATH_NO_WAKER;
    w->cover.reason = c.reason;
    w->cover.peer = c.label;
}

static void copy(struct walk *w, const struct path_interval *iv)
{
    if (w->depth > 1 && !w->looking && iv->end == w->t)
        vec_push(&w->alternatives,
            ((struct alternative){w->row, *iv, path_build_mark(&w->build), w->covered, w->steps, w->stalled}));
    if (iv->polling && iv->end <= w->covered) {
        struct path_cause c = {.kind = PATH_CAUSE_NONE};
        w->source->cause(w->source->arg, w->row, iv, false, &c);
        if (c.kind == PATH_CAUSE_NETWORK) {
            int64_t ts = c.ts < iv->end ? c.ts : iv->end;
            vec_push(&w->build.links,
                ((struct path_link){
                    .from = c.from, .to = w->row, .from_ts = ts, .to_ts = iv->end, .kind = PATH_LINK_NETWORK}));
        }
    }
    set_cover(w, w->row, iv);
    if (iv->state == GRAPH_UNKNOWN)
        tell_why_unknown(w, iv);
    w->t = iv->begin;
    w->from_id = iv->id;
    w->by_message = false;
    w->stalled = 0;
}

/* The last thing that reached one of the rows passed in this frame, nearest to the dead end first. */
static bool try_alternatives(struct walk *w)
{
    while (w->alternatives.n > top(w)->alternatives && may_look(w)) {
        struct alternative a = w->alternatives.v[--w->alternatives.n];
        struct path_cause c = {.kind = PATH_CAUSE_NONE};
        w->looked++;
        if (a.stalled > MAX_STALLED)
            continue;
        w->source->cause(w->source->arg, a.row, &a.interval, false, &c);
        if (!leads_on(&c) || path_row_equal(c.from, a.row))
            continue;
        path_build_rewind(&w->build, &a.mark);
        w->covered = a.covered;
        w->looked += w->steps - a.steps;
        w->steps = a.steps;
        w->stalled = a.stalled;
        follow(w, a.row, &a.interval, &c);
        return true;
    }
    return false;
}

/* The row has no state before t: it began there. */
static void dead_end(struct walk *w)
{
    struct path_interval head = {.begin = w->t, .end = w->t, .state = GRAPH_UNKNOWN, .cpu = -1, .id = w->from_id};
    struct path_cause c = {.kind = PATH_CAUSE_NONE};
    if (w->stalled <= MAX_STALLED)
        w->source->cause(w->source->arg, w->row, &head, true, &c);
    if (leads_on(&c) && !path_row_equal(c.from, w->row)) {
        follow(w, w->row, &head, &c);
        return;
    }
    if (w->looking) {
        stop_looking_innermost(w);
        return;
    }
    if (try_alternatives(w))
        return;
    head.begin = top(w)->bound;
    keep(w, &head, true, &c);
}

static void step(struct walk *w)
{
    struct path_interval iv;
    spend(w);
    if (w->looking && !may_look(w)) {
        stop_looking_innermost(w);
        return;
    }
    if (!w->source->interval(w->source->arg, w->row, w->t, &iv) || iv.begin >= w->t || iv.end < w->t)
        dead_end(w);
    else if (iv.end > w->t && w->by_message && is_asleep(iv.state))
        sent_asleep(w, &iv);
    else if (!is_wait(iv.state))
        copy(w, &iv);
    else if (iv.end > w->t && !w->first)
        keep(w, &iv, true, NULL);
    else
        explain(w, &iv);
    w->first = false;
}

static int run(struct walk *w, struct err *e)
{
    for (;;) {
        cover_down_to(w, top(w)->bound);
        if (w->t <= top(w)->bound) {
            if (!reach(w))
                return 0;
            continue;
        }
        if (w->build.segments.n > MAX_SEGMENTS)
            return err_set(e, ERR_LIMIT, "the path has more than %d segments: choose a shorter interval", MAX_SEGMENTS);
        step(w);
    }
}

/* Links that lie wholly behind the end of the question belong to the wait that crosses it, not to the answer. */
static void drop_late_links(struct path_build *b, int64_t end)
{
    size_t n = 0;
    for (size_t i = 0; i < b->links.n; i++)
        if (b->links.v[i].to_ts <= end || b->links.v[i].from_ts < end)
            b->links.v[n++] = b->links.v[i];
    b->links.n = n;
}

int path_walk(const struct path_source *source, struct path_row row, const struct path_options *options,
    struct path **out, struct err *e)
{
    int64_t begin, end, started = time_monotonic_ns();
    *out = NULL;
    if (options->begin > options->end)
        return err_set(e, ERR_ARG, "the interval ends before it begins");
    if (!source->life(source->arg, row, &begin, &end))
        return err_set(e, ERR_NOTFOUND, "there is no such thread");
    if (begin > options->end || end < options->begin)
        return err_set(e, ERR_NOTFOUND,
            "the thread does not live in the interval: it was seen from %" PRId64 " to %" PRId64 " ns", begin, end);
    begin = later(begin, options->begin);
    end = end < options->end ? end : options->end;

    struct walk *w = mem_zalloc(sizeof *w);
    w->source = source;
    path_build_init(&w->build);
    w->frames[0] = (struct frame){.row = row, .slept = begin, .bound = begin};
    w->depth = 1;
    w->row = row;
    w->t = w->covered = end;
    w->first = true;
    w->no_early_return = options->no_early_return;
    int code = run(w, e);
    if (code == 0) {
        drop_late_links(&w->build, end);
        *out = path_build_finish(&w->build, row, begin, end);
        (*out)->clamped = w->clamped;
        (*out)->cost.seconds = (double)(time_monotonic_ns() - started) / 1e9;
        assert(path_covers(*out, NULL));
    }
    path_build_fini(&w->build);
    vec_free(&w->alternatives);
    free(w);
    return code;
}
