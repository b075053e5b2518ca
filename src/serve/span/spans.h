/* SPDX-License-Identifier: MIT */
/* Private to span: the set that analyses read. */
#ifndef WEFT_SPAN_SPANS_H
#define WEFT_SPAN_SPANS_H

#include "base/map.h"
#include "base/mem.h"
#include "span/analysis.h"

struct spans_key { const char *v; size_t n; };
struct spans_fact { uint32_t key, value; };
struct spans_origin { uint32_t fact, facts, service; };
struct spans {
    VEC(struct spans_row) rows;
    VEC(struct spans_trace) traces;
    VEC(struct spans_fact) facts;
    VEC(struct spans_origin) origins;
    VEC(struct spans_unit) units;
    VEC(struct spans_key) keys;          /* remembered */
    VEC(const char *) groups;            /* of those: what tells units apart, first wins */
    bool all_keys, as_recorded;
    struct span_query only;
    uint32_t status_text, error_text;    /* what is told of units in which a span failed, beside their attributes */
    struct strings texts;
    struct map trace_of, origin_of;      /* by hash of the id; by where the origin lies */
    uint32_t last_trace;                 /* of the row added last */
    uint32_t *members;
    /* Parts of row i: part[parts[i]] to part[parts[i + 1]], by end. */
    uint32_t *parts, *part;
    struct spans_told told;
};

/* Names under which an attribute is looked for; NULL ends them. Without a known group the key itself. */
const char *const *spans_key_names(const char *key, const char *alone[2]);
/* Of a trace's rows, in the order of their ends: by end. */
void spans_sort_rows(struct spans_row *, size_t n);
/* Parents of a trace's rows, as numbers within it, -1: none; `why` says why then (parents.c). Rows that contradict
 * their callers' are moved, and all are in the order of their ends again. `scratch`: 3 numbers per row. */
enum { SPANS_ROOT = -1, SPANS_LATER = -2, SPANS_ORPHAN = -3 };
void spans_find_parents(struct spans *, const struct spans_trace *, int32_t *why, uint32_t *scratch);
/* Members of the forest, after rows are in order: parents, units, members, repair. */
void spans_make_units(struct spans *);
/* Time that parts of a row cover, within it. */
int64_t spans_covered(const struct spans *, uint32_t row);
/* ln of a duration, of which a µs is what clocks do not tell. */
double spans_log(int64_t duration_ns);

/* Rows of one service and name, and values of `by`: kinds are numbered in the order in which they are met. */
struct spans_kind { uint32_t service, name, by[SPANS_BY]; size_t n; };
struct spans_kinds { VEC(struct spans_kind) v; uint32_t *of; struct map numbers; };   /* of: per row */
void spans_kinds_make(const struct spans *, const struct spans_by *, struct spans_kinds *);
void spans_kinds_fini(struct spans_kinds *);
/* Rows by kind: out[begin[k]] to out[begin[k + 1]], by trace and end. Free both. */
void spans_kinds_rows(const struct spans_kinds *, size_t rows, uint32_t **out, size_t **begin);

/* What a unit's attributes say, those of its spans, their processes, and of what submitted it; a fact may come several
 * times (traits.c). */
void spans_each_fact(const struct spans *, const struct spans_unit *, void (*take)(void *, uint32_t key,
    uint32_t value), void *arg);
/* To explain clusters. `of`: each unit's cluster. */
void spans_find_traits(const struct spans *, struct spans_clusters *);
/* `ns`: per unit how long each stage took, NaN without it. The clusters' units and stages are asked, and no cluster. */
struct spans_factors *spans_find_factors(const struct spans *, const struct spans_clusters *, const double *ns);

#endif
