/* SPDX-License-Identifier: MIT */
/* Functions shared by views: caches, times, entry ids, loops over requested items, entries and series of charts. */
#include "views/view.h"

#include "base/map.h"

void *view_cache(struct views *x, const struct view *v, void *(*make)(struct views *))
{
    size_t n = view_number(v);
    pthread_mutex_lock(&x->lock);
    if (!x->caches[n])
        x->caches[n] = make(x);
    void *cache = x->caches[n];
    pthread_mutex_unlock(&x->lock);
    return cache;
}

int64_t view_to_host(const struct view_host *h, int64_t t)
{
    return h->map ? clock_from_reference(h->map, t) : t;
}
int64_t view_to_reference(const struct view_host *h, int64_t t)
{
    return h->map ? clock_to_reference(h->map, t) : t;
}

int64_t view_id(const struct views *x, size_t number)
{
    return x->data.shared + (int64_t)number;
}

uint64_t view_key_number(int64_t number)
{
    return map_mix((uint64_t)number + 1); /* 0 is not a valid key */
}

uint64_t view_key(const char *name, int64_t number)
{
    return map_hash((uint64_t[2]){map_hash(name, strlen(name)), (uint64_t)number}, sizeof(uint64_t[2]));
}

uint64_t view_key_thread(const struct view_host *h, int32_t row)
{
    return row >= 0 && row < h->threads ? view_key("thread", (int64_t)index_row_id(h->index, row)) : view_key("?", 0);
}

const char *view_container(const struct view_host *h, int32_t container)
{
    const struct graph_container *of;
    size_t n = graph_containers(h->index->graph, &of);
    return container >= 0 && (size_t)container < n ? of[container].name : NULL;
}

uint64_t view_key_container(const struct view_host *h, int32_t container)
{
    const struct graph_container *of;
    size_t n = graph_containers(h->index->graph, &of);
    if (container < 0 || (size_t)container >= n)
        return view_key("no container", 0);
    int64_t who[] = {of[container].since, of[container].tid, of[container].kind};
    return view_key("container", (int64_t)map_hash(who, sizeof who));
}

bool view_by_container(const struct tsp_query *q)
{
    const char *by = json_string_value(json_object_get(q->parameters, "group_by"));
    return by && !strcmp(by, "container");
}

bool view_thread_of(const struct views *x, int64_t id, size_t *host, int32_t *row)
{
    for (size_t i = 0; i < x->n_hosts; i++) {
        int64_t at = id - x->hosts[i].first_thread;
        if (at >= 0 && at < x->hosts[i].threads) {
            *host = i;
            *row = (int32_t)at;
            return true;
        }
    }
    return false;
}

/* ---- queries ---- */

bool view_goes_on(const struct tsp_query *q, const struct tsp_answer *answer)
{
    return !tsp_full(answer) && !http_gone(q->http);
}

bool view_next_item(const struct tsp_query *q, const struct tsp_answer *answer, size_t *i, int64_t *id)
{
    if (!q->has_items || *i >= q->n_items || !view_goes_on(q, answer))
        return false;
    *id = q->items[(*i)++];
    return true;
}

bool view_next_thread(const struct views *x, const struct view_host *host, const struct tsp_query *q,
    const struct tsp_answer *answer, size_t *i, struct view_thread *out)
{
    size_t number;
    while (view_next_item(q, answer, i, &out->id))
        if (view_thread_of(x, out->id, &number, &out->row) && (!host || host == &x->hosts[number])) {
            out->host = &x->hosts[number];
            graph_row(out->host->index->graph, out->row, &out->is);
            return true;
        }
    return false;
}

bool view_has_selection(const struct views *x, const struct tsp_query *q)
{
    return q->has_range && (q->begin > x->data.begin || q->end < x->data.end);
}

/* ---- charts ---- */

static void write_entry(
    struct tsp_answer *answer, const struct view_host *h, struct tsp_entry e, const char *label, unsigned flags)
{
    e.labels = &label;
    e.n_labels = 1;
    e.xy = true;
    e.has_data = flags & VIEW_DATA;
    e.is_default = flags & VIEW_DEFAULT;
    e.host_id = h ? h->id : NULL;
    tsp_write_entry(answer, &e);
}

static uint64_t key_of(const struct view_host *h, int64_t parent)
{
    return h && parent < 0 ? h->index->key : 0;
}

void view_write_entry(
    struct tsp_answer *answer, const struct view_host *h, int64_t id, int64_t parent, const char *label, unsigned flags)
{
    view_write_keyed(answer, h, id, parent, key_of(h, parent), label, flags);
}

void view_write_keyed(struct tsp_answer *answer, const struct view_host *h, int64_t id, int64_t parent, uint64_t key,
    const char *label, unsigned flags)
{
    write_entry(answer, h, (struct tsp_entry){.id = id, .parent = parent, .key = key}, label, flags);
}

void view_write_merged(struct tsp_answer *answer, const struct view_host *h, int64_t id, int64_t parent,
    const char *label, unsigned flags, const char *row, enum tsp_merge merge)
{
    struct tsp_entry e = {.id = id, .parent = parent, .key = key_of(h, parent), .row = row, .merge = merge};
    write_entry(answer, h, e, label, flags);
}

void view_write_series(const struct view *self, const struct tsp_query *q, struct tsp_answer *answer, int64_t id,
    const char *name, const double *y)
{
    struct tsp_series s = self->series;
    s.id = id;
    s.name = name;
    s.x = q->times;
    s.y = y;
    s.n = q->n_times;
    tsp_write_series(answer, &s);
}
