/* SPDX-License-Identifier: MIT */
/* Private to span: answering questions. */
#ifndef WEFT_SPAN_QUERY_H
#define WEFT_SPAN_QUERY_H

#include "span/collect.h"
#include "span/jaeger.h"

/* Of one answer. */
enum { QUERY_MOST_SPANS = 200000, QUERY_MOST_TRACES = 20000 };

/* A question in work. */
struct query {
    struct http_request *q;
    struct span_store *store;
    struct arena arena;      /* of what was read */
    struct text out;         /* the answer in the making */
    struct err e;
    bool late;               /* acknowledged spans are not in the database yet */
    struct query_lacks { struct query_lack { int code; const char *what, *trace_id; } *v; size_t n, cap; } lacks;
    struct arena of_lacks;
    int status;              /* 0: it is answered; else why not is in e */
};
/* Sets the status, with what is to be done; returns false. */
bool query_refuse(struct query *, int status, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/* Something that was asked for is not in the answer. Why, and of which trace: NULL: of none, or of
 * many. */
void query_lack(struct query *, int code, const char *trace_id, const char *what);

/* A whole trace, or its first spans; `warning` says so, or is NULL. missing: it is not there, or not yet. */
struct query_loaded { struct span_list spans; const char *warning; struct span_cursor *cursor; bool missing; };
/* False: refused (404: it is not there; 503: it may be there soon). In any case query_unload ends it. */
bool query_load(struct query *, const uint8_t *trace_id, struct query_loaded *);
/* Reads a whole trace, however large, for its summary. False: refused. */
bool query_summarize(struct query *, const uint8_t *trace_id, struct jaeger_summary *);
void query_unload(struct query *, struct query_loaded *);
struct query_traces { struct query_trace { uint8_t id[SPAN_TRACE_BYTES]; } *v; size_t n, cap; };
/* Those that have a span which fits, newest first. */
bool query_find(struct query *, const struct jaeger_search *, struct query_traces *);
/* Notes that more traces were asked for than one answer may have, if as many were found. */
void query_note_limit(struct query *, uint64_t asked, const struct query_traces *);
/* Notes that an answer ends before all that was found. */
void query_note_cut(struct query *, size_t written, const struct query_traces *);
/* Up to 32 hexadecimal digits. */
bool query_trace_id(const char *, uint8_t *id);

/* Answers a path below /api, or below /api/v3. */
void query_jaeger(struct query *);
void query_jaeger_v3(struct query *);

#endif
