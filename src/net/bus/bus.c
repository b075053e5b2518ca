/* SPDX-License-Identifier: MIT */
#include "bus/bus.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/mem.h"
#include "base/time.h"
#include "bus/trust.h"
#include "bus/wire.h"

enum { DEFAULT_TIMEOUT_S = 5, LARGEST_PART = 256 << 10 };
static const size_t default_message = (size_t)64 << 20;

struct bus *bus_ref(struct bus *b)
{
    atomic_fetch_add(&b->refs, 1);
    return b;
}

void bus_unref(struct bus *b)
{
    if (atomic_fetch_sub(&b->refs, 1) > 1)
        return;
    bus_asker_free(b);
    bus_services_free(b);
    if (b->wire)
        b->kind->free(b->wire);
    bus_trust_free(b);
    pthread_mutex_destroy(&b->trusts_lock);
    pthread_mutex_destroy(&b->hooks_lock);
    free(b);
}

void bus_hook_add(struct bus *b, struct bus_hook *h)
{
    pthread_mutex_lock(&b->hooks_lock);
    h->next = b->hooks;
    b->hooks = h;
    pthread_mutex_unlock(&b->hooks_lock);
}

void bus_hook_remove(struct bus *b, struct bus_hook *h)
{
    pthread_mutex_lock(&b->hooks_lock);
    for (struct bus_hook **at = &b->hooks; *at; at = &(*at)->next)
        if (*at == h) {
            *at = h->next;
            break;
        }
    pthread_mutex_unlock(&b->hooks_lock);
}

void bus_tell(struct bus *b, const char *fmt, ...)
{
    char text[400];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    if (b->tell)
        b->tell(b->tell_arg, text);
}

static void wire_has_changed(void *arg)
{
    struct bus *b = arg;
    pthread_mutex_lock(&b->hooks_lock);
    for (struct bus_hook *h = b->hooks; h; h = h->next)
        h->changed(h->arg);
    pthread_mutex_unlock(&b->hooks_lock);
}

static const struct wire_kind *choose(const char *url, struct err *e)
{
    if (!url || !*url)
        err_set(e, ERR_ARG, "bus: no URL; give nats://HOST:PORT");
    else if (!strncmp(url, "local:", 6))
        return &local_kind;
    else if (!strncmp(url, "nats://", 7) || !strncmp(url, "tls://", 6))
        return &broker_kind;
    else
        err_set(e, ERR_ARG, "bus: the URL begins with none of nats://, tls:// and local:");
    return NULL;
}

int bus_open(const struct bus_options *o, struct bus **out, struct err *e)
{
    const struct wire_kind *kind = choose(o->url, e);
    *out = NULL;
    if (!kind)
        return ERR_ARG;
    struct bus *b = mem_zalloc(sizeof *b);
    struct bus_options all = *o;
    all.timeout_ns = o->timeout_ns > 0 ? o->timeout_ns : DEFAULT_TIMEOUT_S * NS_PER_S;
    atomic_init(&b->refs, 1);
    uint64_t first;
    arc4random_buf(&first, sizeof first);
    atomic_init(&b->next_message, first);
    b->kind = kind;
    b->timeout_ns = all.timeout_ns;
    b->max_message = o->max_message_bytes ? o->max_message_bytes : default_message;
    b->signed_only = o->signed_only;
    b->tell = o->tell;
    b->tell_arg = o->tell_arg;
    pthread_mutex_init(&b->hooks_lock, NULL);
    pthread_mutex_init(&b->trusts_lock, NULL);
    bus_services_open(b);
    int rc = kind->open(&all, wire_has_changed, b, &b->wire, e);
    rc = rc ? rc : bus_asker_open(b, e);
    if (rc)
        bus_close(b);
    else
        *out = b;
    return rc;
}

void bus_close(struct bus *b)
{
    if (!b)
        return;
    atomic_store(&b->closed, true);
    bus_asker_close(b);
    bus_services_close(b);
    bus_trust_close(b);
    if (b->wire)
        b->kind->close(b->wire);
    bus_unref(b);
}

bool bus_connected(struct bus *b)
{
    return !atomic_load(&b->closed) && b->kind->connected(b->wire);
}

int bus_trouble(struct bus *b, struct err *e)
{
    return atomic_load(&b->closed) ? err_set(e, ERR_CANCELLED, "the bus is closed") : b->kind->trouble(b->wire, e);
}

