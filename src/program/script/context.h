/* SPDX-License-Identifier: MIT */
/* Where a span belongs: trace and span id, in the three notations that are about (docs/verbs/span.md). */
#ifndef WEFT_SCRIPT_CONTEXT_H
#define WEFT_SCRIPT_CONTEXT_H

#include <stdbool.h>

#include "base/text.h"

enum { SCRIPT_SAMPLED = 1, SCRIPT_RANDOM = 2 }; /* the flags that W3C gives a meaning */
struct script_context {
    char trace_id[33], span_id[17]; /* hex in lower case, not all zero; "" of none */
    unsigned flags;
};

/* Each returns false for what breaks the rules of its notation; `out` is unchanged then. Blanks around are passed over.
 *
 * W3C: 00-TRACE-SPAN-FLAGS in lower case. Later versions may have more behind another dash; unknown flags are dropped.
 */
bool script_read_traceparent(const char *s, struct script_context *out);
/* Jaeger: TRACE:SPAN:PARENT:FLAGS; zeros in front may be absent, flags are hex. */
bool script_read_uber(const char *s, struct script_context *out);
/* Zipkin, one value: TRACE-SPAN[-SAMPLED[-PARENT]]. SAMPLED alone is a decision for a new trace: ids are "" then. */
bool script_read_b3(const char *s, struct script_context *out);
/* The id that `start` printed, in any of the three. */
bool script_read_context(const char *s, struct script_context *out);

enum { SCRIPT_CONTEXT_CHARS = 80 };
void script_write_traceparent(const struct script_context *, char out[SCRIPT_CONTEXT_CHARS]);
/* parent_id: "" of a root. */
void script_write_uber(const struct script_context *, const char *parent_id, char out[SCRIPT_CONTEXT_CHARS]);
void script_write_b3(const struct script_context *, char out[SCRIPT_CONTEXT_CHARS]);

/* The context that the environment has: TRACEPARENT, UBER_TRACE_ID, TRACE_ID, B3, X_B3_*, the first that is good;
 * `uber_first`: those of Jaeger first, as pfeil does. False: a new trace begins; `out` may hold flags then. What is
 * malformed is named in `bad`, separated by commas. */
bool script_find_context(bool uber_first, struct script_context *out, struct text *bad);
/* Random ids. */
void script_new_trace_id(char out[33]);
void script_new_span_id(char out[17]);
/* The W3C tracestate that belongs to TRACEPARENT, as it may be passed on; NULL: none, or malformed. */
const char *script_find_trace_state(void);

#endif
