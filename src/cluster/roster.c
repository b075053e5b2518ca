#include "cluster/roster.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/mem.h"
#include "base/order.h"
#include "base/time.h"
#include "bus/bus.h"

/* A host of a card. */
struct entry {
    const struct card *card;
    const struct card_host *host;
};

static int by_node(const void *pa, const void *pb)
{
    const struct card *a = pa, *b = pb;
    return strcmp(a->node, b->node) ?: strcmp(a->instance, b->instance);
}

/* Snips last, that of most time first. */
static int by_extent(const struct card_snip *a, const struct card_snip *b)
{
    if (!a->is || !b->is)
        return order_of(a->is, b->is);
    return order_of(time_between(b->begin, b->end), time_between(a->begin, a->end));
}

/* Copies of a host beside each other, the newest first, and that which has most of it; of equal ones that which was
 * moved last: it is asked first. */
static int by_key(const void *pa, const void *pb)
{
    const struct entry *a = pa, *b = pb;
    return order_of(a->host->key, b->host->key) ?: by_extent(&a->host->snip, &b->host->snip)
        ?: order_of(b->host->end, a->host->end) ?: order_of(a->host->begin, b->host->begin)
        ?: order_of(b->host->events, a->host->events) ?: order_of(b->host->has_graph, a->host->has_graph)
        ?: order_of(b->host->since, a->host->since) ?: strcmp(a->card->node, b->card->node);
}

static int by_name(const void *pa, const void *pb)
{
    const struct roster_host *a = pa, *b = pb;
    return strcmp(a->card->name, b->card->name) ?: order_of(a->card->begin, b->card->begin)
        ?: order_of(a->card->key, b->card->key);
}

/* Files of other times are another hash, and may have the same events. */
bool roster_is_lesser(const struct roster_host *h, size_t copy)
{
    const struct card_host *all = h->copies[0], *c = h->copies[copy];
    if (c->hash == all->hash)
        return false;
    return c->begin > all->begin || c->end < all->end || c->events < all->events || !c->events;
}

/* Of the snips behind the nodes the first, and those that are made of the same files, are the nodes now. */
static void use_snips(struct roster_host *h)
{
    size_t first = h->n_nodes, n = 1;
    while (n < h->n_snips && h->copies[first + n]->hash == h->copies[first]->hash)
        n++;
    h->used = &h->copies[first]->snip;
    h->nodes += first;
    h->cards += first;
    h->copies += first;
    h->n_nodes = n;
    h->n_snips -= n;
}

static void add_host(struct roster *r, const struct entry *copies, size_t n)
{
    struct roster_host *h = &r->hosts[r->n_hosts++];
    *h = (struct roster_host){.card = copies[0].host,
        .nodes = arena_new(&r->arena, const char *, n + 1),
        .cards = arena_new(&r->arena, size_t, n + 1),
        .copies = arena_new(&r->arena, const struct card_host *, n + 1)};
    cluster_id(h->card->key, h->id);
    for (size_t i = 0; i < n; i++) {
        h->cards[i] = (size_t)(copies[i].card - r->cards);
        h->nodes[i] = copies[i].card->node;
        h->copies[i] = copies[i].host;
        h->n_nodes += !copies[i].host->snip.is;
    }
    h->n_snips = n - h->n_nodes;
    if (h->n_nodes)
        return;
    h->whole = h->card->snip.from;
    use_snips(h);
}

/* A card may claim a host twice, which then is listed once. */
static void list_held(struct roster *r)
{
    r->held = arena_new(&r->arena, struct roster_card, r->n_cards + 1);
    for (size_t i = 0; i < r->n_cards; i++)
        r->held[i] = (struct roster_card){.hosts = arena_new(&r->arena, int32_t, r->cards[i].n_hosts + 1),
            .hashes = arena_new(&r->arena, uint64_t, r->cards[i].n_hosts + 1)};
    for (size_t i = 0; i < r->n_hosts; i++)
        for (size_t k = 0; k < r->hosts[i].n_nodes; k++) {
            struct roster_card *c = &r->held[r->hosts[i].cards[k]];
            if ((c->n && c->hosts[c->n - 1] == (int32_t)i) || roster_is_lesser(&r->hosts[i], k))
                continue;
            c->hashes[c->n] = r->hosts[i].copies[k]->hash;
            c->hosts[c->n++] = (int32_t)i;
        }
}

