/* SPDX-License-Identifier: MIT */
#include "tsp/entries.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/mem.h"
#include "base/order.h"

enum { CANDIDATES = 4 };

/* Entry of a single output. */
struct named {
    uint64_t key;
    int64_t id;
};
struct entry_table {
    char *output;
    uint64_t root;        /* key above all entries */
    pthread_mutex_t lock; /* guards all below */
    struct map by_number; /* index in `v` */
    struct map by_id;     /* number by id */
    VEC(struct named) v;
    bool whole; /* table has all entries */
};

struct entry_tables {
    const struct tsp_backend *backend;
    struct tsp_data *data;
    struct tsp_ids *ids;
    _Atomic int64_t *shared; /* ids by number; 0: not requested yet */
    pthread_mutex_t lock;    /* guards all below */
    struct map shared_by_id; /* number by id, of entries that were requested or have moved */
    VEC(struct entry_table *) v;
};

struct entry_tables *tsp_entry_tables_new(const struct tsp_backend *b, struct tsp_data *data, struct tsp_ids *ids)
{
    struct entry_tables *t = mem_zalloc(sizeof *t);
    t->backend = b;
    t->data = data;
    t->ids = tsp_ids_ref(ids);
    t->shared = mem_zalloc(((size_t)data->shared + 1) * sizeof *t->shared);
    pthread_mutex_init(&t->lock, NULL);
    return t;
}

void tsp_entry_tables_free(struct entry_tables *t)
{
    if (!t)
        return;
    for (size_t i = 0; i < t->v.n; i++) {
        struct entry_table *o = t->v.v[i];
        map_fini(&o->by_number);
        map_fini(&o->by_id);
        vec_free(&o->v);
        pthread_mutex_destroy(&o->lock);
        free(o->output);
        free(o);
    }
    vec_free(&t->v);
    map_fini(&t->shared_by_id);
    pthread_mutex_destroy(&t->lock);
    free(t->shared);
    tsp_ids_unref(t->ids);
    free(t);
}

static uint64_t below(uint64_t parent, uint64_t key)
{
    return map_hash((uint64_t[2]){parent, key}, sizeof(uint64_t[2]));
}

struct tsp_entries tsp_entries_of(struct entry_tables *all, const struct tsp_provider *p, const struct tsp_query *q)
{
    struct entry_table *found = NULL;
    pthread_mutex_lock(&all->lock);
    for (size_t i = 0; i < all->v.n && !found; i++)
        if (!strcmp(all->v.v[i]->output, q->output_id))
            found = all->v.v[i];
    if (!found) {
        const char *family = p->family ? p->family : q->output_id;
        found = mem_zalloc(sizeof *found);
        found->output = mem_strdup(q->output_id);
        found->root = map_hash(family, strlen(family));
        pthread_mutex_init(&found->lock, NULL);
        vec_push(&all->v, found);
    }
    pthread_mutex_unlock(&all->lock);
    return (struct tsp_entries){all, found, p, q, false, false};
}

/* ---- entries that all outputs share ---- */

static bool is_shared(const struct entry_tables *all, int64_t number)
{
    return number >= 0 && number < all->data->shared;
}

static void note_shared(struct entry_tables *all, int64_t id, int64_t number)
{
    pthread_mutex_lock(&all->lock);
    *map_put(&all->shared_by_id, (uint64_t)id, NULL) = (uint64_t)number;
    pthread_mutex_unlock(&all->lock);
}

static int64_t shared_id(struct entry_tables *all, int64_t number)
{
    int64_t id = atomic_load_explicit(&all->shared[number], memory_order_relaxed);
    if (id)
        return id;
    uint64_t key = all->backend->key(all->data, number);
    id = (int64_t)tsp_ids_of(all->ids, key);
    if ((uint64_t)id != key >> (64 - IDS_BITS)) /* id that cannot be found by its key alone */
        note_shared(all, id, number);
    atomic_store_explicit(&all->shared[number], id, memory_order_relaxed);
    return id;
}

static int64_t find_noted(struct entry_tables *all, int64_t id)
{
    pthread_mutex_lock(&all->lock);
    const uint64_t *noted = map_find(&all->shared_by_id, (uint64_t)id);
    int64_t number = noted ? (int64_t)*noted : -1;
    pthread_mutex_unlock(&all->lock);
    return number;
}

static int64_t find_shared(struct entry_tables *all, int64_t id)
{
    int64_t number = find_noted(all, id), some[CANDIDATES];
    size_t n = number < 0 ? all->backend->find(all->data, (uint64_t)id, some, CANDIDATES) : 0;
    for (size_t i = 0; i < n && number < 0; i++)
        if (shared_id(all, some[i]) == id) {
            number = some[i];
            note_shared(all, id, number);
        }
    return number;
}

/* ---- entries of one output ---- */

static bool find_named(struct entry_table *t, int64_t number, struct named *out)
{
    pthread_mutex_lock(&t->lock);
    const uint64_t *at = map_find(&t->by_number, (uint64_t)number);
    if (at)
        *out = t->v.v[*at];
    pthread_mutex_unlock(&t->lock);
    return at != NULL;
}

static int64_t find_number(struct entry_table *t, int64_t id)
{
    pthread_mutex_lock(&t->lock);
    const uint64_t *at = map_find(&t->by_id, (uint64_t)id);
    int64_t number = at ? (int64_t)*at : -1;
    pthread_mutex_unlock(&t->lock);
    return number;
}

