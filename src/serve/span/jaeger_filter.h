/* SPDX-License-Identifier: MIT */
/* Private to span: query.filter of Jaeger's newer interface, a tree of calls that a span must satisfy (its RFC
 * 0005). */
#ifndef WEFT_SPAN_JAEGER_FILTER_H
#define WEFT_SPAN_JAEGER_FILTER_H

#include "span/span.h"

enum { FILTER_MOST_DEPTH = 32, FILTER_MOST_TERMS = 1000 };

struct filter;
/* Reads a filter: {"op":"eq","args":[{"attr":{"key":"http.status_code"}},{"scalar":{"value":"500"}}]}. filter_free()
 * it. */
int filter_read(const char *json, struct filter **out, struct err *e);
/* Returns whether the filter holds. Compared values lie in the arena. */
bool filter_holds(const struct filter *, const struct span *, struct arena *);
/* Return the service or name that every matching span has; NULL: any. */
const char *filter_service(const struct filter *);
const char *filter_name(const struct filter *);
/* Adds terms that every matching span has, besides its service and name; further ones may exist. */
struct filter_wanted { struct span_wanted *v; size_t n, cap; };
void filter_want(const struct filter *, struct filter_wanted *);
void filter_free(struct filter *); /* accepts NULL */

/* Names of the supported operators and levels, for /api/v3/capabilities; NULL at the end. */
extern const char *const filter_operators[], *const filter_levels[];

#endif
