/* SPDX-License-Identifier: MIT */
/* Tables of a hub. A removed key keeps its place, so that watchers learn of it. */
#include <stdlib.h>
#include <string.h>

#include "base/time.h"
#include "bus/local.h"

struct entry {
    char *key;
    void *data; /* terminated by a byte 0 */
    size_t n;
    uint64_t revision; /* revision of the last change */
    int64_t end_ns;    /* INT64_MAX: never */
    bool is_there;
};

struct local_table {
    struct local_table *next;
    char *name;
    int64_t ttl_ns;
    uint64_t revision;
    VEC(struct entry) entries;
    VEC(struct local_watch *) watches;
};

struct handle {
    struct bus_table base;
    struct local_table *table;
};

struct local_watch {
    struct bus_watch base;
    char *key; /* NULL: all */
    struct local_table *table;
    struct loop *loop;
    bus_entry_handler *handler;
    void *arg;
    uint64_t told; /* up to this revision; of the loop alone */
    bool has_begun;
};

void bus_local_tables_free(struct hub *h)
{
    for (struct local_table *t = h->tables, *next; t; t = next) {
        next = t->next;
        for (size_t i = 0; i < t->entries.n; i++) {
            free(t->entries.v[i].key);
            free(t->entries.v[i].data);
        }
        vec_free(&t->entries);
        vec_free(&t->watches);
        free(t->name);
        free(t);
    }
}

int bus_local_table_open(
    struct bus *b, const char *name, const struct bus_table_options *o, struct bus_table **out, struct err *e)
{
    int rc = bus_local_check(b, e);
    if (rc)
        return rc;
    struct hub *h = bus_local_hub(b);
    pthread_mutex_lock(&h->lock);
    struct local_table *t = h->tables;
    while (t && strcmp(t->name, name) != 0)
        t = t->next;
    if (!t) {
        t = mem_zalloc(sizeof *t);
        t->name = mem_strdup(name);
        t->ttl_ns = o->ttl_ns;
        t->next = h->tables;
        h->tables = t;
    }
    pthread_mutex_unlock(&h->lock);
    struct handle *handle = mem_zalloc(sizeof *handle);
    *handle = (struct handle){{bus_ref(b)}, t};
    *out = &handle->base;
    return 0;
}

void bus_local_table_close(struct bus_table *base)
{
    bus_unref(base->bus);
    free(base);
}

/* ---- functions called with the hub's lock held ---- */

static void kick_watches(struct local_table *t)
{
    for (size_t i = 0; i < t->watches.n; i++)
        bus_loop_kick(t->watches.v[i]->loop);
}

static void take_away(struct local_table *t, struct entry *i)
{
    free(i->data);
    i->data = NULL;
    i->n = 0;
    i->is_there = false;
    i->end_ns = INT64_MAX;
    i->revision = ++t->revision;
}

/* Removes expired entries; returns the next time of expiry. */
static int64_t expire(struct local_table *t)
{
    int64_t now = time_monotonic_ns(), due = INT64_MAX;
    for (size_t i = 0; t->ttl_ns && i < t->entries.n; i++) {
        if (t->entries.v[i].end_ns <= now)
            take_away(t, &t->entries.v[i]);
        if (t->entries.v[i].end_ns < due)
            due = t->entries.v[i].end_ns;
    }
    return due;
}

static struct entry *find(struct local_table *t, const char *key)
{
    expire(t);
    for (size_t i = 0; i < t->entries.n; i++)
        if (!strcmp(t->entries.v[i].key, key))
            return &t->entries.v[i];
    return NULL;
}

static struct entry *find_or_make(struct local_table *t, const char *key)
{
    struct entry *i = find(t, key);
    if (!i) {
        vec_push(&t->entries, ((struct entry){.key = mem_strdup(key), .end_ns = INT64_MAX}));
        i = &t->entries.v[t->entries.n - 1];
    }
    return i;
}

