/* SPDX-License-Identifier: MIT */
/* Threads of all hosts, and their time in each state. */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/order.h"
#include "cluster/client.h"
#include "cluster/query.h"

/* ---- order ---- */

static int by_total(const void *pa, const void *pb, void *arg)
{
    const struct cluster_thread *a = pa, *b = pb;
    int state = *(const int *)arg;
    return order_of(b->is.totals[state], a->is.totals[state]) ?: order_of(a->host, b->host)
        ?: order_of(a->is.row.tid, b->is.row.tid) ?: order_of(a->is.row.begin, b->is.row.begin);
}

void cluster_threads_limit(struct cluster_threads *v, int state, size_t limit)
{
    if (v->n)
        qsort_r(v->v, v->n, sizeof *v->v, by_total, &state);
    v->n = v->n < limit ? v->n : limit;
}

/* ---- asking ---- */

struct search {
    struct cluster *cluster;
    const struct cluster_threads_question *question;
    struct cluster_threads *found;
};

static void write_question(void *arg, const size_t *hosts, size_t n, struct text *out)
{
    const struct search *s = arg;
    uint64_t *keys = mem_alloc((n + 1) * sizeof *keys);
    for (size_t i = 0; i < n; i++)
        keys[i] = s->cluster->membership->hosts[hosts[i]].entry->key;
    cluster_question_begin(out, CLUSTER_THREADS);
    cluster_threads_question_write(&(struct threads_question){keys, n, *s->question}, out);
    free(keys);
}

static int take(void *arg, const size_t *hosts, size_t n, const void *bytes, size_t size, struct err *e)
{
    struct search *s = arg;
    struct cluster_threads got = {0};
    int rc = cluster_threads_read(&s->cluster->names, bytes, size, n, &got, e);
    for (size_t i = 0; i < got.n && !rc; i++) {
        got.v[i].host = (int32_t)hosts[got.v[i].host];
        vec_push(s->found, got.v[i]);
    }
    s->found->total += rc ? 0 : got.total;
    vec_free(&got);
    return rc;
}

int cluster_find_threads(struct cluster *c, const struct cluster_threads_question *q, int64_t deadline_ns,
    struct cluster_threads *found, size_t *away, struct err *e)
{
    size_t n = c->membership->n_hosts, n_wanted = 0;
    bool *wanted = mem_zalloc((n + 1) * sizeof *wanted);
    int rc;
    for (size_t i = 0; i < n; i++)
        n_wanted += wanted[i] = !q->host || !strcmp(c->membership->hosts[i].name, q->host);
    struct search s = {c, q, found};
    struct cluster_host_query query = cluster_query_of(c, wanted, deadline_ns);
    query.write = write_question;
    query.take = take;
    query.arg = &s;
    *away = cluster_query_run(&query, NULL, &rc, e);
    cluster_threads_limit(found, q->sort, q->limit);
    free(wanted);
    return *away == n_wanted ? rc : 0;
}
