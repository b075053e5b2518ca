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
    bool gap;                /* unexplained, for `reason` */
    uint8_t reason;
};

/* Segments, links and gaps newest first. */
struct path_build {
    struct path_owner *owner;
    VEC(struct path_segment) segments;
    VEC(struct path_link) links;
    VEC(struct path_gap) gaps;
};

/* A place to come back to: everything written after it is older. */
struct path_mark {
    size_t segments, links, gaps;
    int64_t segment_begin, gap_begin;
};

void path_build_init(struct path_build *);
void path_build_fini(struct path_build *);
/* Adds [begin, end], which ends where the last one began; grows the last one when it is of the same kind. */
void path_build_cover(struct path_build *, const struct path_cover *, int64_t begin, int64_t end);
struct path_mark path_build_mark(const struct path_build *);
void path_build_rewind(struct path_build *, const struct path_mark *);
/* Turns everything round, sums up, and hands over. `build` is empty afterwards. */
struct path *path_build_finish(struct path_build *, struct path_row start, int64_t begin, int64_t end);

#endif