static void *copy_of(const void *data, size_t n)
{
    char *copy = mem_alloc(n + 1);
    if (n)
        memcpy(copy, data, n);
    copy[n] = '\0';
    return copy;
}

static void set(struct local_table *t, const char *key, const void *data, size_t n)
{
    struct entry *i = find_or_make(t, key);
    free(i->data);
    i->data = copy_of(data, n);
    i->n = n;
    i->is_there = true;
    i->end_ns = t->ttl_ns ? time_monotonic_ns() + t->ttl_ns : INT64_MAX;
    i->revision = ++t->revision;
    kick_watches(t);
}

/* ---- single entries ---- */

int bus_local_table_put(struct bus_table *base, const char *key, const void *data, size_t n, const uint64_t *expected,
    uint64_t *revision, struct err *e)
{
    struct local_table *t = ((struct handle *)base)->table;
    struct hub *h = bus_local_hub(base->bus);
    int rc = bus_local_check(base->bus, e);
    if (rc)
        return rc;
    pthread_mutex_lock(&h->lock);
    const struct entry *i = find(t, key);
    uint64_t is = i && i->is_there ? i->revision : 0;
    if (!expected || *expected == is) {
        set(t, key, data, n);
        *revision = t->revision;
    } else {
        rc = err_set(e, ERR_STALE, "table %s: '%s' was changed by another; read it again", t->name, key);
    }
    pthread_mutex_unlock(&h->lock);
    return rc;
}

int bus_local_table_get(
    struct bus_table *base, const char *key, void **data, size_t *n, uint64_t *revision, struct err *e)
{
    struct local_table *t = ((struct handle *)base)->table;
    struct hub *h = bus_local_hub(base->bus);
    int rc = bus_local_check(base->bus, e);
    if (rc)
        return rc;
    pthread_mutex_lock(&h->lock);
    const struct entry *i = find(t, key);
    if (i && i->is_there) {
        *data = copy_of(i->data, i->n);
        *n = i->n;
        *revision = i->revision;
    } else {
        rc = err_set(e, ERR_NOTFOUND, "table %s: no '%s'", t->name, key);
    }
    pthread_mutex_unlock(&h->lock);
    return rc;
}

int bus_local_table_remove(struct bus_table *base, const char *key, struct err *e)
{
    struct local_table *t = ((struct handle *)base)->table;
    struct hub *h = bus_local_hub(base->bus);
    int rc = bus_local_check(base->bus, e);
    if (rc)
        return rc;
    pthread_mutex_lock(&h->lock);
    struct entry *i = find(t, key);
    if (i && i->is_there) {
        take_away(t, i);
        kick_watches(t);
    }
    pthread_mutex_unlock(&h->lock);
    return 0;
}

/* ---- all entries ---- */

typedef VEC(struct entry) entry_list;

/* Copies of the entries changed after a revision, oldest change first. With the hub's lock held. */
static void collect(const struct local_table *t, uint64_t after, entry_list *out)
{
    for (size_t i = 0; i < t->entries.n; i++) {
        struct entry copy = t->entries.v[i];
        if (copy.revision <= after)
            continue;
        copy.key = mem_strdup(copy.key);
        copy.data = copy.is_there ? copy_of(copy.data, copy.n) : NULL;
        vec_push(out, copy);
    }
}

static int by_revision(const void *a, const void *b)
{
    uint64_t x = ((const struct entry *)a)->revision, y = ((const struct entry *)b)->revision;
    return (x > y) - (x < y);
}

static void entries_sort(entry_list *list)
{
    if (list->n)
        qsort(list->v, list->n, sizeof *list->v, by_revision);
}

static void entries_free(entry_list *list)
{
    for (size_t i = 0; i < list->n; i++) {
        free(list->v[i].key);
        free(list->v[i].data);
    }
    vec_free(list);
}

static struct bus_entry as_told(const struct entry *i)
{
    return (struct bus_entry){i->is_there ? BUS_ENTRY_PUT : BUS_ENTRY_REMOVED, i->key, i->data, i->n, i->revision};
}

