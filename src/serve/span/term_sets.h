/* SPDX-License-Identifier: MIT */
/* Private to span: index from terms (span_term) to spans of a group, as stored in the database. A group is 8192 spans
 * with consecutive numbers; a span is identified by its place in it. Terms are shortened to codes, which may collide,
 * so callers check the spans found. */
#ifndef WEFT_SPAN_TERM_SETS_H
#define WEFT_SPAN_TERM_SETS_H

#include "base/map.h"
#include "base/mem.h"

enum { TERM_GROUP = 8192, TERM_BUCKETS = 64, TERM_WORDS = TERM_GROUP / 64 };
/* Keys of blobs: buckets 0 to 63 hold lists. Larger keys hold the set of one code that many spans have. */
enum { TERM_SETS = TERM_BUCKETS };

struct term_set { uint64_t words[TERM_WORDS]; };

/* Group being built. Zero-initialise. */
struct term_origin_use { int64_t origin; uint32_t place; };
struct term_group {
    VEC(uint32_t) buckets[TERM_BUCKETS];
    VEC(struct term_origin_use) origins;
    uint32_t place;          /* place of the span whose terms are added */
    int64_t first_ns, last_ns, longest_ns; /* first and last begin of spans; longest duration */
    size_t n;
};
void term_group_fini(struct term_group *);
/* Begins a span; its terms follow by term_take. */
void term_begin_span(struct term_group *, uint32_t place, int64_t begin_ns, int64_t lasted_ns, int64_t origin);
void term_take(void *terms, uint64_t term);

/* Passes the terms of an origin to `take`. Returns 0 or an error. */
typedef int term_of_origin(void *arg, int64_t origin, void (*take)(void *, uint64_t), void *take_arg, struct err *e);
/* Stores a blob under a key. */
typedef int term_put(void *arg, int64_t key, const void *blob, size_t n, struct err *e);
/* Stores the group, and empties it. */
int term_group_write(struct term_group *, term_of_origin *, term_put *, void *arg, struct err *e);

/* Return the keys under which a term may be stored. */
int64_t term_bucket_key(uint64_t term);
int64_t term_set_key(uint64_t term);
/* Add the spans with the term, from a blob of that key, to the set. */
void term_read_bucket(uint64_t term, const void *blob, size_t n, struct term_set *);
void term_read_set(const void *blob, size_t n, struct term_set *);

#endif
