/* SPDX-License-Identifier: MIT */
/* Private to bus: the interface of an implementation (local.c, broker.c), and the bus itself as the files here share
 * it. */
#ifndef WEFT_BUS_WIRE_H
#define WEFT_BUS_WIRE_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/map.h"
#include "bus/bus.h"
#include "bus/frame.h"
#include "bus/loop.h"

enum { INBOXES_ROOM = 264 }; /* "_INBOX." and the longest token of a subject */
struct wire { const struct wire_kind *kind; }; /* one connection; first member of the implementation's struct */
struct wire_sub;
/* nobody: report that a message with this subject as `reply` had no receiver. Valid during the call. */
struct wire_message { const char *subject, *reply; /* NULL: none */ const void *data; size_t n; bool nobody; };
typedef void wire_handler(void *arg, const struct wire_message *);
/* Callback of the bus for a lost or new connection. Any thread; does not block. */
typedef void wire_changed(void *arg);

struct wire_kind {
    int (*open)(const struct bus_options *, wire_changed *, void *arg, struct wire **out, struct err *);
    void (*close)(struct wire *);          /* from then on everything fails with ERR_CANCELLED */
    void (*free)(struct wire *);           /* after the last use */
    bool (*connected)(struct wire *);
    uint64_t (*epoch)(struct wire *);      /* changes whenever messages may have been lost */
    size_t (*max_payload)(struct wire *);  /* limit of bytes in one message */
    const char *(*inboxes)(struct wire *); /* prefix of the subjects that answers come to; at most INBOXES_ROOM bytes */
    /* Address of this machine towards the broker; "": unknown. */
    void (*local_address)(struct wire *, char *buf, size_t n);
    int (*trouble)(struct wire *, struct err *); /* see bus_trouble */
    /* Finds the missing right for the subject: "publish to \"SUBJECT\"". Returns false if there is none. */
    bool (*lacks)(struct wire *, const char *subject, char *buf, size_t n);
    int (*publish)(struct wire *, const char *subject, const char *reply, const void *data, size_t n, struct err *);
    /* Runs the handler on a separate thread. ended(arg): it will not run any more, after unsubscribe. */
    int (*subscribe)(struct wire *, const char *subject, wire_handler *, void (*ended)(void *), void *arg,
        struct wire_sub **out, struct err *);
    /* Returns when the handler does not run any more, and ended was called. If the handler calls it, ended is called
     * when that returns. */
    void (*unsubscribe)(struct wire_sub *);

    /* Functions of bus.h, with checked names, keys and sizes. */
    int (*table_open)(struct bus *, const char *name, const struct bus_table_options *, struct bus_table **,
        struct err *);
    void (*table_close)(struct bus_table *);
    /* expected NULL: any revision. */
    int (*table_put)(struct bus_table *, const char *key, const void *data, size_t n, const uint64_t *expected,
        uint64_t *revision, struct err *);
    int (*table_get)(struct bus_table *, const char *key, void **data, size_t *n, uint64_t *revision, struct err *);
    int (*table_remove)(struct bus_table *, const char *key, struct err *);
    int (*table_all)(struct bus_table *, bus_entry_handler *, void *arg, struct err *);
    int (*table_version)(struct bus_table *, uint64_t *version, struct err *);
    int (*table_watch)(struct bus_table *, const char *key /* NULL: all */, bus_entry_handler *, void *arg,
        struct bus_watch **, struct err *);
    void (*watch_stop)(struct bus_watch *);

    int (*queue_open)(struct bus *, const char *name, const struct bus_queue_options *, struct bus_queue **,
        struct err *);
    void (*queue_close)(struct bus_queue *);
    int (*queue_add)(struct bus_queue *, const char *id, const void *data, size_t n, bool *fresh, struct err *);
    int (*queue_take)(struct bus_queue *, int64_t deadline_ns, struct bus_item **, struct err *);
    int (*queue_state)(struct bus_queue *, struct bus_queue_state *, struct err *);
    int (*item_done)(struct bus_item *, struct err *);
    void (*item_again)(struct bus_item *);
    void (*item_forget)(struct bus_item *);
    void (*item_working)(struct bus_item *);
};
extern const struct wire_kind local_kind, broker_kind;

/* First members of an implementation's structs. */
struct bus_table { struct bus *bus; };
struct bus_watch { struct bus *bus; };
struct bus_queue { struct bus *bus; };
struct wire_item { struct bus_item item; struct bus *bus; };

/* Callback for a lost or new connection; must not block. */
struct bus_hook { struct bus_hook *next; void (*changed)(void *arg); void *arg; };

struct bus {
    struct wire *wire;
    const struct wire_kind *kind;
    atomic_uint refs;                      /* one for bus_open, and one for each object made from it that still
                                            * exists */
    atomic_bool closed;
    atomic_uint_fast64_t next_message;     /* ids of messages */
    size_t max_message;
    int64_t timeout_ns;
    pthread_mutex_t hooks_lock;            /* guards the list; taken before other locks */
    struct bus_hook *hooks;
    struct asker *asker;
    struct service_table *services;
    bool signed_only;
    void (*tell)(void *arg, const char *what); /* NULL: none */
    void *tell_arg;
    pthread_mutex_t trusts_lock;           /* guards the list; its items stay */
    struct trust *trusts;
};
void bus_tell(struct bus *, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
struct bus *bus_ref(struct bus *);
void bus_unref(struct bus *);
void bus_hook_add(struct bus *, struct bus_hook *);
void bus_hook_remove(struct bus *, struct bus_hook *);

/* Sends a message in as many parts as it needs. before: called for each part with its bytes, or NULL; false cancels the
 * rest. */
struct outgoing {
    const char *subject, *reply;
    enum frame_kind kind;
    int32_t number;
    const void *data;
    size_t n;
    bool (*before)(void *arg, size_t bytes);
    void *arg;
};
int bus_send(struct bus *, const struct outgoing *, struct err *);

/* calls.c */
int bus_asker_open(struct bus *, struct err *);
void bus_asker_close(struct bus *);            /* ends all calls */
void bus_asker_free(struct bus *);
/* serve.c: drops questions that are not complete in time. */
void bus_services_open(struct bus *);
void bus_services_close(struct bus *);
void bus_services_free(struct bus *);

/* subject.c. Patterns may have '*' and end in '>'. */
int bus_subject_check(const char *subject, bool pattern, struct err *);
int bus_table_name_check(const char *name, struct err *);
bool bus_subject_matches(const char *pattern, const char *subject);

#endif
