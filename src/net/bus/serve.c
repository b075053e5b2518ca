/* SPDX-License-Identifier: MIT */
/* The answering side: questions put together, held within limits, and answered from any thread. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/time.h"
#include "bus/trust.h"
#include "bus/wire.h"

enum { DEFAULT_OPEN = 64, LONGEST_PART_WAIT_S = 60, MESSAGES_AT_ONCE = 4 };

/* Incomplete question. */
struct partial {
    struct partial *next;
    char *reply;
    int64_t deadline_ns;
    struct assembly got;
};

struct bus_service {
    struct bus *bus;
    struct bus_service *next; /* next one in the service table */
    bus_question_handler *handler;
    void *arg;
    unsigned max_open;
    size_t max_bytes;
    struct wire_sub *sub;
    char *subject;
    struct signer *signer; /* NULL: it is not bound */
    pthread_mutex_t lock;  /* guards all below */
    unsigned open;         /* questions without an answer, and partial ones */
    size_t bytes;          /* bytes of these questions */
    unsigned questions;    /* number of questions that the service must outlive */
    bool ended;
    struct partial *partial;
};

/* Destination of an answer, and what it is signed for. */
struct asker_of {
    char *reply;
    bool wants_signature;
    bool taken;                         /* the question was taken completely */
    uint8_t question[TRUST_HASH_BYTES]; /* hash of the question, if the answer is signed */
};

struct question {
    struct bus_question is;
    struct bus_service *service;
    struct asker_of asker;
};

struct service_table {
    pthread_mutex_t lock; /* guards all below; taken before a service's */
    struct bus_service *services;
    struct loop *loop; /* started with the first service */
};

/* ---- answering ---- */

static int send_signed(struct bus_service *s, const struct asker_of *to, struct outgoing o, struct err *e)
{
    struct trust_statement is = {s->subject, to->reply, to->taken ? to->question : NULL, o.kind, o.number, o.data, o.n};
    uint8_t *both = mem_try(1, o.n + TRUST_SIGNATURE_BYTES);
    if (!both)
        return err_set(e, ERR_NOMEM, "out of memory: an answer of %zu bytes", o.n);
    if (o.n)
        memcpy(both, o.data, o.n);
    bus_signer_sign(s->signer, &is, both + o.n);
    o.data = both;
    o.n += TRUST_SIGNATURE_BYTES;
    int rc = bus_send(s->bus, &o, e);
    free(both);
    return rc;
}

/* kind: FRAME_ANSWER, FRAME_REFUSAL. */
static int send_back(struct bus_service *s, const struct asker_of *to, enum frame_kind kind, int code, const void *data,
    size_t n, struct err *e)
{
    struct outgoing o = {.subject = to->reply, .kind = kind, .number = code, .data = data, .n = n};
    if (!to->wants_signature)
        return bus_send(s->bus, &o, e);
    o.kind = kind == FRAME_ANSWER ? FRAME_SIGNED_ANSWER : FRAME_SIGNED_REFUSAL;
    return send_signed(s, to, o, e);
}

static void refuse(struct bus_service *s, const struct asker_of *to, int code, const char *text)
{
    send_back(s, to, FRAME_REFUSAL, code, text, strlen(text), NULL);
}

/* Ends with the last of: its subscription, its questions. */
static void service_free(struct bus_service *s)
{
    struct bus *b = s->bus;
    bus_signer_close(s->signer);
    pthread_mutex_destroy(&s->lock);
    free(s->subject);
    free(s);
    bus_unref(b);
}

static void question_free(struct question *q)
{
    struct bus_service *s = q->service;
    pthread_mutex_lock(&s->lock);
    s->open--;
    s->bytes -= q->is.n;
    bool last = --s->questions == 0 && s->ended;
    pthread_mutex_unlock(&s->lock);
    if (last)
        service_free(s);
    free((void *)q->is.data);
    free(q->asker.reply);
    free(q);
}

int bus_answer(struct bus_question *is, const void *data, size_t n, struct err *e)
{
    struct question *q = (struct question *)is;
    struct bus *b = q->service->bus;
    struct err ignored;
    int rc = 0;
    e = e ? e : &ignored;
    if (n > b->max_message) {
        rc = err_set(e, ERR_LIMIT, "answer of %zu bytes: at most %zu are sent", n, b->max_message);
        refuse(q->service, &q->asker, rc, e->text);
    } else if (time_monotonic_ns() >= is->deadline_ns) {
        rc = err_set(e, ERR_TIMEOUT, "answer: too late, the asker waits no more");
    } else {
        rc = send_back(q->service, &q->asker, FRAME_ANSWER, 0, data, n, e);
    }
    question_free(q);
    return rc;
}

void bus_refuse(struct bus_question *is, int code, const char *text)
{
    struct question *q = (struct question *)is;
    refuse(q->service, &q->asker, code < 0 ? code : ERR_IO, text);
    question_free(q);
}

