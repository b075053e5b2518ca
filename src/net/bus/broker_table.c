/* SPDX-License-Identifier: MIT */
/* Tables over NATS: JetStream's key-value buckets, as other NATS clients know them: a stream KV_NAME of the subjects
 * $KV.NAME.KEY that keeps the last message of each. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/map.h"
#include "base/mem.h"
#include "base/time.h"
#include "bus/broker.h"

enum {
    SUBJECT_ROOM = BUS_MAX_SUBJECT + 80,
    IDLE_AFTER_S = 10,
    HEARTBEAT_S = 2,
    RECOUNT_NS = 100000000,
    FIRST_PATIENCE_NS = 1000000000
};
#define TOLD_AT_ONCE_NS INT64_C(50000000)
static const char operation[] = "KV-Operation", expected_header[] = "Nats-Expected-Last-Subject-Sequence";

static void subject_of(const struct broker_table *t, const char *key, char out[SUBJECT_ROOM])
{
    snprintf(out, SUBJECT_ROOM, "$KV.%s.%s", t->name, key);
}

/* ---- the stream ---- */

static natsStatus add_stream(void *arg, jsOptions *o, jsErrCode *code)
{
    struct broker_table *t = arg;
    char subjects[SUBJECT_ROOM];
    const char *list[] = {subjects};
    jsStreamConfig c;
    jsStreamInfo *made = NULL;
    jsStreamConfig_Init(&c);
    c.Replicas = t->broker->replicas ? t->broker->replicas : 1;
    subject_of(t, ">", subjects);
    c.Name = t->stream;
    c.Subjects = list;
    c.SubjectsLen = 1;
    c.MaxMsgsPerSubject = 1;
    c.MaxAge = t->ttl_ns;
    c.Storage = t->memory ? js_MemoryStorage : js_FileStorage;
    c.Discard = js_DiscardNew;
    c.AllowRollup = c.DenyDelete = true;
    natsStatus s = js_AddStream(&made, t->broker->js, &c, o, code);
    if (s == NATS_OK)
        t->real_ttl_ns = made->Config->MaxAge;
    jsStreamInfo_Destroy(made);
    return s;
}

static natsStatus look_at_stream(void *arg, jsOptions *o, jsErrCode *code)
{
    struct broker_table *t = arg;
    jsStreamInfo *i = NULL;
    natsStatus s = js_GetStreamInfo(&i, t->broker->js, t->stream, o, code);
    if (s == NATS_OK)
        t->real_ttl_ns = i->Config->MaxAge;
    jsStreamInfo_Destroy(i);
    return s;
}

/* Makes the table unless it exists. If two nodes make it at once, both succeed if they agree; with other options the
 * second finds it made. The look-up comes first: readers of tables need no right to make them. */
int bus_broker_table_make(struct broker_table *t, int64_t deadline_ns, struct err *e)
{
    struct broker_attempt a = {.step = look_at_stream, .arg = t, .what = t->what};
    int rc = bus_broker_try(t->broker, &a, deadline_ns, e);
    if (rc && a.code == JSStreamNotFoundErr) {
        a.step = add_stream;
        rc = bus_broker_try(t->broker, &a, deadline_ns, e);
        a.step = look_at_stream;
        if (rc && a.code == JSStreamNameExistErr)
            rc = bus_broker_try(t->broker, &a, deadline_ns, e);
    }
    return rc ? rc : bus_broker_replicate(t->broker, t->stream, t->what, deadline_ns, e);
}

int bus_broker_table_open(
    struct bus *b, const char *name, const struct bus_table_options *o, struct bus_table **out, struct err *e)
{
    struct broker_table *t = mem_zalloc(sizeof *t);
    *t = (struct broker_table){.broker = bus_broker_of(b), .memory = o->memory, .ttl_ns = o->ttl_ns};
    snprintf(t->name, sizeof t->name, "%s", name);
    snprintf(t->stream, sizeof t->stream, "KV_%s", t->name);
    snprintf(t->what, sizeof t->what, "table %s", t->name);
    int rc = bus_broker_table_make(t, bus_broker_deadline(t->broker), e);
    if (rc) {
        free(t);
        return rc;
    }
    t->base.bus = bus_ref(b);
    *out = &t->base;
    return 0;
}

