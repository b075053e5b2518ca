/* SPDX-License-Identifier: MIT */
#include "cluster/membership.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/mem.h"
#include "base/order.h"
#include "base/time.h"
#include "bus/bus.h"

/* A host of an entry. */
struct listed_host {
    const struct cluster_entry *entry;
    const struct cluster_entry_host *host;
    const char *own_name;
    bool left_out;
};
struct listed_hosts {
    struct listed_host *v;
    size_t n, cap;
};

static int by_node(const void *pa, const void *pb)
{
    const struct cluster_entry *a = pa, *b = pb;
    return strcmp(a->node, b->node) ?: strcmp(a->instance, b->instance);
}

/* Excerpts last, that of most time first. */
static int by_extent(const struct cluster_excerpt *a, const struct cluster_excerpt *b)
{
    if (!a->is || !b->is)
        return order_of(a->is, b->is);
    return order_of(time_between(b->begin, b->end), time_between(a->begin, a->end));
}

/* Copies of a host beside each other, the newest first, and that which has most of it; of equal ones that which was
 * moved last: it is asked first. */
static int by_key(const void *pa, const void *pb)
{
    const struct listed_host *a = pa, *b = pb;
    return order_of(a->host->key, b->host->key) ?: by_extent(&a->host->excerpt, &b->host->excerpt)
        ?: order_of(b->host->end, a->host->end) ?: order_of(a->host->begin, b->host->begin)
        ?: order_of(b->host->events, a->host->events) ?: order_of(b->host->has_graph, a->host->has_graph)
        ?: order_of(b->host->since, a->host->since) ?: strcmp(a->entry->node, b->entry->node);
}

/* The order of an experiment of all of them. */
static int by_name(const void *pa, const void *pb)
{
    const struct cluster_membership_host *a = pa, *b = pb;
    return order_of(a->entry->is_user_space, b->entry->is_user_space) ?: strcmp(a->own_name, b->own_name)
        ?: order_of(a->entry->begin, b->entry->begin) ?: order_of(a->entry->key, b->entry->key);
}

/* Files of other times are another hash, and may have the same events. */
bool cluster_membership_is_lesser(const struct cluster_membership_host *h, size_t copy)
{
    const struct cluster_entry_host *all = h->copies[0], *c = h->copies[copy];
    if (c->hash == all->hash)
        return false;
    return c->begin > all->begin || c->end < all->end || c->events < all->events || !c->events;
}

/* Makes the first of the excerpts behind the nodes, and its copies made of the same files, the nodes. */
static void use_excerpts(struct cluster_membership_host *h)
{
    size_t first = h->n_nodes, n = 1;
    while (n < h->n_excerpts && h->copies[first + n]->hash == h->copies[first]->hash)
        n++;
    h->used = &h->copies[first]->excerpt;
    h->nodes += first;
    h->entries += first;
    h->copies += first;
    h->n_nodes = n;
    h->n_excerpts -= n;
}

static void add_host(struct cluster_membership *r, const struct listed_host *copies, size_t n)
{
    struct cluster_membership_host *h = &r->hosts[r->n_hosts++];
    *h = (struct cluster_membership_host){.entry = copies[0].host,
        .own_name = copies[0].own_name,
        .nodes = arena_new(&r->arena, const char *, n + 1),
        .entries = arena_new(&r->arena, size_t, n + 1),
        .copies = arena_new(&r->arena, const struct cluster_entry_host *, n + 1)};
    cluster_id(h->entry->key, h->id);
    for (size_t i = 0; i < n; i++) {
        h->entries[i] = (size_t)(copies[i].entry - r->entries);
        h->nodes[i] = copies[i].entry->node;
        h->copies[i] = copies[i].host;
        h->n_nodes += !copies[i].host->excerpt.is;
    }
    h->n_excerpts = n - h->n_nodes;
    if (h->n_nodes)
        return;
    h->whole = h->entry->excerpt.from;
    use_excerpts(h);
}

