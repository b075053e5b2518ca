/* SPDX-License-Identifier: MIT */
/* Private to span: which spans of a group have which terms (span_term), as the database keeps it. A group is 8192 spans
 * with numbers one behind the other; a span is told by its place in the group. Terms are shortened to codes, so that
 * what is found may have been meant for another term: whoever asks looks at the spans. */
#ifndef WEFT_SPAN_TERM_SETS_H
#define WEFT_SPAN_TERM_SETS_H

#include "base/map.h"
#include "base/mem.h"

enum { TERM_GROUP = 8192, TERM_BUCKETS = 64, TERM_WORDS = TERM_GROUP / 64 };
/* Keys of blobs: buckets 0 to 63 hold lists; beyond, a code that many spans have has a set of its own. */
enum { TERM_SETS = TERM_BUCKETS };

struct term_set { uint64_t words[TERM_WORDS]; };

/* A group in the making. Zero-initialise. */
struct term_origin_use { int64_t origin; uint32_t place; };
struct term_group {
    VEC(uint32_t) buckets[TERM_BUCKETS];
    VEC(struct term_origin_use) origins;
    uint32_t place;          /* of the span whose terms come */
    int64_t first_ns, last_ns, longest_ns; /* begins of spans; the longest duration */
    size_t n;
};
void term_group_fini(struct term_group *);
/* A span's begin, duration and origin; then its terms by term_take. */
void term_begin_span(struct term_group *, uint32_t place, int64_t begin_ns, int64_t lasted_ns, int64_t origin);
void term_take(void *terms, uint64_t term);

/* Terms of an origin, or an error. */
typedef int term_of_origin(void *arg, int64_t origin, void (*take)(void *, uint64_t), void *take_arg, struct err *e);
/* Takes a blob to keep under a key. */
typedef int term_put(void *arg, int64_t key, const void *blob, size_t n, struct err *e);
/* Ends the group: it is put, and empty then. */
int term_group_write(struct term_group *, term_of_origin *, term_put *, void *arg, struct err *e);

/* Keys under which a term may lie. */
int64_t term_bucket_key(uint64_t term);
int64_t term_set_key(uint64_t term);
/* Adds to the set what a blob of such a key has of the term. */
void term_read_bucket(uint64_t term, const void *blob, size_t n, struct term_set *);
void term_read_set(const void *blob, size_t n, struct term_set *);

#endif
