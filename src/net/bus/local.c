/* SPDX-License-Identifier: MIT */
/* The bus inside one process. */
#include "bus/local.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const size_t most_waiting_bytes = (size_t)256 << 20; /* limit of a subscription; more is lost */

/* ---- hubs ---- */

static pthread_mutex_t hubs_lock = PTHREAD_MUTEX_INITIALIZER;
static struct hub *hubs;

static struct hub *hub_get(const char *name)
{
    pthread_mutex_lock(&hubs_lock);
    struct hub *h = hubs;
    while (h && strcmp(h->name, name) != 0)
        h = h->next;
    if (!h) {
        h = mem_zalloc(sizeof *h);
        h->name = mem_strdup(name);
        pthread_mutex_init(&h->lock, NULL);
        wait_init(&h->work);
        h->next = hubs;
        hubs = h;
    }
    h->refs++;
    pthread_mutex_unlock(&hubs_lock);
    return h;
}

static void hub_put(struct hub *h)
{
    pthread_mutex_lock(&hubs_lock);
    bool last = --h->refs == 0;
    for (struct hub **at = &hubs; last && *at; at = &(*at)->next)
        if (*at == h) {
            *at = h->next;
            break;
        }
    pthread_mutex_unlock(&hubs_lock);
    if (!last)
        return;
    bus_local_tables_free(h);
    bus_local_queues_free(h);
    vec_free(&h->subs);
    pthread_cond_destroy(&h->work);
    pthread_mutex_destroy(&h->lock);
    free(h->name);
    free(h);
}

struct hub *bus_local_hub(struct bus *b)
{
    return ((struct local *)b->wire)->hub;
}

static int check_open(struct local *l, struct err *e)
{
    return atomic_load(&l->closed) ? err_set(e, ERR_CANCELLED, "the bus is closed") : 0;
}

int bus_local_check(struct bus *b, struct err *e)
{
    return check_open((struct local *)b->wire, e);
}

/* ---- messages ---- */

struct message {
    atomic_uint refs;
    bool nobody;
    char *subject, *reply; /* stored behind the data, in the same block */
    size_t n;
    uint8_t data[];
};

struct waiting {
    struct waiting *next;
    struct message *message;
};

struct wire_sub {
    struct hub *hub;
    char *subject;
    wire_handler *handler;
    void (*ended)(void *);
    void *arg;
    struct loop *loop;
    pthread_mutex_t lock; /* guards what waits; taken after the hub's */
    struct waiting *first, **end;
    size_t bytes;
};

static struct message *message_new(const char *subject, const char *reply, const void *data, size_t n)
{
    size_t s = strlen(subject) + 1, r = reply ? strlen(reply) + 1 : 0;
    struct message *m = mem_alloc(sizeof *m + n + s + r);
    atomic_init(&m->refs, 1);
    m->nobody = false;
    m->n = n;
    if (n)
        memcpy(m->data, data, n);
    m->subject = memcpy(m->data + n, subject, s);
    m->reply = r ? memcpy(m->data + n + s, reply, r) : NULL;
    return m;
}

static void message_put(struct message *m)
{
    if (atomic_fetch_sub(&m->refs, 1) == 1)
        free(m);
}

static void give(struct wire_sub *s, struct message *m)
{
    pthread_mutex_lock(&s->lock);
    bool room = s->bytes + m->n <= most_waiting_bytes;
    if (room) {
        struct waiting *w = mem_alloc(sizeof *w);
        *w = (struct waiting){.message = m};
        atomic_fetch_add(&m->refs, 1);
        *s->end = w;
        s->end = &w->next;
        s->bytes += m->n;
    }
    pthread_mutex_unlock(&s->lock);
    if (room)
        bus_loop_kick(s->loop);
}

static struct message *next_message(struct wire_sub *s)
{
    pthread_mutex_lock(&s->lock);
    struct waiting *w = s->first;
    struct message *m = w ? w->message : NULL;
    if (w) {
        s->first = w->next;
        if (!s->first)
            s->end = &s->first;
        s->bytes -= m->n;
        free(w);
    }
    pthread_mutex_unlock(&s->lock);
    return m;
}

static int64_t deliver(void *arg)
{
    struct wire_sub *s = arg;
    struct message *m;
    while (!bus_loop_stops(s->loop) && (m = next_message(s))) {
        const struct wire_message is = {m->subject, m->reply, m->data, m->n, m->nobody};
        s->handler(s->arg, &is);
        message_put(m);
    }
    return INT64_MAX;
}

/* Called with the hub's lock held. Returns the number of receivers. */
static size_t give_all(struct hub *h, struct message *m)
{
    size_t given = 0;
    for (size_t i = 0; i < h->subs.n; i++)
        if (bus_subject_matches(h->subs.v[i]->subject, m->subject)) {
            give(h->subs.v[i], m);
            given++;
        }
    return given;
}

