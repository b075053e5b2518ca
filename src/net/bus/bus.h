/* SPDX-License-Identifier: MIT */
/* What the nodes of a cluster tell each other: questions and answers, news, tables, who is there, work to share. Two
 * implementations: a hub inside this process ("local:NAME": tests, one machine), and NATS. The only room that includes
 * nats.h. docs/cluster-protocol.md says what is on the wire.
 *
 * All functions are thread-safe. Deadlines are ns of the monotonic clock (time_monotonic_ns). Nothing waits for ever:
 * what has no deadline of its own takes at most bus_options.timeout_ns. Handlers and watchers run on threads of the
 * bus, one for each thing served, listened to or watched: one that takes long holds up its own next messages and nobody
 * else's. They may call everything here, also what stops themselves. What stops a handler returns when it does not run
 * any more (unless called by it), so two handlers must not stop each other.
 *
 * A subject is dotted tokens of letters, digits, '_', '-' and '='; bus_token makes one of any name. */
#ifndef WEFT_BUS_BUS_H
#define WEFT_BUS_BUS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

enum { BUS_MAX_SUBJECT = 255, BUS_MAX_SAID = 4096, BUS_MAX_NAME = 255 }; /* bytes */

struct bus_options {
    const char *url;       /* "nats://HOST:PORT[,nats://…]", "tls://…", or "local:NAME" */
    const char *name;      /* what the broker calls this connection; or NULL */
    const char *creds;     /* files, or NULL: NATS credentials (JWT and seed); */
    const char *token;     /* its first line is a token; */
    const char *user;      /* its first line is USER:PASSWORD; */
    const char *tls_ca, *tls_cert, *tls_key; /* PEM; the system's authorities when there is no tls_ca */
    int64_t timeout_ns;    /* of connecting, and of what has no deadline; 0: 5 s */
    size_t max_message_bytes; /* of a question or an answer, of this node and of others; 0: 64 MiB */
    /* Brokers that keep each table and queue, so that they survive the loss of fewer than half of them: 1 to 5; more
     * than there are brokers is an error of the table. One that has fewer is given as many; 0: as its maker said, or 1.
     */
    unsigned replicas;
    bool signed_only;      /* what is bound (bus_bind) and has no key is not asked */
    /* Or NULL. Called by any thread: something that people should know. No secrets. */
    void (*tell)(void *arg, const char *what);
    void *tell_arg;
    bool later;            /* bus_open succeeds also when no broker takes this node yet: it goes on connecting */
};

/* Connects once; from then on reconnects by itself for ever, and all that is served, listened to, watched or joined
 * survives. ERR_ARG: the URL or a file; ERR_TIMEOUT: no connection in timeout_ns; ERR_IO: the broker refused it. No
 * message has a secret, nor the user of a URL. */
struct bus;
int bus_open(const struct bus_options *, struct bus **out, struct err *e);
/* After everything opened here was stopped, but for calls and questions: those end (ERR_CANCELLED, no answer). */
void bus_close(struct bus *);
bool bus_connected(struct bus *);
/* Why there is no connection now; 0: there is one. ERR_TIMEOUT: it goes on connecting. ERR_UNSUPPORTED: the broker
 * refused the credentials, and it tries no more. */
int bus_trouble(struct bus *, struct err *e);
/* The address of this machine on its way to the broker, without a port, an IPv6 one without brackets; "": not known. */
enum { BUS_ADDRESS = 64 };
void bus_local_address(struct bus *, char buf[BUS_ADDRESS]);
size_t bus_max_payload(struct bus *);         /* bytes that one news or table value may have */

/* A token that no other name has: "web-1.example" is "web-1=2Eexample". ERR_LIMIT when it does not fit into n bytes. */
int bus_token(const char *name, char *buf, size_t n);
int bus_untoken(const char *token, char *buf, size_t n);    /* ERR_FORMAT: bus_token did not make it */

/* ---- questions ---- */

/* The deadline is what is left of the asker's; an answer after it is sent in vain. */
struct bus_question { const void *data; size_t n; int64_t deadline_ns; };
/* Answers now or later, from any thread, exactly once: bus_answer or bus_refuse. */
typedef void bus_question_handler(void *arg, struct bus_question *);
struct bus_serve_options {
    unsigned max_open;     /* questions that wait for their answer, or for their other parts; 0: 64. More: ERR_BUSY */
    size_t max_bytes;      /* of them; 0: 4 × max_message_bytes. More: ERR_BUSY */
};
struct bus_service;
/* Where several serve one subject, each gets the question, and the first answer counts. */
int bus_serve(struct bus *, const char *subject, const struct bus_serve_options * /* or NULL */, bus_question_handler *,
    void *arg, struct bus_service **out, struct err *e);
