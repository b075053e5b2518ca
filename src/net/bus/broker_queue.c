/* SPDX-License-Identifier: MIT */
/* Queues over NATS: a work-queue stream WEFT_QUEUE_NAME, of the subjects weft.queue.NAME.ID with one message each, and
 * one pull consumer that all takers share. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/time.h"
#include "base/wait.h"
#include "bus/broker.h"

enum { SUBJECT_ROOM = BUS_MAX_SUBJECT + 100, MOST_TAKERS = 10000, LONGEST_WAIT_S = 5, SHORT_MS = 20 };
static const char consumer[] = "workers";

struct broker_queue {
    struct bus_queue base;
    struct broker *broker;
    char name[80], stream[96], what[96];
    bool memory;
    int64_t redeliver_ns;
};

struct taken {
    struct wire_item is;
    natsMsg *msg; /* message that the item points into; its reply subject takes the answer */
};

static void subject_of(const struct broker_queue *q, const char *id, char out[SUBJECT_ROOM])
{
    snprintf(out, SUBJECT_ROOM, "weft.queue.%s.%s", q->name, id);
}

/* ---- the stream and its consumer ---- */

static natsStatus add_stream(void *arg, jsOptions *o, jsErrCode *code)
{
    struct broker_queue *q = arg;
    char subjects[SUBJECT_ROOM];
    const char *list[] = {subjects};
    jsStreamConfig c;
    jsStreamConfig_Init(&c);
    subject_of(q, ">", subjects);
    c.Name = q->stream;
    c.Subjects = list;
    c.SubjectsLen = 1;
    c.Replicas = q->broker->replicas ? q->broker->replicas : 1;
    c.Retention = js_WorkQueuePolicy;
    c.Storage = q->memory ? js_MemoryStorage : js_FileStorage;
    c.MaxMsgsPerSubject = 1;
    c.Discard = js_DiscardNew;
    c.DiscardNewPerSubject = true; /* an id that is there is no news */
    natsStatus s = js_AddStream(NULL, q->broker->js, &c, o, code);
    if (*code != JSStreamNameExistErr)
        return s;
    *code = 0;
    return NATS_OK; /* made by another node */
}

static natsStatus add_consumer(void *arg, jsOptions *o, jsErrCode *code)
{
    struct broker_queue *q = arg;
    jsConsumerConfig c;
    jsConsumerConfig_Init(&c);
    c.Durable = consumer;
    c.AckPolicy = js_AckExplicit;
    c.AckWait = q->redeliver_ns;
    c.MaxDeliver = -1;
    c.MaxAckPending = -1;
    c.MaxWaiting = MOST_TAKERS;
    natsStatus s = js_AddConsumer(NULL, q->broker->js, q->stream, &c, o, code);
    if (s == NATS_OK || !*code || *code == JSStreamNotFoundErr)
        return s;
    /* Consumer made by another node, maybe with other options. */
    *code = 0;
    return js_GetConsumerInfo(NULL, q->broker->js, q->stream, consumer, o, code);
}

static int make(struct broker_queue *q, int64_t deadline_ns, struct err *e)
{
    struct broker_attempt a = {.step = add_stream, .arg = q, .what = q->what};
    int rc = bus_broker_try(q->broker, &a, deadline_ns, e);
    rc = rc ? rc : bus_broker_replicate(q->broker, q->stream, q->what, deadline_ns, e);
    a.step = add_consumer;
    return rc ? rc : bus_broker_try(q->broker, &a, deadline_ns, e);
}

int bus_broker_queue_open(
    struct bus *b, const char *name, const struct bus_queue_options *o, struct bus_queue **out, struct err *e)
{
    struct broker_queue *q = mem_zalloc(sizeof *q);
    q->broker = bus_broker_of(b);
    q->memory = o->memory;
    q->redeliver_ns = o->redeliver_ns;
    snprintf(q->name, sizeof q->name, "%s", name);
    snprintf(q->stream, sizeof q->stream, "WEFT_QUEUE_%s", q->name);
    snprintf(q->what, sizeof q->what, "queue %s", q->name);
    int rc = make(q, bus_broker_deadline(q->broker), e);
    if (rc) {
        free(q);
        return rc;
    }
    q->base.bus = bus_ref(b);
    *out = &q->base;
    return 0;
}

void bus_broker_queue_close(struct bus_queue *q)
{
    bus_unref(q->bus);
    free(q);
}

