/* SPDX-License-Identifier: MIT */
#include "cluster/stacks.h"

#include <stdlib.h>

#include "base/map.h"
#include "base/mem.h"
#include "cluster/protocol.h"
#include "cluster/query.h"
#include "graph/graph.h"

struct search {
    struct cluster *cluster;
    const struct path_stack_questions *asked;
    struct path_known *known;
};

/* The questions about these hosts, in order; from: NULL, or the number of each in all. */
static void choose(const struct search *s, const size_t *hosts, size_t n, struct stacks_question *out, size_t *from)
{
    struct map number = {0}; /* host -> its number among these + 1 */
    for (size_t i = 0; i < n; i++)
        *map_put(&number, hosts[i], NULL) = i + 1;
    out->n = 0;
    for (size_t i = 0; i < s->asked->n; i++) {
        const struct path_stack_question *q = &s->asked->v[i];
        const uint64_t *host = map_find(&number, (uint64_t)q->row.host);
        if (!host)
            continue;
        from[out->n] = i;
        out->v[out->n++] = (struct stacks_question_item){
            (int32_t)*host - 1, path_known_row_id(s->known, q->row), q->begin, q->end, q->waits};
    }
    map_fini(&number);
}

static void write_question(void *arg, const size_t *hosts, size_t n, struct text *out)
{
    const struct search *s = arg;
    struct path_remote_host *remote = cluster_client_remote_hosts(s->cluster, hosts, n);
    struct stacks_question q = {
        .hosts = {.hosts = remote, .n_hosts = n}, .v = mem_alloc((s->asked->n + 1) * sizeof *q.v)};
    size_t *from = mem_alloc((s->asked->n + 1) * sizeof *from);
    choose(s, hosts, n, &q, from);
    cluster_question_begin(out, CLUSTER_STACKS);
    cluster_stacks_question_write(&q, out);
    free(from);
    free(q.v);
    free(remote);
}

static int take(void *arg, const size_t *hosts, size_t n, const void *bytes, size_t size, struct err *e)
{
    struct search *s = arg;
    struct arena a = {0};
    struct stacks_question q = {.v = arena_new(&a, struct stacks_question_item, s->asked->n + 1)};
    size_t *from = arena_new(&a, size_t, s->asked->n + 1);
    struct graph_stack *found = arena_new(&a, struct graph_stack, s->asked->n + 1);
    choose(s, hosts, n, &q, from);
    int rc = cluster_stacks_read(&a, bytes, size, found, q.n, e);
    for (size_t i = 0; i < q.n && !rc; i++)
        if (found[i].samples)
            path_known_stack(s->known, &s->asked->v[from[i]], &found[i]);
    arena_fini(&a);
    return rc;
}

size_t cluster_stacks_find(struct cluster *c, const struct path_stack_questions *asked, struct path_known *known,
    int64_t deadline_ns, struct err *e)
{
    bool *wanted = mem_zalloc((c->membership->n_hosts + 1) * sizeof *wanted);
    int rc;
    for (size_t i = 0; i < asked->n; i++) {
        int32_t host = asked->v[i].row.host;
        wanted[host] = c->membership->hosts[host].entry->has_stacks;
    }
    struct search s = {c, asked, known};
    struct cluster_host_query query = cluster_query_of(c, wanted, deadline_ns);
    query.write = write_question;
    query.take = take;
    query.arg = &s;
    size_t away = cluster_query_run(&query, NULL, &rc, e);
    free(wanted);
    return away;
}
