/* SPDX-License-Identifier: MIT */
/* Private to span: spans that a search found, the newest of them on top. */
#ifndef WEFT_SPAN_NEWEST_H
#define WEFT_SPAN_NEWEST_H

#include "base/mem.h"
#include "span/code.h"

/* Of the same begin the one of the greater number, which came last, is the newer. day, place: where a row lies. */
struct newest_span { int64_t begin_ns, number, place; int32_t day; };
struct newest { VEC(struct newest_span) v; }; /* zero-initialise; vec_free(&v) */
void newest_push(struct newest *, struct newest_span);
/* There is one. */
struct newest_span newest_pop(struct newest *);

/* Terms that a span must have, each bit that of one; `any` of a term counts as well (struct span_wanted). */
enum { NEWEST_MOST_WANTED = 60 }; /* of more, the caller looks at the spans */
struct newest_wanted { VEC(struct span_wanted) v; };
/* All that the query wants. vec_free(&v). */
void newest_want(struct newest_wanted *, const struct span_query *);
struct newest_having { const struct newest_wanted *wanted; uint64_t bits; };
void newest_note(void *having, uint64_t term);
static inline bool newest_has_all(const struct newest_having *h)
{
    return h->bits == (UINT64_C(1) << h->wanted->v.n) - 1;
}
/* Is it a search for the newest in any service, or by terms? Others are left to the database. */
bool newest_is_search(const struct span_query *);

#endif