void bus_broker_table_close(struct bus_table *t)
{
    bus_unref(t->bus);
    free(t);
}

/* Returns whether the stream is gone, as after the restart of a broker that kept it in memory. */
static bool is_gone(const struct broker_attempt *a)
{
    return a->code == JSStreamNotFoundErr || (!a->code && a->status == NATS_NO_RESPONDERS);
}

/* ---- putting ---- */

struct putting {
    struct broker_table *table;
    const char *key, *operation; /* operation NULL: a value is put */
    const void *data;
    size_t n;
    const uint64_t *expected;
    uint64_t revision;
};

static natsStatus put(void *arg, jsOptions *o, jsErrCode *code)
{
    struct putting *p = arg;
    char subject[SUBJECT_ROOM], number[24];
    natsMsg *m = NULL;
    jsPubAck *ack = NULL;
    jsPubOptions po;
    jsPubOptions_Init(&po);
    po.MaxWait = o->Wait;
    subject_of(p->table, p->key, subject);
    natsStatus s = natsMsg_Create(&m, subject, NULL, p->data, (int)p->n);
    if (s == NATS_OK && p->operation)
        s = natsMsgHeader_Set(m, operation, p->operation);
    if (s == NATS_OK && p->expected) {
        snprintf(number, sizeof number, "%" PRIu64, *p->expected);
        s = natsMsgHeader_Set(m, expected_header, number);
    }
    s = s ? s : js_PublishMsg(&ack, p->table->broker->js, m, &po, code);
    if (s == NATS_OK)
        p->revision = ack->Sequence;
    jsPubAck_Destroy(ack);
    natsMsg_Destroy(m);
    return s;
}

/* A message for a stream that is gone has no receiver; nor has one for a stream that is about to come back. Then the
 * stream is made, unless it is there, and it is tried once more. */
static int put_now(struct putting *p, struct broker_attempt *a, int64_t deadline_ns, struct err *e)
{
    int rc = bus_broker_once(p->table->broker, a, deadline_ns, e);
    if (!rc || !is_gone(a))
        return rc;
    rc = bus_broker_table_make(p->table, deadline_ns, e);
    return rc ? rc : bus_broker_try(p->table->broker, a, deadline_ns, e);
}

struct getting {
    struct broker_table *table;
    const char *key;
    natsMsg *got;
};

static natsStatus get(void *arg, jsOptions *o, jsErrCode *code)
{
    struct getting *g = arg;
    char subject[SUBJECT_ROOM];
    subject_of(g->table, g->key, subject);
    return js_GetLastMsg(&g->got, g->table->broker->js, g->table->stream, subject, o, code);
}

static bool is_removal(natsMsg *m)
{
    const char *value = NULL;
    return natsMsgHeader_Get(m, operation, &value) == NATS_OK && (!strcmp(value, "DEL") || !strcmp(value, "PURGE"));
}

/* The last message of a key, a removal also. ERR_NOTFOUND: there is none. */
static int get_last(struct broker_table *t, const char *key, natsMsg **out, int64_t deadline_ns, struct err *e)
{
    struct getting g = {t, key, NULL};
    struct broker_attempt a = {.step = get, .arg = &g, .what = t->what};
    int rc = bus_broker_try(t->broker, &a, deadline_ns, e);
    *out = g.got;
    if (!rc || (a.code != JSNoMessageFoundErr && a.code != JSStreamNotFoundErr && a.status != NATS_NOT_FOUND))
        return rc;
    return err_set(e, ERR_NOTFOUND, "%s: no '%s'", t->what, key);
}

/* "Has no value" is true of a removed key too, whose last message is the removal. */
static int expect_removal(struct broker_table *t, const char *key, uint64_t *expected, int64_t deadline_ns)
{
    natsMsg *m = NULL;
    bool removed = !get_last(t, key, &m, deadline_ns, NULL) && is_removal(m);
    if (removed)
        *expected = natsMsg_GetSequence(m);
    natsMsg_Destroy(m);
    return removed ? 0 : ERR_STALE;
}

