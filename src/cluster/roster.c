#include "cluster/roster.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/order.h"
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

/* Copies of a host beside each other, the newest first. */
static int by_key(const void *pa, const void *pb)
{
    const struct entry *a = pa, *b = pb;
    return order_of(a->host->key, b->host->key) ?: order_of(b->host->end, a->host->end)
        ?: order_of(b->host->has_graph, a->host->has_graph) ?: strcmp(a->card->node, b->card->node);
}

static int by_name(const void *pa, const void *pb)
{
    const struct roster_host *a = pa, *b = pb;
    return strcmp(a->card->name, b->card->name) ?: order_of(a->card->begin, b->card->begin)
        ?: order_of(a->card->key, b->card->key);
}

static void add_host(struct roster *r, const struct entry *copies, size_t n)
{
    struct roster_host *h = &r->hosts[r->n_hosts++];
    *h = (struct roster_host){.card = copies[0].host, .nodes = arena_new(&r->arena, const char *, n + 1)};
    cluster_id(h->card->key, h->id);
    for (size_t i = 0; i < n; i++)
        h->nodes[h->n_nodes++] = copies[i].card->node;
}

/* Does a node hold both, and so knows whether they are boots of one machine? */
static bool held_together(const struct roster_host *a, const struct roster_host *b)
{
    for (size_t i = 0; i < a->n_nodes; i++)
        for (size_t k = 0; k < b->n_nodes; k++)
            if (!strcmp(a->nodes[i], b->nodes[k]))
                return true;
    return false;
}

/* Machines of several nodes that have one name get numbers, in order of time. */
static void name_hosts(struct roster *r)
{
    for (size_t i = 0, first = 0, number = 1; i < r->n_hosts; i++) {
        struct roster_host *h = &r->hosts[i];
        const char *own = h->card->name, *clock = h->card->clock_name;
        if (i && strcmp(own, r->hosts[first].card->name) != 0) {
            first = i;
            number = 1;
        }
        h->name = NULL;
        for (size_t k = first; k < i && !h->name; k++)
            if (held_together(&r->hosts[k], h))
                h->name = r->hosts[k].name;
        if (!h->name)
            h->name = i == first ? own : arena_printf(&r->arena, "%s#%zu", own, ++number);
        size_t n = strlen(own);
        h->clock_name = arena_printf(&r->arena, "%s%s", h->name, strncmp(clock, own, n) ? "" : clock + n);
    }
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
    name_hosts(r);
    vec_free(&all);
}

/* ---- from the table ---- */

struct reading {
    struct roster *roster;
    VEC(struct card) cards;
};

static bool is_of_node(const char *key, const char *node)
{
    char own[CLUSTER_SUBJECT];
    return !bus_token(node, own, sizeof own) && !strcmp(own, key);
}

static void forget_card(struct reading *r, const char *key)
{
    size_t kept = 0;
    for (size_t i = 0; i < r->cards.n; i++)
        if (!is_of_node(key, r->cards.v[i].node))
            r->cards.v[kept++] = r->cards.v[i];
    r->cards.n = kept;
}

/* A card that is put while the table is read may come twice: the later one counts. */
static void on_card(void *arg, const struct bus_entry *entry)
{
    struct reading *r = arg;
    struct card c;
    struct err e;
    size_t i = 0;
    if (entry->kind == BUS_ENTRY_REMOVED)
        forget_card(r, entry->key);
    if (entry->kind != BUS_ENTRY_PUT)
        return;
    if (card_read(&r->roster->arena, entry->data, entry->n, &c, &e) || !is_of_node(entry->key, c.node)) {
        r->roster->unreadable++;
        return;
    }
    while (i < r->cards.n && strcmp(r->cards.v[i].node, c.node) != 0)
        i++;
    if (i < r->cards.n)
        r->cards.v[i] = c;
    else
        vec_push(&r->cards, c);
}

int roster_read(struct bus_table *table, struct roster *out, struct err *e)
{
    *out = (struct roster){0};
    struct reading r = {.roster = out};
    int rc = bus_table_all(table, on_card, &r, e);
    struct card *cards = arena_new(&out->arena, struct card, r.cards.n + 1);
    if (r.cards.n)
        memcpy(cards, r.cards.v, r.cards.n * sizeof *cards);
    if (!rc)
        roster_make(out, cards, r.cards.n);
    else
        roster_fini(out);
    vec_free(&r.cards);
    return rc;
}

void roster_fini(struct roster *r)
{
    arena_fini(&r->arena);
    *r = (struct roster){0};
}
