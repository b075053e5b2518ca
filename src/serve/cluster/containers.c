/* SPDX-License-Identifier: MIT */
#include "cluster/containers.h"

#include <stdlib.h>

#include "base/mem.h"
#include "base/order.h"
#include "cluster/query.h"

/* Sorted, each once: those of host i are [first[i], first[i + 1]). */
struct search {
    struct cluster *cluster;
    const struct container_row *rows;
    size_t *first;
    struct path_known *known;
};

static int by_host_and_id(const void *pa, const void *pb)
{
    const struct container_row *a = pa, *b = pb;
    return order_of(a->host, b->host) ?: order_of(a->id, b->id);
}

static void keep_each_once(struct container_rows *rows)
{
    size_t n = 0;
    if (rows->n)
        qsort(rows->v, rows->n, sizeof *rows->v, by_host_and_id);
    for (size_t i = 0; i < rows->n; i++)
        if (!n || by_host_and_id(&rows->v[n - 1], &rows->v[i]))
            rows->v[n++] = rows->v[i];
    rows->n = n;
}

static size_t count_of(const struct search *s, size_t host)
{
    return s->first[host + 1] - s->first[host];
}

static void write_question(void *arg, const size_t *hosts, size_t n, struct text *out)
{
    const struct search *s = arg;
    struct arena a = {0};
    struct containers_question q = {arena_new(&a, struct containers_question_host, n + 1), n};
    for (size_t i = 0; i < n; i++) {
        size_t count = count_of(s, hosts[i]);
        uint64_t *ids = arena_new(&a, uint64_t, count + 1);
        for (size_t k = 0; k < count; k++)
            ids[k] = s->rows[s->first[hosts[i]] + k].id;
        q.hosts[i] = (struct containers_question_host){s->cluster->membership->hosts[hosts[i]].entry->key, ids, count};
    }
    cluster_question_begin(out, CLUSTER_CONTAINERS);
    cluster_containers_question_write(&q, out);
    arena_fini(&a);
}

static int take(void *arg, const size_t *hosts, size_t n, const void *bytes, size_t size, struct err *e)
{
    struct search *s = arg;
    struct arena a = {0};
    size_t all = 0, at = 0;
    for (size_t i = 0; i < n; i++)
        all += count_of(s, hosts[i]);
    const char **names = arena_new(&a, const char *, all + 1);
    int rc = cluster_containers_read(&a, bytes, size, names, all, e);
    for (size_t i = 0; i < n && !rc; i++)
        for (size_t k = s->first[hosts[i]]; k < s->first[hosts[i] + 1]; k++)
            path_known_contain(s->known, s->rows[k].row, names[at++]);
    arena_fini(&a);
    return rc;
}

size_t cluster_containers_find(
    struct cluster *c, struct container_rows *rows, struct path_known *known, int64_t deadline_ns, struct err *e)
{
    size_t n = c->membership->n_hosts, at = 0;
    bool *wanted = mem_zalloc((n + 1) * sizeof *wanted);
    int rc;
    keep_each_once(rows);
    struct search s = {c, rows->v, mem_zalloc((n + 1) * sizeof *s.first), known};
    for (size_t i = 0; i < n; i++) {
        s.first[i] = at;
        while (at < rows->n && (size_t)rows->v[at].host == i)
            at++;
        wanted[i] = at > s.first[i];
    }
    s.first[n] = at;
    struct cluster_host_query query = cluster_query_of(c, wanted, deadline_ns);
    query.write = write_question;
    query.take = take;
    query.arg = &s;
    size_t away = cluster_query_run(&query, NULL, &rc, e);
    free(s.first);
    free(wanted);
    return away;
}
