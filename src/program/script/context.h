/* SPDX-License-Identifier: MIT */
/* Context of a span: trace and span id, in the three common notations (docs/verbs/span.md). */
#ifndef WEFT_SCRIPT_CONTEXT_H
#define WEFT_SCRIPT_CONTEXT_H

#include <stdbool.h>

#include "base/text.h"

enum { SCRIPT_SAMPLED = 1, SCRIPT_RANDOM = 2 }; /* flags defined by W3C */
struct script_context {
    char trace_id[33], span_id[17]; /* hex in lower case, not all zero; "" for none */
    unsigned flags;
};

/* Readers. Each returns false for malformed text, with `out` unchanged. Blanks around it are skipped.
 *
 * W3C: 00-TRACE-SPAN-FLAGS in lower case. Later versions may have more behind another dash; unknown flags are
 * dropped. */
bool script_read_traceparent(const char *s, struct script_context *out);
/* Jaeger: TRACE:SPAN:PARENT:FLAGS; leading zeros may be absent, flags are hex. */
bool script_read_uber(const char *s, struct script_context *out);
/* Zipkin, single value: TRACE-SPAN[-SAMPLED[-PARENT]]. SAMPLED alone is a decision for a new trace: ids are "" then. */
bool script_read_b3(const char *s, struct script_context *out);
/* Reads the id that `start` printed, in any of the three notations. */
bool script_read_context(const char *s, struct script_context *out);

enum { SCRIPT_CONTEXT_CHARS = 80 };
void script_write_traceparent(const struct script_context *, char out[SCRIPT_CONTEXT_CHARS]);
/* parent_id: "" for a root. */
void script_write_uber(const struct script_context *, const char *parent_id, char out[SCRIPT_CONTEXT_CHARS]);
void script_write_b3(const struct script_context *, char out[SCRIPT_CONTEXT_CHARS]);

/* Finds the context in the environment: the first valid one of TRACEPARENT, UBER_TRACE_ID, TRACE_ID, B3, X_B3_*.
 * `uber_first`: Jaeger's variables come first, as in pfeil. Returns false if a new trace begins; `out` may hold flags
 * then. Malformed variables are named in `bad`, separated by commas. */
bool script_find_context(bool uber_first, struct script_context *out, struct text *bad);
/* Make random ids. */
void script_new_trace_id(char out[33]);
void script_new_span_id(char out[17]);
/* Returns the W3C tracestate that belongs to TRACEPARENT, ready to pass on; NULL: none, or malformed. */
const char *script_find_trace_state(void);

#endif
