/* SPDX-License-Identifier: MIT */
/* Private to the room: what the walk writes while it goes backward, and how it becomes a struct path. */
#ifndef WEFT_PATH_BUILD_H
#define WEFT_PATH_BUILD_H

#include "base/mem.h"
#include "path/path.h"

#define PATH_NOWHERE ((struct path_row){-1, INT32_MIN})
static inline bool path_row_equal(struct path_row a, struct path_row b) { return a.host == b.host && a.row == b.row; }

/* What covers a piece of time. Strings are the source's. */
struct path_cover {
    struct path_row row, sender;
    const char *detail, *peer;
    uint64_t id;             /* of the interval; for describe_preempted */
    int32_t cpu;
    uint8_t state;
    bool assumed;
    bool gap;                /* unexplained, for `reason` */
    bool doubt;              /* explained, but for `reason` it is not known whether the path leads elsewhere */
    uint8_t reason;
};
struct path_piece { struct path_cover cover; int64_t begin, end; };
struct path_arrow { struct path_link link; bool clamped; };

/* What walks have written, one after the other: pieces, arrows and gaps, of each walk newest first. A walk may write
 * more than is asked for: views say what counts.
 * The pieces of a walk follow each other backward to `covered_from`, where the last one begins; `cover` is what the
 * walk has found out about the time right before that. It is written when the walk says down to where it holds. */
struct path_build {
    VEC(struct path_piece) pieces;
    VEC(struct path_arrow) arrows;
    int64_t covered_from;
    struct path_cover cover;
    bool written;            /* some of the cover is in the pieces */
    /* The node that a cover lacked which was never written, since all of its time was covered, as behind the end of the
     * question: what is written next is in doubt. NULL: none was. */
    const char *hidden;
    size_t apart;            /* pieces before this number are not joined with what follows */
};

/* The pieces and arrows [.., ..) of a walk, as far as they lie in [begin, end]. */
struct path_view { size_t pieces[2], arrows[2]; int64_t begin, end; };

void path_build_fini(struct path_build *);
/* A walk begins, at any time. */
void path_build_start(struct path_build *);
/* From now on the state of the row covers, and is explained. */
void path_build_set_cover(struct path_build *, struct path_row row, const struct path_interval *);
/* The cover holds down to `begin`: it is written. Nothing when all from there on is covered. */
void path_build_cover(struct path_build *, int64_t begin);
void path_build_link(struct path_build *, int kind, struct path_row from, int64_t from_ts, struct path_row to,
    int64_t to_ts, bool clamped, bool assumed);
/* Takes back what was written of the time before t, of the pieces from number `first` on and the arrows from number
 * `first_arrow` on. */
void path_build_rewind(struct path_build *, size_t first, size_t first_arrow, int64_t t);
/* The views, newest first, cover [begin, end]: makes the answer of them. */
struct path *path_build_answer(const struct path_build *, const struct path_source *, const struct path_view *views,
    size_t n, struct path_row start, int64_t begin, int64_t end);

#endif
