/* SPDX-License-Identifier: MIT */
/* Private to span: what query.filter of Jaeger's newer interface asks of a span: a tree of calls (its RFC 0005). */
#ifndef WEFT_SPAN_JAEGER_FILTER_H
#define WEFT_SPAN_JAEGER_FILTER_H

#include "span/span.h"

enum { FILTER_MOST_DEPTH = 32, FILTER_MOST_TERMS = 1000 };

struct filter;
/* {"op":"eq","args":[{"attr":{"key":"http.status_code"}},{"scalar":{"value":"500"}}]}. filter_free() it. */
int filter_read(const char *json, struct filter **out, struct err *e);
/* Does it hold? What is compared lies in the arena. */
bool filter_holds(const struct filter *, const struct span *, struct arena *);
/* The service, or the name, that a span must have for it to hold; NULL: any. */
const char *filter_service(const struct filter *);
const char *filter_name(const struct filter *);
void filter_free(struct filter *); /* NULL is fine */

/* Names of what it understands, for /api/v3/capabilities; NULL at the end. */
extern const char *const filter_operators[], *const filter_levels[];

#endif