/* ---- received messages ---- */

/* Drops a partial question; *at is it. Called with the lock held. */
static void drop(struct bus_service *s, struct partial **at)
{
    struct partial *p = *at;
    *at = p->next;
    s->open--;
    s->bytes -= p->got.n;
    bus_assembly_free(&p->got);
    free(p->reply);
    free(p);
}

/* Room for one more, and for n bytes more? With the lock held. */
static bool has_room(const struct bus_service *s, unsigned more, size_t n)
{
    return s->open + more <= s->max_open && n <= s->max_bytes && s->bytes <= s->max_bytes - n;
}

static int64_t deadline_of(int32_t left_ms)
{
    return time_monotonic_ns() + (left_ms > 0 ? left_ms : 0) * INT64_C(1000000);
}

/* Takes over the data and the reply. */
static void hand_over(
    struct bus_service *s, enum frame_kind kind, void *data, size_t n, char *reply, int64_t deadline_ns)
{
    struct question *q = mem_zalloc(sizeof *q);
    *q = (struct question){.is = {data, n, deadline_ns}, .service = s};
    q->asker = (struct asker_of){.reply = reply, .taken = true};
    q->asker.wants_signature = kind == FRAME_SIGN_QUESTION && s->signer;
    if (q->asker.wants_signature)
        bus_trust_hash(data, n, q->asker.question);
    s->handler(s->arg, &q->is);
}

/* Refuses a question that is not taken. */
static void turn_down(
    struct bus_service *s, const struct wire_message *m, enum frame_kind kind, int code, const char *text)
{
    struct asker_of to = {.reply = (char *)m->reply, .wants_signature = kind == FRAME_SIGN_QUESTION && s->signer};
    refuse(s, &to, code, text);
}

static void busy(struct bus_service *s, const struct wire_message *m, const struct frame *f)
{
    char text[120];
    snprintf(text, sizeof text, "busy: as many questions are open here as are allowed (%u, %zu bytes); ask again later",
        s->max_open, s->max_bytes);
    turn_down(s, m, f->kind, ERR_BUSY, text);
}

static void take_whole(struct bus_service *s, const struct wire_message *m, const struct frame *f)
{
    pthread_mutex_lock(&s->lock);
    bool room = has_room(s, 1, f->n);
    if (room) {
        s->open++;
        s->questions++;
        s->bytes += f->n;
    }
    pthread_mutex_unlock(&s->lock);
    if (!room) {
        busy(s, m, f);
        return;
    }
    void *data = NULL;
    if (f->n)
        data = memcpy(mem_alloc(f->n), f->data, f->n);
    hand_over(s, f->kind, data, f->n, mem_strdup(m->reply), deadline_of(f->number));
}

/* Called with the lock held. */
static struct partial **find(struct bus_service *s, const struct wire_message *m, const struct frame *f)
{
    struct partial **at = &s->partial;
    while (*at && ((*at)->got.id != f->id || strcmp((*at)->reply, m->reply) != 0))
        at = &(*at)->next;
    return at;
}

/* Called with the lock held, *at NULL. */
static void begin(struct bus_service *s, struct partial **at, const struct wire_message *m, const struct frame *f)
{
    int64_t latest = time_monotonic_ns() + LONGEST_PART_WAIT_S * NS_PER_S, deadline = deadline_of(f->number);
    struct partial *p = *at = mem_zalloc(sizeof *p);
    p->reply = mem_strdup(m->reply);
    p->deadline_ns = deadline < latest ? deadline : latest;
    s->open++;
}

/* A part of a question. Its whole size counts when it has come, not when it is claimed. */
static void take_part(struct bus_service *s, const struct wire_message *m, const struct frame *f)
{
    struct err e;
    int rc = 0;
    pthread_mutex_lock(&s->lock);
    struct partial **at = find(s, m, f);
    bool fresh = !*at;
    if (fresh && f->part != 0) { /* refused or dropped before, or its first part was lost */
        pthread_mutex_unlock(&s->lock);
        return;
    }
    bool room = has_room(s, fresh ? 1 : 0, f->n);
    if (room && fresh)
        begin(s, at, m, f);
    if (room) {
        rc = bus_assembly_add(&(*at)->got, f, s->bus->max_message, &e);
        s->bytes += rc < 0 ? 0 : f->n;
    }
    struct assembly whole = {0};
    int64_t deadline = rc > 0 ? (*at)->deadline_ns : 0;
    if (rc > 0) {
        whole = (*at)->got;
        (*at)->got = (struct assembly){0};
        s->open++;
        s->questions++;
    }
    if ((!room && !fresh) || rc)
        drop(s, at);
    pthread_mutex_unlock(&s->lock);
    if (!room)
        busy(s, m, f);
    else if (rc < 0)
        turn_down(s, m, f->kind, rc, e.text);
    else if (rc > 0)
        hand_over(s, f->kind, whole.data, whole.n, mem_strdup(m->reply), deadline);
    else if (fresh)
        bus_loop_kick(s->bus->services->loop);
}