int bus_local_table_all(struct bus_table *base, bus_entry_handler *handler, void *arg, struct err *e)
{
    struct local_table *t = ((struct handle *)base)->table;
    struct hub *h = bus_local_hub(base->bus);
    entry_list list = {0};
    int rc = bus_local_check(base->bus, e);
    if (rc)
        return rc;
    pthread_mutex_lock(&h->lock);
    expire(t);
    collect(t, 0, &list);
    pthread_mutex_unlock(&h->lock);
    entries_sort(&list);
    for (size_t i = 0; i < list.n; i++) {
        const struct bus_entry told = as_told(&list.v[i]);
        if (told.kind == BUS_ENTRY_PUT)
            handler(arg, &told);
    }
    entries_free(&list);
    return 0;
}

int bus_local_table_version(struct bus_table *base, uint64_t *version, struct err *e)
{
    struct local_table *t = ((struct handle *)base)->table;
    struct hub *h = bus_local_hub(base->bus);
    int rc = bus_local_check(base->bus, e);
    if (rc)
        return rc;
    pthread_mutex_lock(&h->lock);
    *version = t->revision;
    pthread_mutex_unlock(&h->lock);
    return 0;
}

/* ---- watching ---- */

static int64_t watch_turn(void *arg)
{
    struct local_watch *w = arg;
    struct hub *h = bus_local_hub(w->base.bus);
    entry_list list = {0};
    pthread_mutex_lock(&h->lock);
    int64_t due = expire(w->table);
    collect(w->table, w->told, &list);
    w->told = w->table->revision;
    pthread_mutex_unlock(&h->lock);
    entries_sort(&list);
    for (size_t i = 0; i < list.n && !bus_loop_stops(w->loop); i++) {
        const struct bus_entry told = as_told(&list.v[i]);
        bool meant = !w->key || !strcmp(w->key, told.key);
        if (meant && (w->has_begun || told.kind == BUS_ENTRY_PUT))
            w->handler(w->arg, &told);
    }
    entries_free(&list);
    if (!w->has_begun && !bus_loop_stops(w->loop))
        w->handler(w->arg, &(struct bus_entry){.kind = BUS_ENTRY_ALL});
    w->has_begun = true;
    return due;
}

static void watch_ended(void *arg)
{
    struct local_watch *w = arg;
    struct bus *b = w->base.bus;
    free(w->key);
    free(w);
    bus_unref(b);
}

int bus_local_table_watch(struct bus_table *base, const char *key, bus_entry_handler *handler, void *arg,
    struct bus_watch **out, struct err *e)
{
    struct local_table *t = ((struct handle *)base)->table;
    struct hub *h = bus_local_hub(base->bus);
    int rc = bus_local_check(base->bus, e);
    if (rc)
        return rc;
    struct local_watch *w = mem_zalloc(sizeof *w);
    *w = (struct local_watch){.base = {bus_ref(base->bus)}, .table = t, .handler = handler, .arg = arg};
    w->key = key ? mem_strdup(key) : NULL;
    *out = &w->base;              /* the handler may look at it */
    pthread_mutex_lock(&h->lock); /* the loop's first turn waits until it is listed */
    rc = bus_loop_start(watch_turn, watch_ended, w, &w->loop, e);
    if (!rc)
        vec_push(&t->watches, w);
    pthread_mutex_unlock(&h->lock);
    if (rc) {
        *out = NULL;
        watch_ended(w);
    }
    return rc;
}

void bus_local_watch_stop(struct bus_watch *base)
{
    struct local_watch *w = (struct local_watch *)base;
    struct hub *h = bus_local_hub(base->bus);
    pthread_mutex_lock(&h->lock);
    for (size_t i = 0; i < w->table->watches.n; i++)
        if (w->table->watches.v[i] == w) {
            w->table->watches.v[i] = w->table->watches.v[--w->table->watches.n];
            break;
        }
    pthread_mutex_unlock(&h->lock);
    bus_loop_stop(w->loop);
}
