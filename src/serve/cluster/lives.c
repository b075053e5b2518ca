/* SPDX-License-Identifier: MIT */
/* Finding the thread that a user names, on whichever node it is. */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/order.h"
#include "cluster/client.h"
#include "cluster/query.h"

/* Returns whether the thread begins with the name of a host. Then only its nodes are asked. */
static bool names_host(const struct cluster_membership_host *h, const char *thread)
{
    size_t n = strlen(h->name);
    return !strncmp(h->name, thread, n) && thread[n] == ':';
}

struct search {
    struct cluster *cluster;
    const char *thread;
    int64_t begin, end;
    struct cluster_lives *found;
};

static void write_question(void *arg, const size_t *hosts, size_t n, struct text *out)
{
    const struct search *s = arg;
    struct path_remote_host *remote = cluster_client_remote_hosts(s->cluster, hosts, n);
    cluster_question_begin(out, CLUSTER_LIVES);
    cluster_lives_question_write(
        &(struct lives_question){s->thread, s->begin, s->end, {.hosts = remote, .n_hosts = n}}, out);
    free(remote);
}

static int take(void *arg, const size_t *hosts, size_t n, const void *bytes, size_t size, struct err *e)
{
    struct search *s = arg;
    struct far_lives lives = {0};
    int rc = cluster_lives_read(&s->cluster->names, bytes, size, n, &lives, e);
    for (size_t i = 0; i < lives.n && !rc; i++) {
        const struct far_life *l = &lives.v[i];
        vec_push(s->found, ((struct cluster_life){(int32_t)hosts[l->host], l->row, l->begin, l->end, l->tid, l->name}));
    }
    vec_free(&lives);
    return rc;
}

static int by_host(const void *pa, const void *pb)
{
    const struct cluster_life *a = pa, *b = pb;
    return order_of(a->host, b->host) ?: order_of(a->begin, b->begin);
}

int cluster_find_lives(struct cluster *c, const char *thread, int64_t begin, int64_t end, int64_t deadline_ns,
    struct cluster_lives *found, struct err *e)
{
    size_t n = c->membership->n_hosts;
    bool *wanted = mem_zalloc((n + 1) * sizeof *wanted), named = false;
    int rc;
    for (size_t i = 0; i < n; i++)
        named |= wanted[i] = names_host(&c->membership->hosts[i], thread);
    struct search s = {c, thread, begin, end, found};
    struct cluster_host_query query = cluster_query_of(c, named ? wanted : NULL, deadline_ns);
    query.write = write_question;
    query.take = take;
    query.arg = &s;
    cluster_query_run(&query, NULL, &rc, e);
    if (found->n)
        qsort(found->v, found->n, sizeof *found->v, by_host);
    free(wanted);
    return found->n ? 0 : rc;
}
