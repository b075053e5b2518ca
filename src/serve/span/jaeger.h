/* SPDX-License-Identifier: MIT */
/* Private to span: answers as Jaeger gives them, and its questions. */
#ifndef WEFT_SPAN_JAEGER_H
#define WEFT_SPAN_JAEGER_H

#include "base/json.h"
#include "base/map.h"
#include "span/span.h"

/* What is asked for besides an id. Tags must all be there, on a span, an event or the process. */
struct jaeger_tag { const char *key, *value; };
struct jaeger_search {
    const char *service, *name;
    int64_t begin_ns, end_ns, least_ns, most_ns; /* most_ns: INT64_MAX, none */
    struct { struct jaeger_tag *v; size_t n, cap; } tags;
    struct filter *filter;   /* jaeger_filter.h; or NULL */
    uint64_t limit;          /* of traces */
};
void jaeger_search_fini(struct jaeger_search *);
bool jaeger_matches(const struct jaeger_search *, const struct span *, struct arena *);
/* "1h2m3.5s", "100ms", "20us"; false: it is none. */
bool jaeger_read_duration(const char *, int64_t *ns);
/* {"key":"value",…}; false: it is none. */
bool jaeger_read_tags(const char *, struct arena *, struct jaeger_search *);

/* A trace, of one span at least, in the format of Jaeger's older interface; warning or NULL. */
void jaeger_write_trace(struct json *, const struct span_list *, const char *warning);

/* Spans of a list, in its order, as ResourceSpans, into an array; the warning or NULL, as Jaeger has it: an attribute
 * of the first span. */
void jaeger_write_resource_spans(struct json *, const struct span_list *, const char *warning);
/* A trace's summary, for which spans come one by one in any order. Zero-initialise; of one span at least. */
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
