/* SPDX-License-Identifier: MIT */
/* Private to the room: state of a backward walk, its frames (walk_frames.c), and a query. */
#ifndef WEFT_PATH_WALK_H
#define WEFT_PATH_WALK_H

#include "base/map.h"
#include "path/build.h"

enum {
    WALK_MOST_STEPS = 4096,  /* steps of a look further back */
    WALK_MOST_STRETCH = 4096 /* intervals of a stretch of running, searched for its beginning */
};
#define WALK_NEVER INT64_MIN

/* Doubt: a look was in vain because a node is away. In the stretch of running before the wait, down to its beginning,
 * the path may lead elsewhere. peer: see struct path_cause; NULL: no doubt. */
struct walk_doubt { const char *peer; int64_t floor; };

/* Position of the walk. */
struct walk_position {
    struct path_row row;
    int64_t t;
    uint64_t from_id;        /* last copied interval; PATH_ID_NONE if a signal was followed since */
    uint8_t reached;         /* enum path_reached */
    unsigned stalled;        /* signals followed since the walk last moved back in time */
    unsigned checked;        /* `stalled` when `circle` was noted: the row comes by again in a circle */
    struct path_row circle;
    struct walk_doubt doubt; /* doubt about the row's activity right before */
};

/* Knowledge of how far back the explanation of a wait goes. */
enum walk_end {
    WALK_TENTATIVE,          /* to its beginning, where the walk will find out whether further */
    WALK_LOOKING,            /* past its beginning, in search of an arrival */
    WALK_SETTLED             /* `low` is its end */
};

/* Latest followed signal of a row from the stretch before its wait, and its arrow. */
struct walk_arrival { int64_t t; struct path_arrow by; }; /* t: WALK_NEVER if there was none */

/* Frame: a wait whose cause the walk follows; frame 0 is the question itself, settled. */
struct walk_frame {
    struct path_row row;     /* waiting row */
    uint64_t id;             /* interval of the wait */
    int64_t slept;           /* begin of the wait */
    int64_t floor;           /* path_walk_stretch at `slept`, once `floor_known` */
    int64_t low;             /* end of the walk within the frame as far as known: see enum walk_end */
    struct walk_arrival arrival; /* arrival from [floor, slept) */
    uint8_t end;             /* enum walk_end */
    bool floor_known;
    size_t around;           /* next frame outward in which the same row waits, 0: none */
    size_t trail;            /* looking: steps from this number on were further back */
    uint64_t pending;        /* walker.pending on entry: if it has grown, the frame's end cannot be known */
    uint64_t doubts;         /* walker.doubts on entry: if it has grown, the frame's end is in doubt */
    const char *doubt;       /* settled: doubt about its end; or NULL */
    struct walk_position at; /* position where the walk entered it */
};

/* Change by a look, besides what it wrote: undone if the look was in vain. */
struct walk_change {
    int64_t t;               /* position of the walk then */
    size_t frame;            /* frame whose arrival was changed */
    struct walk_arrival arrival; /* previous value */
};

/* End of a wait's explanation that was found by a look: a pure function of the wait. */
struct walk_known {
    struct path_row row;
    uint64_t id;
    int64_t low;
    struct path_arrow by;
    const char *doubt;       /* doubt, or NULL */
    uint64_t next;
};

/* Pending part, to be walked again: the path from a position down to where the pending answer has no influence. */
struct walk_pending {
    struct walk_position at;
    int64_t end;             /* the part above is known: it was covered by then */
    bool whole;              /* down to the bound of the question; otherwise to the floor of the wait at the position */
};

/* Invariants between two steps (path_walk_check asserts the ones that are cheap to check):
 * - All of [build.covered_from, the walk's start] is covered, and build.cover describes [at.t,
 *   build.covered_from) if that is not empty. Nothing is left to cover above the bound: covered_from <= max(at.t,
 *   bound) once the loop has written.
 * - lookers[] are the frames that look, outermost first, all but the first, which is frame 0. The bound is the largest
 *   `low` of the innermost of them and of the frames inside it: only those can end next, the outermost first. Frames
 *   around a looking one wait until it has ended, also if the walk is below their own ends by then: its result
 *   holds for them, cut to their ends.
 * - A frame is left at the time at which its row continues. */
