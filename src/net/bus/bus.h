/* SPDX-License-Identifier: MIT */
/* Messages between the nodes of a cluster: questions and answers, news, tables, members, work queues. Two
 * implementations: a hub inside this process ("local:NAME": tests, one machine), and NATS. This is the only room that
 * includes nats.h. docs/cluster-protocol.md defines the wire format.
 *
 * All functions are thread-safe. Deadlines are ns of the monotonic clock (time_monotonic_ns). Nothing waits for ever:
 * operations without a deadline take at most bus_options.timeout_ns. Handlers and watchers run on threads of the bus,
 * one for each service, subscription or watch. A slow one delays only its own next messages. They may call all
 * functions here, even the one that stops themselves. Functions that stop a handler return when it does not run any
 * more (unless called by it), so two handlers must not stop each other.
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
    const char *name;      /* name of this connection at the broker; or NULL */
    const char *creds;     /* files, or NULL: NATS credentials (JWT and seed); */
    const char *token;     /* file whose first line is a token; */
    const char *user;      /* file whose first line is USER:PASSWORD; */
    const char *tls_ca, *tls_cert, *tls_key; /* PEM; the system's authorities when there is no tls_ca */
    int64_t timeout_ns;    /* timeout of connecting, and of operations without a deadline; 0: 5 s */
    size_t max_message_bytes; /* limit of a question or an answer, of this node and of others; 0: 64 MiB */
    /* Brokers that keep each table and queue, so that it survives the loss of fewer than half of them: 1 to 5. More
     * than there are brokers is an error of the table. A table with fewer replicas gets more. 0: as its maker said, or
     * 1. */
    unsigned replicas;
    bool signed_only;      /* services that are bound (bus_bind) and have no key are not asked */
    /* Callback for messages to users, without secrets; called by any thread. Or NULL. */
    void (*tell)(void *arg, const char *what);
    void *tell_arg;
    bool later;            /* bus_open succeeds also if no broker accepts this node yet, and continues to connect */
};

/* Connects once, and reconnects by itself for ever. All services, subscriptions, watches and memberships survive that.
 * ERR_ARG: the URL or a file; ERR_TIMEOUT: no connection in timeout_ns; ERR_IO: the broker refused it. No message
 * contains a secret, nor the user of a URL. */
struct bus;
int bus_open(const struct bus_options *, struct bus **out, struct err *e);
/* Closes the bus. Everything opened on it must have been stopped, but for calls and questions: those end
 * (ERR_CANCELLED, no answer). */
void bus_close(struct bus *);
bool bus_connected(struct bus *);
/* Returns why there is no connection now; 0: there is one. ERR_TIMEOUT: it continues to connect. ERR_UNSUPPORTED: the
 * broker refused the credentials, and it stops trying. */
int bus_trouble(struct bus *, struct err *e);
/* Returns the address of this machine on its way to the broker, without port, IPv6 without brackets; "": unknown. */
enum { BUS_ADDRESS = 64 };
void bus_local_address(struct bus *, char buf[BUS_ADDRESS]);
size_t bus_max_payload(struct bus *);         /* limit of bytes in one news message or table value */

/* Makes a unique token of a name: "web-1.example" becomes "web-1=2Eexample". ERR_LIMIT if it does not fit into n
 * bytes. */
int bus_token(const char *name, char *buf, size_t n);
int bus_untoken(const char *token, char *buf, size_t n);    /* ERR_FORMAT: not made by bus_token */

/* ---- questions ---- */

/* Question. The deadline is the rest of the asker's; a later answer is useless. */
struct bus_question { const void *data; size_t n; int64_t deadline_ns; };
/* Handler of questions. Answers now or later, from any thread, exactly once: bus_answer or bus_refuse. */
typedef void bus_question_handler(void *arg, struct bus_question *);
struct bus_serve_options {
    unsigned max_open;     /* open questions: without an answer, or incomplete; 0: 64. More: ERR_BUSY */
    size_t max_bytes;      /* limit of their bytes; 0: 4 × max_message_bytes. More: ERR_BUSY */
};
struct bus_service;
/* Serves a subject. If several nodes serve it, each gets the question, and the first answer counts. */
int bus_serve(struct bus *, const char *subject, const struct bus_serve_options * /* NULL: d
                                                                                   * efaults */, bus_question_handler *,
    void *arg, struct bus_service **out, struct err *e);
/* Stops it. Waiting questions can still be answered; a question on its way is lost. */
void bus_stop(struct bus_service *);
/* Answer or refuse a question. Both free it, even on failure: ERR_LIMIT (beyond max_message_bytes; reported to the
 * asker), ERR_IO. */
