/* SPDX-License-Identifier: MIT */
/* Private to span: a heap of the spans that a search found, the newest on top. */
#ifndef WEFT_SPAN_NEWEST_H
#define WEFT_SPAN_NEWEST_H

#include "base/mem.h"
#include "span/code.h"

/* Span found. For equal begins, the greater number is newer: it was received later. day, place: where its row lies. */
struct newest_span { int64_t begin_ns, number, place; int32_t day; };
struct newest { VEC(struct newest_span) v; }; /* zero-initialise; vec_free(&v) */
void newest_push(struct newest *, struct newest_span);
/* Returns the newest span; the heap must not be empty. */
struct newest_span newest_pop(struct newest *);

/* Terms that a span must have, a bit for each. Instead of a term, its `any` counts as well (struct span_wanted). */
enum { NEWEST_MOST_WANTED = 60 }; /* limit; beyond it, the caller checks the spans */
struct newest_wanted { VEC(struct span_wanted) v; };
/* Adds all that the query wants. vec_free(&v). */
void newest_want(struct newest_wanted *, const struct span_query *);
struct newest_having { const struct newest_wanted *wanted; uint64_t bits; };
void newest_note(void *having, uint64_t term);
static inline bool newest_has_all(const struct newest_having *h)
{
    return h->bits == (UINT64_C(1) << h->wanted->v.n) - 1;
}
/* Returns whether it is a search for the newest spans in any service, or by terms. The database runs all other
 * queries. */
bool newest_is_search(const struct span_query *);

#endif