int bus_broker_table_put(struct bus_table *base, const char *key, const void *data, size_t n, const uint64_t *expected,
    uint64_t *revision, struct err *e)
{
    struct broker_table *t = (struct broker_table *)base;
    int64_t deadline = bus_broker_deadline(t->broker);
    struct putting p = {.table = t, .key = key, .data = data, .n = n, .expected = expected};
    struct broker_attempt a = {.step = put, .arg = &p, .what = t->what, .once = expected != NULL};
    uint64_t removal;
    int rc = put_now(&p, &a, deadline, e);
    if (rc && expected && !*expected && a.code == JSStreamWrongLastSequenceErr &&
        !expect_removal(t, key, &removal, deadline)) {
        p.expected = &removal;
        rc = put_now(&p, &a, deadline, e);
    }
    if (rc && expected && a.code == JSStreamWrongLastSequenceErr)
        return err_set(e, ERR_STALE, "%s: '%s' was changed by another; read it again", t->what, key);
    *revision = p.revision;
    return rc;
}

int bus_broker_table_remove(struct bus_table *base, const char *key, struct err *e)
{
    struct broker_table *t = (struct broker_table *)base;
    struct putting p = {.table = t, .key = key, .operation = "DEL"};
    struct broker_attempt a = {.step = put, .arg = &p, .what = t->what};
    return put_now(&p, &a, bus_broker_deadline(t->broker), e);
}

int bus_broker_table_get(
    struct bus_table *base, const char *key, void **data, size_t *n, uint64_t *revision, struct err *e)
{
    struct broker_table *t = (struct broker_table *)base;
    natsMsg *m = NULL;
    int rc = get_last(t, key, &m, bus_broker_deadline(t->broker), e);
    if (!rc && is_removal(m))
        rc = err_set(e, ERR_NOTFOUND, "%s: no '%s'", t->what, key);
    if (!rc) {
        *n = (size_t)natsMsg_GetDataLength(m);
        char *copy = mem_alloc(*n + 1);
        if (*n)
            memcpy(copy, natsMsg_GetData(m), *n);
        copy[*n] = '\0';
        *data = copy;
        *revision = natsMsg_GetSequence(m);
    }
    natsMsg_Destroy(m);
    return rc;
}

/* ---- all entries ---- */

struct following {
    struct broker_table *table;
    const char *key, *deliver; /* key NULL: all */
    uint64_t pending;
};

static natsStatus follow(void *arg, jsOptions *o, jsErrCode *code)
{
    struct following *f = arg;
    char subjects[SUBJECT_ROOM];
    jsConsumerConfig c;
    jsConsumerInfo *made = NULL;
    jsConsumerConfig_Init(&c);
    subject_of(f->table, f->key ? f->key : ">", subjects);
    c.DeliverSubject = f->deliver;
    c.DeliverPolicy = js_DeliverLastPerSubject;
    c.AckPolicy = js_AckNone;
    c.FilterSubject = subjects;
    c.Heartbeat = HEARTBEAT_S * NS_PER_S;
    c.InactiveThreshold = IDLE_AFTER_S * NS_PER_S;
    c.MemoryStorage = true;
    natsStatus s = js_AddConsumer(&made, f->table->broker->js, f->table->stream, &c, o, code);
    if (s == NATS_OK)
        f->pending = made->NumPending + made->Delivered.Consumer; /* some entries may be under way already */
    jsConsumerInfo_Destroy(made);
    return s;
}

struct counting {
    struct broker_table *table;
    uint64_t keys;
    bool replicated;
};

static natsStatus count_step(void *arg, jsOptions *o, jsErrCode *code)
{
    struct counting *c = arg;
    jsStreamInfo *i = NULL;
    natsStatus s = js_GetStreamInfo(&i, c->table->broker->js, c->table->stream, o, code);
    if (s == NATS_OK) {
        c->keys = (uint64_t)i->State.NumSubjects;
        c->replicated = i->Config->Replicas > 1;
    }
    jsStreamInfo_Destroy(i);
    return s;
}

