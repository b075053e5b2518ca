/* SPDX-License-Identifier: MIT */
/* Spans: the model, readers of files and of the collector's store, and the collector. Only this room includes sqlite3,
 * libpq and protobuf-c. */
#ifndef WEFT_SPAN_SPAN_H
#define WEFT_SPAN_SPAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/text.h"

/* ---- model ----
 *
 * OpenTelemetry's model. A span and all it refers to lie in one arena, and do not change once made. Pointers to texts
 * are never NULL ("": absent). Texts are UTF-8; names, keys and services hold no NUL. Times are ns since the epoch. */

enum { SPAN_TRACE_BYTES = 16, SPAN_ID_BYTES = 8 };
enum span_type { SPAN_EMPTY, SPAN_STRING, SPAN_BOOL, SPAN_INT, SPAN_DOUBLE, SPAN_BYTES, SPAN_ARRAY, SPAN_MAP };

struct span_value;
struct span_attribute;
/* Attributes in order of arrival; each key occurs once. */
struct span_attributes { const struct span_attribute *v; size_t n; };
struct span_values { const struct span_value *v; size_t n; };
struct span_value {
    enum span_type type;
    union {
        struct { const char *v; size_t n; } text;  /* SPAN_STRING (may hold NUL), SPAN_BYTES; terminated */
        bool truth;
        int64_t number;
        double real;
        struct span_values array;
        struct span_attributes map;
    };
};
struct span_attribute { const char *key; struct span_value value; };

enum span_kind { SPAN_UNSPECIFIED, SPAN_INTERNAL, SPAN_SERVER, SPAN_CLIENT, SPAN_PRODUCER, SPAN_CONSUMER };
enum span_status { SPAN_UNSET, SPAN_OK, SPAN_ERROR };
/* State of a span: weft-span reports spans before they end. For equal ids, the later state of this list wins. */
enum span_life { SPAN_OPEN, SPAN_LOST, SPAN_ENDED };

struct span_event {
    int64_t time_ns;
    const char *name;
    struct span_attributes attributes;
    uint32_t dropped_attributes;
};
struct span_link {
    uint8_t trace_id[SPAN_TRACE_BYTES], id[SPAN_ID_BYTES];
    const char *state;       /* W3C tracestate */
    struct span_attributes attributes;
    uint32_t dropped_attributes, flags;
};
/* Origin of spans: a process (its resource) and a library in it (its scope). */
struct span_origin {
    const char *service;     /* "unknown_service" if absent */
    struct span_attributes resource;    /* includes service.name, if present */
    uint32_t resource_dropped;
    const char *resource_schema;
    const char *scope, *scope_version;
    struct span_attributes scope_attributes;
    uint32_t scope_dropped;
    const char *scope_schema;
};
struct span {
    uint8_t trace_id[SPAN_TRACE_BYTES], id[SPAN_ID_BYTES], parent_id[SPAN_ID_BYTES]; /* parent_id all zero: none */
    int64_t begin_ns, end_ns; /* begin <= end */
    enum span_kind kind;
    enum span_status status;
    enum span_life life;
    const char *name, *status_message, *state;   /* state: W3C tracestate */
    uint32_t flags;                              /* W3C's in the lowest 8 bits */
    struct span_attributes attributes;
    const struct span_event *events;
    const struct span_link *links;
    size_t n_events, n_links;
    uint32_t dropped_attributes, dropped_events, dropped_links;
    const struct span_origin *origin;            /* shared by several spans */
};

/* Returns the value of the key, or NULL. */
const struct span_value *span_find(const struct span_attributes *, const char *key);
/* Returns the value as a text: strings as they are, bytes as base64, arrays and maps as JSON. The text lies in the
 * arena or is the value's own. */
const char *span_value_text(const struct span_value *, struct arena *);
bool span_id_is_zero(const void *id, size_t bytes);
void span_write_hex(struct text *, const void *id, size_t bytes);
/* Reads hexadecimal digits of either case. Returns false if these do not make exactly `bytes` bytes. */
bool span_read_hex(const char *s, size_t n, void *id, size_t bytes);

struct span_list { const struct span **v; size_t n, cap; }; /* zero-initialise; free(v) */
/* Report about received data: spans taken, refused and repaired. */
struct span_told {
    uint64_t taken, refused, repaired;
    char why[256];           /* reason for the first refused span; "" */
    char warning[256];       /* report in a saved answer about itself, for example that it is incomplete; "" */
};
/* Reads a file of JSON, plain or gzip: OTLP (an object with "resourceSpans", an array of these, or one a line as in the
 * spool of weft-span), answers and downloads of Jaeger, arrays of Zipkin spans. Skips and reports impossible spans (ids
 * of zeros, times beyond 2262). Identical spans are returned once. ERR_FORMAT: no spans in a known format. */