/* ---- adding ---- */

struct adding {
    struct broker_queue *queue;
    const char *id;
    const void *data;
    size_t n;
};

static natsStatus add(void *arg, jsOptions *o, jsErrCode *code)
{
    const struct adding *a = arg;
    char subject[SUBJECT_ROOM];
    jsPubAck *ack = NULL;
    jsPubOptions po;
    jsPubOptions_Init(&po);
    po.MaxWait = o->Wait;
    subject_of(a->queue, a->id, subject);
    natsStatus s = js_Publish(&ack, a->queue->broker->js, subject, a->data, (int)a->n, &po, code);
    jsPubAck_Destroy(ack);
    return s;
}

int bus_broker_queue_add(struct bus_queue *base, const char *id, const void *data, size_t n, bool *fresh, struct err *e)
{
    struct broker_queue *q = (struct broker_queue *)base;
    struct adding adding = {q, id, data, n};
    struct broker_attempt a = {.step = add, .arg = &adding, .what = q->what};
    int64_t deadline = bus_broker_deadline(q->broker);
    int rc = bus_broker_once(q->broker, &a, deadline, e);
    if (rc && a.status == NATS_NO_RESPONDERS) { /* lost with its broker */
        rc = make(q, deadline, e);
        rc = rc ? rc : bus_broker_try(q->broker, &a, deadline, e);
    }
    *fresh = !rc;
    return a.code == JSStreamStoreFailedErr ? 0 : rc; /* item exists already */
}

/* ---- taking ---- */

/* Requests one item, for at most `ms`. The broker gives up a little earlier than this node, so that no item arrives
 * unnoticed. An item comes under its own subject, so the library's requests, which share one inbox, could not be
 * matched if two were open: each request has an inbox of its own. */
static natsStatus ask_for_one(struct broker_queue *q, int64_t ms, natsMsg **out)
{
    char subject[SUBJECT_ROOM], question[80];
    int64_t margin = ms / 4 < 100 ? ms / 4 : 100;
    snprintf(subject, sizeof subject, "$JS.API.CONSUMER.MSG.NEXT.%s.%s", q->stream, consumer);
    if (ms > SHORT_MS)
        snprintf(question, sizeof question, "{\"batch\":1,\"expires\":%" PRId64 "}", (ms - margin) * 1000000);
    else
        snprintf(question, sizeof question, "{\"batch\":1,\"no_wait\":true}");
    char inbox[BROKER_INBOX];
    natsSubscription *sub = NULL;
    bus_broker_inbox(q->broker, inbox);
    natsStatus s = natsConnection_SubscribeSync(&sub, q->broker->nc, inbox);
    s = s ? s : natsConnection_PublishRequestString(q->broker->nc, subject, inbox, question);
    s = s ? s : natsSubscription_NextMsg(out, sub, ms > SHORT_MS ? ms : SHORT_MS);
    natsSubscription_Destroy(sub);
    return !s && natsMsg_IsNoResponders(*out) ? NATS_NO_RESPONDERS : s;
}

/* Takes over the message if it is an item. */
static struct bus_item *item_of(struct broker_queue *q, natsMsg *m)
{
    struct bus_broker_mark mark;
    const char *subject = natsMsg_GetSubject(m);
    char prefix[SUBJECT_ROOM];
    subject_of(q, "", prefix);
    if (!bus_broker_mark(natsMsg_GetReply(m), &mark) || strncmp(subject, prefix, strlen(prefix)) != 0)
        return NULL;
    struct taken *t = mem_zalloc(sizeof *t);
    t->is.bus = bus_ref(q->base.bus);
    t->is.item = (struct bus_item){
        subject + strlen(prefix), natsMsg_GetData(m), (size_t)natsMsg_GetDataLength(m), (unsigned)mark.delivered};
    t->msg = m;
    return &t->is.item;
}

/* A message that is none is a status: nothing there, a broker that stops. */
static struct bus_item *try_to_take(struct broker_queue *q, int64_t deadline_ns, struct err *e)
{
    int64_t ms = bus_broker_ms_until(deadline_ns), longest = LONGEST_WAIT_S * 1000;
    natsMsg *m = NULL;
    natsStatus s = ask_for_one(q, ms < longest ? ms : longest, &m);
    struct bus_item *item = s == NATS_OK ? item_of(q, m) : NULL;
    if (!item)
        natsMsg_Destroy(m);
    if (s == NATS_NO_RESPONDERS)
        make(q, deadline_ns, e); /* lost with its broker */
    return item;
}