/* Keys that have an entry, or had one that was removed. */
static int count_keys(struct broker_table *t, int64_t deadline_ns, struct counting *out, struct err *e)
{
    struct broker_attempt a = {.step = count_step, .arg = out, .what = t->what};
    *out = (struct counting){.table = t};
    return bus_broker_try(t->broker, &a, deadline_ns, e);
}

/* A table that several brokers keep is delivered by one of them, which may not have all of it yet. */
int bus_broker_table_follow(
    struct broker_table *t, const char *key, const char *deliver, int64_t deadline_ns, uint64_t *pending, struct err *e)
{
    struct following f = {t, key, deliver, 0};
    struct counting c;
    struct broker_attempt a = {.step = follow, .arg = &f, .what = t->what, .once = true};
    int rc = bus_broker_try(t->broker, &a, deadline_ns, e);
    if (rc && a.code == JSStreamNotFoundErr) {
        rc = bus_broker_table_make(t, deadline_ns, e);
        rc = rc ? rc : bus_broker_try(t->broker, &a, deadline_ns, e);
    }
    *pending = f.pending;
    if (!rc && !key)
        rc = count_keys(t, deadline_ns, &c, e);
    if (!rc && !key && c.replicated && f.pending < c.keys)
        rc = err_set(e, ERR_TIMEOUT, "%s: a broker that was away does not have all of it yet", t->what);
    return rc;
}

bool bus_broker_table_entry(
    const struct broker_table *t, natsMsg *m, struct bus_entry *out, struct bus_broker_mark *mark)
{
    const char *subject = natsMsg_GetSubject(m);
    size_t n = strlen(t->name);
    if (!bus_broker_mark(natsMsg_GetReply(m), mark) || strncmp(subject, "$KV.", 4) != 0 ||
        strncmp(subject + 4, t->name, n) != 0 || subject[4 + n] != '.')
        return false;
    bool removed = is_removal(m);
    *out = (struct bus_entry){.kind = removed ? BUS_ENTRY_REMOVED : BUS_ENTRY_PUT,
        .key = subject + 5 + n,
        .data = removed ? NULL : natsMsg_GetData(m),
        .n = removed ? 0 : (size_t)natsMsg_GetDataLength(m),
        .revision = mark->stream_seq};
    return true;
}

/* Reports an entry. A removed entry is reported only to a handler that has seen it. */
static void tell_entry(struct map *told, const struct bus_entry *entry, bus_entry_handler *handler, void *arg)
{
    uint64_t *is_there = map_put(told, map_hash(entry->key, strlen(entry->key)), NULL);
    if (entry->kind == BUS_ENTRY_PUT || *is_there)
        handler(arg, entry);
    *is_there = entry->kind == BUS_ENTRY_PUT;
}

/* Takes messages until all initial keys have come. The number of pending messages shows this, unless entries are put
 * all the time: then it may never reach 0, or be 0 although older entries are still to come. */
static int take_all(struct broker_table *t, natsSubscription *sub, uint64_t keys, struct map *told,
    bus_entry_handler *handler, void *arg, struct err *e)
{
    uint64_t seen = 0;
    struct counting c = {.keys = keys};
    int rc = 0;
    for (int64_t deadline = bus_broker_deadline(t->broker); told->n < keys && !rc;) {
        natsMsg *m = NULL;
        struct bus_entry entry;
        struct bus_broker_mark mark = {.pending = 1};
        int64_t until = time_monotonic_ns() + RECOUNT_NS;
        natsStatus s = natsSubscription_NextMsg(&m, sub, bus_broker_ms_until(until < deadline ? until : deadline));
        bool late = time_monotonic_ns() >= deadline;
        if (!s && bus_broker_table_entry(t, m, &entry, &mark)) {
            if (mark.consumer_seq != ++seen)
                rc = err_set(e, ERR_IO, "%s: a part of it was lost on the way; read it again", t->what);
            else
                tell_entry(told, &entry, handler, arg);
            deadline = bus_broker_deadline(t->broker);
        } else if (late || (s && s != NATS_TIMEOUT)) {
            rc = s && s != NATS_TIMEOUT ? bus_broker_fail(t->broker, s, 0, e, t->what)
                                        : err_set(e, ERR_TIMEOUT, "%s: not all of it came in time", t->what);
        }
        natsMsg_Destroy(m);
        if (!rc && told->n < keys && (s || !mark.pending)) /* keys may be no more, as if they had never been */
            rc = count_keys(t, deadline, &c, e);
        keys = c.keys;
    }
    return rc;
}