/* An entry may claim a host twice, which then is listed once. */
static void list_node_hosts(struct cluster_membership *r)
{
    r->node_hosts = arena_new(&r->arena, struct cluster_node_hosts, r->n_entries + 1);
    for (size_t i = 0; i < r->n_entries; i++)
        r->node_hosts[i] = (struct cluster_node_hosts){
            .hosts = arena_new(&r->arena, int32_t, r->entries[i].n_hosts + 1),
            .hashes = arena_new(&r->arena, uint64_t, r->entries[i].n_hosts + 1)};
    for (size_t i = 0; i < r->n_hosts; i++)
        for (size_t k = 0; k < r->hosts[i].n_nodes; k++) {
            struct cluster_node_hosts *c = &r->node_hosts[r->hosts[i].entries[k]];
            if ((c->n && c->hosts[c->n - 1] == (int32_t)i) || cluster_membership_is_lesser(&r->hosts[i], k))
                continue;
            c->hashes[c->n] = r->hosts[i].copies[k]->hash;
            c->hosts[c->n++] = (int32_t)i;
        }
}

/* Names the hosts as if all traces were in one place. */
static void name_hosts(struct cluster_membership *r)
{
    struct index_named *named = mem_zalloc((r->n_hosts + 1) * sizeof *named);
    for (size_t i = 0; i < r->n_hosts; i++) {
        const struct cluster_entry_host *c = r->hosts[i].entry;
        named[i] = (struct index_named){.wanted = r->hosts[i].own_name,
            .begin = c->begin,
            .end = c->end,
            .boot = c->clock.freq ? c->clock.uuid : NULL,
            .is_kernel = !c->is_user_space};
    }
    index_name_hosts(&r->arena, named, r->n_hosts);
    for (size_t i = 0; i < r->n_hosts; i++) {
        r->hosts[i].name = named[i].name;
        r->hosts[i].clock_name = named[i].clock_name;
    }
    free(named);
}

/* ---- contents of entries ---- */

static uint64_t name_hash(size_t entry, const char *name, size_t n)
{
    return map_mix(entry + 1) ^ map_hash(name, n);
}

/* A node numbers its hosts of one name ("solo#2"): where it has the first of them, too, the number is its own. */
static void find_names(struct cluster_membership *r, struct listed_hosts *all)
{
    struct map names = {0};
    for (size_t i = 0; i < all->n; i++) {
        const char *name = all->v[i].host->name;
        map_put(&names, name_hash((size_t)(all->v[i].entry - r->entries), name, strlen(name)), NULL);
    }
    for (size_t i = 0; i < all->n; i++) {
        struct listed_host *e = &all->v[i];
        const char *name = e->host->name, *hash = strrchr(name, '#');
        bool numbered = hash && hash > name && hash[1] && !hash[1 + strspn(hash + 1, "0123456789")];
        size_t n = numbered ? (size_t)(hash - name) : 0;
        bool has_first = numbered && map_find(&names, name_hash((size_t)(e->entry - r->entries), name, n));
        e->own_name = has_first ? arena_strndup(&r->arena, name, n) : name;
    }
    map_fini(&names);
}

/* ---- nodes of earlier versions ---- */

static int by_boot(const void *pa, const void *pb)
{
    const struct listed_host *a = pa, *b = pb;
    const struct index_far_clock *p = &a->host->clock, *q = &b->host->clock;
    return strcmp(a->own_name, b->own_name) ?: order_of(p->freq > 0, q->freq > 0) ?: memcmp(p->uuid, q->uuid, 16)
        ?: order_of(b->host->by_session, a->host->by_session) ?: by_key(pa, pb);
}

static bool same_boot(const struct listed_host *a, const struct listed_host *b)
{
    const struct index_far_clock *p = &a->host->clock, *q = &b->host->clock;
    return !strcmp(a->own_name, b->own_name) && !p->freq == !q->freq && !memcmp(p->uuid, q->uuid, 16);
}

/* Compares clock offsets: each session measures the clock's distance to the epoch anew. */
static bool same_session(const struct cluster_entry_host *a, const struct cluster_entry_host *b)
{
    const struct index_far_clock *p = &a->clock, *q = &b->clock;
    if (!p->freq)
        return a->begin == b->begin;
    return p->freq == q->freq && p->offset == q->offset && p->offset_s == q->offset_s;
}

static bool has_all(const struct listed_host *e, const struct cluster_entry_host *of)
{
    return !e->host->excerpt.is && e->host->end >= of->end && e->host->begin <= of->begin;
}

/* The key of host `at` is of the boot. Is it among the hosts by itself, or as a copy of another, or must it not be, as
 * it would be taken for what it is not? Those before it are of the same boot. */
