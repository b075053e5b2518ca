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
    if (f->below) /* it was open when the chunk began, so it is the first to end in it */
        r->series.v[r->frames.n].below = f->below;
}

/* The thread is heard of: what it does is known again. */
static void hear(struct stack_runner *r, int64_t ts)
{
    for (size_t i = 0; i < r->unknown_levels && r->unknown_since < ts; i++)
        put(r, i, r->unknown_since, ts, 0, STACK_UNKNOWN);
    r->unknown_levels = 0;
    r->last = ts;
}

void stack_enter(struct stack_builder *b, uint32_t thread, int64_t ts, const struct stack_frame *f)
{
    struct stack_runner *r = &b->runners.v[thread];
    hear(r, ts);
    vec_push(&r->frames, *f);
    if (!r->listed) {
        r->listed = true;
        vec_push(&b->open, thread);
    }
}

/* How many frames the exit ends: those above the one it belongs to were left without notice (longjmp, exceptions). 0:
 * it belongs to none. */
static size_t frames_left(const struct stack_runner *r, uint64_t address, bool has_address)
{
    size_t n = r->frames.n;
    if (!has_address)
        return n > 0;
    for (size_t k = 1; k <= n && k <= SEARCHED_FRAMES; k++)
        if (!r->frames.v[n - k].has_address || r->frames.v[n - k].address == address)
            return k;
    return 0;
}

void stack_exit(struct stack_builder *b, uint32_t thread, int64_t ts, uint64_t address, bool has_address)
{
    struct stack_runner *r = &b->runners.v[thread];
    hear(r, ts);
    size_t left = frames_left(r, address, has_address);
    b->totals.strange_exits += left == 0;
    b->totals.missing_exits += left ? left - 1 : 0;
    for (; left > 1; left--)
        close_frame(b, r, ts, STACK_CUT);
    if (left)
        close_frame(b, r, ts, STACK_WHOLE);
}

/* ---- lost events ---- */

/* Since when entries and exits of the thread may be missing, given that those of `stream` may since `from`: other
 * streams may have losses at the same time. */
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
    r->unknown_since = since;
    r->unknown_levels = (uint32_t)(r->frames.n < STACK_MOST_LEVELS ? r->frames.n : STACK_MOST_LEVELS);
    while (r->frames.n)
        close_frame(b, r, since, STACK_CUT);
}

/* Entries and exits of any thread may be missing since `from`: what was open then may have ended and something else
 * begun. */
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
        int64_t last = r->last;
        hear(r, b->last);
        r->last = last;
        while (r->frames.n)
            close_frame(b, r, b->last, STACK_CUT);
    }
}

void stack_end_calls(struct stack_builder *b, uint32_t owner, int64_t ts)
{
    for (size_t i = 0; i < b->runners.n; i++) {
        struct stack_runner *r = &b->runners.v[i];
        int64_t last = r->last;
        if (r->owner != owner)
            continue;
        hear(r, ts);
        r->last = last;
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
