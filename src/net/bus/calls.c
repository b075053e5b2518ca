/* SPDX-License-Identifier: MIT */
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
#include "bus/trust.h"
#include "bus/wire.h"

struct asked {
    struct asked *next, *previous; /* list of outstanding calls of the set, then of its replies */
    struct bus_calls *calls;
    uint64_t id;
    int64_t deadline_ns;
    char *subject;
    void *unsent; /* the question, while there is no connection; or NULL */
    size_t unsent_n;
    struct assembly answer;
    struct bound *bound; /* NULL: the first answer counts, from any sender */
    struct bus_reply reply;
};

enum { RIVALS = 4 };

/* Binding of a call that only one service may answer. Other senders may begin to answer: their answers are assembled
 * beside it, and dropped if they turn out to be unsigned. */
struct bound {
    struct trust *trust;
    char *reply;
    uint8_t question[TRUST_HASH_BYTES];
    struct rival {
        struct assembly got;
        uint64_t used; /* time of use, counted in received parts */
    } rivals[RIVALS];
    uint64_t parts;
    struct assembly doubtful; /* the last that was not signed: the key may have changed just now */
    unsigned refused;
};

struct bus_calls {
    struct bus *bus;
    pthread_cond_t news;
    struct asked waiting;       /* ring */
    struct asked *first, **end; /* replies that nobody has fetched */
    size_t outstanding;         /* number of calls in both lists */
    int64_t earliest_ns;        /* lower limit of the deadlines of waiting calls */
    bool of_anybody;            /* answers are not bound to the server of their subject */
};

enum { INBOX_ROOM = INBOXES_ROOM + 48, REPLY_ROOM = INBOX_ROOM + 20 };

struct asker {
    pthread_mutex_t lock; /* guards all below, and all calls */
    struct map by_id;
    uint64_t next_id;
    bool closed;
    char inbox[INBOX_ROOM];
    struct wire_sub *sub;
    struct bus_hook hook;
};

/* ---- functions called with the lock held ---- */

static struct asked *find(struct asker *a, uint64_t id)
{
    const uint64_t *at = map_find(&a->by_id, id);
    return at ? (struct asked *)(uintptr_t)*at : NULL;
}

static void bound_free(struct bound *b)
{
    if (!b)
        return;
    for (size_t i = 0; i < RIVALS; i++)
        bus_assembly_free(&b->rivals[i].got);
    bus_assembly_free(&b->doubtful);
    free(b->reply);
    free(b);
}

static void asked_free(struct asked *c)
{
    bus_assembly_free(&c->answer);
    bound_free(c->bound);
    bus_reply_free(&c->reply);
    free(c->unsent);
    free(c->subject);
    free(c);
}

/* Ends the call: its reply, whose code and data are set, can be fetched. */
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
    char right[BUS_MAX_SUBJECT + 40], quoted[BUS_MAX_SUBJECT + 3];
    snprintf(quoted, sizeof quoted, "\"%s\"", c->subject);
    if (b->kind->lacks(b->wire, quoted, right, sizeof right)) {
        fail(b->asker, c, ERR_UNSUPPORTED, "the broker does not let this user %.200s", right);
        return;
    }
    if (c->bound && c->bound->refused)
        why = "no answer in time that is signed with its key; others came, and were dropped";
    fail(b->asker, c, ERR_TIMEOUT, "%s: %.180s%s", c->subject, why, c->unsent ? "; not sent" : "");
}

/* Ends calls whose deadline has passed. */
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

/* ---- received messages ---- */

/* Takes a refusal. Its sender may be anybody, and its text goes to terminals. */
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