int bus_broker_queue_take(struct bus_queue *base, int64_t deadline_ns, struct bus_item **out, struct err *e)
{
    struct broker_queue *q = (struct broker_queue *)base;
    enum { PAUSE_MS = 20 };
    for (;;) {
        int64_t begun = time_monotonic_ns(), pause = begun + PAUSE_MS * 1000000;
        int rc = bus_broker_await(q->broker, deadline_ns, e);
        if (rc)
            return rc;
        if ((*out = try_to_take(q, deadline_ns, e)))
            return 0;
        if (time_monotonic_ns() >= deadline_ns)
            return err_set(e, ERR_TIMEOUT, "%s: nothing to do until the deadline", q->what);
        /* Pause, whatever the broker answers. */
        pthread_mutex_lock(&q->broker->lock);
        while (time_monotonic_ns() < pause && !atomic_load(&q->broker->closed))
            wait_until(&q->broker->change, &q->broker->lock, pause);
        pthread_mutex_unlock(&q->broker->lock);
    }
}

/* ---- items ---- */

void bus_broker_item_forget(struct bus_item *i)
{
    struct taken *t = (struct taken *)i;
    struct bus *b = t->is.bus;
    natsMsg_Destroy(t->msg);
    free(t);
    bus_unref(b);
}

int bus_broker_item_done(struct bus_item *i, struct err *e)
{
    struct taken *t = (struct taken *)i;
    struct broker *b = bus_broker_of(t->is.bus);
    int64_t deadline = bus_broker_deadline(b);
    natsMsg *confirmed = NULL;
    int rc = bus_broker_await(b, deadline, e);
    if (!rc) {
        natsStatus s = natsConnection_RequestString(
            &confirmed, b->nc, natsMsg_GetReply(t->msg), "+ACK", bus_broker_ms_until(deadline));
        if (s)
            rc = err_set(
                e, ERR_TIMEOUT, "queue: the broker did not confirm that '%s' is done; it may come again", i->id);
    }
    natsMsg_Destroy(confirmed);
    bus_broker_item_forget(i);
    return rc;
}

static void tell(struct bus_item *i, const char *word)
{
    struct taken *t = (struct taken *)i;
    struct broker *b = bus_broker_of(t->is.bus);
    if (!atomic_load(&b->closed))
        natsConnection_PublishString(b->nc, natsMsg_GetReply(t->msg), word);
}

void bus_broker_item_again(struct bus_item *i)
{
    tell(i, "-NAK");
    bus_broker_item_forget(i);
}

void bus_broker_item_working(struct bus_item *i)
{
    tell(i, "+WPI");
}

/* ---- state of the queue ---- */

struct looking {
    struct broker_queue *queue;
    struct bus_queue_state state;
};

static natsStatus look(void *arg, jsOptions *o, jsErrCode *code)
{
    struct looking *l = arg;
    jsStreamInfo *s = NULL;
    jsConsumerInfo *c = NULL;
    struct broker_queue *q = l->queue;
    natsStatus status = js_GetConsumerInfo(&c, q->broker->js, q->stream, consumer, o, code);
    status = status ? status : js_GetStreamInfo(&s, q->broker->js, q->stream, o, code);
    if (status == NATS_OK) {
        uint64_t all = s->State.Msgs, taken = (uint64_t)c->NumAckPending;
        l->state.taken = taken < all ? taken : all;
        l->state.waiting = all - l->state.taken;
        l->state.done = s->State.LastSeq - all;
    }
    jsConsumerInfo_Destroy(c);
    jsStreamInfo_Destroy(s);
    return status;
}

int bus_broker_queue_state(struct bus_queue *base, struct bus_queue_state *out, struct err *e)
{
    struct broker_queue *q = (struct broker_queue *)base;
    struct looking l = {q, {0, 0, 0}};
    struct broker_attempt a = {.step = look, .arg = &l, .what = q->what};
    int64_t deadline = bus_broker_deadline(q->broker);
    int rc = bus_broker_try(q->broker, &a, deadline, e);
    if (rc && (a.code == JSStreamNotFoundErr || a.code == JSConsumerNotFoundErr)) {
        rc = make(q, deadline, e);
        rc = rc ? rc : bus_broker_try(q->broker, &a, deadline, e);
    }
    *out = l.state;
    return rc;
}
