/* SPDX-License-Identifier: MIT */
#include "cluster/query.h"

#include <stdlib.h>

#include "base/mem.h"
#include "base/time.h"
#include "bus/bus.h"
#include "cluster/client.h"

/* State of a query. by: entry that answered, by host; failed: number of its nodes without an answer. */
struct inquiry {
    const struct cluster_host_query *is;
    size_t *by, *failed;
    struct err **why; /* by entry: reason why its node did not answer; NULL: it did, or was not asked */
};

/* The hosts that a node is asked for. */
struct asked {
    size_t *hosts, n;
};

int64_t cluster_query_patience(int64_t deadline_ns)
{
    int64_t now = time_monotonic_ns();
    return deadline_ns > now ? now + (deadline_ns - now) / 2 : deadline_ns;
}

/* The entry of the node to ask about the host; SIZE_MAX: there is none, or no need. */
static size_t next_for(const struct inquiry *c, size_t host)
{
    const struct cluster_membership_host *h = &c->is->membership->hosts[host];
    bool wanted = !c->is->wanted || c->is->wanted[host];
    size_t most = h->n_nodes + (c->is->excerpts ? h->n_excerpts : 0);
    return wanted && c->by[host] == SIZE_MAX && c->failed[host] < most ? h->entries[c->failed[host]] : SIZE_MAX;
}

/* Hosts by the entry that is asked for them: one array, cut into pieces. */
static bool share_out(const struct inquiry *c, size_t *room, struct asked *asked)
{
    const struct cluster_membership *r = c->is->membership;
    size_t used = 0;
    for (size_t i = 0; i < r->n_hosts; i++)
        if (next_for(c, i) != SIZE_MAX)
            asked[next_for(c, i)].n++;
    for (size_t k = 0; k < r->n_entries; k++) {
        asked[k].hosts = room + used;
        used += asked[k].n;
        asked[k].n = 0;
    }
    for (size_t i = 0; i < r->n_hosts; i++)
        if (next_for(c, i) != SIZE_MAX) {
            struct asked *a = &asked[next_for(c, i)];
            a->hosts[a->n++] = i;
        }
    return used;
}

static void ask(const struct inquiry *c, struct bus_calls *calls, size_t entry, const struct asked *a)
{
    const struct cluster_host_query *s = c->is;
    int64_t until = s->patience_ns ? time_monotonic_ns() + s->patience_ns : cluster_query_patience(s->deadline_ns);
    char subject[CLUSTER_SUBJECT];
    struct text t = {.fd = -1};
    s->write(s->arg, a->hosts, a->n, &t);
    if (!cluster_subject_of(s->cluster, s->membership->entries[entry].node, subject, NULL))
        bus_call(calls, subject, t.v, t.n, until < s->deadline_ns ? until : s->deadline_ns, entry);
    text_fini(&t);
}

static void take(struct inquiry *c, const struct asked *a, const struct bus_reply *reply)
{
    const struct cluster_host_query *s = c->is;
    size_t entry = (size_t)reply->tag;
    struct err e = {0};
    int rc = reply->code ? err_set(&e, reply->code, "node %s: %s", s->membership->entries[entry].node, reply->text)
                         : s->take(s->arg, a->hosts, a->n, reply->data, reply->n, &e);
    if (rc && !c->why[entry])
        c->why[entry] = mem_zalloc(sizeof e);
    if (rc)
        *c->why[entry] = e;
    for (size_t i = 0; i < a->n && !rc; i++)
        c->by[a->hosts[i]] = entry;
}

/* False: there is nobody to ask. */
static bool ask_once(struct inquiry *c)
{
    const struct cluster_membership *r = c->is->membership;
    size_t *room = mem_alloc((r->n_hosts + 1) * sizeof *room);
    struct asked *asked = mem_zalloc((r->n_entries + 1) * sizeof *asked);
    bool some = share_out(c, room, asked);
    struct bus_calls *calls = bus_calls_new(c->is->bus);
    struct bus_reply reply;
    for (size_t k = 0; k < r->n_entries; k++)
        if (asked[k].n)
            ask(c, calls, k, &asked[k]);
    while (bus_calls_next(calls, &reply)) {
        take(c, &asked[reply.tag], &reply);
        bus_reply_free(&reply);
    }
    for (size_t k = 0; k < r->n_entries; k++)
        for (size_t i = 0; i < asked[k].n; i++)
            c->failed[asked[k].hosts[i]] += c->by[asked[k].hosts[i]] == SIZE_MAX;
    bus_calls_free(calls);
    free(asked);
    free(room);
    return some;
}

struct cluster_host_query cluster_query_of(struct cluster *c, const bool *wanted, int64_t deadline_ns)
{
    return (struct cluster_host_query){.bus = c->bus,
        .cluster = c->name,
        .of = c,
        .membership = c->membership,
        .wanted = wanted,
        .deadline_ns = deadline_ns};
}

static void note_lesser(const struct cluster_host_query *s, size_t host, size_t entry)
{
    const struct cluster_membership_host *h = &s->membership->hosts[host];
    size_t copy = 0;
    while (copy < h->n_nodes && h->entries[copy] != entry)
        copy++;
    if (s->of && copy < h->n_nodes && cluster_membership_is_lesser(h, copy))
        cluster_client_use_copy(s->of, host, copy);
}

size_t cluster_query_run(const struct cluster_host_query *s, size_t *by, int *rc, struct err *e)
{
    size_t n = s->membership->n_hosts, open = 0;
    struct inquiry c = {.is = s};
    c.by = by ? by : mem_alloc((n + 1) * sizeof *c.by);
    c.failed = mem_zalloc((n + 1) * sizeof *c.failed);
    c.why = mem_zalloc((s->membership->n_entries + 1) * sizeof *c.why);
    *rc = 0;
    for (size_t i = 0; i < n; i++)
        c.by[i] = SIZE_MAX;
    while (ask_once(&c))
        continue;
    for (size_t i = 0; i < n; i++)
        if (c.by[i] != SIZE_MAX)
            note_lesser(s, i, c.by[i]);
    for (size_t i = 0; i < n; i++) {
        const struct cluster_membership_host *h = &s->membership->hosts[i];
        if (c.by[i] != SIZE_MAX || (s->wanted && !s->wanted[i]))
            continue;
        const struct err *why = c.failed[i] ? c.why[h->entries[c.failed[i] - 1]] : NULL;
        if (!open++ && why) {
            *rc = why->code;
            *e = *why;
        }
    }
    for (size_t k = 0; k < s->membership->n_entries; k++)
        free(c.why[k]);
    if (!by)
        free(c.by);
    free(c.failed);
    free(c.why);
    return open;
}