/* The first host of that name, beginning with number `first`, that some node holds together with this one, and so knows
 * that they are boots of one machine; SIZE_MAX: there is none. seen: by card, the first of those met so far + 1. */
static size_t first_boot(const struct roster_host *h, size_t first, const size_t *seen)
{
    size_t found = SIZE_MAX;
    for (size_t k = 0; k < h->n_nodes; k++)
        if (seen[h->cards[k]] > first && seen[h->cards[k]] - 1 < found)
            found = seen[h->cards[k]] - 1;
    return found;
}

/* Machines of several nodes that have one name get numbers, in order of time. */
static void name_hosts(struct roster *r)
{
    size_t *seen = mem_zalloc((r->n_cards + 1) * sizeof *seen);
    for (size_t i = 0, first = 0, number = 1; i < r->n_hosts; i++) {
        struct roster_host *h = &r->hosts[i];
        const char *own = h->card->name, *clock = h->card->clock_name;
        if (i && strcmp(own, r->hosts[first].card->name) != 0) {
            first = i;
            number = 1;
        }
        size_t boot = first_boot(h, first, seen);
        h->name = boot != SIZE_MAX ? r->hosts[boot].name
            : i == first           ? own
                                   : arena_printf(&r->arena, "%s#%zu", own, ++number);
        for (size_t k = 0; k < h->n_nodes; k++)
            if (seen[h->cards[k]] <= first)
                seen[h->cards[k]] = i + 1;
        size_t n = strlen(own);
        h->clock_name = arena_printf(&r->arena, "%s%s", h->name, strncmp(clock, own, n) ? "" : clock + n);
    }
    free(seen);
}

void roster_make(struct roster *r, struct card *cards, size_t n)
{
    VEC(struct entry) all = {0};
    if (n)
        qsort(cards, n, sizeof *cards, by_node);
    r->cards = cards;
    r->n_cards = n;
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < cards[i].n_hosts; k++)
            vec_push(&all, ((struct entry){&cards[i], &cards[i].hosts[k]}));
    if (all.n)
        qsort(all.v, all.n, sizeof *all.v, by_key);
    r->hosts = arena_new(&r->arena, struct roster_host, all.n + 1);
    for (size_t i = 0, end; i < all.n; i = end) {
        for (end = i; end < all.n && all.v[end].host->key == all.v[i].host->key;)
            end++;
        add_host(r, all.v + i, end - i);
    }
    if (r->n_hosts)
        qsort(r->hosts, r->n_hosts, sizeof *r->hosts, by_name);
    list_held(r);
    name_hosts(r);
    vec_free(&all);
}

void roster_use_snips(struct roster *r, const bool *there)
{
    for (size_t i = 0; i < r->n_hosts; i++) {
        struct roster_host *h = &r->hosts[i];
        if (there[i] || h->used || !h->n_snips)
            continue;
        h->whole = h->nodes[0];
        use_snips(h);
    }
    list_held(r);
}

/* ---- from the table ---- */

struct reading {
    struct roster *roster;
    struct strings keys;
    VEC(struct standing) nodes; /* by number of the card's key */
};

static bool is_of_node(const char *key, const char *node)
{
    char own[CLUSTER_SUBJECT];
    return !bus_token(node, own, sizeof own) && !strcmp(own, key);
}

/* By the first n bytes of the key. */
static struct standing *standing_at(struct reading *r, const char *key, size_t n)
{
    char token[CLUSTER_SUBJECT], name[CLUSTER_SUBJECT];
    uint32_t i = strings_intern(&r->keys, key, n);
    while (r->nodes.n <= i)
        vec_push(&r->nodes, ((struct standing){0}));
    struct standing *s = &r->nodes.v[i];
    if (!s->node) {
        snprintf(token, sizeof token, "%.*s", (int)n, key);
        s->node = arena_strdup(&r->roster->arena, bus_untoken(token, name, sizeof name) ? token : name);
    }
    return s;
}

