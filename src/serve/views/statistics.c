/* SPDX-License-Identifier: MIT */
/* Event Types: number of events of each name in a trace, in total and within the range. */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "ctf/ctf.h"
#include "views/view.h"

/* Event name, which several classes (of several channels) may share. */
struct type {
    const char *name;
    uint64_t events;
};
/* Trace with its types, most events first. */
struct unit {
    const struct view_host *host;
    const struct index_types *counts;
    const char *name;
    struct type *types;
    size_t n_types;
    size_t *type_of; /* type by class */
    uint64_t events;
    int64_t id; /* id of its root; the ids of its types follow */
    uint64_t key;
};
struct statistics {
    struct unit *units;
    size_t n;
};

/* ---- the traces and their types ---- */

static int most_first(const void *a, const void *b)
{
    const struct type *x = a, *y = b;
    if (x->events != y->events)
        return x->events > y->events ? -1 : 1;
    return strcmp(x->name, y->name);
}

/* Number of the name's type; the number of types if there is none. */
static size_t type_of(const struct unit *u, const char *name)
{
    size_t i = 0;
    while (i < u->n_types && strcmp(u->types[i].name, name) != 0)
        i++;
    return i;
}

/* Joins the classes of each name. */
static void find_types(struct unit *u)
{
    size_t classes = index_types(u->counts);
    uint64_t events;
    u->types = mem_zalloc(sizeof *u->types * (classes + 1));
    u->type_of = mem_zalloc(sizeof *u->type_of * (classes + 1));
    for (size_t i = 0; i < classes; i++) {
        const char *name = index_type(u->counts, i, &events)->name;
        size_t type = type_of(u, name);
        u->n_types += type == u->n_types;
        u->types[type].name = name;
        u->types[type].events += events;
        u->events += events;
    }
    if (u->n_types)
        qsort(u->types, u->n_types, sizeof *u->types, most_first);
    for (size_t i = 0; i < classes; i++)
        u->type_of[i] = type_of(u, index_type(u->counts, i, &events)->name);
}

static void *make(struct views *x)
{
    struct statistics *all = mem_zalloc(sizeof *all);
    int64_t id = view_id(x, 0);
    all->units = mem_zalloc(sizeof *all->units * (x->n_sources + 1));
    for (size_t i = 0; i < x->n_sources; i++) {
        if (!x->traces[i].types)
            continue;
        struct unit *u = &all->units[all->n++];
        u->host = &x->hosts[x->source_hosts[i]];
        u->counts = x->traces[i].types;
        u->name = x->traces[i].is_kernel || !u->host->index->is_kernel ? u->host->index->name : NULL;
        u->id = id;
        u->key = x->traces[i].key;
        find_types(u);
        id += 1 + (int64_t)u->n_types;
    }
    return all;
}

static void close_statistics(struct views *x, void *cache)
{
    struct statistics *all = cache;
    for (size_t i = 0; i < all->n; i++) {
        free(all->units[i].types);
        free(all->units[i].type_of);
    }
    free(all->units);
    free(all);
}

static bool has_data(const struct view *self, struct views *x)
{
    for (size_t i = 0; i < x->n_sources; i++)
        if (x->traces[i].types && index_types(x->traces[i].types))
            return true;
    return false;
}

/* ---- the tree ---- */

/* Counts events within the range by type; uses the trace's totals if the range includes all of it. */
static uint64_t count_range(const struct views *x, const struct tsp_query *q, const struct unit *u, uint64_t *events)
{
    size_t classes = index_types(u->counts);
    uint64_t *counts = arena_new(q->http->arena, uint64_t, classes + 1), sum = 0;
    struct err e = {0};
    if (q->begin <= x->data.begin && q->end >= x->data.end) {
        for (size_t i = 0; i < u->n_types; i++)
            events[i] = u->types[i].events;
        return u->events;
    }
    if (index_types_count(u->counts, view_to_host(u->host, q->begin), view_to_host(u->host, q->end), counts, &e))
        return 0;
    for (size_t i = 0; i < classes; i++) {
        events[u->type_of[i]] += counts[i];
        sum += counts[i];
    }
    return sum;
}

struct row {
    int64_t id, parent;
    uint64_t key;
    const char *name, *host_id;
    uint64_t events, of, within, of_within;
};

static const char *share(struct arena *a, uint64_t n, uint64_t of)
{
    return arena_printf(a, "%.3f %%", of ? 100.0 * (double)n / (double)of : 0.0);
}

static void write_row(struct tsp_answer *answer, struct arena *a, const struct row *r)
{
    const char *labels[] = {r->name, arena_printf(a, "%llu", (unsigned long long)r->events), share(a, r->events, r->of),
        arena_printf(a, "%llu", (unsigned long long)r->within), share(a, r->within, r->of_within)};
    const struct tsp_meta meta[] = {
        {.key = "events", .number = (int64_t)r->events}, {.key = "eventsInRange", .number = (int64_t)r->within}};
    tsp_write_entry(answer,
        &(struct tsp_entry){.id = r->id,
            .parent = r->parent,
            .key = r->key,
            .labels = labels,
            .n_labels = 5,
            .has_data = true,
            .host_id = r->host_id,
            .meta = meta,
            .n_meta = 2});
}

static void tree(const struct view *self, struct views *x, const struct tsp_query *q, struct tsp_answer *answer)
{
    const struct statistics *all = view_cache(x, self, make);
    struct arena *a = q->http->arena;
    for (size_t i = 0; i < all->n && view_goes_on(q, answer); i++) {
        const struct unit *u = &all->units[i];
        uint64_t *events = arena_new(a, uint64_t, u->n_types + 1), within = count_range(x, q, u, events);
        const char *name = u->name ? u->name : arena_printf(a, "%s (user space)", u->host->index->name);
        write_row(answer, a, &(struct row){u->id, -1, u->key, name, u->host->id, u->events, u->events, within, within});
        for (size_t k = 0; k < u->n_types; k++)
            write_row(answer, a,
                &(struct row){u->id + 1 + (int64_t)k, u->id, 0, u->types[k].name, u->host->id, u->types[k].events,
                    u->events, events[k], within});
    }
}

const struct view view_event_statistics = {
    .provider = {.id = "org.eclipse.tracecompass.analysis.os.linux.core.statistics.StatisticsDataProvider",
        .name = "Event Types",
        .description = "How many events of each name there are, in all and within the range",
        .type = "DATA_TREE"},
    .has_data = has_data,
    VIEW_HEADERS({"Level", "Trace, and name of the event", "STRING"},
        {"Events total", "How many the trace has", "NUMBER", "events", TSP_SUM},
        {"Percentage", "Share of the trace's events", "NUMBER", "share", TSP_SHARE, "events", "events"},
        {"Events in range", "How many lie within the range", "NUMBER", "eventsInRange", TSP_SUM},
        {"Percentage in range", "Share of the events within the range", "NUMBER", "shareInRange", TSP_SHARE,
            "eventsInRange", "eventsInRange"}),
    .tree = tree,
    .close = close_statistics,
};
