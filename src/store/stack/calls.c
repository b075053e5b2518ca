/* SPDX-License-Identifier: MIT */
/* Calls of functions by thread and depth, and what lost events do to them. */
#include "stack/builder.h"

enum { SEARCHED_FRAMES = 1024 }; /* a call is looked for among so many innermost ones */

static void put(struct stack_runner *r, size_t level, int64_t begin, int64_t end, uint32_t function, enum stack_how how)
{
    while (r->series.n <= level)
        vec_push(&r->series, (struct stack_series){0});
    r->active = true;
    struct stack_series *s = &r->series.v[level];
    uint64_t duration = (uint64_t)end - (uint64_t)begin;
    if (duration >= STACK_LONG)
        vec_push(&s->longs, ((struct stack_disk_long){s->calls.n, (int64_t)duration}));
    vec_push(&s->calls,
        ((struct stack_disk_call){
            begin, duration >= STACK_LONG ? STACK_LONG : (uint32_t)duration, function << STACK_HOW_BITS | how}));
}

/* The innermost call ends. */
static void close_frame(struct stack_builder *b, struct stack_runner *r, int64_t end, enum stack_how how)
{
    const struct stack_frame *f = &r->frames.v[--r->frames.n];
    b->totals.calls++;
    if (r->frames.n >= STACK_MOST_LEVELS) {
        b->totals.too_deep++;
        return;
    }
    put(r, r->frames.n, f->begin, end, f->function, how);
    if (f->below) /* frame open when the chunk began, so it is the first to end in it */
        r->series.v[r->frames.n].below = f->below;
    if (r->frames.n < r->unknown.n)
        r->unknown.v[r->frames.n] = end;
}

/* ---- UNKNOWN calls after lost events ---- */

/* Marks the level, which has no call of its own, UNKNOWN up to ts. */
static void put_unknown(struct stack_runner *r, size_t level, int64_t ts)
{
    if (r->unknown.v[level] < ts)
        put(r, level, r->unknown.v[level], ts, 0, STACK_UNKNOWN);
}

/* The calls that were open when events were lost are over, but for the outermost `left`. */
static void end_ghosts(struct stack_runner *r, size_t left, int64_t ts)
{
    for (size_t i = r->frames.n > left ? r->frames.n : left; i < r->unknown.n; i++)
        put_unknown(r, i, ts);
    r->ghosts.n = left;
    r->unknown.n = r->unknown.n < left ? r->unknown.n : left;
}

/* An exit that belongs to no open call proves that one from before the loss went on until now, and those around it
 * still do. */
static void exit_ghost(struct stack_runner *r, int64_t ts, uint64_t address, bool has_address)
{
    for (size_t i = r->ghosts.n; i-- > 0;)
        if (!has_address || !r->ghosts.v[i].has_address || r->ghosts.v[i].address == address) {
            end_ghosts(r, i, ts);
            return;
        }
}

/* A function that was open when events were lost is entered anew, from no call that is known: it returned meanwhile. */
static void enter_ghost(struct stack_runner *r, int64_t ts, const struct stack_frame *f)
{
    for (size_t i = r->ghosts.n; i-- > 0 && f->has_address;)
        if (r->ghosts.v[i].has_address && r->ghosts.v[i].address == f->address) {
            end_ghosts(r, i, ts);
            return;
        }
}

/* ---- entries and exits ---- */

void stack_enter(struct stack_builder *b, uint32_t thread, int64_t ts, const struct stack_frame *f)
{
    struct stack_runner *r = &b->runners.v[thread];
    r->last = ts;
    if (!r->frames.n)
        enter_ghost(r, ts, f);
    if (r->frames.n < r->unknown.n)
        put_unknown(r, r->frames.n, ts);
    vec_push(&r->frames, *f);
    if (!r->listed) {
        r->listed = true;
        vec_push(&b->open, thread);
    }
}

/* Returns the number of frames that the exit ends. Frames above its own were left without notice (longjmp, exceptions).
 * 0: it belongs to none. Recursive calls are distinguished by return address, where the trace has it. */
static size_t frames_left(const struct stack_runner *r, uint64_t address, uint64_t site, bool has_address)
{
    size_t n = r->frames.n, first = 0;
    if (!has_address)
        return n > 0;
    for (size_t k = 1; k <= n && k <= SEARCHED_FRAMES; k++) {
        const struct stack_frame *f = &r->frames.v[n - k];
        if (f->has_address && f->address != address)
            continue;
        if (!site || !f->site || f->site == site)
            return k;
        first = first ? first : k;
    }
    return first;
}

void stack_exit(struct stack_builder *b, uint32_t thread, int64_t ts, uint64_t address, uint64_t site, bool has_address)
{
    struct stack_runner *r = &b->runners.v[thread];
    size_t left = frames_left(r, address, site, has_address);
    r->last = ts;
    b->totals.strange_exits += left == 0;
    if (!left)
        exit_ghost(r, ts, address, has_address);
    b->totals.missing_exits += left ? left - 1 : 0;
    for (; left > 1; left--)
        close_frame(b, r, ts, STACK_CUT);
    if (left)
        close_frame(b, r, ts, STACK_WHOLE);
}