/* Makes one attempt, with an inbox of its own. *told: the handler was called. */
static int all_once(
    struct broker_table *t, int64_t deadline_ns, bool *told, bus_entry_handler *handler, void *arg, struct err *e)
{
    char inbox[BROKER_INBOX];
    natsSubscription *sub = NULL;
    struct counting c;
    struct map keys = {0};
    uint64_t pending = 0;
    bus_broker_inbox(t->broker, inbox);
    natsStatus s = natsConnection_SubscribeSync(&sub, t->broker->nc, inbox);
    int rc = s ? bus_broker_fail(t->broker, s, 0, e, t->what)
               : bus_broker_table_follow(t, NULL, inbox, deadline_ns, &pending, e);
    if (!rc && pending)
        rc = count_keys(t, deadline_ns, &c, e);
    *told = !rc && pending;
    if (*told)
        rc = take_all(t, sub, c.keys, &keys, handler, arg, e);
    map_fini(&keys);
    natsSubscription_Unsubscribe(sub);
    bus_broker_destroy_later(t->broker, sub);
    return rc;
}

int bus_broker_table_all(struct bus_table *base, bus_entry_handler *handler, void *arg, struct err *e)
{
    struct broker_table *t = (struct broker_table *)base;
    int64_t deadline = bus_broker_deadline(t->broker);
    bool told = false;
    int rc = bus_broker_await(t->broker, deadline, e);
    for (int64_t patience_ns = FIRST_PATIENCE_NS; !rc; patience_ns *= 2) {
        int64_t now = time_monotonic_ns(), until = now + patience_ns < deadline ? now + patience_ns : deadline;
        rc = all_once(t, until, &told, handler, arg, e);
        now = time_monotonic_ns();
        if (rc != ERR_TIMEOUT || told || now + TOLD_AT_ONCE_NS >= deadline)
            break;
        if (now < until) { /* the broker does not have all of it yet */
            usleep(TOLD_AT_ONCE_NS / 1000);
            patience_ns /= 2;
        }
        rc = bus_broker_await(t->broker, deadline, e);
    }
    return rc;
}

/* ---- version of the table ---- */

struct version {
    struct broker_table *table;
    uint64_t is;
};

/* A stream that is made again begins to count anew. A purge changes only the first number and how many there are. */
static natsStatus version_step(void *arg, jsOptions *o, jsErrCode *code)
{
    struct version *v = arg;
    jsStreamInfo *i = NULL;
    natsStatus s = js_GetStreamInfo(&i, v->table->broker->js, v->table->stream, o, code);
    if (s == NATS_OK)
        v->is = map_mix(map_mix((uint64_t)i->Created) + i->State.FirstSeq + map_mix(i->State.Msgs)) + i->State.LastSeq;
    jsStreamInfo_Destroy(i);
    return s;
}

int bus_broker_table_version(struct bus_table *base, uint64_t *version, struct err *e)
{
    struct broker_table *t = (struct broker_table *)base;
    struct version v = {t, 0};
    struct broker_attempt a = {.step = version_step, .arg = &v, .what = t->what};
    int64_t deadline = bus_broker_deadline(t->broker);
    int rc = bus_broker_try(t->broker, &a, deadline, e);
    if (rc && a.code == JSStreamNotFoundErr) {
        rc = bus_broker_table_make(t, deadline, e);
        rc = rc ? rc : bus_broker_try(t->broker, &a, deadline, e);
    }
    *version = v.is;
    return rc;
}