int span_read_file(const char *path, struct arena *, struct span_list *out, struct span_told *told, struct err *e);

/* Lists the .json and .jsonl files of a directory, also packed (.gz), by name; in a spool, that is by time.
 * ERR_NOTFOUND: there are none. */
int span_list_files(const char *directory, struct arena *, const char *const **out, size_t *n, struct err *e);

/* ---- the store ---- */

/* Store: a directory, or the URL of a PostgreSQL database (docs/formats/spans.md). Not thread-safe. A process may open
 * several, and several processes may open one. */
struct span_store;
/* Returns whether the store is a URL: postgresql://… */
bool span_store_is_url(const char *store);
/* Returns the store's name for display: a URL without its password. free() it. */
char *span_store_shown(const char *store);
/* Opens for reading. ERR_NOTFOUND: no such store; ERR_UNSUPPORTED: written by a newer weft. */
int span_store_open(const char *store, struct span_store **out, struct err *e);
void span_store_close(struct span_store *);

/* Query: all conditions that are set must hold. Zero-initialised: every span. */
struct span_query {
    const uint8_t *trace_id; /* NULL: any */
    const char *service, *name;         /* NULL: any */
    bool by_time;            /* begin must be within [begin_ns, end_ns) */
    int64_t begin_ns, end_ns;
    int64_t least_ns, most_ns;          /* limits of the duration; most_ns 0: none */
    bool newest_first;       /* order by begin, newest first; otherwise oldest first */
    bool any_order;          /* order of storage: sorting many spans would take most of the time */
    uint64_t limit;          /* 0: none */
    /* Terms that must match, with newest_first. A span with neither number of a pair may be left out. Returned spans
     * may lack a term, so the caller checks them (span_term). Borrowed until span_select returns. */
    const struct span_wanted { uint64_t term, any; } *wanted;
    size_t n_wanted;
};
/* Cursor: reads a snapshot as of span_select; other processes may write meanwhile. */
struct span_cursor;
int span_select(struct span_store *, const struct span_query *, struct span_cursor **out, struct err *e);
/* Reads the next span. *out NULL: no more. The span lies in the arena; its origin lives as long as the cursor. */
int span_next(struct span_cursor *, struct arena *, const struct span **out, struct err *e);
/* Reads only what most analyses need: ids, times, kind, status, life, name, links, and attributes that span_wants
 * accepts. */
typedef bool span_wants(const void *which, const char *key, size_t n);
int span_next_brief(struct span_cursor *, struct arena *, span_wants *, const void *which, const struct span **out,
    struct err *e);
void span_cursor_close(struct span_cursor *); /* call it before span_store_close */

/* ---- the collector ---- */

/* Collector: receives spans and answers queries of Jaeger's interfaces. */
struct span_collect_options {
    const char *store;       /* a directory; or a URL, which needs `directory` for the log */
    const char *directory;
    /* Addresses to listen on: "127.0.0.1:4318"; port 0: any free one; NULL: none. */
    const char *otlp_http, *otlp_grpc, *jaeger, *zipkin, *query;
    const char *tls_cert, *tls_key, *token;     /* see http_options; NULL: none */
    const char *const *origins, *const *hosts;
    int64_t keep_ns;         /* delete spans received longer ago than this; 0: never */
    uint64_t keep_bytes;     /* delete the oldest spans while the database is larger; 0: never */
    /* URL of another collector (OTLP/HTTP), to which all spans received from now on are forwarded; or NULL. */
    const char *forward;
    const char *forward_token, *forward_ca;     /* token sent to it; PEM file of its CA; or NULL */
    uint64_t forward_spool_bytes;       /* limit of its backlog; beyond it, the oldest are dropped */
    void (*tell)(const char *what);     /* reports background events, from its own threads */
};
enum span_door { SPAN_DOOR_OTLP, SPAN_DOOR_GRPC, SPAN_DOOR_JAEGER, SPAN_DOOR_ZIPKIN, SPAN_DOOR_QUERY, SPAN_DOORS };
struct span_collector;
int span_collect_start(const struct span_collect_options *, struct span_collector **out, struct err *e);
/* Returns the address, "http://127.0.0.1:4318"; NULL: the door is not open. */
const char *span_collect_address(const struct span_collector *, enum span_door);
/* Finishes requests in progress, writes acknowledged spans to the database if possible, and frees everything. */
void span_collect_stop(struct span_collector *);

#endif
