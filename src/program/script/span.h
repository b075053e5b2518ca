/* SPDX-License-Identifier: MIT */
/* A span, and how it is told: OTLP as one line of JSON, Jaeger's Thrift. */
#ifndef WEFT_SCRIPT_SPAN_H
#define WEFT_SCRIPT_SPAN_H

#include <stdbool.h>
#include <stdint.h>

#include "base/mem.h"
#include "script/context.h"

enum {
    SCRIPT_MOST_ATTRIBUTES = 128, /* of a span, of an event, of the resource; and so many events */
    SCRIPT_NAME_BYTES = 1024,     /* longer names are cut */
    SCRIPT_VALUE_BYTES = 4096,    /* longer values are cut */
};

/* All texts are borrowed, and need not be UTF-8. */
struct script_attribute {
    const char *key, *text;       /* text NULL: the number */
    int64_t number;
};
struct script_attributes { VEC(struct script_attribute) list; };
struct script_event { int64_t time_ns; const char *name; struct script_attributes attributes; };

/* As OTLP numbers them. */
enum { SCRIPT_INTERNAL = 1, SCRIPT_SERVER, SCRIPT_CLIENT, SCRIPT_PRODUCER, SCRIPT_CONSUMER };
enum { SCRIPT_UNSET, SCRIPT_OK, SCRIPT_ERROR };

struct script_span {
    struct script_context context;
    char parent_id[17];           /* "" of a root */
    const char *trace_state;      /* or NULL */
    const char *name;
    int kind, status;
    const char *message;          /* of the status, or NULL */
    int64_t start_ns, end_ns;     /* of the wall clock; the end is the start and what the monotonic clock says */
    int64_t monotonic_ns;         /* at the start; 0: unknown */
    const char *state;            /* "open", "lost", or NULL */
    long process;                 /* of an open span: the script's that began it; 0: not known */
    struct script_attributes attributes;
    VEC(struct script_event) events;
};

void script_span_fini(struct script_span *);
/* Beyond the limit nothing is added. */
void script_add_text(struct script_attributes *, const char *key, const char *text);
void script_add_number(struct script_attributes *, const char *key, int64_t);
/* Replaces what is there of this key. */
void script_set_text(struct script_attributes *, const char *key, const char *text);

/* {"resourceSpans":[…]} and a line's end: what OTLP/HTTP takes, and a line of a spool. */
void script_write_otlp(const struct script_span *, const struct script_attributes *resource, struct text *out);
/* A Batch in Thrift's binary protocol. */
void script_write_thrift(const struct script_span *, const char *service, const struct script_attributes *resource,
    struct text *out);

#endif
