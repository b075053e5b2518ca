/* The asking side: one inbox for the whole bus, and the calls that wait for what comes there. */
#include <ctype.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/time.h"
#include "base/wait.h"
#include "bus/wire.h"

struct asked {
    struct asked *next, *previous; /* among the outstanding ones of its set, then in its list of replies */
    struct bus_calls *calls;
    uint64_t id;
    int64_t deadline_ns;
    char *subject;
    void *unsent; /* the question, while there is no connection; or NULL */
    size_t unsent_n;
    struct assembly answer;
    struct bus_reply reply;
};

struct bus_calls {
    struct bus *bus;
    pthread_cond_t news;
    struct asked waiting;       /* ring */
    struct asked *first, **end; /* replies that nobody has fetched */
    size_t outstanding;         /* both */
    int64_t earliest_ns;        /* no deadline of a waiting one is before it */
};

struct asker {
    pthread_mutex_t lock; /* guards all below, and all calls */
    struct map by_id;
    uint64_t next_id;
    bool closed;
    char inbox[80];
    struct wire_sub *sub;
    struct bus_hook hook;
};

/* ---- with the lock held ---- */

static struct asked *find(struct asker *a, uint64_t id)
{
    const uint64_t *at = map_find(&a->by_id, id);
    return at ? (struct asked *)(uintptr_t)*at : NULL;
}

static void asked_free(struct asked *c)
{
    assembly_free(&c->answer);
    bus_reply_free(&c->reply);
    free(c->unsent);
    free(c->subject);
    free(c);
}

/* It waits no more: its reply, whose code and data are set, can be fetched. */
static void finish(struct asker *a, struct asked *c)
{
    struct bus_calls *s = c->calls;
    map_remove(&a->by_id, c->id);
    c->next->previous = c->previous;
    c->previous->next = c->next;
    c->next = NULL;
    *s->end = c;
    s->end = &c->next;
    pthread_cond_signal(&s->news);
}

__attribute__((format(printf, 4, 5))) static void fail(struct asker *a, struct asked *c, int code, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(c->reply.text, sizeof c->reply.text, fmt, ap);
    va_end(ap);
    c->reply.code = code;
    finish(a, c);
}

static void time_out(struct bus *b, struct asked *c)
{
    struct err trouble = {0};
    const char *why = b->kind->trouble(b->wire, &trouble) ? trouble.text : "no answer in time";
    fail(b->asker, c, ERR_TIMEOUT, "%s: %.180s%s", c->subject, why, c->unsent ? "; not sent" : "");
}

/* Ends those whose time is over. */
static void expire(struct bus_calls *s, int64_t now)
{
    if (now < s->earliest_ns)
        return;
    s->earliest_ns = INT64_MAX;
    for (struct asked *c = s->waiting.next, *next; c != &s->waiting; c = next) {
        next = c->next;
        if (c->deadline_ns <= now)
            time_out(s->bus, c);
        else if (c->deadline_ns < s->earliest_ns)
            s->earliest_ns = c->deadline_ns;
    }
}

/* ---- what comes ---- */

/* Whoever refuses may be anybody: what he says goes onto terminals. */
static void take_refusal(struct asker *a, struct asked *c)
{
    int code = c->answer.number < 0 ? c->answer.number : ERR_IO;
    size_t n = c->answer.n < sizeof c->reply.text ? c->answer.n : sizeof c->reply.text - 1;
    for (size_t i = 0; i < n; i++)
        if (iscntrl(c->answer.data[i]))
            c->answer.data[i] = ' ';
    fail(a, c, code, "%.*s", (int)n, n ? (const char *)c->answer.data : "");
}

static void take_answer(struct asker *a, struct asked *c)
{
    c->reply.data = c->answer.data;
    c->reply.n = c->answer.n;
    c->answer = (struct assembly){0};
    finish(a, c);
}

static void take_part(struct bus *b, struct asked *c, const struct wire_message *m)
{
    struct frame f;
    struct err e;
    c->reply.received_bytes += m->n;
    c->reply.received_messages++;
    int rc = frame_read(m->data, m->n, &f, &e);
    if (!rc && f.kind != FRAME_ANSWER && f.kind != FRAME_REFUSAL)
        rc = err_set(&e, ERR_FORMAT, "frame: kind %d is no answer", (int)f.kind);
    if (!rc && c->answer.parts && f.id != c->answer.id)
        return; /* somebody else's: the first who began to answer counts */
    rc = rc ? rc : assembly_add(&c->answer, &f, b->max_message, &e);
    if (rc < 0)
        fail(b->asker, c, rc, "%s: answer: %.180s", c->subject, e.text);
    else if (rc && f.kind == FRAME_REFUSAL)
        take_refusal(b->asker, c);
    else if (rc)
        take_answer(b->asker, c);
}