/* ---- lost events ---- */

/* Returns the time since when entries and exits of the thread may be missing, if those of its stream may be since
 * `from`: other streams may have losses at the same time. */
static int64_t missing_since(const struct stack_builder *b, const struct stack_runner *r, int64_t from)
{
    for (size_t i = 0; i < b->windows.n; i++) {
        const struct stack_window *w = &b->windows.v[i];
        if (!w->heard && w->last < from && (r->tid >= 0 || r->stream == w->stream))
            from = w->last;
    }
    return from > r->last ? from : r->last;
}

static void lose_track(struct stack_builder *b, struct stack_runner *r, int64_t since)
{
    size_t levels = r->frames.n < STACK_MOST_LEVELS ? r->frames.n : STACK_MOST_LEVELS;
    for (size_t i = 0; i < r->frames.n && r->ghosts.n < STACK_MOST_LEVELS; i++)
        vec_push(&r->ghosts, ((struct stack_ghost){r->frames.v[i].address, r->frames.v[i].has_address}));
    while (r->frames.n)
        close_frame(b, r, since, STACK_CUT);
    while (r->unknown.n < levels)
        vec_push(&r->unknown, since);
}

/* Entries and exits of any thread may be missing since `from`: open calls may have ended and others begun. */
static void reset(struct stack_builder *b, uint32_t stream, int64_t from)
{
    size_t n_left = 0;
    for (size_t i = 0; i < b->open.n; i++) {
        struct stack_runner *r = &b->runners.v[b->open.v[i]];
        if (r->tid < 0 && r->stream != stream) { /* the events of another stream alone make this one */
            b->open.v[n_left++] = b->open.v[i];
            continue;
        }
        r->listed = false;
        if (r->frames.n)
            lose_track(b, r, missing_since(b, r, from));
    }
    b->open.n = n_left;
}

void stack_watch(struct stack_builder *b, uint32_t stream, int64_t ts)
{
    size_t n_left = 0;
    for (size_t i = 0; i < b->windows.n; i++) {
        struct stack_window *w = &b->windows.v[i];
        if (ts > w->end) {
            reset(b, w->stream, w->last);
            continue;
        }
        if (w->stream == stream) {
            if (!w->heard)
                reset(b, stream, w->last);
            w->heard = true;
            w->last = ts;
        }
        b->windows.v[n_left++] = *w;
    }
    b->windows.n = n_left;
}

/* A stream's window ends when the next one of it begins. */
static void end_window_of(struct stack_builder *b, uint32_t stream)
{
    for (size_t i = 0; i < b->windows.n; i++)
        if (b->windows.v[i].stream == stream) {
            reset(b, stream, b->windows.v[i].last);
            b->windows.v[i] = b->windows.v[--b->windows.n];
            return;
        }
}

void stack_lose(struct stack_builder *b, const struct ctf_event *ev)
{
    struct ctf_loss loss;
    memcpy(&loss, ev->data, sizeof loss);
    int64_t begin = loss.begin_known && loss.begin < ev->ts ? loss.begin : ev->ts;
    int64_t end = !loss.end_known ? INT64_MAX : loss.end > begin ? loss.end : begin;
    if (ev->cls->item == CTF_LOST_EVENTS)
        b->totals.lost_events += loss.count;
    vec_push(&b->losses, ((struct stack_disk_loss){begin, end, loss.count, ev->cpu, 0}));
    uint32_t stream = stack_stream_of(b, ev);
    if (!b->streams.v[stream].has_calls)
        return;
    end_window_of(b, stream);
    reset(b, stream, begin);
    vec_push(&b->windows, ((struct stack_window){.stream = stream, .last = begin, .end = end}));
}

void stack_finish(struct stack_builder *b)
{
    while (b->windows.n)
        end_window_of(b, b->windows.v[0].stream);
    for (size_t i = 0; i < b->runners.n; i++) {
        struct stack_runner *r = &b->runners.v[i];
        end_ghosts(r, 0, b->last);
        while (r->frames.n)
            close_frame(b, r, b->last, STACK_CUT);
    }
}

void stack_end_calls(struct stack_builder *b, uint32_t owner, int64_t ts)
{
    for (size_t i = 0; i < b->runners.n; i++) {
        struct stack_runner *r = &b->runners.v[i];
        if (r->owner != owner)
            continue;
        end_ghosts(r, 0, ts);
        while (r->frames.n)
            close_frame(b, r, ts, STACK_CUT);
    }
}

void stack_builder_gap(struct stack_builder *b, int64_t from, int64_t to)
{
    while (b->windows.n)
        end_window_of(b, b->windows.v[0].stream);
    b->now = to > b->now ? to : b->now;
    for (size_t i = 0; i < b->open.n; i++) {
        struct stack_runner *r = &b->runners.v[b->open.v[i]];
        r->listed = false;
        if (r->frames.n)
            lose_track(b, r, from > r->last ? from : r->last);
    }
    b->open.n = 0;
}
