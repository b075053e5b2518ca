/* Private to the room: the state of a backward walk, and its frames (walk_frames.c). */
#ifndef WEFT_PATH_WALK_H
#define WEFT_PATH_WALK_H

#include "path/build.h"

enum { WALK_MAX_DEPTH = 512 }; /* waits inside waits; deeper ones stay as they are */

/* A wait whose cause the walk follows; frame 0 is the question itself. */
struct walk_frame {
    struct path_row row;     /* who waits */
    uint64_t id;             /* in which interval */
    int64_t slept;           /* since when */
    int64_t bound;           /* how far back the walk goes within the frame */
    size_t alternatives;     /* those from this number on belong to the frame */
    bool looking;            /* for an early return: what is written since `mark` may be dropped */
    struct path_mark mark;
};

/* A state that was copied and may have been reached by a signal: tried when the row's past leads nowhere. */
struct walk_alternative {
    struct path_row row;
    struct path_interval interval;
    struct path_mark mark;   /* as all was before it was copied */
    uint64_t steps;
    unsigned stalled;
};

/* Where the walk is. */
struct walk_position {
    struct path_row row;
    int64_t t;
    uint64_t from_id;        /* the last interval that was copied; UINT64_MAX when a signal was followed since */
    bool by_message;         /* it was reached by a message, whose link is the last one: from this row, at t */
    unsigned stalled;        /* signals followed in a row without covering more */
};

/* Steps that are part of the answer, and steps only tried: for each of the first so many of the second are allowed. */
struct walk_effort { uint64_t steps, tried; };

/* Between two steps (walk_check asserts what can be seen at once):
 * - The question is [frames[0].bound, end]; all of [build.covered_from, end] is covered, and build.cover says what
 *   covers [at.t, build.covered_from) when that is not empty. Nothing is left to cover above the bound of the innermost
 *   frame: covered_from <= max(at.t, bound). at.t > covered_from is a signal that left after what it explains was
 *   covered already: nothing is written until the walk has come down to covered_from.
 * - Bounds never fall from a frame to the one inside it. A frame's bound is where its wait began (`slept`), or the
 *   bound around it when that is later; of a looking frame it is the furthest early return instead, before `slept`. So
 *   when the walk is at the bound of the innermost frame, exactly the frames that share this bound end there.
 * - `looking` counts the looking frames; frame 0 never looks. While one looks, steps are tried ones.
 * - A frame is left for the time at which its row goes on: `slept`, or the signal that came back to it. */
struct walker {
    const struct path_source *source;
    bool no_early_return;
    struct path_build build;
    struct walk_position at;
    struct walk_frame frames[WALK_MAX_DEPTH];
    size_t depth, looking;   /* frames in use, at least one; how many of them look */
    VEC(struct walk_alternative) alternatives;
    struct walk_effort effort;
};

static inline struct walk_frame *walk_top(struct walker *w) { return &w->frames[w->depth - 1]; }
static inline int64_t walk_bound(const struct walker *w) { return w->frames[w->depth - 1].bound; }
static inline int64_t walk_later(int64_t a, int64_t b) { return a > b ? a : b; }

/* The walk goes on at `t` of the row it is on, to which no message led. */
static inline void walk_back_to(struct walker *w, int64_t t)
{
    w->at.t = t;
    w->at.by_message = false;
    w->at.stalled = 0;
}

/* ---- walk_frames.c: frames and early return ---- */

void walk_check(const struct walker *);
/* May more be tried? */
bool walk_may_try(const struct walker *);
/* Enters the wait `iv` of the row that the walk is on. The caller goes on with what ended it. */
void walk_enter(struct walker *, const struct path_interval *iv);
/* Is the row's interval one that a frame waits in? */
bool walk_is_waiting(const struct walker *, uint64_t id);
/* Drops what was written since the innermost looking frame began to look, and goes on before its wait. */
void walk_stop_looking(struct walker *);
/* Did the chain come back to a row that waits for it, into the stretch of running before its wait? Then everything
 * since is part of the path, even where the signal is older than the bounds of the frames around, and the walk goes on
 * there. */
bool walk_return(struct walker *);
/* The bound of the innermost frame is reached: looks further back, or leaves the frames that end there. False when that
 * is the bound of the question. */
bool walk_leave(struct walker *);

#endif