int bus_answer(struct bus_question *, const void *data, size_t n, struct err *e);
void bus_refuse(struct bus_question *, int code, const char *text);

/* Set of concurrent questions, with answers in the order of arrival. */
struct bus_calls;
struct bus_calls *bus_calls_new(struct bus *);
void bus_calls_free(struct bus_calls *);     /* drops outstanding answers */
/* Sends a question (copying the data if there is no connection yet); failures are reported as replies. Returns the
 * number of calls whose replies have not been fetched, this one included. */
size_t bus_call(struct bus_calls *, const char *subject, const void *data, size_t n, int64_t deadline_ns, uint64_t tag);
/* Reply. code: 0; ERR_NOTFOUND: nobody serves the subject (reported at once); ERR_TIMEOUT; ERR_FORMAT: the answer is
 * invalid or incomplete; ERR_LIMIT: too large; ERR_BUSY; ERR_CANCELLED; ERR_IO; or the code of a refusal. */
struct bus_reply {
    uint64_t tag;
    int code;
    char text[256];        /* explanation of the code; "" for 0 */
    void *data;            /* owned by the caller; NULL if n is 0 */
    size_t n;
    uint64_t sent_bytes, received_bytes;     /* payloads on the wire, with their frames */
    unsigned sent_messages, received_messages;
};
/* Waits for the next reply; returns false if none is outstanding. */
bool bus_calls_next(struct bus_calls *, struct bus_reply *);
void bus_reply_free(struct bus_reply *);     /* frees its data */
/* Asks one question and waits for its answer. Returns reply->code. */
int bus_ask(struct bus *, const char *subject, const void *data, size_t n, int64_t deadline_ns, struct bus_reply *);
/* The same, but accepts an answer of anybody, and reads no keys (bus_bind): to find whether the subject is served. */
int bus_ask_anybody(struct bus *, const char *subject, const void *data, size_t n, int64_t deadline_ns,
    struct bus_reply *);

/* Binds all answers under BELOW.TOKEN, from now on, to their servers. bus_serve makes a key pair (Ed25519) and puts the
 * public half into the table, key TOKEN. Calls accept only answers and refusals that this key has signed for their
 * question; they ignore others and continue to wait. That is worth as much as the broker's permissions on the table.
 * Services without a key are asked as if they were not bound, and reported (bus_options.tell). With
 * bus_options.signed_only they are not asked: ERR_UNSUPPORTED. A repeated call has no effect. */
int bus_bind(struct bus *, const char *below, const char *table, struct err *e);

/* ---- news ---- */

/* Publishes to present listeners; lost without any, or during a longer absence of the broker. ERR_LIMIT beyond
 * bus_max_payload. */
int bus_publish(struct bus *, const char *subject, const void *data, size_t n, struct err *e);
typedef void bus_listener(void *arg, const char *subject, const void *data, size_t n);
struct bus_listening;
/* Listens to a subject, which may have '*' for one token and end in '>' for one or more. */
int bus_listen(struct bus *, const char *subject, bus_listener *, void *arg, struct bus_listening **out, struct err *e);
void bus_unlisten(struct bus_listening *);

/* ---- tables: the last value of each key ---- */

struct bus_table_options {
    int64_t ttl_ns;        /* lifetime of entries after their last put; 0: unlimited; at least 100 ms */
    bool memory;           /* contents may be lost when the broker restarts */
};
/* Opens the table, or makes it; its first maker's options hold. Name: letters, digits, '_', '-'; key: as a subject.
 * Values up to bus_max_payload, else ERR_LIMIT. All functions return ERR_TIMEOUT if the broker is away; such an
 * operation may have been done nevertheless. */
struct bus_table;
int bus_table_open(struct bus *, const char *name, const struct bus_table_options * /* NULL: defaults */,
    struct bus_table **out, struct err *e);
void bus_table_close(struct bus_table *);
int bus_table_put(struct bus_table *, const char *key, const void *data, size_t n, uint64_t *revision, struct err *e);
/* Puts the value if the key's revision is still `expected` (0: it has no value); otherwise ERR_STALE. */
int bus_table_put_if(struct bus_table *, const char *key, const void *data, size_t n, uint64_t expected,
    uint64_t *revision, struct err *e);
/* Gets the value; the caller must free() it; a byte 0 follows the n bytes. ERR_NOTFOUND. Outputs but the value may be
 * NULL. */
int bus_table_get(struct bus_table *, const char *key, void **data, size_t *n, uint64_t *revision, struct err *e);
/* Removes the entry. Returns 0 also if there was none. */
int bus_table_remove(struct bus_table *, const char *key, struct err *e);