static void take_part(struct bus *b, struct asked *c, const struct frame *f)
{
    struct err e;
    int rc = 0;
    if (f->kind != FRAME_ANSWER && f->kind != FRAME_REFUSAL)
        rc = err_set(&e, ERR_FORMAT, "frame: kind %d is no answer", (int)f->kind);
    if (!rc && c->answer.parts && f->id != c->answer.id)
        return; /* from another sender: the first that began to answer counts */
    rc = rc ? rc : bus_assembly_add(&c->answer, f, b->max_message, &e);
    if (rc < 0)
        fail(b->asker, c, rc, "%s: answer: %.180s", c->subject, e.text);
    else if (rc && f->kind == FRAME_REFUSAL)
        take_refusal(b->asker, c);
    else if (rc)
        take_answer(b->asker, c);
}

/* ---- answers that one only can give ---- */

/* Returns the answer that the part belongs to, or room for another one: that which has been silent longest. */
static struct rival *rival_of(struct bound *r, uint64_t id)
{
    struct rival *at = r->rivals;
    for (size_t i = 0; i < RIVALS; i++) {
        if (r->rivals[i].got.parts && r->rivals[i].got.id == id)
            return &r->rivals[i];
        at = r->rivals[i].used < at->used ? &r->rivals[i] : at;
    }
    bus_assembly_free(&at->got);
    at->got = (struct assembly){0};
    return at;
}

/* Puts it together. True: it is whole, and out is it. */
static bool take_rival(struct bus *b, struct asked *c, const struct frame *f, struct assembly *out)
{
    struct rival *at = rival_of(c->bound, f->id);
    bool kind = f->kind == FRAME_SIGNED_ANSWER || f->kind == FRAME_SIGNED_REFUSAL;
    struct err ignored;
    int rc = kind ? bus_assembly_add(&at->got, f, b->max_message + TRUST_SIGNATURE_BYTES, &ignored) : ERR_FORMAT;
    at->used = ++c->bound->parts;
    if (rc == 0)
        return false;
    if (rc < 0) {
        c->bound->refused++;
        bus_assembly_free(&at->got);
    } else {
        *out = at->got;
    }
    *at = (struct rival){0};
    return rc > 0;
}

/* Returns whether the answer refuses a question that was not taken completely. */
static bool is_turned_down(const struct assembly *a)
{
    return a->kind == FRAME_SIGNED_REFUSAL &&
        (a->number == ERR_BUSY || a->number == ERR_LIMIT || a->number == ERR_FORMAT || a->number == ERR_NOMEM);
}

/* subject, reply and question: of the call. */
static bool is_signed(
    struct trust *t, const char *subject, const char *reply, const uint8_t *question, const struct assembly *a)
{
    if (a->n < TRUST_SIGNATURE_BYTES)
        return false;
    size_t n = a->n - TRUST_SIGNATURE_BYTES;
    struct trust_statement s = {subject, reply, question, a->kind, a->number, a->data, n};
    if (bus_trust_check(t, &s, a->data + n))
        return true;
    s.question = NULL;
    return is_turned_down(a) && bus_trust_check(t, &s, a->data + n);
}

/* Checks the answer of the call c, and takes it over. Called with the lock held, which is released meanwhile: checking
 * takes a while. */
static void check(struct bus *b, struct asked *c, struct assembly a)
{
    struct asker *asker = b->asker;
    uint64_t id = c->id;
    struct trust *trust = c->bound->trust;
    char *subject = mem_strdup(c->subject), *reply = mem_strdup(c->bound->reply);
    uint8_t question[TRUST_HASH_BYTES];
    memcpy(question, c->bound->question, sizeof question);
    unsigned keys;
    bool good;
    do { /* repeated if a key was put meanwhile: bus_asker_check_again does not know of this answer yet */
        keys = bus_trust_changes(trust);
        pthread_mutex_unlock(&asker->lock);
        good = is_signed(trust, subject, reply, question, &a);
        pthread_mutex_lock(&asker->lock);
    } while (!good && keys != bus_trust_changes(trust));
    free(subject);
    free(reply);
    c = find(asker, id);
    if (!c) {
        bus_assembly_free(&a);
    } else if (!good) {
        c->bound->refused++;
        bus_assembly_free(&c->bound->doubtful);
        c->bound->doubtful = a;
    } else {
        c->answer = a;
        c->answer.n -= TRUST_SIGNATURE_BYTES;
        if (a.kind == FRAME_SIGNED_REFUSAL)
            take_refusal(asker, c);
        else
            take_answer(asker, c);
    }
}

