/* SPDX-License-Identifier: MIT */
/* Private to the room: the state of a backward walk, its frames (walk_frames.c), and what a query is. */
#ifndef WEFT_PATH_WALK_H
#define WEFT_PATH_WALK_H

#include "base/map.h"
#include "path/build.h"

enum {
    WALK_MOST_STEPS = 4096,  /* of a look further back */
    WALK_MOST_STRETCH = 4096 /* intervals of a stretch of running, looked through for its beginning */
};
#define WALK_NEVER INT64_MIN

/* A look was in vain because a node is away: in the stretch of running before the wait, down to its beginning, the path
 * may lead elsewhere. peer: as in struct path_cause; NULL: there is no such doubt. */
struct walk_doubt { const char *peer; int64_t floor; };

/* Where the walk is. */
struct walk_position {
    struct path_row row;
    int64_t t;
    uint64_t from_id;        /* the last interval that was copied; PATH_ID_NONE when a signal was followed since */
    uint8_t reached;         /* enum path_reached */
    unsigned stalled;        /* signals followed since the walk last came further back in time */
    unsigned checked;        /* of them, when `circle` was noted: the row would come by again in a circle */
    struct path_row circle;
    struct walk_doubt doubt; /* about what the row did right before */
};

/* What is known of how far back the explanation of a wait goes. */
enum walk_end {
    WALK_TENTATIVE,          /* to its beginning, where it is to be found out whether further */
    WALK_LOOKING,            /* past its beginning, in search of an arrival */
    WALK_SETTLED             /* `low` is where it ends */
};

/* The latest signal of a row from the stretch before its wait that was followed, and its arrow. */
struct walk_arrival { int64_t t; struct path_arrow by; }; /* t: WALK_NEVER when there was none */

/* A wait whose cause the walk follows; frame 0 is the question itself, settled. */
struct walk_frame {
    struct path_row row;     /* who waits */
    uint64_t id;             /* in which interval */
    int64_t slept;           /* since when */
    int64_t floor;           /* walk_stretch at `slept`, once `floor_known` */
    int64_t low;             /* how far back the walk goes within the frame as far as is known: see enum walk_end */
    struct walk_arrival arrival; /* from [floor, slept) */
    uint8_t end;             /* enum walk_end */
    bool floor_known;
    size_t around;           /* the next frame outward in which the same row waits, 0: none */
    size_t trail;            /* looking: steps from this number on were further back */
    uint64_t pending;        /* walker.pending on entry: when that has grown, the frame's end cannot be known */
    uint64_t doubts;         /* walker.doubts on entry: when that has grown, the frame's end is in doubt */
    const char *doubt;       /* settled: what is known of its end is in doubt; or NULL */
    struct walk_position at; /* where the walk entered it */
};

/* What a look changed that is not just written: taken back when it was in vain. */
struct walk_change {
    int64_t t;               /* the walk's position then */
    size_t frame;            /* whose arrival was changed */
    struct walk_arrival arrival; /* what was */
};

/* The end of a wait's explanation that was found by a look: a pure function of the wait. */
struct walk_known {
    struct path_row row;
    uint64_t id;
    int64_t low;
    struct path_arrow by;
    const char *doubt;       /* or NULL */
    uint64_t next;
};

/* Something pending, to be walked again: the path from a position down to where what was pending has no influence. */
struct walk_pending {
    struct walk_position at;
    int64_t end;             /* what is above is known: it was covered by then */
    bool whole;              /* down to the bound of the question; else to the floor of the wait at the position */
};

/* Between two steps (walk_check asserts what can be seen at once):
 * - All of [build.covered_from, the walk's start] is covered, and build.cover says what covers [at.t,
 *   build.covered_from) when that is not empty. Nothing is left to cover above the bound: covered_from <= max(at.t,
 *   bound) once the loop has written.
 * - lookers[] are the frames that look, outermost first, all but the first, which is frame 0. The bound is the largest
 *   `low` of the innermost of them and of the frames inside it: only those can end next, the outermost first. Frames
 *   around a looking one wait until it has come to an end, also when the walk is below their own ends by then: what it
 *   found holds for them, cut to where they end.
 * - A frame is left for the time at which its row goes on. */