/* Questions that wait can still be answered; one that is on its way is lost. */
void bus_stop(struct bus_service *);
/* Both free the question, also when they fail: ERR_LIMIT (beyond max_message_bytes; the asker is told), ERR_IO. */
int bus_answer(struct bus_question *, const void *data, size_t n, struct err *e);
void bus_refuse(struct bus_question *, int code, const char *text);

/* Many questions at once, and their answers in the order in which they come. */
struct bus_calls;
struct bus_calls *bus_calls_new(struct bus *);
void bus_calls_free(struct bus_calls *);     /* what is still to come is dropped */
/* Sends (keeping the data until connected, if it must be); whatever fails is told as a reply. Returns the number of
 * calls without a reply that was fetched, this one included. */
size_t bus_call(struct bus_calls *, const char *subject, const void *data, size_t n, int64_t deadline_ns, uint64_t tag);
/* code: 0; ERR_NOTFOUND, nobody serves the subject (told at once); ERR_TIMEOUT; ERR_FORMAT, what came is no answer or
 * not whole; ERR_LIMIT, too large; ERR_BUSY; ERR_CANCELLED; ERR_IO; what the other refused with. */
struct bus_reply {
    uint64_t tag;
    int code;
    char text[256];        /* says what code means; "" for 0 */
    void *data;            /* the caller's; NULL when n is 0 */
    size_t n;
    uint64_t sent_bytes, received_bytes;     /* payloads on the wire, with their frames */
    unsigned sent_messages, received_messages;
};
/* Waits for the next; false: none is outstanding. */
bool bus_calls_next(struct bus_calls *, struct bus_reply *);
void bus_reply_free(struct bus_reply *);     /* its data */
/* One question and its answer. Returns reply->code. */
int bus_ask(struct bus *, const char *subject, const void *data, size_t n, int64_t deadline_ns, struct bus_reply *);

/* Binds the answers of all that is served under BELOW.TOKEN, from now on, to who serves it: bus_serve makes a key pair
 * (Ed25519) and puts the public half into the table, key TOKEN. Calls take the answers and refusals only that are
 * signed by it for their question, and wait on when others come. That is worth as much as the broker's permissions on
 * the table. What has no key is asked as if it were not bound, and reported (bus_options.tell); with
 * bus_options.signed_only it is not asked: ERR_UNSUPPORTED. The same again is nothing new. */
int bus_bind(struct bus *, const char *below, const char *table, struct err *e);

/* ---- news ---- */

/* To whoever listens now; lost where nobody does, or while the broker is away for longer. ERR_LIMIT beyond
 * bus_max_payload. */
int bus_publish(struct bus *, const char *subject, const void *data, size_t n, struct err *e);
typedef void bus_listener(void *arg, const char *subject, const void *data, size_t n);
struct bus_listening;
/* The subject may have '*' for one token and end in '>' for one or more. */
int bus_listen(struct bus *, const char *subject, bus_listener *, void *arg, struct bus_listening **out, struct err *e);
void bus_unlisten(struct bus_listening *);

/* ---- tables: the last value of each key ---- */

struct bus_table_options {
    int64_t ttl_ns;        /* entries vanish so long after their last put; 0: never; at least 100 ms */
    bool memory;           /* the broker need not keep it over a restart */
};
/* Makes the table if there is none; else its first maker's options hold. Name: letters, digits, '_', '-'; key: as a
 * subject. Values up to bus_max_payload, else ERR_LIMIT. All return ERR_TIMEOUT when the broker is away; what failed so
 * may have been done nevertheless. */
struct bus_table;
int bus_table_open(struct bus *, const char *name, const struct bus_table_options * /* or NULL */,
    struct bus_table **out, struct err *e);
void bus_table_close(struct bus_table *);
int bus_table_put(struct bus_table *, const char *key, const void *data, size_t n, uint64_t *revision, struct err *e);
/* If the key's revision is still `expected` (0: it has no value); ERR_STALE otherwise. */
int bus_table_put_if(struct bus_table *, const char *key, const void *data, size_t n, uint64_t expected,
    uint64_t *revision, struct err *e);
/* The value is the caller's to free(), terminated by a byte 0 beyond n. ERR_NOTFOUND. Outputs but the value may be
 * NULL. */
int bus_table_get(struct bus_table *, const char *key, void **data, size_t *n, uint64_t *revision, struct err *e);
/* 0 also if there was none. */
int bus_table_remove(struct bus_table *, const char *key, struct err *e);

