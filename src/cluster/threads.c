/* Which threads there were on all hosts, and what they did with their time. */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/order.h"
#include "bus/bus.h"
#include "cluster/view.h"

/* ---- order ---- */

static int by_total(const void *pa, const void *pb, void *arg)
{
    const struct cluster_thread *a = pa, *b = pb;
    int state = *(const int *)arg;
    return order_of(b->totals[state], a->totals[state]) ?: order_of(a->host, b->host) ?: order_of(a->tid, b->tid)
        ?: order_of(a->born, b->born);
}

void threads_sort(struct cluster_threads *v, int state)
{
    if (v->n)
        qsort_r(v->v, v->n, sizeof *v->v, by_total, &state);
}

/* ---- asking ---- */

struct asked {
    int32_t *hosts; /* by number in the question */
    size_t n;
};

/* The hosts that the node is the first to hold. */
static struct asked hosts_of(const struct cluster *c, const char *node, const char *host, uint64_t *keys)
{
    struct asked a = {.hosts = mem_zalloc((c->roster.n_hosts + 1) * sizeof *a.hosts)};
    for (size_t i = 0; i < c->roster.n_hosts; i++) {
        const struct roster_host *h = &c->roster.hosts[i];
        if (strcmp(h->nodes[0], node) != 0 || (host && strcmp(h->name, host) != 0))
            continue;
        keys[a.n] = h->card->key;
        a.hosts[a.n++] = (int32_t)i;
    }
    return a;
}

static int take(struct cluster *c, const struct bus_reply *reply, const struct asked *a, struct cluster_threads *found)
{
    size_t before = found->n;
    int rc = threads_read(&c->names, reply->data, reply->n, a->n, found, NULL);
    if (rc)
        found->n = before;
    for (size_t i = before; i < found->n; i++)
        found->v[i].host = a->hosts[found->v[i].host];
    return rc;
}

int cluster_find_threads(struct cluster *c, const struct cluster_threads_question *q, int64_t deadline_ns,
    struct cluster_threads *found, size_t *away, struct err *e)
{
    struct bus_calls *calls = bus_calls_new(c->bus);
    struct asked *asked = mem_zalloc((c->roster.n_cards + 1) * sizeof *asked);
    uint64_t *keys = mem_alloc((c->roster.n_hosts + 1) * sizeof *keys);
    size_t n_asked = 0;
    *away = 0;
    for (size_t i = 0; i < c->roster.n_cards; i++) {
        struct text t = {.fd = -1};
        asked[i] = hosts_of(c, c->node_names[i], q->host, keys);
        if (asked[i].n) {
            question_begin(&t, CLUSTER_THREADS);
            threads_question_write(&(struct threads_question){keys, asked[i].n, *q}, &t);
            cluster_call(c, calls, c->node_names[i], &t, deadline_ns, i);
            n_asked++;
        }
        text_fini(&t);
    }
    struct bus_reply reply;
    int rc = 0;
    while (bus_calls_next(calls, &reply)) {
        if (reply.code || take(c, &reply, &asked[reply.tag], found)) {
            ++*away;
            rc = err_set(e, reply.code ? reply.code : ERR_FORMAT, "node %s: %s", c->node_names[reply.tag], reply.text);
        }
        bus_reply_free(&reply);
    }
    threads_sort(found, q->sort);
    bus_calls_free(calls);
    for (size_t i = 0; i < c->roster.n_cards; i++)
        free(asked[i].hosts);
    free(asked);
    free(keys);
    return *away == n_asked ? rc : 0;
}