struct walker {
    const struct path_source *source;
    bool no_early_return;
    int64_t request_since;   /* the question is a request that began then; else WALK_NEVER */
    struct path_build build;
    size_t first_piece, first_arrow; /* of the build: this walk's */
    struct walk_position at;
    int64_t bound;
    VEC(struct walk_frame) frames;
    VEC(size_t) lookers;
    VEC(int64_t) lows;       /* a tree of maxima over frames[].low: a leaf per frame at the back, the largest in [1] */
    struct map homes;        /* row -> the innermost frame in which it waits */
    VEC(int64_t) trail;      /* positions of steps while some frame looks */
    VEC(struct walk_change) changes;
    struct map known_at;     /* hash of row and id -> 1 + number of walk_known */
    VEC(struct walk_known) known;
    uint64_t pending;        /* pending answers met, in this walk */
    uint64_t doubts;         /* looks in vain because a node is away, */
    const char *away;        /* which the last time */
    VEC(struct walk_pending) asked;
};

static inline bool walk_looks(const struct walker *w) { return w->lookers.n > 1; }
static inline int64_t walk_later(int64_t a, int64_t b) { return a > b ? a : b; }

/* The walk goes on at `t` of the row it is on, to which no signal led. */
static inline void walk_back_to(struct walker *w, int64_t t)
{
    w->at = (struct walk_position){.row = w->at.row,
        .t = t,
        .from_id = PATH_ID_NONE,
        .reached = PATH_REACHED_BY_SIGNAL,
        .circle = PATH_NOWHERE};
}

/* ---- walk.c ---- */

/* A walk from a position down to `bound` begins. What is known of waits stays. */
void walk_start(struct walker *, const struct walk_position *, int64_t bound);
/* 1 when it is at its end, 0 when the steps are used up first, or an error. */
int walk_run(struct walker *, uint64_t *steps, struct err *e);
/* How far back what was pending may have influence, but not further than the bound of the question. False when that is
 * pending itself: at least so far. */
bool walk_extent(struct walker *, const struct walk_pending *, int64_t bound, int64_t *begin);
void walk_fini(struct walker *);

/* ---- walk_frames.c: frames and early return ---- */

void walk_check(const struct walker *);
/* Forgets all frames; frame 0 ends at `bound`. */
void walk_reset_frames(struct walker *, struct path_row, int64_t bound);
/* Since when the row can have sent what a wait that begins at `t` is for: the beginning of the stretch in which it
 * wanted the CPU or had it without a break until then, as far as it was looked through; in a request that of the
 * request. */
int64_t walk_stretch(struct walker *, struct path_row row, int64_t t);
/* The frame of a wait of the row that the walk is on, not yet entered. */
struct walk_frame walk_frame_of(struct walker *, const struct path_interval *wait);
/* A reply ended it, to what the row sent at `asked`: in the path of a request it is explained back to that. */
void walk_frame_asked(const struct walker *, struct walk_frame *, int64_t asked);
/* How far back what explains the wait will be wanted, as far as is known. */
int64_t walk_wanted(const struct walker *, const struct walk_frame *);
/* Enters it. The caller goes on with what ended the wait. */
void walk_enter(struct walker *, struct walk_frame);
/* Is the row's interval one that a frame waits in? */
bool walk_is_waiting(const struct walker *, uint64_t id);
/* The walk, at position t, follows a signal that the row sent at `sent`: where that is in the stretch before a wait of
 * the row in some frame, the chain has come back to it. */
void walk_arrive(struct walker *, int64_t t, struct path_row row, int64_t sent);
/* Something is pending at the walk's position: notes what is to be walked again, `whole` when on the row of the
 * question nothing further back can be known. */
void walk_note_pending(struct walker *, bool whole);
/* The innermost look is in vain, for that reason or NULL: what it wrote is dropped, and the walk goes on before its
 * wait. */
void walk_stop_looking(struct walker *, const struct path_cause *);
/* Has the innermost look taken too many steps? */
bool walk_looks_too_far(const struct walker *);
/* The bound is reached: looks further back, or leaves a frame. False when that is the bound of the question. */
bool walk_leave(struct walker *);

#endif