struct walker {
    const struct path_source *source;
    bool no_early_return;
    int64_t request_since;   /* begin of the request that the question is; else WALK_NEVER */
    struct path_build build;
    size_t first_piece, first_arrow; /* first ones of this walk in the build */
    struct walk_position at;
    int64_t bound;
    VEC(struct walk_frame) frames;
    VEC(size_t) lookers;
    VEC(int64_t) lows;       /* tree of maxima over frames[].low: a leaf per frame at the back, the largest in [1] */
    struct map homes;        /* row -> the innermost frame in which it waits */
    VEC(int64_t) trail;      /* positions of steps while some frame looks */
    VEC(struct walk_change) changes;
    struct map known_at;     /* hash of row and id -> 1 + number of walk_known */
    VEC(struct walk_known) known;
    uint64_t pending;        /* number of pending answers met, in this walk */
    uint64_t doubts;         /* number of looks in vain because a node is away */
    const char *away;        /* node of the last of these */
    VEC(struct walk_pending) asked;
};

static inline bool walk_looks(const struct walker *w) { return w->lookers.n > 1; }
static inline int64_t walk_later(int64_t a, int64_t b) { return a > b ? a : b; }

/* Continues the walk at `t` of its present row, without a signal. */
static inline void walk_back_to(struct walker *w, int64_t t)
{
    w->at = (struct walk_position){.row = w->at.row,
        .t = t,
        .from_id = PATH_ID_NONE,
        .reached = PATH_REACHED_BY_SIGNAL,
        .circle = PATH_NOWHERE};
}

/* ---- walk.c ---- */

/* Begins a walk from a position down to `bound`. Keeps what is known of waits. */
void path_walk_start(struct walker *, const struct walk_position *, int64_t bound);
/* Returns 1 at its end, 0 if the steps are used up first, or an error. */
int path_walk_run(struct walker *, uint64_t *steps, struct err *e);
/* Finds how far back the pending answer may have influence, at most down to the bound of the question. False: this is
 * pending itself, so it is at least so far. */
bool path_walk_extent(struct walker *, const struct walk_pending *, int64_t bound, int64_t *begin);
void path_walk_fini(struct walker *);

/* ---- walk_frames.c: frames and early return ---- */

void path_walk_check(const struct walker *);
/* Forgets all frames; frame 0 ends at `bound`. */
void path_walk_reset_frames(struct walker *, struct path_row, int64_t bound);
/* Begin of the time in which the row can have sent what a wait that begins at `t` is for: the begin of the stretch in
 * which it had or wanted the CPU without a break until then, as far as searched; in a request that of the request. */
int64_t path_walk_stretch(struct walker *, struct path_row row, int64_t t);
/* Frame of a wait of the walk's row, not entered yet. */
struct walk_frame path_walk_frame_of(struct walker *, const struct path_interval *wait);
/* Sets that a reply ended the wait, to what the row sent at `asked`: in the path of a request the wait is explained
 * back to that. */
void path_walk_frame_asked(const struct walker *, struct walk_frame *, int64_t asked);
/* Time back to which the explanation of the wait will be needed, as far as known. */
int64_t path_walk_wanted(const struct walker *, const struct walk_frame *);
/* Enters the frame. The caller continues with the cause of the wait's end. */
void path_walk_enter(struct walker *, struct walk_frame);
/* Returns whether a frame waits in this interval of the row. */
bool path_walk_is_waiting(const struct walker *, uint64_t id);
/* Notes that the walk, at position t, follows a signal that the row sent at `sent`: if that is in the stretch before a
 * wait of the row in some frame, the chain has returned to it. */
void path_walk_arrive(struct walker *, int64_t t, struct path_row row, int64_t sent);
/* Notes that something is pending at the walk's position, to be walked again; `whole`: on the row of the question
 * nothing further back can be known. */
void path_walk_note_pending(struct walker *, bool whole);
/* Ends the innermost look in vain, for that reason or NULL: its output is dropped, and the walk continues before its
 * wait. */
void path_walk_stop_looking(struct walker *, const struct path_cause *);
/* Returns whether the innermost look has taken too many steps. */
bool path_walk_looks_too_far(const struct walker *);
/* Handles reaching the bound: looks further back, or leaves a frame. False if it is the bound of the question. */
bool path_walk_leave(struct walker *);

#endif