static void inbox_has(void *arg, const struct wire_message *m)
{
    struct bus *b = arg;
    struct asker *a = b->asker;
    const char *dot = strrchr(m->subject, '.');
    uint64_t id = dot ? strtoull(dot + 1, NULL, 16) : 0;
    pthread_mutex_lock(&a->lock);
    struct asked *c = find(a, id);
    if (c && m->nobody)
        fail(a, c, ERR_NOTFOUND, "%s: nobody serves it", c->subject);
    else if (c)
        take_part(b, c, m);
    pthread_mutex_unlock(&a->lock);
}

/* ---- what goes ---- */

struct wanted {
    struct asker *asker;
    uint64_t id;
};

/* Counted before it goes: the answer may be here before publishing has returned. */
static bool count_part(void *arg, size_t bytes)
{
    const struct wanted *w = arg;
    pthread_mutex_lock(&w->asker->lock);
    struct asked *c = find(w->asker, w->id);
    if (c) {
        c->reply.sent_bytes += bytes;
        c->reply.sent_messages++;
    }
    pthread_mutex_unlock(&w->asker->lock);
    return c != NULL;
}

/* Without the lock: the call may end meanwhile. */
static void send(struct bus *b, uint64_t id, const char *subject, const void *data, size_t n, int64_t deadline_ns)
{
    struct asker *a = b->asker;
    struct err e;
    char reply[sizeof a->inbox + 20];
    int64_t left = deadline_ns - time_monotonic_ns();
    int32_t left_ms = left <= 0 ? 0 : left / 1000000 < INT32_MAX ? (int32_t)(left / 1000000) : INT32_MAX;
    struct wanted wanted = {a, id};
    snprintf(reply, sizeof reply, "%s.%" PRIx64, a->inbox, id);
    const struct outgoing o = {.subject = subject,
        .reply = reply,
        .kind = FRAME_QUESTION,
        .number = left_ms,
        .data = data,
        .n = n,
        .before = count_part,
        .arg = &wanted};
    int rc = bus_send(b, &o, &e);
    if (!rc)
        return;
    pthread_mutex_lock(&a->lock);
    struct asked *c = find(a, id);
    if (c)
        fail(a, c, rc, "%s: %.200s", subject, e.text);
    pthread_mutex_unlock(&a->lock);
}

struct unsent {
    uint64_t id;
    int64_t deadline_ns;
    char *subject;
    void *data;
    size_t n;
};
typedef VEC(struct unsent) unsent_list;

static void send_unsent(void *arg)
{
    struct bus *b = arg;
    struct asker *a = b->asker;
    unsent_list list = {0};
    if (!b->kind->connected(b->wire))
        return;
    pthread_mutex_lock(&a->lock);
    for (size_t i = 0; i < a->by_id.cap; i++) {
        struct asked *c = a->by_id.used[i] == 1 ? (struct asked *)(uintptr_t)a->by_id.values[i] : NULL;
        if (!c || !c->unsent)
            continue;
        vec_push(&list, ((struct unsent){c->id, c->deadline_ns, mem_strdup(c->subject), c->unsent, c->unsent_n}));
        c->unsent = NULL;
    }
    pthread_mutex_unlock(&a->lock);
    for (size_t i = 0; i < list.n; i++) {
        send(b, list.v[i].id, list.v[i].subject, list.v[i].data, list.v[i].n, list.v[i].deadline_ns);
        free(list.v[i].subject);
        free(list.v[i].data);
    }
    vec_free(&list);
}

/* A call that waits, or has ended already. With the lock held. */
static struct asked *begin(struct bus_calls *s, const char *subject, size_t n, int64_t deadline_ns, uint64_t tag)
{
    struct asker *a = s->bus->asker;
    struct err e;
    struct asked *c = mem_zalloc(sizeof *c);
    *c = (struct asked){.calls = s, .id = ++a->next_id, .deadline_ns = deadline_ns, .subject = mem_strdup(subject)};
    c->reply.tag = tag;
    c->next = &s->waiting;
    c->previous = s->waiting.previous;
    c->previous->next = c->next->previous = c;
    s->outstanding++;
    if (deadline_ns < s->earliest_ns)
        s->earliest_ns = deadline_ns;
    if (a->closed)
        fail(a, c, ERR_CANCELLED, "%s: the bus is closed", subject);
    else if (subject_check(subject, false, &e))
        fail(a, c, ERR_ARG, "%.250s", e.text);
    else if (n > s->bus->max_message)
        fail(a, c, ERR_LIMIT, "%s: question of %zu bytes: at most %zu are sent", subject, n, s->bus->max_message);
    else if (deadline_ns <= time_monotonic_ns())
        fail(a, c, ERR_TIMEOUT, "%s: the time was over before it was asked", subject);
    else {
        *map_put(&a->by_id, c->id, NULL) = (uintptr_t)c;
        return c;
    }
    return NULL;
}