size_t bus_max_payload(struct bus *b)
{
    enum { HEADERS = 4096 }; /* bytes of headers beside a table's value */
    size_t n = b->kind->max_payload(b->wire);
    return n > 2 * HEADERS ? n - HEADERS : n / 2;
}

void bus_local_address(struct bus *b, char buf[BUS_ADDRESS])
{
    b->kind->local_address(b->wire, buf, BUS_ADDRESS);
}

/* ---- messages in parts ---- */

static int send_part(struct bus *b, const struct outgoing *o, struct frame *f, uint8_t *buffer, struct err *e)
{
    bus_frame_write(f, buffer);
    if (f->n)
        memcpy(buffer + FRAME_BYTES, f->data, f->n);
    return b->kind->publish(b->wire, o->subject, o->reply, buffer, FRAME_BYTES + f->n, e);
}

int bus_send(struct bus *b, const struct outgoing *o, struct err *e)
{
    size_t payload = b->kind->max_payload(b->wire), rest = o->n;
    size_t room = (payload < LARGEST_PART ? payload : LARGEST_PART) - FRAME_BYTES;
    struct frame f = {.kind = o->kind, .number = o->number, .whole_bytes = o->n, .data = o->data};
    f.id = atomic_fetch_add(&b->next_message, 1);
    f.parts = o->n ? (uint32_t)((o->n + room - 1) / room) : 1;
    uint8_t *buffer = mem_alloc(FRAME_BYTES + (o->n < room ? o->n : room));
    int rc = 0;
    for (; !rc && f.part < f.parts; f.part++) {
        f.n = rest < room ? rest : room;
        if (o->before && !o->before(o->arg, FRAME_BYTES + f.n))
            break;
        rc = send_part(b, o, &f, buffer, e);
        rest -= f.n;
        if (f.n)
            f.data += f.n;
    }
    free(buffer);
    return rc;
}

/* ---- news ---- */

static int check_size(struct bus *b, const char *what, const char *name, size_t n, struct err *e)
{
    size_t limit = bus_max_payload(b);
    if (n <= limit)
        return 0;
    return err_set(e, ERR_LIMIT, "%s '%s': %zu bytes, but the broker takes at most %zu at once", what, name, n, limit);
}

int bus_publish(struct bus *b, const char *subject, const void *data, size_t n, struct err *e)
{
    int rc = bus_subject_check(subject, false, e);
    rc = rc ? rc : check_size(b, "news", subject, n, e);
    return rc ? rc : b->kind->publish(b->wire, subject, NULL, data, n, e);
}

struct bus_listening {
    struct bus *bus;
    bus_listener *listener;
    void *arg;
    struct wire_sub *sub;
};

static void pass_on(void *arg, const struct wire_message *m)
{
    struct bus_listening *l = arg;
    l->listener(l->arg, m->subject, m->data, m->n);
}

static void listening_ended(void *arg)
{
    struct bus_listening *l = arg;
    struct bus *b = l->bus;
    free(l);
    bus_unref(b);
}

int bus_listen(
    struct bus *b, const char *subject, bus_listener *listener, void *arg, struct bus_listening **out, struct err *e)
{
    *out = NULL;
    int rc = bus_subject_check(subject, true, e);
    if (rc)
        return rc;
    struct bus_listening *l = mem_zalloc(sizeof *l);
    *l = (struct bus_listening){.bus = bus_ref(b), .listener = listener, .arg = arg};
    *out = l; /* the listener may look at it */
    rc = b->kind->subscribe(b->wire, subject, pass_on, listening_ended, l, &l->sub, e);
    if (rc) {
        *out = NULL;
        listening_ended(l);
    }
    return rc;
}

void bus_unlisten(struct bus_listening *l)
{
    if (l)
        l->bus->kind->unsubscribe(l->sub);
}

/* ---- tables ---- */

int bus_table_open(
    struct bus *b, const char *name, const struct bus_table_options *o, struct bus_table **out, struct err *e)
{
    static const struct bus_table_options usual;
    enum { SHORTEST_TTL_NS = 100000000 };
    *out = NULL;
    o = o ? o : &usual;
    int rc = bus_table_name_check(name, e);
    if (!rc && o->ttl_ns && o->ttl_ns < SHORTEST_TTL_NS)
        rc = err_set(e, ERR_ARG, "table '%s': entries live at least 100 ms", name);
    return rc ? rc : b->kind->table_open(b, name, o, out, e);
}

void bus_table_close(struct bus_table *t)
{
    if (t)
        t->bus->kind->table_close(t);
}