enum bus_entry_kind {
    BUS_ENTRY_PUT,
    BUS_ENTRY_REMOVED,     /* or its time was over */
    BUS_ENTRY_ALL,         /* no entry: all that the table holds has been told */
    BUS_ENTRY_ANEW,        /* no entry: the broker was away. What the table holds now is told again up to the next ALL;
                            * what is not, is no more: whoever owns such an entry puts it again */
};
/* Valid during the call; data NULL unless PUT. */
struct bus_entry { enum bus_entry_kind kind; const char *key; const void *data; size_t n; uint64_t revision; };
typedef void bus_entry_handler(void *arg, const struct bus_entry *);
/* All entries now, in the caller's thread; no marker. What changes meanwhile may be told twice, the later one as it is
 * then, or REMOVED. */
int bus_table_all(struct bus_table *, bus_entry_handler *, void *arg, struct err *e);
/* A number that is another one after each change of the table, also after somebody purged it: who read it all, and
 * finds the number that it was before, need not read it again. Expiry of entries changes it at NATS alone. */
int bus_table_version(struct bus_table *, uint64_t *version, struct err *e);
/* All entries, ALL, then each change; of several changes of one key at once perhaps only the last. Succeeds also while
 * the broker is away. Stop it before the table is closed. */
struct bus_watch;
int bus_table_watch(struct bus_table *, bus_entry_handler *, void *arg, struct bus_watch **out, struct err *e);
/* As bus_table_watch, but of one key: of the others nothing is sent here. Also tells within 15 s that somebody purged
 * the entry behind everybody's back, which is not sent. */
int bus_table_watch_key(struct bus_table *, const char *key, bus_entry_handler *, void *arg, struct bus_watch **out,
    struct err *e);
void bus_watch_stop(struct bus_watch *);

/* ---- members: who is there ---- */

struct bus_member;
/* Says that `name` is there, again each period, until it leaves. instance: what no other has, not even the same node
 * after a restart. Both up to BUS_MAX_NAME. `cluster` is a subject; subjects below it are used. */
int bus_join(struct bus *, const char *cluster, const char *name, const char *instance, int64_t period_ns,
    struct bus_member **out, struct err *e);
/* What is told with it, up to BUS_MAX_SAID bytes (ERR_LIMIT). Sent at once. */
int bus_member_say(struct bus_member *, const void *data, size_t n, struct err *e);
void bus_leave(struct bus_member *);         /* says goodbye */

enum bus_member_event { BUS_JOINED, BUS_CHANGED, BUS_LEFT, BUS_EXPIRED };
/* Valid during the call. */
struct bus_member_news { enum bus_member_event event; const char *name, *instance; const void *data; size_t n; };
typedef void bus_member_handler(void *arg, const struct bus_member_news *);
struct bus_members;
/* Asks who is there, then tells each change. Expired: three periods of silence while this node has a broker, and 10 s
 * more after it had none. */
int bus_watch_members(struct bus *, const char *cluster, bus_member_handler *, void *arg, struct bus_members **out,
    struct err *e);
void bus_members_stop(struct bus_members *);

/* ---- queues: work that each is done by one ---- */

struct bus_queue_options {
    int64_t redeliver_ns;  /* an item taken, and neither done nor worked on for so long, goes to another; 0: 30 s */
    bool memory;           /* the broker need not keep it over a restart */
};
struct bus_queue;
/* Makes the queue if there is none; else its first maker's options hold. Name: as a table's. */
int bus_queue_open(struct bus *, const char *name, const struct bus_queue_options * /* or NULL */,
    struct bus_queue **out, struct err *e);
void bus_queue_close(struct bus_queue *);    /* items may be ended later */
/* id: a subject; no news (*fresh false, may be NULL) while an item with that id waits or is taken. */
int bus_queue_add(struct bus_queue *, const char *id, const void *data, size_t n, bool *fresh, struct err *e);
struct bus_item { const char *id; const void *data; size_t n; unsigned times_taken; /* 1: the first */ };
/* ERR_TIMEOUT: there was none until the deadline. */
int bus_queue_take(struct bus_queue *, int64_t deadline_ns, struct bus_item **out, struct err *e);
/* These three free the item. done: ERR_TIMEOUT when the broker did not confirm: the item may come again. */
int bus_item_done(struct bus_item *, struct err *e);
void bus_item_again(struct bus_item *);      /* somebody shall take it now */
void bus_item_forget(struct bus_item *);     /* as if the taker had died */
void bus_item_working(struct bus_item *);    /* redeliver_ns begins anew */
struct bus_queue_state { uint64_t waiting, taken, done; };
int bus_queue_state(struct bus_queue *, struct bus_queue_state *, struct err *e);

#endif
