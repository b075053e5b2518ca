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

/* A search: which hosts have been looked at, and how many of their nodes failed. */
struct search {
    struct cluster *cluster;
    const char *thread;
    int64_t begin, end;
    bool named; /* only hosts by whose names the thread begins */
    bool *done;
    size_t *failed;
};

static bool is_wanted(const struct search *s, size_t host)
{
    const struct roster_host *h = &s->cluster->roster.hosts[host];
    return !s->done[host] && s->failed[host] < h->n_nodes && (!s->named || names_host(h, s->thread));
}

/* Adds the hosts that the node is to be asked for: it is the first that holds them and did not fail. */
static size_t hosts_of(const struct search *s, const char *node, int32_t *out)
{
    size_t n = 0;
    for (size_t i = 0; i < s->cluster->roster.n_hosts; i++)
        if (is_wanted(s, i) && !strcmp(s->cluster->roster.hosts[i].nodes[s->failed[i]], node))
            out[n++] = (int32_t)i;
    return n;
}

static void write_question(const struct search *s, const int32_t *hosts, size_t n, struct text *out)
{
    struct path_remote_host *remote = mem_zalloc((n + 1) * sizeof *remote);
    for (size_t i = 0; i < n; i++) {
        const struct path_far_host *h = &s->cluster->far[hosts[i]];
        remote[i] = (struct path_remote_host){h->id, h->name, h->map};
    }
    question_begin(out, CLUSTER_LIVES);
    lives_question_write(&(struct lives_question){s->thread, s->begin, s->end, {.hosts = remote, .n_hosts = n}}, out);
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

/* Asks who has what is wanted; of copies that fail the next one is wanted then. False: nothing is left to ask. */
static bool ask_once(struct search *s, int64_t deadline_ns, struct cluster_lives *found, int *rc, struct err *e)
{
    struct cluster *c = s->cluster;
    size_t n_cards = c->roster.n_cards, asked = 0;
    struct bus_calls *calls = bus_calls_new(c->bus);
    int32_t **hosts = mem_zalloc((n_cards + 1) * sizeof *hosts);
    size_t *n = mem_zalloc((n_cards + 1) * sizeof *n);
    for (size_t i = 0; i < n_cards; i++) {
        struct text t = {.fd = -1};
        hosts[i] = mem_zalloc((c->roster.n_hosts + 1) * sizeof **hosts);
        n[i] = hosts_of(s, c->node_names[i], hosts[i]);
        if (n[i]) {
            write_question(s, hosts[i], n[i], &t);
            cluster_call(c, calls, c->node_names[i], &t, deadline_ns, i);
        }
        text_fini(&t);
    }
    for (size_t i = 0; i < n_cards; i++)
        for (size_t k = 0; k < n[i]; k++, asked++)
            s->failed[hosts[i][k]]++;
    struct bus_reply reply;
    while (bus_calls_next(calls, &reply)) {
        size_t i = (size_t)reply.tag;
        int failed = reply.code ? err_set(e, reply.code, "node %s: %s", c->node_names[i], reply.text)
                                : take(c, &reply, hosts[i], n[i], found, e);
        *rc = failed ? failed : *rc;
        for (size_t k = 0; k < n[i]; k++)
            s->done[hosts[i][k]] = !failed;
        bus_reply_free(&reply);
    }
    bus_calls_free(calls);
    for (size_t i = 0; i < n_cards; i++)
        free(hosts[i]);
    free(hosts);
    free(n);
    return asked > 0;
}

int cluster_find_lives(struct cluster *c, const char *thread, int64_t begin, int64_t end, int64_t deadline_ns,
    struct cluster_lives *found, struct err *e)
{
    size_t n_hosts = c->roster.n_hosts;
    struct search s = {.cluster = c, .thread = thread, .begin = begin, .end = end};
    int rc = 0, failed = 0;
    s.done = mem_zalloc((n_hosts + 1) * sizeof *s.done);
    s.failed = mem_zalloc((n_hosts + 1) * sizeof *s.failed);
    for (size_t i = 0; i < n_hosts; i++)
        s.named |= names_host(&c->roster.hosts[i], thread);
    while (ask_once(&s, cluster_patience(deadline_ns), found, &failed, e))
        continue;
    for (size_t i = 0; i < n_hosts; i++)
        if (!s.done[i] && s.failed[i])
            rc = failed;
    if (found->n)
        qsort(found->v, found->n, sizeof *found->v, by_host);
    free(s.done);
    free(s.failed);
    return found->n ? 0 : rc;
}