static void take_card(struct reading *r, struct standing *s, const struct bus_entry *entry)
{
    struct arena *a = &r->roster->arena;
    struct card *c = arena_new(a, struct card, 1);
    struct err e = {0};
    int rc = card_read(a, entry->data, entry->n, c, &e);
    if (!rc && !is_of_node(entry->key, c->node))
        rc = err_set(&e, ERR_FORMAT, "its registry entry is one of node %s", c->node);
    s->card = rc ? NULL : c;
    s->refused = rc ? arena_strdup(a, e.text) : NULL;
    s->other_version = rc == ERR_UNSUPPORTED;
    s->card_revision = entry->revision;
}

/* One that makes no sense is none: the card may be good. */
static void take_condition(struct reading *r, struct standing *s, const struct bus_entry *entry)
{
    struct arena *a = &r->roster->arena;
    struct condition *c = arena_new(a, struct condition, 1);
    bool good = !condition_read(a, entry->data, entry->n, c, NULL) && !strcmp(c->node, s->node);
    s->condition = good ? c : NULL;
    s->condition_revision = entry->revision;
}

/* An entry that is put while the table is read may come twice: the later one counts. Kinds of entries that are not
 * known here have a key of several tokens. */
static void on_entry(void *arg, const struct bus_entry *entry)
{
    struct reading *r = arg;
    size_t n = condition_key_is(entry->key), dot = strcspn(entry->key, ".");
    if (!n && entry->key[dot])
        return;
    struct standing *s = standing_at(r, entry->key, dot);
    if (entry->kind == BUS_ENTRY_REMOVED && n) {
        s->condition = NULL;
    } else if (entry->kind == BUS_ENTRY_REMOVED) {
        s->card = NULL;
        s->refused = NULL;
    } else if (entry->kind == BUS_ENTRY_PUT && n) {
        take_condition(r, s, entry);
    } else if (entry->kind == BUS_ENTRY_PUT) {
        take_card(r, s, entry);
    }
}

static int by_standing(const void *pa, const void *pb)
{
    const struct standing *a = pa, *b = pb;
    return strcmp(a->node, b->node);
}

static void list_missing(struct roster *r, struct standing *nodes, size_t n)
{
    struct missing_list list = {0};
    size_t kept = 0;
    for (size_t i = 0; i < n; i++)
        if (nodes[i].card || nodes[i].refused || nodes[i].condition)
            nodes[kept++] = nodes[i];
    if (kept)
        qsort(nodes, kept, sizeof *nodes, by_standing);
    for (size_t i = 0; i < kept; i++)
        condition_missing(&nodes[i], &r->arena, &list);
    r->missing = arena_new(&r->arena, struct cluster_missing, list.n + 1);
    if (list.n)
        memcpy(r->missing, list.v, list.n * sizeof *list.v);
    r->n_missing = list.n;
    vec_free(&list);
}

int roster_read(struct bus_table *table, struct roster *out, struct err *e)
{
    *out = (struct roster){0};
    struct reading r = {.roster = out};
    int rc = bus_table_all(table, on_entry, &r, e);
    struct card *cards = arena_new(&out->arena, struct card, r.nodes.n + 1);
    size_t n = 0;
    for (size_t i = 0; i < r.nodes.n; i++)
        if (r.nodes.v[i].card)
            cards[n++] = *r.nodes.v[i].card;
    if (!rc) {
        roster_make(out, cards, n);
        list_missing(out, r.nodes.v, r.nodes.n);
    } else {
        roster_fini(out);
    }
    vec_free(&r.nodes);
    strings_fini(&r.keys);
    return rc;
}

void roster_fini(struct roster *r)
{
    arena_fini(&r->arena);
    *r = (struct roster){0};
}
