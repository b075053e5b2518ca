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
/* What may wait for the database. */
enum { COLLECT_MOST_BEHIND_BYTES = 1 << 30 };

struct span_collector {
    struct span_collect_options o;
    const char *directory;   /* where the log lies */
    struct log *log;
    struct http_server *doors[SPAN_DOORS];   /* but SPAN_DOOR_GRPC */
    struct grpc_server *grpc;
    atomic_uint_least64_t in_work_bytes; /* of bodies that are taken apart */
    struct behind *behind;
    struct forward *forward;         /* or NULL */
    pthread_mutex_t lock;    /* guards what follows */
    pthread_cond_t given;
    VEC(struct span_store *) idle;       /* for questions */
    size_t taken;            /* by questions in work */
};

/* Brings what is in the log into the database, in a thread of its own. */
struct behind;
int behind_start(struct span_collector *, struct err *e);
void behind_stop(struct span_collector *);
/* Waits until what is in the log now is in the database, for some seconds at most, and not for one that fails. False:
 * it is not. */
bool behind_wait(struct span_collector *);
/* Why the database takes nothing now, or is late; "": it takes spans. */
void behind_problem(struct span_collector *, char *out, size_t n);

/* Sends what is in the log to another collector, if that is wanted, in a thread of its own. Before behind_start, which
 * lets the log go. */
struct forward;
int forward_start(struct span_collector *, struct err *e);
void forward_stop(struct span_collector *);
/* forward_self.c: once all doors are open. What a name that cannot be looked up now will mean is not known. */
bool forward_is_to_itself(const struct span_collector *);

/* Takes the bytes apart; what was taken is on disk when this returns 0. *making shows what it holds meanwhile. */
int collect_bytes(struct span_collector *, const void *body, size_t n, const struct text **making, span_reader *,
    struct span_told *, struct err *e);
/* The same with a body, unpacked if need be. */
int collect_take(struct span_collector *, struct http_request *, span_reader *, struct span_told *, struct err *e);
/* The status of a body that was not taken. */
int collect_status(int rc);
/* Is it that type, with parameters or without? */
bool collect_is_type(const char *given, const char *type);
/* The answer to what was taken: an ExportTraceServiceResponse as protobuf. */
void collect_write_taken(const struct span_told *, struct text *);
void collect_reply_plain(struct http_request *, int status, const char *why);

/* At this path, by the doors of OTLP and of questions. */
#define COLLECT_HEALTH "/health"
void collect_health(struct span_collector *, struct http_request *);

http_handler collect_otlp, collect_jaeger, collect_zipkin, collect_query;
grpc_handler collect_grpc;

#endif