static void service_has(void *arg, const struct wire_message *m)
{
    struct bus_service *s = arg;
    struct frame f;
    struct err e;
    /* Answers go to inboxes only: otherwise a client could make a node write to subjects where only nodes may. */
    if (!m->reply || m->nobody || strncmp(m->reply, "_INBOX.", 7) != 0)
        return; /* not a question */
    int rc = bus_frame_read(m->data, m->n, &f, &e);
    if (!rc && f.kind != FRAME_QUESTION && f.kind != FRAME_SIGN_QUESTION)
        rc = err_set(&e, ERR_FORMAT, "frame: kind %d is no question", (int)f.kind);
    if (rc)
        turn_down(s, m, FRAME_QUESTION, rc, e.text);
    else if (f.parts == 1)
        take_whole(s, m, &f);
    else
        take_part(s, m, &f);
}

static void service_ended(void *arg)
{
    struct bus_service *s = arg;
    pthread_mutex_lock(&s->lock);
    while (s->partial)
        drop(s, &s->partial);
    s->ended = true;
    bool last = s->questions == 0;
    pthread_mutex_unlock(&s->lock);
    if (last)
        service_free(s);
}

/* ---- the service table ---- */

/* Drops overdue questions; returns when the next will be overdue. */
static int64_t sweep(struct bus_service *s, int64_t now)
{
    int64_t due = INT64_MAX;
    pthread_mutex_lock(&s->lock);
    for (struct partial **at = &s->partial; *at;)
        if ((*at)->deadline_ns <= now) {
            drop(s, at);
        } else {
            due = (*at)->deadline_ns < due ? (*at)->deadline_ns : due;
            at = &(*at)->next;
        }
    pthread_mutex_unlock(&s->lock);
    return due;
}

static int64_t sweep_all(void *arg)
{
    struct service_table *t = arg;
    int64_t now = time_monotonic_ns(), due = INT64_MAX;
    pthread_mutex_lock(&t->lock);
    for (struct bus_service *s = t->services; s; s = s->next) {
        int64_t its = sweep(s, now);
        due = its < due ? its : due;
    }
    pthread_mutex_unlock(&t->lock);
    return due;
}

static void nothing(void *arg) {}

void bus_services_open(struct bus *b)
{
    b->services = mem_zalloc(sizeof *b->services);
    pthread_mutex_init(&b->services->lock, NULL);
}

void bus_services_close(struct bus *b)
{
    if (b->services->loop)
        bus_loop_stop(b->services->loop);
    b->services->loop = NULL;
}

void bus_services_free(struct bus *b)
{
    pthread_mutex_destroy(&b->services->lock);
    free(b->services);
}

/* ---- serving ---- */

static int list_service(struct service_table *t, struct bus_service *s, struct err *e)
{
    pthread_mutex_lock(&t->lock);
    int rc = t->loop ? 0 : bus_loop_start(sweep_all, nothing, t, &t->loop, e);
    if (!rc) {
        s->next = t->services;
        t->services = s;
    }
    pthread_mutex_unlock(&t->lock);
    return rc;
}

static void unlist_service(struct service_table *t, struct bus_service *s)
{
    pthread_mutex_lock(&t->lock);
    for (struct bus_service **at = &t->services; *at; at = &(*at)->next)
        if (*at == s) {
            *at = s->next;
            break;
        }
    pthread_mutex_unlock(&t->lock);
}

int bus_serve(struct bus *b, const char *subject, const struct bus_serve_options *o, bus_question_handler *handler,
    void *arg, struct bus_service **out, struct err *e)
{
    *out = NULL;
    int rc = bus_subject_check(subject, false, e);
    if (rc)
        return rc;
    struct bus_service *s = mem_zalloc(sizeof *s);
    *s = (struct bus_service){.bus = bus_ref(b), .handler = handler, .arg = arg};
    s->subject = mem_strdup(subject);
    s->max_open = o && o->max_open ? o->max_open : DEFAULT_OPEN;
    s->max_bytes = o && o->max_bytes ? o->max_bytes : MESSAGES_AT_ONCE * b->max_message;
    pthread_mutex_init(&s->lock, NULL);
    *out = s; /* the handler may look at it */
    rc = bus_signer_open(b, subject, &s->signer, e);
    rc = rc ? rc : list_service(b->services, s, e);
    if (rc) {
        service_ended(s);
    } else {
        rc = b->kind->subscribe(b->wire, subject, service_has, service_ended, s, &s->sub, e);
        if (rc) {
            unlist_service(b->services, s);
            service_ended(s);
        }
    }
    if (rc)
        *out = NULL;
    return rc;
}

void bus_stop(struct bus_service *s)
{
    if (!s)
        return;
    unlist_service(s->bus->services, s);
    bus_signer_stop(s->signer);
    s->bus->kind->unsubscribe(s->sub);
}
