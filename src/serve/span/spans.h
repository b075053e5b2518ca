/* SPDX-License-Identifier: MIT */
/* Private to span: the set of spans that analyses read. */
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
    VEC(struct spans_key) keys;          /* attributes to keep */
    VEC(const char *) groups;            /* keys that tell units apart; the first one present wins */
    bool all_keys, as_recorded;
    struct span_query only;
    uint32_t status_text, error_text;    /* key and value of a fact that units with a failed span have, too */
    struct strings texts;
    struct map trace_of, origin_of;      /* keyed by hash of the id; by address of the origin */
    uint32_t last_trace;                 /* trace of the row added last */
    uint32_t *members;
    /* Parts of row i, by end: part[parts[i]] to part[parts[i + 1]]. */
    uint32_t *parts, *part;
    struct spans_told told;
};

/* Returns the attribute names of a key; NULL ends them. A key without a known group stands for itself. */
const char *const *spans_key_names(const char *key, const char *alone[2]);
/* Sorts a trace's rows by end. */
void spans_sort_rows(struct spans_row *, size_t n);
/* Finds the parents of a trace's rows, as row numbers within the trace; -1: none, for the reason in `why` (parents.c).
 * Moves rows that contradict their callers', and sorts the rows by end again. `scratch`: 3 numbers per row. */
enum { SPANS_ROOT = -1, SPANS_LATER = -2, SPANS_ORPHAN = -3 };
void spans_find_parents(struct spans *, const struct spans_trace *, int32_t *why, uint32_t *scratch);
/* Makes the forest from ordered rows: parents, units, members, repairs. */
void spans_make_units(struct spans *);
/* Returns the time within a row that its parts cover. */
int64_t spans_covered(const struct spans *, uint32_t row);
/* Returns ln of a duration plus 1 µs, which is below the precision of clocks. */
double spans_log(int64_t duration_ns);

/* Kind: rows of one service and name, and values of `by`. Kinds are numbered in the order in which they are met. */
struct spans_kind { uint32_t service, name, by[SPANS_BY]; size_t n; };
struct spans_kinds { VEC(struct spans_kind) v; uint32_t *of; struct map numbers; };   /* kinds by row (of) */
void spans_kinds_make(const struct spans *, const struct spans_by *, struct spans_kinds *);
void spans_kinds_fini(struct spans_kinds *);
/* Lists rows by kind, by trace and end: out[begin[k]] to out[begin[k + 1]]. Free both. */
void spans_kinds_rows(const struct spans_kinds *, size_t rows, uint32_t **out, size_t **begin);

/* Calls `take` for each fact of a unit: attributes of its spans, of their processes, and of the span that submitted it.
 * A fact may be repeated (traits.c). */
void spans_each_fact(const struct spans *, const struct spans_unit *, void (*take)(void *, uint32_t key,
    uint32_t value), void *arg);
/* Finds the traits that explain clusters. `of`: cluster of each unit. */
void spans_find_traits(const struct spans *, struct spans_clusters *);
/* Finds factors. `ns`: duration of each stage by unit; NaN: absent. Reads the units and stages of `clusters`, not the
 * clusters. */
struct spans_factors *spans_find_factors(const struct spans *, const struct spans_clusters *, const double *ns);

#endif
