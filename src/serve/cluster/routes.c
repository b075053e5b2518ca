/* SPDX-License-Identifier: MIT */
#include "cluster/routes.h"

#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/mem.h"
#include "base/wire.h"
#include "bus/bus.h"

enum { ROUTES_VERSION = 2, MOST_ROUTES = 4096, ROUTE_BYTES = sizeof(struct flow_route) };

/* ---- side of nodes ---- */

struct routes_published {
    struct map hashes; /* by key of the host: its hash */
    uint64_t version;  /* version of the table when everything was there; 0: unknown */
};

struct routes_published *cluster_routes_published_new(void)
{
    return mem_zalloc(sizeof(struct routes_published));
}

void cluster_routes_published_free(struct routes_published *s)
{
    if (!s)
        return;
    map_fini(&s->hashes);
    free(s);
}

static void write_routes(const struct cluster_trace_set *h, size_t host, uint64_t hash, struct text *out)
{
    struct flow_route *routes = NULL;
    uint32_t *sent = NULL;
    size_t n = cluster_trace_set_routes(h, host, MOST_ROUTES, &routes),
           n_sent = cluster_trace_set_sent_hashes(h, host, MOST_ROUTES, &sent);
    bool all = n <= MOST_ROUTES, all_sent = n_sent <= MOST_ROUTES;
    text_putc(out, ROUTES_VERSION);
    wire_put_bytes(out, &hash, sizeof hash);
    wire_put_u(out, all);
    wire_put_u(out, all ? n : 0);
    wire_put_bytes(out, routes, all ? n * ROUTE_BYTES : 0);
    wire_put_u(out, all_sent);
    wire_put_u(out, all_sent ? n_sent : 0);
    wire_put_bytes(out, sent, all_sent ? n_sent * sizeof *sent : 0);
    free(routes);
    free(sent);
}

void cluster_routes_publish(
    struct routes_published *said, struct bus_table *table, const struct cluster_trace_set *h, bool anew)
{
    const struct cluster_entry_host *hosts;
    size_t n = cluster_trace_set_hosts(h, &hosts);
    for (size_t i = 0; i < n; i++) {
        const uint64_t *known = map_find(&said->hashes, hosts[i].key);
        struct text t = {.fd = -1};
        char key[CLUSTER_ID];
        if (known && *known == hosts[i].hash && !anew)
            continue;
        if (hosts[i].excerpt.is) /* the entry is of all that the host sent */
            continue;
        cluster_id(hosts[i].key, key);
        write_routes(h, i, hosts[i].hash, &t);
        if (!bus_table_put(table, key, t.v, t.n, NULL, NULL))
            *map_put(&said->hashes, hosts[i].key, NULL) = hosts[i].hash;
        text_fini(&t);
    }
}

static bool is_there(struct bus_table *table, uint64_t host)
{
    struct arena a = {0};
    struct routes r;
    char key[CLUSTER_ID];
    void *bytes = NULL;
    size_t n;
    cluster_id(host, key);
    int rc = bus_table_get(table, key, &bytes, &n, NULL, NULL);
    if (!rc)
        rc = cluster_routes_read(&a, bytes, n, &r);
    free(bytes);
    arena_fini(&a);
    return rc != ERR_NOTFOUND && rc != ERR_FORMAT;
}

bool cluster_routes_are_in_table(
    struct routes_published *said, struct bus_table *table, const struct cluster_trace_set *h)
{
    const struct cluster_entry_host *hosts;
    size_t n = cluster_trace_set_hosts(h, &hosts), lost = 0;
    uint64_t version;
    if (bus_table_version(table, &version, NULL) || version == said->version)
        return true;
    for (size_t i = 0; i < n; i++) {
        if (!map_find(&said->hashes, hosts[i].key) || is_there(table, hosts[i].key))
            continue;
        map_remove(&said->hashes, hosts[i].key);
        lost++;
    }
    said->version = lost ? 0 : version;
    return !lost;
}

/* ---- side of clients ---- */

struct routes_book {
    struct arena arena;
    const struct cluster_membership *membership; /* used while it is read */
    struct map by_id;                            /* hash of a host's id -> its number + 1 */
    struct routes *hosts;
};

int cluster_routes_read(struct arena *a, const void *bytes, size_t n, struct routes *out)
{
    struct wire_in w = wire_of(bytes, n);
    uint8_t version;
    *out = (struct routes){0};
    wire_bytes(&w, &version, 1);
    wire_bytes(&w, &out->hash, sizeof out->hash);
    out->all = wire_u(&w) == 1;
    out->n = wire_count(&w, ROUTE_BYTES);
    struct flow_route *v = arena_new(a, struct flow_route, out->n + 1);
    wire_bytes(&w, v, out->n * ROUTE_BYTES);
    out->v = v;
    out->all_sent = wire_u(&w) == 1;
    out->n_sent = wire_count(&w, sizeof *out->sent);
    uint32_t *sent = arena_new(a, uint32_t, out->n_sent + 1);
    wire_bytes(&w, sent, out->n_sent * sizeof *sent);
    out->sent = sent;
    return w.damaged || w.at != w.end || version != ROUTES_VERSION ? ERR_FORMAT : 0;
}

static void on_entry(void *arg, const struct bus_entry *e)
{
    struct routes_book *b = arg;
    struct routes r;
    const uint64_t *at = e->kind == BUS_ENTRY_PUT ? map_find(&b->by_id, map_hash(e->key, strlen(e->key))) : NULL;
    const struct cluster_membership_host *h = at ? &b->membership->hosts[*at - 1] : NULL;
    if (h && !strcmp(h->id, e->key) && !cluster_routes_read(&b->arena, e->data, e->n, &r) && r.hash == h->entry->hash)
        b->hosts[*at - 1] = r;
}

struct routes_book *cluster_routes_book_read(
    struct bus *bus, const char *cluster, const struct cluster_membership *membership, bool *read)
{
    struct routes_book *b = mem_zalloc(sizeof *b);
    struct bus_table *table = NULL;
    char name[CLUSTER_SUBJECT];
    b->membership = membership;
    b->hosts = mem_zalloc((membership->n_hosts + 1) * sizeof *b->hosts);
    for (size_t i = 0; i < membership->n_hosts; i++)
        *map_put(&b->by_id, map_hash(membership->hosts[i].id, strlen(membership->hosts[i].id)), NULL) = i + 1;
    *read = !cluster_table_name(cluster, "routes", name, NULL) && !bus_table_open(bus, name, NULL, &table, NULL) &&
        !bus_table_all(table, on_entry, b, NULL);
    if (table)
        bus_table_close(table);
    return b;
}

void cluster_routes_book_free(struct routes_book *b)
{
    if (!b)
        return;
    map_fini(&b->by_id);
    arena_fini(&b->arena);
    free(b->hosts);
    free(b);
}

bool cluster_routes_book_lead(const struct routes_book *b, size_t host, const struct flow_message_key *m)
{
    const struct routes *r = &b->hosts[host];
    return !r->all || flow_routes_lead(r->v, r->n, m);
}

bool cluster_routes_book_may_send(const struct routes_book *b, size_t host, const struct flow_message_key *m)
{
    const struct routes *r = &b->hosts[host];
    return !r->all_sent || flow_sent_hashes_have(r->sent, r->n_sent, &m->flow) || cluster_routes_book_lead(b, host, m);
}