void bus_asker_check_again(struct bus *b, struct trust *t)
{
    struct asker *a = b->asker;
    VEC(uint64_t) ids = {0};
    pthread_mutex_lock(&a->lock);
    for (size_t i = 0; i < a->by_id.cap; i++) {
        struct asked *c = a->by_id.used[i] == 1 ? (struct asked *)(uintptr_t)a->by_id.values[i] : NULL;
        if (c && c->bound && c->bound->trust == t && c->bound->doubtful.parts)
            vec_push(&ids, c->id);
    }
    for (size_t i = 0; i < ids.n; i++) {
        struct asked *c = find(a, ids.v[i]);
        if (!c || !c->bound->doubtful.parts)
            continue;
        struct assembly doubtful = c->bound->doubtful;
        c->bound->doubtful = (struct assembly){0};
        check(b, c, doubtful);
    }
    pthread_mutex_unlock(&a->lock);
    vec_free(&ids);
}

static void take_message(struct bus *b, struct asked *c, const struct wire_message *m)
{
    struct frame f;
    struct err e;
    struct assembly whole;
    c->reply.received_bytes += m->n;
    c->reply.received_messages++;
    int rc = bus_frame_read(m->data, m->n, &f, &e);
    if (rc && !c->bound)
        fail(b->asker, c, rc, "%s: answer: %.180s", c->subject, e.text);
    else if (rc)
        c->bound->refused++;
    else if (!c->bound)
        take_part(b, c, &f);
    else if (take_rival(b, c, &f, &whole))
        check(b, c, whole);
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
        take_message(b, c, m);
    pthread_mutex_unlock(&a->lock);
}

/* ---- sent messages ---- */

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

static void reply_of(const struct asker *a, uint64_t id, char out[REPLY_ROOM])
{
    snprintf(out, REPLY_ROOM, "%s.%" PRIx64, a->inbox, id);
}

