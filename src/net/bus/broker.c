/* SPDX-License-Identifier: MIT */
/* The bus over NATS: the connection and messages. */
#include "bus/broker.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/time.h"
#include "base/wait.h"

enum {
    MOST_WAITING_MESSAGES = 1 << 20, /* limits of waiting messages of a subscription, */
    MOST_WAITING_BYTES = 256 << 20,  /* and of their bytes; more are lost */
    USUAL_PAYLOAD = 1 << 20,
    SMALLEST_PAYLOAD = 1024,
    LINGER_S = 10
};

/* ---- messages ---- */

struct wire_sub {
    struct broker *broker;
    broker_handler *raw; /* NULL: `handler` is used */
    wire_handler *handler;
    void (*ended)(void *);
    void *arg;
    pthread_mutex_t lock; /* guards all below; held until the subscription is made */
    pthread_cond_t over;
    natsSubscription *sub;
    bool complete, orphan; /* orphan: its own handler stops it; it is freed once that returns */
};

/* The subscription whose handler runs in this thread. */
static _Thread_local struct wire_sub *running;

static void on_message(natsConnection *nc, natsSubscription *sub, natsMsg *msg, void *arg)
{
    struct wire_sub *s = arg;
    running = s;
    if (s->raw) {
        s->raw(s->arg, msg);
    } else {
        const struct wire_message m = {natsMsg_GetSubject(msg), natsMsg_GetReply(msg), natsMsg_GetData(msg),
            (size_t)natsMsg_GetDataLength(msg), natsMsg_IsNoResponders(msg)};
        s->handler(s->arg, &m);
        natsMsg_Destroy(msg);
    }
    running = NULL;
}

/* Destroys subscriptions that ended long enough ago; all: every one. */
static void destroy_ended(struct broker *b, bool all)
{
    int64_t before = time_monotonic_ns() - LINGER_S * NS_PER_S;
    for (;;) {
        natsSubscription *sub = NULL;
        pthread_mutex_lock(&b->lock);
        if (b->ended.n && (all || b->ended.v[0].when_ns < before)) {
            sub = b->ended.v[0].sub;
            memmove(b->ended.v, b->ended.v + 1, --b->ended.n * sizeof *b->ended.v);
        }
        pthread_mutex_unlock(&b->lock);
        if (!sub)
            return;
        natsSubscription_Destroy(sub);
    }
}

void bus_broker_destroy_later(struct broker *b, natsSubscription *sub)
{
    if (!sub)
        return;
    pthread_mutex_lock(&b->lock);
    vec_push(&b->ended, ((struct broker_ended){sub, time_monotonic_ns()}));
    pthread_mutex_unlock(&b->lock);
    destroy_ended(b, false);
}

static void sub_free(struct wire_sub *s)
{
    bus_broker_destroy_later(s->broker, s->sub);
    s->ended(s->arg);
    pthread_cond_destroy(&s->over);
    pthread_mutex_destroy(&s->lock);
    free(s);
}

static void on_complete(void *arg)
{
    struct wire_sub *s = arg;
    pthread_mutex_lock(&s->lock);
    s->complete = true;
    bool orphan = s->orphan;
    pthread_cond_signal(&s->over);
    pthread_mutex_unlock(&s->lock);
    if (orphan)
        sub_free(s);
}

static int sub_new(struct broker *b, const char *subject, struct wire_sub usual, struct wire_sub **out, struct err *e)
{
    if (atomic_load(&b->closed))
        return err_set(e, ERR_CANCELLED, "the bus is closed");
    struct wire_sub *s = mem_alloc(sizeof *s);
    *s = usual;
    s->broker = b;
    pthread_mutex_init(&s->lock, NULL);
    wait_init(&s->over);
    *out = s; /* the handler may look at it */
    pthread_mutex_lock(&s->lock);
    natsStatus status = natsConnection_Subscribe(&s->sub, b->nc, subject, on_message, s);
    if (status == NATS_OK) {
        natsSubscription_SetPendingLimits(s->sub, MOST_WAITING_MESSAGES, MOST_WAITING_BYTES);
        s->complete = natsSubscription_SetOnCompleteCB(s->sub, on_complete, s) != NATS_OK; /* closed already */
    }
    pthread_mutex_unlock(&s->lock);
    if (status == NATS_OK)
        return 0;
    *out = NULL;
    pthread_cond_destroy(&s->over);
    pthread_mutex_destroy(&s->lock);
    free(s);
    return bus_broker_fail(b, status, 0, e, subject);
}

