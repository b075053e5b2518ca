/* Private to the room: what the walk writes while it goes backward, and how it becomes a struct path. */
#ifndef WEFT_PATH_BUILD_H
#define WEFT_PATH_BUILD_H

#include "base/map.h"
#include "base/mem.h"
#include "path/path.h"

#define PATH_NOWHERE ((struct path_row){-1, INT32_MIN})
static inline bool path_row_equal(struct path_row a, struct path_row b) { return a.host == b.host && a.row == b.row; }

/* The answer with what it owns. */
struct path_owner {
    struct path path;        /* first: a struct path * is a struct path_owner * */
    struct strings names;
    struct map by_pointer;   /* a source's string -> its number in names */
    struct path_segment *segments;
    struct path_link *links;
    struct path_total *totals;
    struct path_gap *gaps;
};

/* What covers a piece of time, before it is cut to its bounds. */
struct path_cover {
    struct path_row row, sender;
    const char *detail, *peer;
    int32_t cpu;
    uint8_t state;
    bool assumed;
    bool gap;                /* unexplained, for `reason` */
    uint8_t reason;
};

/* What the walk has covered and written so far: segments, links and gaps newest first. The segments end at the end of
 * the question and follow each other backward to `covered_from`, where the last one begins; nothing is written of the
 * time before that. `cover` is what the walk has found out about the time right before `covered_from`: it becomes
 * segments when the walk says down to where it holds. */
struct path_build {
    const struct path_source *source;
    struct path_owner *owner;
    VEC(struct path_segment) segments;
    VEC(struct path_link) links;
    VEC(struct path_gap) gaps;
    bool clamped;            /* of the answer */
    int64_t covered_from;
    struct path_cover cover;
    /* The interval that `cover` was made of, while its state is preempted and the source has not described it; else its
     * state is 0. */
    struct path_interval undescribed;
};

/* A state to come back to: all that was written after it is older. */
struct path_mark {
    size_t segments, links, gaps;
    int64_t segment_begin, gap_begin, covered_from;
};

void path_build_init(struct path_build *, const struct path_source *, int64_t end);
void path_build_fini(struct path_build *);
/* From now on the state of the row covers, and is explained. */
void path_build_set_cover(struct path_build *, struct path_row row, const struct path_interval *);
/* The cover holds down to `begin`: it is written, as part of the last segment when it is of the same kind. Nothing when
 * all from there on is covered. */
void path_build_cover(struct path_build *, int64_t begin);
void path_build_link(struct path_build *, int kind, struct path_row from, int64_t from_ts, struct path_row to,
    int64_t to_ts, bool assumed);
struct path_mark path_build_mark(const struct path_build *);
void path_build_rewind(struct path_build *, const struct path_mark *);
/* The whole question [begin, end] is covered: turns everything round, sums up, and hands over. `build` is empty
 * afterwards. */
struct path *path_build_finish(struct path_build *, struct path_row start, int64_t begin, int64_t end);

#endif