static void place_old(struct cluster_membership *r, struct listed_hosts *all, size_t first, size_t at)
{
    struct listed_host *e = &all->v[at];
    bool is_copy = false, is_whole = false, clashes = false;
    for (size_t i = first; i < at; i++) {
        const struct listed_host *o = &all->v[i];
        bool same = same_session(o->host, e->host);
        if (o->left_out)
            continue;
        is_copy |= same && o->host->by_session;
        is_whole |= same && o->host->by_session && has_all(o, e->host);
        clashes |= !same && o->host->key == e->host->key;
    }
    e->left_out = is_copy || clashes;
    if (e->left_out && !is_whole)
        r->unclear[r->n_unclear++] = (struct cluster_membership_unclear){e->entry->node, e->own_name};
}

static void place_all_old(struct cluster_membership *r, struct listed_hosts *all)
{
    size_t n_old = 0;
    for (size_t i = 0; i < all->n; i++)
        n_old += !all->v[i].host->by_session;
    r->unclear = arena_new(&r->arena, struct cluster_membership_unclear, n_old + 1);
    if (!n_old)
        return;
    qsort(all->v, all->n, sizeof *all->v, by_boot);
    for (size_t i = 0, first = 0; i < all->n; i++) {
        if (!same_boot(&all->v[first], &all->v[i]))
            first = i;
        if (!all->v[i].host->by_session)
            place_old(r, all, first, i);
    }
    size_t kept = 0;
    for (size_t i = 0; i < all->n; i++)
        if (!all->v[i].left_out)
            all->v[kept++] = all->v[i];
    all->n = kept;
}

void cluster_membership_make(struct cluster_membership *r, struct cluster_entry *entries, size_t n)
{
    struct listed_hosts all = {0};
    if (n)
        qsort(entries, n, sizeof *entries, by_node);
    r->entries = entries;
    r->n_entries = n;
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < entries[i].n_hosts; k++)
            vec_push(&all, ((struct listed_host){.entry = &entries[i], .host = &entries[i].hosts[k]}));
    find_names(r, &all);
    place_all_old(r, &all);
    if (all.n)
        qsort(all.v, all.n, sizeof *all.v, by_key);
    r->hosts = arena_new(&r->arena, struct cluster_membership_host, all.n + 1);
    for (size_t i = 0, end; i < all.n; i = end) {
        for (end = i; end < all.n && all.v[end].host->key == all.v[i].host->key;)
            end++;
        add_host(r, all.v + i, end - i);
    }
    if (r->n_hosts)
        qsort(r->hosts, r->n_hosts, sizeof *r->hosts, by_name);
    list_node_hosts(r);
    name_hosts(r);
    vec_free(&all);
}

void cluster_membership_use_excerpts(struct cluster_membership *r, const bool *there)
{
    for (size_t i = 0; i < r->n_hosts; i++) {
        struct cluster_membership_host *h = &r->hosts[i];
        if (there[i] || h->used || !h->n_excerpts)
            continue;
        h->whole = h->nodes[0];
        use_excerpts(h);
    }
    list_node_hosts(r);
}

/* ---- reading the table ---- */

struct reading {
    struct cluster_membership *membership;
    struct strings keys;
    VEC(struct registration) nodes; /* by number of the entry's key */
};

static bool is_of_node(const char *key, const char *node)
{
    char own[CLUSTER_SUBJECT];
    return !bus_token(node, own, sizeof own) && !strcmp(own, key);
}

/* Returns the registration by the first n bytes of the key. */
static struct registration *registration_at(struct reading *r, const char *key, size_t n)
{
    char token[CLUSTER_SUBJECT], name[CLUSTER_SUBJECT];
    uint32_t i = strings_intern(&r->keys, key, n);
    while (r->nodes.n <= i)
        vec_push(&r->nodes, ((struct registration){0}));
    struct registration *s = &r->nodes.v[i];
    if (!s->node) {
        snprintf(token, sizeof token, "%.*s", (int)n, key);
        s->node = arena_strdup(&r->membership->arena, bus_untoken(token, name, sizeof name) ? token : name);
    }
    return s;
}

static void take_registry_entry(struct reading *r, struct registration *s, const struct bus_entry *entry)
{
    struct arena *a = &r->membership->arena;
    struct cluster_entry *c = arena_new(a, struct cluster_entry, 1);
    struct err e = {0};
    int rc = cluster_entry_read(a, entry->data, entry->n, c, &e);
    if (!rc && !is_of_node(entry->key, c->node))
        rc = err_set(&e, ERR_FORMAT, "its registry entry is one of node %s", c->node);
    s->entry = rc ? NULL : c;
    s->refused = rc ? arena_strdup(a, e.text) : NULL;
    s->other_version = rc == ERR_UNSUPPORTED;
    s->entry_revision = entry->revision;
}