static int put(struct bus_table *t, const char *key, const void *data, size_t n, const uint64_t *expected,
    uint64_t *revision, struct err *e)
{
    uint64_t ignored;
    int rc = bus_subject_check(key, false, e);
    rc = rc ? rc : check_size(t->bus, "value of", key, n, e);
    return rc ? rc : t->bus->kind->table_put(t, key, data, n, expected, revision ? revision : &ignored, e);
}

int bus_table_put(struct bus_table *t, const char *key, const void *data, size_t n, uint64_t *revision, struct err *e)
{
    return put(t, key, data, n, NULL, revision, e);
}

int bus_table_put_if(struct bus_table *t, const char *key, const void *data, size_t n, uint64_t expected,
    uint64_t *revision, struct err *e)
{
    return put(t, key, data, n, &expected, revision, e);
}

int bus_table_get(struct bus_table *t, const char *key, void **data, size_t *n, uint64_t *revision, struct err *e)
{
    size_t ignored_n;
    uint64_t ignored_revision;
    *data = NULL;
    int rc = bus_subject_check(key, false, e);
    return rc ? rc
              : t->bus->kind->table_get(t, key, data, n ? n : &ignored_n, revision ? revision : &ignored_revision, e);
}

int bus_table_remove(struct bus_table *t, const char *key, struct err *e)
{
    int rc = bus_subject_check(key, false, e);
    return rc ? rc : t->bus->kind->table_remove(t, key, e);
}

int bus_table_all(struct bus_table *t, bus_entry_handler *handler, void *arg, struct err *e)
{
    return t->bus->kind->table_all(t, handler, arg, e);
}

int bus_table_version(struct bus_table *t, uint64_t *version, struct err *e)
{
    return t->bus->kind->table_version(t, version, e);
}

int bus_table_watch(struct bus_table *t, bus_entry_handler *handler, void *arg, struct bus_watch **out, struct err *e)
{
    *out = NULL;
    return t->bus->kind->table_watch(t, NULL, handler, arg, out, e);
}

int bus_table_watch_key(
    struct bus_table *t, const char *key, bus_entry_handler *handler, void *arg, struct bus_watch **out, struct err *e)
{
    *out = NULL;
    int rc = bus_subject_check(key, false, e);
    return rc ? rc : t->bus->kind->table_watch(t, key, handler, arg, out, e);
}

void bus_watch_stop(struct bus_watch *w)
{
    if (w)
        w->bus->kind->watch_stop(w);
}

/* ---- queues ---- */

int bus_queue_open(
    struct bus *b, const char *name, const struct bus_queue_options *o, struct bus_queue **out, struct err *e)
{
    enum { REDELIVER_S = 30 };
    struct bus_queue_options all = o ? *o : (struct bus_queue_options){0};
    *out = NULL;
    if (all.redeliver_ns <= 0)
        all.redeliver_ns = REDELIVER_S * NS_PER_S;
    int rc = bus_table_name_check(name, e);
    return rc ? rc : b->kind->queue_open(b, name, &all, out, e);
}

void bus_queue_close(struct bus_queue *q)
{
    if (q)
        q->bus->kind->queue_close(q);
}

int bus_queue_add(struct bus_queue *q, const char *id, const void *data, size_t n, bool *fresh, struct err *e)
{
    bool ignored;
    int rc = bus_subject_check(id, false, e);
    rc = rc ? rc : check_size(q->bus, "item", id, n, e);
    return rc ? rc : q->bus->kind->queue_add(q, id, data, n, fresh ? fresh : &ignored, e);
}

int bus_queue_take(struct bus_queue *q, int64_t deadline_ns, struct bus_item **out, struct err *e)
{
    *out = NULL;
    return q->bus->kind->queue_take(q, deadline_ns, out, e);
}

int bus_queue_state(struct bus_queue *q, struct bus_queue_state *out, struct err *e)
{
    return q->bus->kind->queue_state(q, out, e);
}

static struct bus *bus_of(struct bus_item *i)
{
    return ((struct wire_item *)i)->bus;
}

int bus_item_done(struct bus_item *i, struct err *e)
{
    return bus_of(i)->kind->item_done(i, e);
}

void bus_item_again(struct bus_item *i)
{
    bus_of(i)->kind->item_again(i);
}

void bus_item_forget(struct bus_item *i)
{
    bus_of(i)->kind->item_forget(i);
}

void bus_item_working(struct bus_item *i)
{
    bus_of(i)->kind->item_working(i);
}
