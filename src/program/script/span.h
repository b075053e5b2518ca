/* SPDX-License-Identifier: MIT */
/* Span and its encodings: OTLP as one line of JSON, Jaeger's Thrift. */
#ifndef WEFT_SCRIPT_SPAN_H
#define WEFT_SCRIPT_SPAN_H

#include <stdbool.h>
#include <stdint.h>

#include "base/mem.h"
#include "script/context.h"

enum {
    SCRIPT_MOST_ATTRIBUTES = 128, /* limit per span, event and resource; limit of events, too */
    SCRIPT_NAME_BYTES = 1024,     /* longer names are cut */
    SCRIPT_VALUE_BYTES = 4096,    /* longer values are cut */
};

/* Attribute. All texts are borrowed, and need not be UTF-8. */
struct script_attribute {
    const char *key, *text;       /* text NULL: the number */
    int64_t number;
};
struct script_attributes { VEC(struct script_attribute) list; };
struct script_event { int64_t time_ns; const char *name; struct script_attributes attributes; };

/* Numbers of OTLP. */
enum { SCRIPT_INTERNAL = 1, SCRIPT_SERVER, SCRIPT_CLIENT, SCRIPT_PRODUCER, SCRIPT_CONSUMER };
enum { SCRIPT_UNSET, SCRIPT_OK, SCRIPT_ERROR };

struct script_span {
    struct script_context context;
    char parent_id[17];           /* "" for a root */
    const char *trace_state;      /* NULL: none */
    const char *name;
    int kind, status;
    const char *message;          /* text of the status, or NULL */
    int64_t start_ns, end_ns;     /* wall clock; the end is the start plus monotonic time */
    int64_t monotonic_ns;         /* monotonic time of the start; 0: unknown */
    const char *state;            /* "open", "lost", or NULL */
    long process;                 /* open span: process id of the script that began it; 0: unknown */
    struct script_attributes attributes;
    VEC(struct script_event) events;
};

void script_span_fini(struct script_span *);
/* Adds an attribute, unless the limit is reached. */
void script_add_text(struct script_attributes *, const char *key, const char *text);
void script_add_number(struct script_attributes *, const char *key, int64_t);
/* Sets the attribute, replacing one of this key. */
void script_set_text(struct script_attributes *, const char *key, const char *text);

/* Writes {"resourceSpans":[…]} and a newline: a body of OTLP/HTTP, and a line of a spool. */
void script_write_otlp(const struct script_span *, const struct script_attributes *resource, struct text *out);
/* Writes a Batch in Thrift's binary protocol. */
void script_write_thrift(const struct script_span *, const char *service, const struct script_attributes *resource,
    struct text *out);

#endif
