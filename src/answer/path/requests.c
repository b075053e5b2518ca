/* SPDX-License-Identifier: MIT */
#include "path/requests.h"

#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/mem.h"
#include "base/order.h"
#include "base/search.h"
#include "path/exchange.h"
#include "path/request_parts.h"
#include "path/senders.h"
#include "path/servers.h"

enum { SLICE = 1 << 12 /* steps of a path: takes some ms */ };

struct requests {
    const struct path_local *local;      /* NULL: the list was received from elsewhere */
    const struct path_local_host *hosts; /* NULL likewise */
    const char **names;
    size_t n_hosts;
    VEC(struct served_request) list;
    struct path_requests_lacking lacking;
};

/* State of a search. */
struct hunt {
    struct requests *found;
    const struct requests_question *question;
    const struct servers *servers;
    size_t host;
    struct exchanges exchanges; /* exchanges of a connection */
    struct map unsided;         /* connections of unknown servers, by hash: both ends may see one */
};

/* ---- single hosts ---- */

static void keep(struct hunt *h, const struct exchange *x, uint32_t flow)
{
    struct requests *r = h->found;
    const struct path_local_host *host = &r->hosts[h->host];
    int64_t begin = path_to_reference(host, x->begin), end = path_to_reference(host, x->end);
    if (end < h->question->begin || begin > h->question->end)
        return;
    if (x->row < 0) {
        r->lacking.nobodys++;
        return;
    }
    r->lacking.overlapped += x->overlapped;
    vec_push(&r->list,
        ((struct served_request){.thread = {(int32_t)h->host, x->row},
            .begin = begin,
            .end = end > begin ? end : begin,
            .bytes_in = x->bytes_in,
            .bytes_out = x->bytes_out,
            .first_in = x->first_in,
            .last_out = x->last_out,
            .first_byte = x->first_byte,
            .flow = flow,
            .by_interrupt = x->by_interrupt}));
}

/* Handles a flow that the host received, if its sockets sent on the reverse flow: a client may have sent it to a server
 * here. */
static void look_at_way(struct hunt *h, size_t in)
{
    const struct flow_store *s = h->found->hosts[h->host].flows;
    struct flow_key key, back;
    flow_key(s, in, &key);
    back = flow_key_reverse(&key);
    int64_t out = key.family && flow_receives(s, in) ? flow_lookup(s, &back) : -1;
    if (out < 0 || !flow_may_send(s, &back))
        return;
    enum server_end end = path_servers_end(h->servers, h->host, &key);
    if (end == SERVER_UNKNOWN)
        map_put(&h->unsided, map_hash(memcmp(&key, &back, sizeof key) < 0 ? &key : &back, sizeof key), NULL);
    if (end != SERVER_DESTINATION)
        return;
    h->exchanges.n = 0;
    path_exchanges_find(s, (uint32_t)in, (uint32_t)out, &h->exchanges);
    for (size_t i = 0; i < h->exchanges.n; i++)
        keep(h, &h->exchanges.v[i], (uint32_t)in);
}

static void look_at_host(struct hunt *h)
{
    const struct path_local_host *host = &h->found->hosts[h->host];
    if (!host->flows || !host->graph || (h->question->host && strcmp(h->question->host, host->name) != 0))
        return;
    if (host->map && host->map->island) {
        h->found->lacking.unrelated++;
        return;
    }
    for (size_t f = 0, n = flow_count(host->flows); f < n; f++)
        look_at_way(h, f);
}

/* ---- the list ---- */

static int slowest_first(const void *pa, const void *pb)
{
    const struct served_request *a = pa, *b = pb;
    return order_of(request_duration(b), request_duration(a))
        ?: order_of(a->begin, b->begin)
        ?: order_of(a->thread.host, b->thread.host) ?: order_of(a->first_in, b->first_in);
}

static void sort(struct requests *r)
{
    if (r->list.n)
        qsort(r->list.v, r->list.n, sizeof *r->list.v, slowest_first);
}

