/* Finding the thread that a user names, on whichever node it is. */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "bus/bus.h"
#include "cluster/view.h"

/* Does the thread begin with the name of a host? Then only its nodes are asked. */
static bool names_host(const struct roster_host *h, const char *thread)
{
    size_t n = strlen(h->name);
    return !strncmp(h->name, thread, n) && thread[n] == ':';
}

/* Adds the hosts that the node is the first to hold. */
static size_t hosts_of(const struct cluster *c, const char *node, bool named, const char *thread, int32_t *out)
{
    size_t n = 0;
    for (size_t i = 0; i < c->roster.n_hosts; i++) {
        const struct roster_host *h = &c->roster.hosts[i];
        if (!strcmp(h->nodes[0], node) && (!named || names_host(h, thread)))
            out[n++] = (int32_t)i;
    }
    return n;
}

static void write_question(const struct cluster *c, const char *thread, int64_t begin, int64_t end,
    const int32_t *hosts, size_t n, struct text *out)
{
    struct path_remote_host *remote = mem_zalloc((n + 1) * sizeof *remote);
    for (size_t i = 0; i < n; i++) {
        const struct path_far_host *h = &c->far[hosts[i]];
        remote[i] = (struct path_remote_host){h->id, h->name, h->map};
    }
    question_begin(out, CLUSTER_LIVES);
    lives_question_write(&(struct lives_question){thread, begin, end, {.hosts = remote, .n_hosts = n}}, out);
    free(remote);
}

static int take(struct cluster *c, const struct bus_reply *reply, const int32_t *hosts, size_t n,
    struct cluster_lives *found, struct err *e)
{
    struct far_lives lives = {0};
    int rc = lives_read(&c->names, reply->data, reply->n, n, &lives, e);
    for (size_t i = 0; i < lives.n && !rc; i++) {
        const struct far_life *l = &lives.v[i];
        vec_push(found, ((struct cluster_life){hosts[l->host], l->row, l->begin, l->end, l->tid, l->name}));
    }
    vec_free(&lives);
    return rc;
}

static int by_host(const void *pa, const void *pb)
{
    const struct cluster_life *a = pa, *b = pb;
    return a->host != b->host ? (a->host > b->host) - (a->host < b->host)
                              : (a->begin > b->begin) - (a->begin < b->begin);
}

int cluster_find_lives(struct cluster *c, const char *thread, int64_t begin, int64_t end, int64_t deadline_ns,
    struct cluster_lives *found, struct err *e)
{
    struct bus_calls *calls = bus_calls_new(c->bus);
    size_t n_cards = c->roster.n_cards;
    int32_t **hosts = mem_zalloc((n_cards + 1) * sizeof *hosts);
    size_t *n = mem_zalloc((n_cards + 1) * sizeof *n);
    bool named = false;
    int rc = 0;
    for (size_t i = 0; i < c->roster.n_hosts; i++)
        named |= names_host(&c->roster.hosts[i], thread);
    for (size_t i = 0; i < n_cards; i++) {
        struct text t = {.fd = -1};
        hosts[i] = mem_zalloc((c->roster.n_hosts + 1) * sizeof **hosts);
        n[i] = hosts_of(c, c->node_names[i], named, thread, hosts[i]);
        if (n[i]) {
            write_question(c, thread, begin, end, hosts[i], n[i], &t);
            cluster_call(c, calls, c->node_names[i], &t, deadline_ns, i);
        }
        text_fini(&t);
    }
    struct bus_reply reply;
    while (bus_calls_next(calls, &reply)) {
        if (reply.code)
            rc = err_set(e, reply.code, "node %s: %s", c->node_names[reply.tag], reply.text);
        else if (take(c, &reply, hosts[reply.tag], n[reply.tag], found, e))
            rc = ERR_FORMAT;
        bus_reply_free(&reply);
    }
    if (found->n)
        qsort(found->v, found->n, sizeof *found->v, by_host);
    bus_calls_free(calls);
    for (size_t i = 0; i < n_cards; i++)
        free(hosts[i]);
    free(hosts);
    free(n);
    return found->n ? 0 : rc;
}