size_t bus_call(struct bus_calls *s, const char *subject, const void *data, size_t n, int64_t deadline_ns, uint64_t tag)
{
    struct bus *b = s->bus;
    pthread_mutex_lock(&b->asker->lock);
    struct asked *c = begin(s, subject, n, deadline_ns, tag);
    uint64_t id = c ? c->id : 0;
    size_t outstanding = s->outstanding;
    bool later = c && !b->kind->connected(b->wire);
    if (later) {
        c->unsent = mem_alloc(n + 1);
        c->unsent_n = n;
        if (n)
            memcpy(c->unsent, data, n);
    }
    pthread_mutex_unlock(&b->asker->lock);
    if (c && !later)
        send(b, id, subject, data, n, deadline_ns);
    return outstanding;
}

bool bus_calls_next(struct bus_calls *s, struct bus_reply *out)
{
    struct asker *a = s->bus->asker;
    struct asked *c;
    pthread_mutex_lock(&a->lock);
    while (!(c = s->first) && s->outstanding) {
        expire(s, time_monotonic_ns());
        if (!s->first)
            wait_until(&s->news, &a->lock, s->earliest_ns);
    }
    if (c) {
        s->first = c->next;
        if (!s->first)
            s->end = &s->first;
        s->outstanding--;
    }
    pthread_mutex_unlock(&a->lock);
    if (!c) {
        *out = (struct bus_reply){0};
        return false;
    }
    *out = c->reply;
    c->reply.data = NULL;
    asked_free(c);
    return true;
}

struct bus_calls *bus_calls_new(struct bus *b)
{
    struct bus_calls *s = mem_zalloc(sizeof *s);
    s->bus = bus_ref(b);
    wait_init(&s->news);
    s->waiting.next = s->waiting.previous = &s->waiting;
    s->end = &s->first;
    s->earliest_ns = INT64_MAX;
    return s;
}

void bus_calls_free(struct bus_calls *s)
{
    if (!s)
        return;
    struct asker *a = s->bus->asker;
    pthread_mutex_lock(&a->lock);
    while (s->waiting.next != &s->waiting)
        finish(a, s->waiting.next);
    pthread_mutex_unlock(&a->lock);
    for (struct asked *c = s->first, *next; c; c = next) {
        next = c->next;
        asked_free(c);
    }
    pthread_cond_destroy(&s->news);
    bus_unref(s->bus);
    free(s);
}

void bus_reply_free(struct bus_reply *r)
{
    free(r->data);
    r->data = NULL;
    r->n = 0;
}

int bus_ask(struct bus *b, const char *subject, const void *data, size_t n, int64_t deadline_ns, struct bus_reply *out)
{
    struct bus_calls *s = bus_calls_new(b);
    bus_call(s, subject, data, n, deadline_ns, 0);
    bus_calls_next(s, out);
    bus_calls_free(s);
    return out->code;
}

/* ---- the inbox ---- */

static void nothing(void *arg) {}

int asker_open(struct bus *b, struct err *e)
{
    struct asker *a = b->asker = mem_zalloc(sizeof *a);
    uint64_t key[2];
    arc4random_buf(key, sizeof key);
    pthread_mutex_init(&a->lock, NULL);
    snprintf(a->inbox, sizeof a->inbox, "_INBOX.weft-%016" PRIx64 "%016" PRIx64, key[0], key[1]);
    char pattern[sizeof a->inbox + 2];
    snprintf(pattern, sizeof pattern, "%s.*", a->inbox);
    a->hook = (struct bus_hook){.changed = send_unsent, .arg = b};
    int rc = b->kind->subscribe(b->wire, pattern, inbox_has, nothing, b, &a->sub, e);
    if (!rc)
        bus_hook_add(b, &a->hook);
    return rc;
}

void asker_close(struct bus *b)
{
    struct asker *a = b->asker;
    if (!a)
        return;
    bus_hook_remove(b, &a->hook);
    if (a->sub)
        b->kind->unsubscribe(a->sub);
    a->sub = NULL;
    pthread_mutex_lock(&a->lock);
    a->closed = true;
    for (size_t i = 0; i < a->by_id.cap;) {
        struct asked *c = a->by_id.used[i] == 1 ? (struct asked *)(uintptr_t)a->by_id.values[i] : NULL;
        if (c)
            fail(a, c, ERR_CANCELLED, "%s: the bus is closed", c->subject);
        else
            i++;
    }
    pthread_mutex_unlock(&a->lock);
}

void asker_free(struct bus *b)
{
    struct asker *a = b->asker;
    if (!a)
        return;
    map_fini(&a->by_id);
    pthread_mutex_destroy(&a->lock);
    free(a);
}