static int broker_subscribe(struct wire *w, const char *subject, wire_handler *handler, void (*ended)(void *),
    void *arg, struct wire_sub **out, struct err *e)
{
    const struct wire_sub s = {.handler = handler, .ended = ended, .arg = arg};
    return sub_new((struct broker *)w, subject, s, out, e);
}

int bus_broker_subscribe_raw(struct broker *b, const char *subject, broker_handler *raw, void (*ended)(void *),
    void *arg, struct wire_sub **out, struct err *e)
{
    const struct wire_sub s = {.raw = raw, .ended = ended, .arg = arg};
    return sub_new(b, subject, s, out, e);
}

void bus_broker_unsubscribe(struct wire_sub *s)
{
    bool own = running == s;
    pthread_mutex_lock(&s->lock);
    natsSubscription *sub = s->sub;
    s->orphan = own;
    pthread_mutex_unlock(&s->lock);
    natsSubscription_Unsubscribe(sub);
    if (own)
        return;
    pthread_mutex_lock(&s->lock);
    while (!s->complete)
        pthread_cond_wait(&s->over, &s->lock);
    pthread_mutex_unlock(&s->lock);
    sub_free(s);
}

static int broker_publish(
    struct wire *w, const char *subject, const char *reply, const void *data, size_t n, struct err *e)
{
    struct broker *b = (struct broker *)w;
    if (atomic_load(&b->closed))
        return err_set(e, ERR_CANCELLED, "the bus is closed");
    natsStatus s = reply ? natsConnection_PublishRequest(b->nc, subject, reply, data, (int)n)
                         : natsConnection_Publish(b->nc, subject, data, (int)n);
    return s == NATS_OK ? 0 : bus_broker_fail(b, s, 0, e, subject);
}

/* ---- the connection ---- */

static void connection_changed(natsConnection *nc, void *arg)
{
    struct broker *b = arg;
    pthread_mutex_lock(&b->lock);
    atomic_fetch_add(&b->epoch, 1);
    pthread_cond_broadcast(&b->change);
    pthread_mutex_unlock(&b->lock);
    b->changed(b->arg);
}

static void connection_gone(natsConnection *nc, void *arg)
{
    struct broker *b = arg;
    pthread_mutex_lock(&b->lock);
    b->gone = true;
    pthread_cond_broadcast(&b->change);
    pthread_mutex_unlock(&b->lock);
}

static natsStatus set_callbacks(natsOptions *o, struct broker *b, bool later)
{
    natsStatus s = natsOptions_SetDisconnectedCB(o, connection_changed, b);
    s = s ? s : natsOptions_SetReconnectedCB(o, connection_changed, b);
    s = s ? s : natsOptions_SetClosedCB(o, connection_gone, b);
    return s || !later ? s : natsOptions_SetRetryOnFailedConnect(o, true, connection_changed, b);
}

static bool is_refusal(natsStatus s)
{
    return s == NATS_CONNECTION_AUTH_FAILED || s == NATS_SSL_ERROR || s == NATS_SECURE_CONNECTION_WANTED ||
        s == NATS_SECURE_CONNECTION_REQUIRED;
}

static int connect(struct broker *b, const struct bus_options *o, natsOptions *options, struct err *e)
{
    int64_t deadline = time_monotonic_ns() + o->timeout_ns;
    for (;;) {
        natsStatus s = natsConnection_Connect(&b->nc, options);
        if (s == NATS_OK || (o->later && s == NATS_NOT_YET_CONNECTED))
            return 0;
        int64_t again = time_monotonic_ns() + BUS_BROKER_AGAIN_MS * INT64_C(1000000);
        if (is_refusal(s))
            return err_set(e, ERR_IO, "the broker at %s refused: %s", b->where, natsStatus_GetText(s));
        if (again >= deadline || o->later)
            return err_set(e, ERR_TIMEOUT, "no broker answers at %s (%s); is nats-server running there?", b->where,
                natsStatus_GetText(s));
        pthread_mutex_lock(&b->lock);
        wait_until(&b->change, &b->lock, again);
        pthread_mutex_unlock(&b->lock);
        natsOptions_SetTimeout(options, bus_broker_ms_until(deadline));
    }
}

static void broker_free(struct wire *w)
{
    struct broker *b = (struct broker *)w;
    destroy_ended(b, true);
    vec_free(&b->ended);
    strings_fini(&b->lacking);
    jsCtx_Destroy(b->js);
    natsConnection_Destroy(b->nc);
    pthread_cond_destroy(&b->change);
    pthread_mutex_destroy(&b->lock);
    free(b->where);
    free(b);
}

