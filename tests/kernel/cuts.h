/* SPDX-License-Identifier: MIT */
/* Builds a trace in chunks: at each cut the builders are thrown away, and made anew of what was carried. For the tests
 * of all rooms that are fed with kernel records, who compare what a list of chunks says with what one pass says:
 *
 *     struct cuts_trace t;
 *     cuts_open(&t, "…/three-tier/db");              or cuts_open_made(&t, maker)
 *     cuts_run(&t, NULL, 0, &user, &mine, &whole);   one chunk
 *     for (uint64_t seed = …) {
 *         size_t n = cuts_random(&t, seed, 12, at);
 *         cuts_run(&t, at, n, &user, &mine, &some);  n + 1 chunks
 *         … some.chunks[i].chunk.path = …; X_open_list(…), compare …
 *         cuts_free(&some);
 *     }
 * The numbers of the host's rows are the same however it is cut. Whatever goes wrong fails the test. */
#ifndef WEFT_TESTS_KERNEL_CUTS_H
#define WEFT_TESTS_KERNEL_CUTS_H

#include "base/carry.h"
#include "base/chunks.h"
#include "ctf/ctf.h"
#include "kernel/kernel.h"
#include "maker.h"

struct cuts_trace {
    struct ctf_schemas *schemas;
    struct ctf_trace *trace;
    struct kernel_binding *binding;
    VEC(int64_t) times;        /* times of all items, in order */
    struct maker_trace made;   /* directory of made traces */
    bool is_made;
};
/* Opens the first kernel trace below a directory; number: among several; false: there are fewer (or it is no
 * directory). */
bool cuts_open(struct cuts_trace *, const char *directory, size_t number);
void cuts_open_made(struct cuts_trace *, const struct maker *);
void cuts_close(struct cuts_trace *);

/* Chunk under construction: its address is fixed from `begin` to `cut`, `finish` or `drop`. After cuts_run in its final
 * form (tracker: NULL). */
struct cuts_chunk {
    size_t number;                  /* number from 0 */
    struct kernel_tracker *tracker;
    int64_t first, last;            /* ns: of its CTF_EVENTs; INT64_MAX, INT64_MIN: none */
    struct chunk chunk;             /* begin, end, rows and n_rows; the first begins at INT64_MIN, the last ends at
                                     * INT64_MAX; path: NULL. Rows: those carried into it, and from `cut` and `finish`
                                     * on all */
    int32_t first_new;              /* host's row of the first one that was not carried into it */
    struct text carried;            /* state carried from it into the next one: n bytes */
    size_t of_tracker;              /* tracker's part of these bytes */
    size_t n_carried;               /* rows; and by row of the next chunk its row in this one: */
    int32_t *leaving;
    uint64_t hash;
};
/* Returns the host's row of a row of the chunk, at any time; negative ones are kept. */
int32_t cuts_row(const struct cuts_chunk *, int32_t row);

/* Callbacks of a test for each chunk, in this order. NULL: none. */
struct cuts_user {
    void (*begin)(void *arg, const struct cuts_chunk *);  /* makes builders */
    /* Carries all builders, always in the same order: LOAD after begin of all chunks but the first; MARK and SAVE at a
     * cut, and after LOAD to check that it gives the same bytes. */
    void (*carry)(void *arg, const struct cuts_chunk *, struct carry *);
    void (*record)(void *arg, const struct kernel_record *);
    void (*events)(void *arg, const int64_t *times, size_t n);   /* times of CTF_EVENTs, after their records */
    void (*cut)(void *arg, const struct cuts_chunk *, int64_t at); /* called after SAVE: writes, and frees builders */
    void (*finish)(void *arg, const struct cuts_chunk *);  /* last chunk, after kernel_tracker_finish: likewise */
    void (*drop)(void *arg, const struct cuts_chunk *);    /* cuts_damage: frees builders */
};

struct cuts { struct cuts_chunk *chunks; size_t n; int32_t n_rows; /* rows of the host */ };

/* Runs with n cuts, sorted: n + 1 chunks. Also checks that state loaded and saved again has the same bytes. */
void cuts_run(const struct cuts_trace *, const int64_t *at, size_t n, const struct cuts_user *, void *arg,
    struct cuts *out);
void cuts_free(struct cuts *);

/* Builds a single chunk: after `before`, or NULL: as if nothing were known. Range: [begin, end); INT64_MAX: to the
 * trace's end. Rows of the host are not numbered: out->chunk.rows is NULL. cuts_chunk_free ends it. */
void cuts_build(const struct cuts_trace *, int64_t begin, int64_t end, const struct cuts_chunk *before,
    const struct cuts_user *, void *arg, struct cuts_chunk *out);
void cuts_chunk_free(struct cuts_chunk *);

/* Chooses n cuts for a trace, sorted: most at any time in it, some at the time of an item and 1 ns before and after,
 * some twice, some before its begin and after its end. The same seed gives the same cuts. at: n. Returns n. */
size_t cuts_random(const struct cuts_trace *, uint64_t seed, size_t n, int64_t *at);

/* Damages the state carried to `at` `times` times (cut off, or one byte changed), and loads it: a state that is not
 * refused must do no harm in the following events, up to a further cut. Run it with a sanitizer. */
void cuts_damage(const struct cuts_trace *, int64_t at, uint64_t seed, size_t times, const struct cuts_user *,
    void *arg);

/* Calls `one` with each recorded kernel trace of $WEFT_DATA/traces and of examples/, and its path. */
void cuts_each(void (*one)(const struct cuts_trace *, const char *name, void *arg), void *arg);

#endif
