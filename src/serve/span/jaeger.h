/* SPDX-License-Identifier: MIT */
/* Private to span: queries and answers of Jaeger's interfaces. */
#ifndef WEFT_SPAN_JAEGER_H
#define WEFT_SPAN_JAEGER_H

#include "base/json.h"
#include "base/map.h"
#include "span/span.h"

/* Search for traces that have a matching span. Each tag must be on the span, one of its events or its process. */
struct jaeger_tag { const char *key, *value; };
struct jaeger_search {
    const char *service, *name;
    int64_t begin_ns, end_ns, least_ns, most_ns; /* most_ns INT64_MAX: none */
    struct { struct jaeger_tag *v; size_t n, cap; } tags;
    struct filter *filter;   /* NULL: none (jaeger_filter.h) */
    uint64_t limit;          /* limit of traces */
};
void jaeger_search_fini(struct jaeger_search *);
bool jaeger_matches(const struct jaeger_search *, const struct span *, struct arena *);
/* Reads "1h2m3.5s", "100ms", "20us". Returns false if it is no duration. */
bool jaeger_read_duration(const char *, int64_t *ns);
/* Reads {"key":"value",…}. Returns false if it is anything else. */
bool jaeger_read_tags(const char *, struct arena *, struct jaeger_search *);

/* Writes a trace of at least one span in the format of Jaeger's older interface; warning or NULL. */
void jaeger_write_trace(struct json *, const struct span_list *, const char *warning);

/* Writes spans, in the list's order, as ResourceSpans into an array. The warning (or NULL) becomes an attribute of the
 * first span, as in Jaeger. */
void jaeger_write_resource_spans(struct json *, const struct span_list *, const char *warning);
/* Summary of a trace, built from its spans in any order. Zero-initialise. At least one span is needed to write it. */
struct jaeger_summary {
    uint8_t trace_id[SPAN_TRACE_BYTES];
    int64_t begin_ns, end_ns;
    struct jaeger_parts { struct jaeger_part *v; size_t n, cap; } spans;
    struct strings names;
    struct map ids;
};
void jaeger_summary_add(struct jaeger_summary *, const struct span *);
void jaeger_summary_write(struct json *, const struct jaeger_summary *);
void jaeger_summary_fini(struct jaeger_summary *);

#endif
