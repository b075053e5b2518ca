/* SPDX-License-Identifier: MIT */
/* Private to bus: the connection to a NATS server, and JetStream requests shared by tables and queues. */
#ifndef WEFT_BUS_BROKER_H
#define WEFT_BUS_BROKER_H

#include <nats/nats.h>

#include "base/mem.h"
#include "bus/wire.h"

/* Ended subscription. libnats 3.4 may still look at one while its reader takes a message from the socket, so it is
 * destroyed some time later. */
struct broker_ended { natsSubscription *sub; int64_t when_ns; };

struct broker {
    struct wire wire;
    natsConnection *nc;
    jsCtx *js;
    wire_changed *changed;
    void *arg;
    char *where;               /* servers, without users and passwords */
    char inboxes[INBOXES_ROOM]; /* "_INBOX", with credentials of a user "_INBOX.USER": others may not listen there */
    int64_t timeout_ns;
    int64_t replicas;          /* see bus_options */
    atomic_bool closed;        /* set by bus_close */
    atomic_uint_fast64_t epoch;
    pthread_mutex_t lock;      /* guards all below */
    pthread_cond_t change;
    bool gone;                 /* the library will never call back again */
    VEC(struct broker_ended) ended; /* oldest first */
    struct strings lacking;    /* rights that the broker refused: "publish to \"SUBJECT\"" */
};

/* broker_options.c: makes the options of the connection; natsOptions_Destroy ends them. *where: free() it. */
int bus_broker_options(const struct bus_options *, struct broker *, natsOptions **out, char **where, struct err *);

/* ---- broker_ask.c ---- */

enum { BUS_BROKER_AGAIN_MS = 50 }; /* pause before another attempt */
struct broker *bus_broker_of(struct bus *);
/* Takes note that the broker refused a right; text: its message. */
void bus_broker_lacks(struct broker *, const char *text);
/* Finds a missing right whose subject contains the word. Returns false if there is none. */
bool bus_broker_right(struct broker *, const char *word, char *out, size_t n);
/* Fills e for a call that failed; `what`: its object ("table x"). */
int bus_broker_fail(struct broker *, natsStatus, jsErrCode, struct err *, const char *what);
/* Fills e for a call without a connection; what: its object, or NULL. code: the usual one. Returns e->code. */
int bus_broker_fail_away(struct broker *, int code, struct err *, const char *what);
bool bus_broker_is_connected(struct broker *);
/* Waits for a connection. ERR_TIMEOUT, ERR_CANCELLED. */
int bus_broker_await(struct broker *, int64_t deadline_ns, struct err *);
int64_t bus_broker_deadline(const struct broker *); /* default for operations without a deadline */
int64_t bus_broker_ms_until(int64_t deadline_ns);   /* at least 1 */

/* Request to JetStream. It is repeated until the deadline while there is no connection or JetStream is starting.
 * Returns 0, or the status of the last attempt. */
typedef natsStatus broker_step(void *arg, jsOptions *, jsErrCode *);
struct broker_attempt {
    broker_step *step;
    void *arg;
    const char *what;
    bool once;                 /* not repeated if it may have been done */
    jsErrCode code;            /* code of the last attempt; 0: none */
    natsStatus status;
};
int bus_broker_try(struct broker *, struct broker_attempt *, int64_t deadline_ns, struct err *);
/* Does the same until there is any answer, even one that may be different a moment later. */
int bus_broker_once(struct broker *, struct broker_attempt *, int64_t deadline_ns, struct err *);

/* Gives the stream the number of replicas asked for, unless it has more. */
int bus_broker_replicate(struct broker *, const char *stream, const char *what, int64_t deadline_ns, struct err *);

/* JetStream's data on a message, from its reply subject. */
struct bus_broker_mark { uint64_t delivered, stream_seq, consumer_seq, pending; int64_t time_ns; };
bool bus_broker_mark(const char *reply, struct bus_broker_mark *out);

/* ---- broker.c ---- */

/* Subscription whose handler gets the library's message, and must destroy it. */
typedef void broker_handler(void *arg, natsMsg *);
int bus_broker_subscribe_raw(struct broker *, const char *subject, broker_handler *, void (*ended)(void *), void *arg,
    struct wire_sub **out, struct err *);
void bus_broker_unsubscribe(struct wire_sub *);
/* Replaces natsSubscription_Destroy, after natsSubscription_Unsubscribe. */
void bus_broker_destroy_later(struct broker *, natsSubscription *);

/* Makes a subject for deliveries to this connection. */
enum { BROKER_INBOX = INBOXES_ROOM + 48 };
void bus_broker_inbox(const struct broker *, char out[BROKER_INBOX]);

/* broker_table.c, broker_watch.c */
int bus_broker_table_open(struct bus *, const char *name, const struct bus_table_options *, struct bus_table **,
    struct err *);
void bus_broker_table_close(struct bus_table *);
int bus_broker_table_put(struct bus_table *, const char *key, const void *data, size_t n, const uint64_t *expected,
    uint64_t *revision, struct err *);
int bus_broker_table_get(struct bus_table *, const char *key, void **data, size_t *n, uint64_t *revision, struct err *);
int bus_broker_table_remove(struct bus_table *, const char *key, struct err *);
int bus_broker_table_all(struct bus_table *, bus_entry_handler *, void *arg, struct err *);
int bus_broker_table_version(struct bus_table *, uint64_t *version, struct err *);
int bus_broker_table_watch(struct bus_table *, const char *key, bus_entry_handler *, void *arg, struct bus_watch **,
    struct err *);
void bus_broker_watch_stop(struct bus_watch *);

struct broker_table {
    struct bus_table base;
    struct broker *broker;
    char name[80], stream[96], what[96];
    bool memory;
    int64_t ttl_ns;            /* wanted lifetime */
    _Atomic int64_t real_ttl_ns; /* lifetime that its maker gave it */
};
/* Makes the stream if it does not exist. */
int bus_broker_table_make(struct broker_table *, int64_t deadline_ns, struct err *);
/* Sends everything from now on, first the last value of each key, to that subject. *pending: number of these values. */
int bus_broker_table_follow(struct broker_table *, const char *key, const char *deliver, int64_t deadline_ns,
    uint64_t *pending, struct err *);
/* Decodes a message as an entry, whose key points into the message. Returns false for a sign of life, which is no
 * entry. */
bool bus_broker_table_entry(const struct broker_table *, natsMsg *, struct bus_entry *out,
    struct bus_broker_mark *mark);

/* broker_queue.c */
int bus_broker_queue_open(struct bus *, const char *name, const struct bus_queue_options *, struct bus_queue **,
    struct err *);
void bus_broker_queue_close(struct bus_queue *);
int bus_broker_queue_add(struct bus_queue *, const char *id, const void *data, size_t n, bool *fresh, struct err *);
int bus_broker_queue_take(struct bus_queue *, int64_t deadline_ns, struct bus_item **, struct err *);
int bus_broker_queue_state(struct bus_queue *, struct bus_queue_state *, struct err *);
int bus_broker_item_done(struct bus_item *, struct err *);
void bus_broker_item_again(struct bus_item *);
void bus_broker_item_forget(struct bus_item *);
void bus_broker_item_working(struct bus_item *);

#endif