/* Takes a condition. An invalid one is ignored: the entry may be good. */
static void take_condition(struct reading *r, struct registration *s, const struct bus_entry *entry)
{
    struct arena *a = &r->membership->arena;
    struct condition *c = arena_new(a, struct condition, 1);
    bool good = !cluster_condition_read(a, entry->data, entry->n, c, NULL) && !strcmp(c->node, s->node);
    s->condition = good ? c : NULL;
    s->condition_revision = entry->revision;
}

/* An entry that is put while the table is read may come twice: the later one counts. Kinds of entries that are not
 * known here have a key of several tokens. */
static void on_entry(void *arg, const struct bus_entry *entry)
{
    struct reading *r = arg;
    size_t n = cluster_condition_key_is(entry->key), dot = strcspn(entry->key, ".");
    if (!n && entry->key[dot])
        return;
    struct registration *s = registration_at(r, entry->key, dot);
    if (entry->kind == BUS_ENTRY_REMOVED && n) {
        s->condition = NULL;
    } else if (entry->kind == BUS_ENTRY_REMOVED) {
        s->entry = NULL;
        s->refused = NULL;
    } else if (entry->kind == BUS_ENTRY_PUT && n) {
        take_condition(r, s, entry);
    } else if (entry->kind == BUS_ENTRY_PUT) {
        take_registry_entry(r, s, entry);
    }
}

static int by_registration(const void *pa, const void *pb)
{
    const struct registration *a = pa, *b = pb;
    return strcmp(a->node, b->node);
}

static int by_missing(const void *pa, const void *pb)
{
    const struct cluster_missing *a = pa, *b = pb;
    return strcmp(a->node, b->node) ?: order_of(a->kind, b->kind) ?: strcmp(a->text, b->text);
}

static void list_unclear(struct cluster_membership *r, struct missing_list *list)
{
    for (size_t i = 0; i < r->n_unclear; i++) {
        const struct cluster_membership_unclear *u = &r->unclear[i];
        const char *text = arena_printf(&r->arena,
            "node %s: its trace of %s is left out: its release of weft does not tell sessions of one boot apart, and "
            "another node has one of that boot; update it",
            u->node, u->host);
        vec_push(list, ((struct cluster_missing){u->node, CLUSTER_MISSING_VERSION, text}));
    }
}

static void list_missing(struct cluster_membership *r, struct registration *nodes, size_t n)
{
    struct missing_list list = {0};
    size_t kept = 0;
    for (size_t i = 0; i < n; i++)
        if (nodes[i].entry || nodes[i].refused || nodes[i].condition)
            nodes[kept++] = nodes[i];
    if (kept)
        qsort(nodes, kept, sizeof *nodes, by_registration);
    for (size_t i = 0; i < kept; i++)
        cluster_condition_missing(&nodes[i], &r->arena, &list);
    list_unclear(r, &list);
    if (list.n)
        qsort(list.v, list.n, sizeof *list.v, by_missing);
    r->missing = arena_new(&r->arena, struct cluster_missing, list.n + 1);
    if (list.n)
        memcpy(r->missing, list.v, list.n * sizeof *list.v);
    r->n_missing = list.n;
    vec_free(&list);
}

int cluster_membership_read(struct bus_table *table, struct cluster_membership *out, struct err *e)
{
    *out = (struct cluster_membership){0};
    struct reading r = {.membership = out};
    int rc = bus_table_all(table, on_entry, &r, e);
    struct cluster_entry *entries = arena_new(&out->arena, struct cluster_entry, r.nodes.n + 1);
    size_t n = 0;
    for (size_t i = 0; i < r.nodes.n; i++)
        if (r.nodes.v[i].entry)
            entries[n++] = *r.nodes.v[i].entry;
    if (!rc) {
        cluster_membership_make(out, entries, n);
        list_missing(out, r.nodes.v, r.nodes.n);
    } else {
        cluster_membership_fini(out);
    }
    vec_free(&r.nodes);
    strings_fini(&r.keys);
    return rc;
}

void cluster_membership_fini(struct cluster_membership *r)
{
    arena_fini(&r->arena);
    *r = (struct cluster_membership){0};
}
