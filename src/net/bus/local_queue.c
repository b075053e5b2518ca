/* SPDX-License-Identifier: MIT */
/* Queues of a hub. */
#include <stdlib.h>
#include <string.h>

#include "base/time.h"
#include "bus/local.h"

struct work {
    struct work *next; /* in the order of adding */
    uint64_t number;
    char *id;
    void *data;
    size_t n;
    int64_t back_ns; /* taken until then; 0: waits */
    unsigned times_taken;
};

struct local_queue {
    struct local_queue *next;
    char *name;
    int64_t redeliver_ns;
    struct work *first;
    uint64_t added, done;
};

struct handle {
    struct bus_queue base;
    struct local_queue *queue;
};

struct taken {
    struct wire_item is;
    struct local_queue *queue;
    uint64_t number;
};

static void work_free(struct work *w)
{
    free(w->id);
    free(w->data);
    free(w);
}

void bus_local_queues_free(struct hub *h)
{
    for (struct local_queue *q = h->queues, *next; q; q = next) {
        next = q->next;
        for (struct work *w = q->first, *after; w; w = after) {
            after = w->next;
            work_free(w);
        }
        free(q->name);
        free(q);
    }
}

int bus_local_queue_open(
    struct bus *b, const char *name, const struct bus_queue_options *o, struct bus_queue **out, struct err *e)
{
    int rc = bus_local_check(b, e);
    if (rc)
        return rc;
    struct hub *h = bus_local_hub(b);
    pthread_mutex_lock(&h->lock);
    struct local_queue *q = h->queues;
    while (q && strcmp(q->name, name) != 0)
        q = q->next;
    if (!q) {
        q = mem_zalloc(sizeof *q);
        q->name = mem_strdup(name);
        q->redeliver_ns = o->redeliver_ns;
        q->next = h->queues;
        h->queues = q;
    }
    pthread_mutex_unlock(&h->lock);
    struct handle *handle = mem_zalloc(sizeof *handle);
    *handle = (struct handle){{bus_ref(b)}, q};
    *out = &handle->base;
    return 0;
}

void bus_local_queue_close(struct bus_queue *base)
{
    bus_unref(base->bus);
    free(base);
}

static void *copy_of(const void *data, size_t n)
{
    void *copy = mem_alloc(n + 1);
    if (n)
        memcpy(copy, data, n);
    return copy;
}

int bus_local_queue_add(struct bus_queue *base, const char *id, const void *data, size_t n, bool *fresh, struct err *e)
{
    struct local_queue *q = ((struct handle *)base)->queue;
    struct hub *h = bus_local_hub(base->bus);
    int rc = bus_local_check(base->bus, e);
    if (rc)
        return rc;
    pthread_mutex_lock(&h->lock);
    struct work **at = &q->first;
    while (*at && strcmp((*at)->id, id) != 0)
        at = &(*at)->next;
    *fresh = !*at;
    if (*fresh) {
        *at = mem_zalloc(sizeof **at);
        **at = (struct work){.number = ++q->added, .id = mem_strdup(id), .data = copy_of(data, n), .n = n};
        pthread_cond_broadcast(&h->work);
    }
    pthread_mutex_unlock(&h->lock);
    return 0;
}

/* Returns the first item that waits or is overdue; else NULL, and the time when the next will be overdue. */
static struct work *find_waiting(struct local_queue *q, int64_t now, int64_t *next_ns)
{
    *next_ns = INT64_MAX;
    for (struct work *w = q->first; w; w = w->next) {
        if (w->back_ns <= now)
            return w;
        *next_ns = w->back_ns < *next_ns ? w->back_ns : *next_ns;
    }
    return NULL;
}

static struct bus_item *take(struct bus *b, struct local_queue *q, struct work *w, int64_t now)
{
    struct taken *t = mem_zalloc(sizeof *t);
    w->back_ns = now + q->redeliver_ns;
    w->times_taken++;
    t->is = (struct wire_item){{mem_strdup(w->id), copy_of(w->data, w->n), w->n, w->times_taken}, bus_ref(b)};
    t->queue = q;
    t->number = w->number;
    return &t->is.item;
}

int bus_local_queue_take(struct bus_queue *base, int64_t deadline_ns, struct bus_item **out, struct err *e)
{
    struct local_queue *q = ((struct handle *)base)->queue;
    struct hub *h = bus_local_hub(base->bus);
    int rc;
    pthread_mutex_lock(&h->lock);
    while (!(rc = bus_local_check(base->bus, e))) {
        int64_t now = time_monotonic_ns(), next;
        struct work *w = find_waiting(q, now, &next);
        if (w) {
            *out = take(base->bus, q, w, now);
            break;
        }
        if (now >= deadline_ns) {
            rc = err_set(e, ERR_TIMEOUT, "queue %s: nothing to do until the deadline", q->name);
            break;
        }
        wait_until(&h->work, &h->lock, next < deadline_ns ? next : deadline_ns);
    }
    pthread_mutex_unlock(&h->lock);
    return rc;
}

int bus_local_queue_state(struct bus_queue *base, struct bus_queue_state *out, struct err *e)
{
    struct local_queue *q = ((struct handle *)base)->queue;
    struct hub *h = bus_local_hub(base->bus);
    int64_t now = time_monotonic_ns();
    int rc = bus_local_check(base->bus, e);
    if (rc)
        return rc;
    pthread_mutex_lock(&h->lock);
    *out = (struct bus_queue_state){.done = q->done};
    for (const struct work *w = q->first; w; w = w->next)
        if (w->back_ns > now)
            out->taken++;
        else
            out->waiting++;
    pthread_mutex_unlock(&h->lock);
    return 0;
}

/* ---- items ---- */

void bus_local_item_forget(struct bus_item *i)
{
    struct taken *t = (struct taken *)i;
    struct bus *b = t->is.bus;
    free((void *)i->id);
    free((void *)i->data);
    free(t);
    bus_unref(b);
}

/* Finds the work of an item; *where is NULL if it is done. Called with the hub's lock held. */
static struct work **find(const struct taken *t)
{
    struct work **at = &t->queue->first;
    while (*at && (*at)->number != t->number)
        at = &(*at)->next;
    return at;
}

/* Gives it back at that time, unless another has it by now. */
static void give_back(struct taken *t, int64_t when_ns)
{
    struct hub *h = bus_local_hub(t->is.bus);
    pthread_mutex_lock(&h->lock);
    struct work *w = *find(t);
    if (w && w->times_taken == t->is.item.times_taken) {
        w->back_ns = when_ns;
        pthread_cond_broadcast(&h->work);
    }
    pthread_mutex_unlock(&h->lock);
}

int bus_local_item_done(struct bus_item *i, struct err *e)
{
    struct taken *t = (struct taken *)i;
    struct hub *h = bus_local_hub(t->is.bus);
    int rc = bus_local_check(t->is.bus, e);
    if (!rc) {
        pthread_mutex_lock(&h->lock);
        struct work **at = find(t), *w = *at;
        if (w) {
            *at = w->next;
            work_free(w);
            t->queue->done++;
        }
        pthread_mutex_unlock(&h->lock);
    }
    bus_local_item_forget(i);
    return rc;
}

void bus_local_item_again(struct bus_item *i)
{
    give_back((struct taken *)i, 0);
    bus_local_item_forget(i);
}

void bus_local_item_working(struct bus_item *i)
{
    struct taken *t = (struct taken *)i;
    give_back(t, time_monotonic_ns() + t->queue->redeliver_ns);
}
