/* SPDX-License-Identifier: MIT */
/* Private to span: the collector's parts. */
#ifndef WEFT_SPAN_COLLECT_H
#define WEFT_SPAN_COLLECT_H

#include <pthread.h>
#include <stdatomic.h>

#include "http/grpc.h"
#include "http/http.h"
#include "span/database.h"
#include "span/log.h"
#include "span/read.h"

enum { COLLECT_MOST_BODY_BYTES = 64 << 20, COLLECT_MOST_IN_WORK_BYTES = 128 << 20 };
/* Limit of the bytes in the log that are not in the database yet. */
enum { COLLECT_MOST_BEHIND_BYTES = 1 << 30 };

struct span_collector {
    struct span_collect_options o;
    const char *directory;   /* directory of the log */
    struct log *log;
    struct http_server *doors[SPAN_DOORS];   /* servers; SPAN_DOOR_GRPC has none */
    struct grpc_server *grpc;
    atomic_uint_least64_t in_work_bytes; /* bytes of the bodies being parsed */
    struct behind *behind;
    struct forward *forward;         /* NULL: no forwarding */
    pthread_mutex_t lock;    /* guards the fields below */
    pthread_cond_t given;
    VEC(struct span_store *) idle;       /* connections for queries */
    size_t taken;            /* connections in use by queries */
};

/* Log applier: writes the log's records to the database, in its own thread. */
struct behind;
int behind_start(struct span_collector *, struct err *e);
void behind_stop(struct span_collector *);
/* Waits until all records now in the log are in the database: some seconds at most, and not while the database fails.
 * Returns false if they are not. */
bool behind_wait(struct span_collector *);
/* Reports why the database accepts no spans or is late; "": it accepts spans. */
void behind_problem(struct span_collector *, char *out, size_t n);

/* Forwarder: sends the log's records to another collector, in its own thread. No-op if no forwarding is wanted. Start
 * it before behind_start, which releases log files. */
struct forward;
int forward_start(struct span_collector *, struct err *e);
void forward_stop(struct span_collector *);
/* Returns whether the target of forwarding is this collector (forward_self.c). Call it once all doors are open. A name
 * that does not resolve now counts as another's. */
bool forward_is_to_itself(const struct span_collector *);

/* Parses bytes and appends their spans to the log. On return of 0, taken spans are on disk. *making: the spans, while
 * this runs. */
int collect_bytes(struct span_collector *, const void *body, size_t n, const struct text **making, span_reader *,
    struct span_told *, struct err *e);
/* Takes a request's body with collect_bytes, unpacked if necessary. */
int collect_take(struct span_collector *, struct http_request *, span_reader *, struct span_told *, struct err *e);
/* Returns the HTTP status for a body that was not taken. */
int collect_status(int rc);
/* Returns whether the content type is `type`, with or without parameters. */
bool collect_is_type(const char *given, const char *type);
/* Writes the answer to taken spans: an ExportTraceServiceResponse as protobuf. */
void collect_write_taken(const struct span_told *, struct text *);
void collect_reply_plain(struct http_request *, int status, const char *why);

/* Path of the health check, on the doors of OTLP and of queries. */
#define COLLECT_HEALTH "/health"
void collect_health(struct span_collector *, struct http_request *);

http_handler collect_otlp, collect_jaeger, collect_zipkin, collect_query;
grpc_handler collect_grpc;

#endif
