/* SPDX-License-Identifier: MIT */
/* Private to bus: the hub of one process, which all buses opened on "local:NAME" share, and which ends with the last.
 */
#ifndef WEFT_BUS_LOCAL_H
#define WEFT_BUS_LOCAL_H

#include "base/mem.h"
#include "base/wait.h"
#include "bus/wire.h"

enum { LOCAL_MAX_PAYLOAD = 1 << 20 };

struct hub {
    struct hub *next;
    char *name;
    unsigned refs;             /* guarded by the list's lock */
    pthread_mutex_t lock;      /* guards all below, tables and queues included */
    pthread_cond_t work;       /* a queue has changed */
    VEC(struct wire_sub *) subs;
    struct local_table *tables;
    struct local_queue *queues;
};

struct local {
    struct wire wire;
    struct hub *hub;
    atomic_bool closed;
};
struct hub *bus_local_hub(struct bus *);
/* ERR_CANCELLED when it is closed. */
int bus_local_check(struct bus *, struct err *);

/* local_table.c */
int bus_local_table_open(struct bus *, const char *name, const struct bus_table_options *, struct bus_table **,
    struct err *);
void bus_local_table_close(struct bus_table *);
int bus_local_table_put(struct bus_table *, const char *key, const void *data, size_t n, const uint64_t *expected,
    uint64_t *revision, struct err *);
int bus_local_table_get(struct bus_table *, const char *key, void **data, size_t *n, uint64_t *revision, struct err *);
int bus_local_table_remove(struct bus_table *, const char *key, struct err *);
int bus_local_table_all(struct bus_table *, bus_entry_handler *, void *arg, struct err *);
int bus_local_table_version(struct bus_table *, uint64_t *version, struct err *);
int bus_local_table_watch(struct bus_table *, const char *key, bus_entry_handler *, void *arg, struct bus_watch **,
    struct err *);
void bus_local_watch_stop(struct bus_watch *);
void bus_local_tables_free(struct hub *);

/* local_queue.c */
int bus_local_queue_open(struct bus *, const char *name, const struct bus_queue_options *, struct bus_queue **,
    struct err *);
void bus_local_queue_close(struct bus_queue *);
int bus_local_queue_add(struct bus_queue *, const char *id, const void *data, size_t n, bool *fresh, struct err *);
int bus_local_queue_take(struct bus_queue *, int64_t deadline_ns, struct bus_item **, struct err *);
int bus_local_queue_state(struct bus_queue *, struct bus_queue_state *, struct err *);
int bus_local_item_done(struct bus_item *, struct err *);
void bus_local_item_again(struct bus_item *);
void bus_local_item_forget(struct bus_item *);
void bus_local_item_working(struct bus_item *);
void bus_local_queues_free(struct hub *);

#endif