enum bus_entry_kind {
    BUS_ENTRY_PUT,
    BUS_ENTRY_REMOVED,     /* removed, or expired */
    BUS_ENTRY_ALL,         /* marker: all entries of the table have been reported */
    BUS_ENTRY_ANEW,        /* marker: the broker was away. All present entries are reported again up to the next ALL;
                            * other entries are gone, and their owners must put them again */
};
/* Entry. Valid during the call; data NULL unless PUT. */
struct bus_entry { enum bus_entry_kind kind; const char *key; const void *data; size_t n; uint64_t revision; };
typedef void bus_entry_handler(void *arg, const struct bus_entry *);
/* Reports all present entries, in the caller's thread, without a marker. An entry that changes meanwhile may be
 * reported twice, the second time with its new value, or as REMOVED. */
int bus_table_all(struct bus_table *, bus_entry_handler *, void *arg, struct err *e);
/* Returns a number that changes with each change of the table, also if somebody purged it. A reader that finds the
 * number unchanged need not read the table again. Expiry of entries changes it at NATS only. */
int bus_table_version(struct bus_table *, uint64_t *version, struct err *e);
/* Reports all entries, ALL, then each change. Of several fast changes of one key perhaps only the last is reported.
 * Succeeds also while the broker is away. Must be stopped before the table is closed. */
struct bus_watch;
int bus_table_watch(struct bus_table *, bus_entry_handler *, void *arg, struct bus_watch **out, struct err *e);
/* Like bus_table_watch for a single key; other entries are not sent to this node. Also reports within 15 s that the
 * entry was purged, for which no message is sent. */
int bus_table_watch_key(struct bus_table *, const char *key, bus_entry_handler *, void *arg, struct bus_watch **out,
    struct err *e);
void bus_watch_stop(struct bus_watch *);

/* ---- members: present nodes ---- */

struct bus_member;
/* Announces that `name` is present, and repeats this each period until it leaves. instance: unique, even across
 * restarts of the node. Both up to BUS_MAX_NAME. `cluster` is a subject; subjects below it are used. */
int bus_join(struct bus *, const char *cluster, const char *name, const char *instance, int64_t period_ns,
    struct bus_member **out, struct err *e);
/* Sets the data that it announces, up to BUS_MAX_SAID bytes (ERR_LIMIT). Sent at once. */
int bus_member_say(struct bus_member *, const void *data, size_t n, struct err *e);
void bus_leave(struct bus_member *);         /* announces the departure */

enum bus_member_event { BUS_JOINED, BUS_CHANGED, BUS_LEFT, BUS_EXPIRED };
/* News of a member. Valid during the call. */
struct bus_member_news { enum bus_member_event event; const char *name, *instance; const void *data; size_t n; };
typedef void bus_member_handler(void *arg, const struct bus_member_news *);
struct bus_members;
/* Asks for present members, then reports each change. Expired: three periods of silence while this node has a broker,
 * and 10 s more after it had none. */
int bus_watch_members(struct bus *, const char *cluster, bus_member_handler *, void *arg, struct bus_members **out,
    struct err *e);
void bus_members_stop(struct bus_members *);

/* ---- queues: items of work, each done by one node ---- */

struct bus_queue_options {
    int64_t redeliver_ns;  /* time after which a taken item, neither done nor worked on, goes to another node; 0: 30
                            * s */
    bool memory;           /* contents may be lost when the broker restarts */
};
struct bus_queue;
/* Opens the queue, or makes it; its first maker's options hold. Name: as a table's. */
int bus_queue_open(struct bus *, const char *name, const struct bus_queue_options * /* NULL: defaults */,
    struct bus_queue **out, struct err *e);
void bus_queue_close(struct bus_queue *);    /* items may be ended later */
/* Adds an item. id: a subject. Nothing is added (*fresh false; fresh may be NULL) while an item with that id waits or
 * is taken. */
int bus_queue_add(struct bus_queue *, const char *id, const void *data, size_t n, bool *fresh, struct err *e);
struct bus_item { const char *id; const void *data; size_t n; unsigned times_taken; /* 1: the first time */ };
/* Takes an item. ERR_TIMEOUT: there was none until the deadline. */
int bus_queue_take(struct bus_queue *, int64_t deadline_ns, struct bus_item **out, struct err *e);
/* These three free the item. done: ERR_TIMEOUT if the broker did not confirm: the item may come again. */
int bus_item_done(struct bus_item *, struct err *e);
void bus_item_again(struct bus_item *);      /* returns it to the queue now */
void bus_item_forget(struct bus_item *);     /* as after a crash of this node */
void bus_item_working(struct bus_item *);    /* restarts redeliver_ns */
struct bus_queue_state { uint64_t waiting, taken, done; };
int bus_queue_state(struct bus_queue *, struct bus_queue_state *, struct err *e);

#endif