static int broker_open(const struct bus_options *o, wire_changed *changed, void *arg, struct wire **out, struct err *e)
{
    natsOptions *options = NULL;
    struct broker *b = mem_zalloc(sizeof *b);
    b->wire.kind = &broker_kind;
    b->changed = changed;
    b->arg = arg;
    b->timeout_ns = o->timeout_ns;
    b->replicas = o->replicas;
    pthread_mutex_init(&b->lock, NULL);
    wait_init(&b->change);
    int rc = bus_broker_options(o, b, &options, &b->where, e);
    if (!rc && set_callbacks(options, b, o->later))
        rc = err_set(e, ERR_NOMEM, "out of memory: bus");
    rc = rc ? rc : connect(b, o, options, e);
    natsOptions_Destroy(options);
    if (!rc && natsConnection_JetStream(&b->js, b->nc, NULL)) {
        rc = err_set(e, ERR_NOMEM, "out of memory: bus");
        broker_kind.close(&b->wire);
    }
    if (rc)
        broker_free(&b->wire);
    else
        *out = &b->wire;
    return rc;
}

static void broker_close(struct wire *w)
{
    struct broker *b = (struct broker *)w;
    atomic_store(&b->closed, true);
    natsConnection_Close(b->nc);
    pthread_mutex_lock(&b->lock);
    pthread_cond_broadcast(&b->change);
    while (!b->gone)
        pthread_cond_wait(&b->change, &b->lock);
    pthread_mutex_unlock(&b->lock);
}

static bool broker_connected(struct wire *w)
{
    return bus_broker_is_connected((struct broker *)w);
}

static uint64_t broker_epoch(struct wire *w)
{
    return atomic_load(&((struct broker *)w)->epoch);
}

static size_t broker_max_payload(struct wire *w)
{
    int64_t n = natsConnection_GetMaxPayload(((struct broker *)w)->nc);
    if (n <= 0)
        return USUAL_PAYLOAD;
    return n < SMALLEST_PAYLOAD ? SMALLEST_PAYLOAD : (size_t)n;
}

static const char *broker_inboxes(struct wire *w)
{
    return ((struct broker *)w)->inboxes;
}

/* 128 random bits: who may make the broker send elsewhere cannot guess the subject. */
void bus_broker_inbox(const struct broker *b, char out[BROKER_INBOX])
{
    uint64_t key[2];
    arc4random_buf(key, sizeof key);
    snprintf(out, BROKER_INBOX, "%s.weft-%016" PRIx64 "%016" PRIx64, b->inboxes, key[0], key[1]);
}

static void broker_local_address(struct wire *w, char *buf, size_t n)
{
    char *ip = NULL;
    int port;
    natsStatus s = natsConnection_GetLocalIPAndPort(((struct broker *)w)->nc, &ip, &port);
    snprintf(buf, n, "%s", s == NATS_OK && ip ? ip : "");
    free(ip);
}

static int broker_trouble(struct wire *w, struct err *e)
{
    struct broker *b = (struct broker *)w;
    return bus_broker_is_connected(b) ? 0 : bus_broker_fail_away(b, ERR_TIMEOUT, e, NULL);
}

static bool broker_lacks_for(struct wire *w, const char *subject, char *buf, size_t n)
{
    return bus_broker_right((struct broker *)w, subject, buf, n);
}

const struct wire_kind broker_kind = {
    .open = broker_open,
    .close = broker_close,
    .free = broker_free,
    .connected = broker_connected,
    .epoch = broker_epoch,
    .max_payload = broker_max_payload,
    .inboxes = broker_inboxes,
    .local_address = broker_local_address,
    .trouble = broker_trouble,
    .lacks = broker_lacks_for,
    .publish = broker_publish,
    .subscribe = broker_subscribe,
    .unsubscribe = bus_broker_unsubscribe,
    .table_open = bus_broker_table_open,
    .table_close = bus_broker_table_close,
    .table_put = bus_broker_table_put,
    .table_get = bus_broker_table_get,
    .table_remove = bus_broker_table_remove,
    .table_all = bus_broker_table_all,
    .table_version = bus_broker_table_version,
    .table_watch = bus_broker_table_watch,
    .watch_stop = bus_broker_watch_stop,
    .queue_open = bus_broker_queue_open,
    .queue_close = bus_broker_queue_close,
    .queue_add = bus_broker_queue_add,
    .queue_take = bus_broker_queue_take,
    .queue_state = bus_broker_queue_state,
    .item_done = bus_broker_item_done,
    .item_again = bus_broker_item_again,
    .item_forget = bus_broker_item_forget,
    .item_working = bus_broker_item_working,
};
