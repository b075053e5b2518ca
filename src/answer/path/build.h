/* SPDX-License-Identifier: MIT */
/* Private to the room: output of the backward walk, and its conversion to a struct path. */
#ifndef WEFT_PATH_BUILD_H
#define WEFT_PATH_BUILD_H

#include "base/mem.h"
#include "path/path.h"

#define PATH_NOWHERE ((struct path_row){-1, INT32_MIN})
static inline bool path_row_equal(struct path_row a, struct path_row b) { return a.host == b.host && a.row == b.row; }

/* Cover of a piece of time. Strings are the source's. */
struct path_cover {
    struct path_row row, sender;
    const char *detail, *peer;
    uint64_t id;             /* id of the interval; for describe_preempted */
    int32_t cpu;
    uint8_t state;
    bool assumed;
    bool gap;                /* unexplained, for `reason` */
    bool doubt;              /* explained, but it is unknown, for `reason`, whether the path leads elsewhere */
    uint8_t reason;
};
struct path_piece { struct path_cover cover; int64_t begin, end; };
struct path_arrow { struct path_link link; bool clamped; };

/* Output of walks, one after the other: pieces, arrows and gaps, newest first per walk. A walk may write more than
 * requested: views select what counts. The pieces of a walk follow each other backward to `covered_from`, where the
 * last one begins. `cover` is what the walk has found out about the time right before that; it is written when the walk
 * says down to where it holds. */
struct path_build {
    VEC(struct path_piece) pieces;
    VEC(struct path_arrow) arrows;
    int64_t covered_from;
    struct path_cover cover;
    bool written;            /* part of the cover is in the pieces */
    /* Missing node of a cover that was never written, since all of its time was covered already, as behind the end of
     * the question: the next piece is in doubt. NULL: none. */
    const char *hidden;
    size_t apart;            /* pieces before this number are not joined with later ones */
};

/* Pieces and arrows [.., ..) of a walk, cut to [begin, end]. */
struct path_view { size_t pieces[2], arrows[2]; int64_t begin, end; };

void path_build_fini(struct path_build *);
/* Begins a walk, at any time. */
void path_build_start(struct path_build *);
/* Makes the state of the row the cover, which is explained. */
void path_build_set_cover(struct path_build *, struct path_row row, const struct path_interval *);
/* Writes the cover down to `begin`. Does nothing if all from there on is covered. */
void path_build_cover(struct path_build *, int64_t begin);
void path_build_link(struct path_build *, int kind, struct path_row from, int64_t from_ts, struct path_row to,
    int64_t to_ts, bool clamped, bool assumed);
/* Removes what was written about the time before t, in the pieces from number `first` on and the arrows from number
 * `first_arrow` on. */
void path_build_rewind(struct path_build *, size_t first, size_t first_arrow, int64_t t);
/* Makes the answer from the views, which are newest first and cover [begin, end]. */
struct path *path_build_answer(const struct path_build *, const struct path_source *, const struct path_view *views,
    size_t n, struct path_row start, int64_t begin, int64_t end);

#endif
