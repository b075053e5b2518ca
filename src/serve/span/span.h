/* SPDX-License-Identifier: MIT */
/* Spans: what a span is, reading them from files and from the store that a collector keeps, and the collector. The only
 * room that includes sqlite3, libpq and protobuf-c. */
#ifndef WEFT_SPAN_SPAN_H
#define WEFT_SPAN_SPAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/text.h"

/* ---- what a span is ----
 *
 * OpenTelemetry's model. All of it lies in one arena and is not changed once made. No pointer to a text is NULL ("":
 * there is none), and texts are UTF-8; names, keys and services hold no NUL. Times are ns since the epoch. */

enum { SPAN_TRACE_BYTES = 16, SPAN_ID_BYTES = 8 };
enum span_type { SPAN_EMPTY, SPAN_STRING, SPAN_BOOL, SPAN_INT, SPAN_DOUBLE, SPAN_BYTES, SPAN_ARRAY, SPAN_MAP };

struct span_value;
struct span_attribute;
/* In the order in which they came; of each key one. */
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
/* weft-span tells spans before they end. Of the same ids the later one here counts. */
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
/* Who it was that made spans: a process (its resource), and the library within (its scope). */
struct span_origin {
    const char *service;     /* "unknown_service" where none is told */
    struct span_attributes resource;    /* service.name included, if it is told */
    uint32_t resource_dropped;
    const char *resource_schema;
    const char *scope, *scope_version;
    struct span_attributes scope_attributes;
    uint32_t scope_dropped;
    const char *scope_schema;
};
struct span {
    uint8_t trace_id[SPAN_TRACE_BYTES], id[SPAN_ID_BYTES], parent_id[SPAN_ID_BYTES]; /* parent all zero: none */
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
    const struct span_origin *origin;            /* several spans share one */
};

/* Of that key, or NULL. */
const struct span_value *span_find(const struct span_attributes *, const char *key);
/* The value as a text: strings as they are, bytes as base64, arrays and maps as JSON; lies in the arena or is the
 * value's own. */
const char *span_value_text(const struct span_value *, struct arena *);
bool span_id_is_zero(const void *id, size_t bytes);
void span_write_hex(struct text *, const void *id, size_t bytes);
/* False: these are not `bytes` bytes of hexadecimal digits, of either case. */
bool span_read_hex(const char *s, size_t n, void *id, size_t bytes);

struct span_list { const struct span **v; size_t n, cap; }; /* zero-initialise; free(v) */
/* What was left out, and what was put right, of what somebody sent. */
struct span_told {
    uint64_t taken, refused, repaired;
    char why[256];           /* the first span's that was refused; "" */
    char warning[256];       /* what a saved answer says of itself, for example that it was cut off; "" */
};
/* Reads a file of JSON, plain or packed by gzip: OTLP (an object with "resourceSpans", several in an array, or one a
 * line as the spool of weft-span), answers and downloads of Jaeger, arrays of Zipkin's spans. Spans that cannot be (ids
 * of zeros, times beyond 2262) are left out and told. Identical ones are there once each. ERR_FORMAT: no spans in a
 * known format. */
int span_read_file(const char *path, struct arena *, struct span_list *out, struct span_told *told, struct err *e);

/* The .json and .jsonl files in a directory, also packed (.gz), by name, which in a spool is by time.
 * ERR_NOTFOUND: none are. */
int span_list_files(const char *directory, struct arena *, const char *const **out, size_t *n, struct err *e);

/* ---- the store ---- */

/* A directory, or the URL of a PostgreSQL database (docs/formats/spans.md). Not thread-safe; several may be open at
 * once, in several processes. */
struct span_store;
/* postgresql://… */
bool span_store_is_url(const char *store);
/* As it may be shown: a URL without its password. free() it. */
char *span_store_shown(const char *store);
/* For reading. ERR_NOTFOUND: there is none; ERR_UNSUPPORTED: of a newer weft. */
int span_store_open(const char *store, struct span_store **out, struct err *e);
void span_store_close(struct span_store *);

/* All that is set must hold. Zero-initialised: every span. */
struct span_query {
    const uint8_t *trace_id; /* or NULL */
    const char *service, *name;         /* or NULL */
    bool by_time;            /* begin within [begin_ns, end_ns) counts */
    int64_t begin_ns, end_ns;
    int64_t least_ns, most_ns;          /* how long it took; most_ns 0: any time */
    bool newest_first;       /* by begin; otherwise the oldest first */
    bool any_order;          /* as they lie there: nothing is sorted, which for all of many takes most of the time */
    uint64_t limit;          /* 0: none */
    /* With newest_first: spans that have neither number of one of these may be left out; others are still to be looked
     * at (span_term). Borrowed until span_select returns. */
    const struct span_wanted { uint64_t term, any; } *wanted;
    size_t n_wanted;
};
/* What is stored when it begins; others may write meanwhile. */
struct span_cursor;
int span_select(struct span_store *, const struct span_query *, struct span_cursor **out, struct err *e);
/* *out NULL: no more. The span lies in the arena; its origin lives as long as the cursor. */
int span_next(struct span_cursor *, struct arena *, const struct span **out, struct err *e);
/* No more of it than most analyses read: ids, times, kind, status, life, name, links, and such attributes as are
 * wanted. */
typedef bool span_wants(const void *which, const char *key, size_t n);
int span_next_brief(struct span_cursor *, struct arena *, span_wants *, const void *which, const struct span **out,
    struct err *e);
void span_cursor_close(struct span_cursor *); /* before its store */

/* ---- the collector ---- */

/* Takes spans in, and answers Jaeger's questions about them. */
struct span_collect_options {
    const char *store;       /* the directory, or a URL, for which `directory` is needed: where its log lies */
    const char *directory;
    /* "127.0.0.1:4318"; port 0: any free one; NULL: none. */
    const char *otlp_http, *otlp_grpc, *jaeger, *zipkin, *query;
    const char *tls_cert, *tls_key, *token;     /* as of http_options; or NULL */
    const char *const *origins, *const *hosts;
    int64_t keep_ns;         /* spans that came longer ago go; 0: none */
    uint64_t keep_bytes;     /* the oldest go while the database is larger; 0: none */
    /* URL of another collector's OTLP over HTTP, which gets all that comes from now on; or NULL. */
    const char *forward;
    const char *forward_token, *forward_ca;     /* shown to it; PEM file of who signed its certificate; or NULL */
    uint64_t forward_spool_bytes;       /* that wait for it at most; the oldest go then */
    void (*tell)(const char *what);     /* of what goes on behind: from threads of its own */
};
enum span_door { SPAN_DOOR_OTLP, SPAN_DOOR_GRPC, SPAN_DOOR_JAEGER, SPAN_DOOR_ZIPKIN, SPAN_DOOR_QUERY, SPAN_DOORS };
struct span_collector;
int span_collect_start(const struct span_collect_options *, struct span_collector **out, struct err *e);
/* "http://127.0.0.1:4318", or NULL: it is not open. */
const char *span_collect_address(const struct span_collector *, enum span_door);
/* Answers what was asked, brings what was acknowledged into the database if that can be, frees everything. */
void span_collect_stop(struct span_collector *);

#endif