static int local_publish(
    struct wire *wire, const char *subject, const char *reply, const void *data, size_t n, struct err *e)
{
    struct local *l = (struct local *)wire;
    int rc = check_open(l, e);
    if (rc)
        return rc;
    struct message *m = message_new(subject, reply, data, n);
    pthread_mutex_lock(&l->hub->lock);
    size_t given = give_all(l->hub, m);
    if (!given && reply) {
        struct message *word = message_new(reply, NULL, NULL, 0);
        word->nobody = true;
        give_all(l->hub, word);
        message_put(word);
    }
    pthread_mutex_unlock(&l->hub->lock);
    message_put(m);
    return 0;
}

static void sub_ended(void *arg)
{
    struct wire_sub *s = arg;
    for (struct message *m; (m = next_message(s));)
        message_put(m);
    s->ended(s->arg);
    pthread_mutex_destroy(&s->lock);
    free(s->subject);
    free(s);
}

static int local_subscribe(struct wire *wire, const char *subject, wire_handler *handler, void (*ended)(void *),
    void *arg, struct wire_sub **out, struct err *e)
{
    struct local *l = (struct local *)wire;
    int rc = check_open(l, e);
    if (rc)
        return rc;
    struct wire_sub *s = mem_zalloc(sizeof *s);
    *s = (struct wire_sub){l->hub, mem_strdup(subject), handler, ended, arg};
    s->end = &s->first;
    pthread_mutex_init(&s->lock, NULL);
    *out = s; /* the handler may look at it */
    rc = bus_loop_start(deliver, sub_ended, s, &s->loop, e);
    if (rc) {
        pthread_mutex_destroy(&s->lock);
        free(s->subject);
        free(s);
        return rc;
    }
    pthread_mutex_lock(&l->hub->lock);
    vec_push(&l->hub->subs, s);
    pthread_mutex_unlock(&l->hub->lock);
    return 0;
}

static void local_unsubscribe(struct wire_sub *s)
{
    struct hub *h = s->hub;
    pthread_mutex_lock(&h->lock);
    for (size_t i = 0; i < h->subs.n; i++)
        if (h->subs.v[i] == s) {
            h->subs.v[i] = h->subs.v[--h->subs.n];
            break;
        }
    pthread_mutex_unlock(&h->lock);
    bus_loop_stop(s->loop);
}

/* ---- the connection ---- */

static int local_open(const struct bus_options *o, wire_changed *changed, void *arg, struct wire **out, struct err *e)
{
    struct local *l = mem_zalloc(sizeof *l);
    l->wire.kind = &local_kind;
    l->hub = hub_get(strchr(o->url, ':') + 1);
    *out = &l->wire;
    return 0;
}

static void local_close(struct wire *w)
{
    struct local *l = (struct local *)w;
    atomic_store(&l->closed, true);
    pthread_mutex_lock(&l->hub->lock);
    pthread_cond_broadcast(&l->hub->work);
    pthread_mutex_unlock(&l->hub->lock);
}

static void local_free(struct wire *w)
{
    struct local *l = (struct local *)w;
    hub_put(l->hub);
    free(l);
}

static bool local_connected(struct wire *w)
{
    return !atomic_load(&((struct local *)w)->closed);
}

static uint64_t local_epoch(struct wire *w)
{
    return 0;
}

static size_t local_max_payload(struct wire *w)
{
    return LOCAL_MAX_PAYLOAD;
}

static const char *local_inboxes(struct wire *w)
{
    return "_INBOX";
}

static void local_local_address(struct wire *w, char *buf, size_t n)
{
    snprintf(buf, n, "127.0.0.1");
}

static int local_trouble(struct wire *w, struct err *e)
{
    return check_open((struct local *)w, e);
}

static bool local_lacks(struct wire *w, const char *subject, char *buf, size_t n)
{
    return false;
}

const struct wire_kind local_kind = {
    .open = local_open,
    .close = local_close,
    .free = local_free,
    .connected = local_connected,
    .epoch = local_epoch,
    .max_payload = local_max_payload,
    .inboxes = local_inboxes,
    .local_address = local_local_address,
    .trouble = local_trouble,
    .lacks = local_lacks,
    .publish = local_publish,
    .subscribe = local_subscribe,
    .unsubscribe = local_unsubscribe,
    .table_open = bus_local_table_open,
    .table_close = bus_local_table_close,
    .table_put = bus_local_table_put,
    .table_get = bus_local_table_get,
    .table_remove = bus_local_table_remove,
    .table_all = bus_local_table_all,
    .table_version = bus_local_table_version,
    .table_watch = bus_local_table_watch,
    .watch_stop = bus_local_watch_stop,
    .queue_open = bus_local_queue_open,
    .queue_close = bus_local_queue_close,
    .queue_add = bus_local_queue_add,
    .queue_take = bus_local_queue_take,
    .queue_state = bus_local_queue_state,
    .item_done = bus_local_item_done,
    .item_again = bus_local_item_again,
    .item_forget = bus_local_item_forget,
    .item_working = bus_local_item_working,
};
