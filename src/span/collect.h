/* Private to span: the collector's parts. */
#ifndef WEFT_SPAN_COLLECT_H
#define WEFT_SPAN_COLLECT_H

#include <pthread.h>
#include <stdatomic.h>

#include "http/http.h"
#include "span/database.h"
#include "span/log.h"

enum { COLLECT_MOST_BODY_BYTES = 64 << 20, COLLECT_MOST_IN_WORK_BYTES = 128 << 20 };

struct span_collector {
    struct span_collect_options o;
    struct log *log;
    struct http_server *doors[SPAN_DOORS];
    atomic_uint_least64_t in_work_bytes; /* of bodies that are taken apart */
    struct behind *behind;
    pthread_mutex_t lock;    /* guards `idle` */
    VEC(struct span_store *) idle;       /* for questions */
};

/* Brings what is in the log into the database, in a thread of its own. */
struct behind;
int behind_start(struct span_collector *, struct err *e);
void behind_stop(struct span_collector *);
/* Waits until what is in the log now is in the database, for some seconds at most. */
void behind_wait(struct span_collector *);

/* What was made is on disk when this returns 0. */
int collect_keep(struct span_collector *, const struct span_making *, struct err *e);
/* A body of so many bytes may be taken apart now; false: later. */
bool collect_may_work(struct span_collector *, uint64_t bytes);
void collect_worked(struct span_collector *, uint64_t bytes);

http_handler collect_otlp, collect_query;

#endif
