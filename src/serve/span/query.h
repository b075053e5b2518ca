/* SPDX-License-Identifier: MIT */
/* Private to span: answers to queries. */
#ifndef WEFT_SPAN_QUERY_H
#define WEFT_SPAN_QUERY_H

#include "span/collect.h"
#include "span/jaeger.h"

/* Limits of one answer. */
enum { QUERY_MOST_SPANS = 200000, QUERY_MOST_TRACES = 20000 };

/* Query in progress. */
struct query {
    struct http_request *q;
    struct span_store *store;
    struct arena arena;      /* memory of what was read */
    struct text out;         /* answer */
    struct err e;
    bool late;               /* acknowledged spans are not in the database yet */
    struct query_lacks { struct query_lack { int code; const char *what, *trace_id; } *v; size_t n, cap; } lacks;
    struct arena of_lacks;
    int status;              /* HTTP status of a refusal, whose reason is in e; 0: none */
};
/* Sets the status and the message, which includes what to do. Returns false. */
bool query_refuse(struct query *, int status, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/* Notes a part that is missing from the answer. what: the reason; trace_id: of the trace, or NULL: none, or many. */
void query_lack(struct query *, int code, const char *trace_id, const char *what);

/* Trace, whole or its first spans; warning: reports missing spans, or NULL. missing: not stored, or not yet. */
struct query_loaded { struct span_list spans; const char *warning; struct span_cursor *cursor; bool missing; };
/* Loads a trace. Returns false if refused (404: not found; 503: it may be there soon). End with query_unload in any
 * case. */
bool query_load(struct query *, const uint8_t *trace_id, struct query_loaded *);
/* Reads a whole trace of any size into a summary. Returns false if refused. */
bool query_summarize(struct query *, const uint8_t *trace_id, struct jaeger_summary *);
void query_unload(struct query *, struct query_loaded *);
struct query_traces { struct query_trace { uint8_t id[SPAN_TRACE_BYTES]; } *v; size_t n, cap; };
/* Finds the traces with a matching span, newest first. */
bool query_find(struct query *, const struct jaeger_search *, struct query_traces *);
/* Notes that the request was for more traces than the limit of an answer, if that many were found. */
void query_note_limit(struct query *, uint64_t asked, const struct query_traces *);
/* Notes that the answer ends before all traces found. */
void query_note_cut(struct query *, size_t written, const struct query_traces *);
/* Reads up to 32 hexadecimal digits. */
bool query_trace_id(const char *, uint8_t *id);

/* Answer a path below /api, or below /api/v3. */
void query_jaeger(struct query *);
void query_jaeger_v3(struct query *);

#endif