/* Adds an entry when it is first written. Identical siblings are distinguished by their order. */
static int64_t add_named(const struct tsp_entries *e, int64_t number, uint64_t key)
{
    struct entry_table *t = e->table;
    pthread_mutex_lock(&t->lock);
    bool fresh;
    uint64_t *at = map_put(&t->by_number, (uint64_t)number, &fresh);
    if (fresh) {
        int64_t id = (int64_t)tsp_ids_of(e->all->ids, key);
        for (uint64_t n = 1; map_find(&t->by_id, (uint64_t)id); n++)
            id = (int64_t)tsp_ids_of(e->all->ids, below(key, n));
        *map_put(&t->by_id, (uint64_t)id, NULL) = (uint64_t)number;
        *at = t->v.n;
        vec_push(&t->v, ((struct named){key, id}));
    }
    int64_t id = t->v.v[*at].id;
    pthread_mutex_unlock(&t->lock);
    return id;
}

static bool is_whole(struct entry_table *t)
{
    pthread_mutex_lock(&t->lock);
    bool whole = t->whole;
    pthread_mutex_unlock(&t->lock);
    return whole;
}

/* Lists the output's tree, once per request, so that the table has all entries. False: it was listed before. */
static bool list(struct tsp_entries *e)
{
    const struct tsp_backend *b = e->all->backend;
    const struct tsp_query *asked = e->query;
    if (e->listing || e->listed || is_whole(e->table) || !b->offers(e->provider, TSP_TREE))
        return false;
    e->listed = true;
    struct tsp_query q = *asked;
    struct tsp_entries listing = *e;
    struct text t = {.fd = -1};
    struct tsp_answer answer = {.json = JSON_TO(&t), .entries = &listing};
    listing.listing = true;
    q.operation = TSP_TREE;
    q.begin = e->all->data->begin;
    q.end = e->all->data->end;
    q.has_range = q.has_items = false;
    q.n_times = q.n_items = 0;
    q.filter = NULL;
    q.parameters = json_copy(asked->parameters);
    json_object_del(q.parameters, "isFiltered"); /* option by which trees leave out entries */
    json_object_del(q.parameters, "active_thread_filter");
    b->ask(e->all->data, e->provider, &q, &answer);
    json_decref(q.parameters);
    text_fini(&t);
    /* Parameters decide what a template shows if there is no configuration. */
    e->growing = answer.status == TSP_RUNNING;
    bool whole = answer.status == TSP_COMPLETED && !http_was_gone(asked->http) &&
        (asked->configuration || !e->provider->derivation);
    pthread_mutex_lock(&e->table->lock);
    e->table->whole |= whole;
    pthread_mutex_unlock(&e->table->lock);
    return true;
}

/* ---- numbers to ids ---- */

static uint64_t key_of(const struct tsp_entries *e, int64_t number)
{
    struct named n;
    if (is_shared(e->all, number))
        return e->all->backend->key(e->all->data, number);
    return number >= 0 && find_named(e->table, number, &n) ? n.key : e->table->root;
}

static int64_t name(const struct tsp_entries *e, const struct tsp_entry *entry)
{
    struct named n;
    if (is_shared(e->all, entry->id))
        return shared_id(e->all, entry->id);
    if (find_named(e->table, entry->id, &n))
        return n.id;
    const char *label = entry->n_labels && entry->labels[0] ? entry->labels[0] : "";
    uint64_t key = entry->key ? entry->key : map_hash(label, strlen(label));
    return add_named(e, entry->id, below(key_of(e, entry->parent), key));
}

int64_t tsp_entries_id(struct tsp_entries *e, int64_t number)
{
    struct named n;
    if (number < 0 || number == TSP_NO_ENTRY)
        return -1;
    if (is_shared(e->all, number))
        return shared_id(e->all, number);
    do
        if (find_named(e->table, number, &n))
            return n.id;
    while (list(e));
    return -1;
}

void tsp_entries_name(struct tsp_entries *e, const struct tsp_entry *entry, int64_t *id, int64_t *parent)
{
    *id = name(e, entry);
    *parent = e->listing || entry->parent < 0 ? -1 : tsp_entries_id(e, entry->parent);
}

/* ---- ids to numbers ---- */

static int64_t number_of(struct tsp_entries *e, int64_t id)
{
    int64_t number = find_number(e->table, id);
    if (number < 0)
        number = find_shared(e->all, id);
    if (number < 0 && list(e)) {
        number = find_number(e->table, id);
        number = number < 0 ? find_noted(e->all, id) : number;
    }
    e->waits |= number < 0 && e->growing;
    return number;
}

static int compare(const void *a, const void *b)
{
    return order_of(*(const int64_t *)a, *(const int64_t *)b);
}

void tsp_entries_take_query(struct tsp_entries *e, struct tsp_query *q)
{
    int64_t *numbers = arena_new(q->http->arena, int64_t, q->n_items + 1);
    size_t n = 0;
    for (size_t i = 0; i < q->n_items; i++) {
        int64_t number = number_of(e, q->items[i]);
        if (number >= 0)
            numbers[n++] = number;
    }
    if (n)
        qsort(numbers, n, sizeof *numbers, compare);
    q->items = numbers;
    q->n_items = n;
    int64_t *elements[] = {&q->element_entry, &q->element_destination};
    for (int i = 0; i < 2; i++)
        if (*elements[i] >= 0 && (*elements[i] = number_of(e, *elements[i])) < 0)
            *elements[i] = TSP_NO_ENTRY;
}