/* Called without the lock: the call may end meanwhile. */
static void send(struct bus *b, uint64_t id, const char *subject, enum frame_kind kind, const void *data, size_t n,
    int64_t deadline_ns)
{
    struct asker *a = b->asker;
    struct err e;
    char reply[REPLY_ROOM];
    int64_t left = deadline_ns - time_monotonic_ns();
    int32_t left_ms = left <= 0 ? 0 : left / 1000000 < INT32_MAX ? (int32_t)(left / 1000000) : INT32_MAX;
    struct wanted wanted = {a, id};
    reply_of(a, id, reply);
    const struct outgoing o = {.subject = subject,
        .reply = reply,
        .kind = kind,
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
    enum frame_kind kind;
};
typedef VEC(struct unsent) unsent_list;

static enum frame_kind kind_of(const struct asked *c)
{
    return c->bound ? FRAME_SIGN_QUESTION : FRAME_QUESTION;
}

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
        vec_push(&list,
            ((struct unsent){c->id, c->deadline_ns, mem_strdup(c->subject), c->unsent, c->unsent_n, kind_of(c)}));
        c->unsent = NULL;
    }
    pthread_mutex_unlock(&a->lock);
    for (size_t i = 0; i < list.n; i++) {
        send(b, list.v[i].id, list.v[i].subject, list.v[i].kind, list.v[i].data, list.v[i].n, list.v[i].deadline_ns);
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
    else if (bus_subject_check(subject, false, &e))
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

/* Finds the service whose answers are accepted; *out NULL: any. ERR_UNSUPPORTED: none. */
static int bind_call(struct bus *b, const char *subject, const void *data, size_t n, int64_t deadline_ns,
    struct bound **out, struct err *e)
{
    struct trust *t = bus_trust_of(b, subject);
    *out = NULL;
    int has = t ? bus_trust_has_key(t, subject, deadline_ns, e) : 0;
    if (has < 0 || !t)
        return has;
    if (!has && b->signed_only)
        return err_set(e, ERR_UNSUPPORTED, "%s: has no key (an older weft), and --signed-only leaves it out", subject);
    if (!has) {
        bus_trust_note_unsigned(t, subject);
        return 0;
    }
    *out = mem_zalloc(sizeof **out);
    (*out)->trust = t;
    bus_trust_hash(data, n, (*out)->question);
    return 0;
}

/* Takes over `bound`. With the lock held. */
static void set_bound(struct asker *a, struct asked *c, struct bound *bound)
{
    char reply[REPLY_ROOM];
    if (!c || !bound) {
        bound_free(bound);
        return;
    }
    reply_of(a, c->id, reply);
    bound->reply = mem_strdup(reply);
    c->bound = bound;
}

size_t bus_call(struct bus_calls *s, const char *subject, const void *data, size_t n, int64_t deadline_ns, uint64_t tag)
{
    struct bus *b = s->bus;
    struct bound *bound = NULL;
    struct err e = {0};
    const bool binds = !s->of_anybody && !atomic_load(&b->closed);
    int rc = binds ? bind_call(b, subject, data, n, deadline_ns, &bound, &e) : 0;
    pthread_mutex_lock(&b->asker->lock);
    struct asked *c = begin(s, subject, n, deadline_ns, tag);
    if (c && rc) {
        fail(b->asker, c, rc, "%.250s", e.text);
        c = NULL;
    }
    set_bound(b->asker, c, bound);
    uint64_t id = c ? c->id : 0;
    enum frame_kind kind = c ? kind_of(c) : FRAME_QUESTION;
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
        send(b, id, subject, kind, data, n, deadline_ns);
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

static int ask(struct bus *b, bool of_anybody, const char *subject, const void *data, size_t n, int64_t deadline_ns,
    struct bus_reply *out)
{
    struct bus_calls *s = bus_calls_new(b);
    s->of_anybody = of_anybody;
    bus_call(s, subject, data, n, deadline_ns, 0);
    bus_calls_next(s, out);
    bus_calls_free(s);
    return out->code;
}

int bus_ask(struct bus *b, const char *subject, const void *data, size_t n, int64_t deadline_ns, struct bus_reply *out)
{
    return ask(b, false, subject, data, n, deadline_ns, out);
}

int bus_ask_anybody(
    struct bus *b, const char *subject, const void *data, size_t n, int64_t deadline_ns, struct bus_reply *out)
{
    return ask(b, true, subject, data, n, deadline_ns, out);
}

/* ---- the inbox ---- */

static void nothing(void *arg) {}

int bus_asker_open(struct bus *b, struct err *e)
{
    struct asker *a = b->asker = mem_zalloc(sizeof *a);
    uint64_t key[2];
    arc4random_buf(key, sizeof key);
    pthread_mutex_init(&a->lock, NULL);
    snprintf(a->inbox, sizeof a->inbox, "%s.weft-%016" PRIx64 "%016" PRIx64, b->kind->inboxes(b->wire), key[0], key[1]);
    char pattern[sizeof a->inbox + 2];
    snprintf(pattern, sizeof pattern, "%s.*", a->inbox);
    a->hook = (struct bus_hook){.changed = send_unsent, .arg = b};
    int rc = b->kind->subscribe(b->wire, pattern, inbox_has, nothing, b, &a->sub, e);
    if (!rc)
        bus_hook_add(b, &a->hook);
    return rc;
}

void bus_asker_close(struct bus *b)
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

void bus_asker_free(struct bus *b)
{
    struct asker *a = b->asker;
    if (!a)
        return;
    map_fini(&a->by_id);
    pthread_mutex_destroy(&a->lock);
    free(a);
}