struct requests *path_requests_find(const struct path_local *local, const struct requests_question *q)
{
    struct requests *r = mem_zalloc(sizeof *r);
    r->local = local;
    r->hosts = path_local_hosts(local, &r->n_hosts);
    r->names = mem_zalloc((r->n_hosts + 1) * sizeof *r->names);
    const struct flow_store **stores = mem_zalloc((r->n_hosts + 1) * sizeof *stores);
    for (size_t i = 0; i < r->n_hosts; i++) {
        stores[i] = r->hosts[i].flows;
        r->names[i] = r->hosts[i].name;
    }
    struct servers *servers = path_servers_new(stores, r->n_hosts);
    struct hunt h = {.found = r, .question = q, .servers = servers};
    for (h.host = 0; h.host < r->n_hosts; h.host++)
        look_at_host(&h);
    r->lacking.cut = h.exchanges.cut;
    r->lacking.unsided = h.unsided.n;
    sort(r);
    vec_free(&h.exchanges);
    map_fini(&h.unsided);
    path_servers_free(servers);
    free(stores);
    return r;
}

struct requests *path_requests_told(const char *const *hosts, size_t n_hosts, const struct served_request *v, size_t n)
{
    struct requests *r = mem_zalloc(sizeof *r);
    r->n_hosts = n_hosts;
    r->names = mem_zalloc((n_hosts + 1) * sizeof *r->names);
    for (size_t i = 0; i < n_hosts; i++)
        r->names[i] = hosts[i];
    for (size_t i = 0; i < n; i++)
        vec_push(&r->list, v[i]);
    sort(r);
    return r;
}

void path_requests_free(struct requests *r)
{
    if (!r)
        return;
    free(r->names);
    vec_free(&r->list);
    free(r);
}

const struct path_source *path_requests_source(const struct requests *r)
{
    return r->local ? path_local_source(r->local) : NULL;
}

size_t path_requests_count(const struct requests *r)
{
    return r->list.n;
}

const struct served_request *path_requests_get(const struct requests *r, size_t i)
{
    return &r->list.v[i];
}

void path_requests_lacking(const struct requests *r, struct path_requests_lacking *out)
{
    *out = r->lacking;
}

/* ---- paths of requests ---- */

static struct request_walk walk_of(const struct requests *r, size_t i)
{
    const struct served_request *q = path_requests_get(r, i);
    struct request_walk w = {.from = q->thread, .thread = q->thread, .begin = q->begin, .end = q->end};
    if (q->by_interrupt)
        w.from.row = PATH_ROW_UNKNOWN_CPU;
    return w;
}

int path_requests_ask(const struct requests *r, const struct requests_far *far, const size_t *which, size_t n,
    struct request_paths *out, struct err *e)
{
    struct request_walk *walks = mem_zalloc((n + 1) * sizeof *walks);
    for (size_t i = 0; i < n; i++)
        walks[i] = walk_of(r, which[i]);
    int rc = far->walk(far->arg, walks, n, out, e);
    free(walks);
    return rc;
}

int path_requests_walk(const struct requests *r, size_t i, unsigned *slices, struct path **out, struct err *e)
{
    struct request_walk w = walk_of(r, i);
    *out = NULL;
    if (!r->local)
        return err_set(e, ERR_NOTFOUND, "the thread is of a machine that is not here");
    struct path_query *query = path_query_new(path_local_source(r->local), w.from,
        &(struct path_options){
            .begin = w.begin, .end = w.end, .reached = PATH_REACHED_BY_MESSAGE, .receiver = w.thread, .request = true});
    int rc = path_query_run(query, SLICE, e);
    for (; rc == PATH_MORE && *slices; --*slices)
        rc = path_query_run(query, SLICE, e);
    if (rc == PATH_MORE)
        rc = err_set(e, ERR_LIMIT, "the path has too many pieces: choose a shorter interval");
    *out = rc < 0 ? NULL : path_query_answer(query);
    path_query_free(query);
    return rc < 0 ? rc : 0;
}

int path_requests_path(const struct requests *r, size_t i, struct path **out, struct err *e)
{
    unsigned slices = REQUESTS_SLICES;
    return path_requests_walk(r, i, &slices, out, e);
}

size_t path_requests_hosts(const struct requests *r, const char *const **names)
{
    *names = r->names;
    return r->n_hosts;
}

const struct path_local *path_requests_local(const struct requests *r)
{
    return r->local;
}
