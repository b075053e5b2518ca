/* SPDX-License-Identifier: MIT */
/* Requests served by the hosts of a cluster. */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "cluster/client.h"
#include "cluster/query.h"
#include "cluster/requests.h"

struct search {
    struct cluster *cluster;
    int64_t begin, end;
    struct cluster_requests *found;
};

static void write_question(void *arg, const size_t *hosts, size_t n, struct text *out)
{
    const struct search *s = arg;
    struct path_remote_host *remote = cluster_client_remote_hosts(s->cluster, hosts, n);
    cluster_question_begin(out, CLUSTER_REQUESTS);
    cluster_requests_asked_write(&(struct path_requests_asked){s->begin, s->end, {.hosts = remote, .n_hosts = n}}, out);
    free(remote);
}

static int take(void *arg, const size_t *hosts, size_t n, const void *bytes, size_t size, struct err *e)
{
    struct search *s = arg;
    size_t before = s->found->n;
    int rc = cluster_requests_read(&s->cluster->names, bytes, size, n, s->found, e);
    for (size_t i = before; i < s->found->n; i++)
        s->found->v[i].host = (int32_t)hosts[s->found->v[i].host];
    return rc;
}

int cluster_find_requests(struct cluster *c, const char *host, int64_t begin, int64_t end, int64_t deadline_ns,
    struct cluster_requests *found, size_t *away, struct err *e)
{
    size_t n = c->membership->n_hosts, n_wanted = 0;
    bool *wanted = mem_zalloc((n + 1) * sizeof *wanted);
    int rc;
    for (size_t i = 0; i < n; i++)
        n_wanted += wanted[i] = !host || !strcmp(c->membership->hosts[i].name, host);
    struct search s = {c, begin, end, found};
    struct cluster_host_query query = cluster_query_of(c, wanted, deadline_ns);
    query.write = write_question;
    query.take = take;
    query.arg = &s;
    *away = cluster_query_run(&query, NULL, &rc, e);
    free(wanted);
    return n_wanted && *away == n_wanted ? rc : 0;
}
