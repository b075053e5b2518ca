/* SPDX-License-Identifier: MIT */
/* Status query to all nodes of a cluster. */
#include "cluster/status.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/time.h"
#include "bus/bus.h"
#include "clock/clock.h"
#include "cluster/client.h"
#include "cluster/clock_leader.h"
#include "cluster/report.h"

const char *cluster_node_state_name(int state)
{
    static const char *const names[] = {[CLUSTER_NODE_AWAY] = "away",
        [CLUSTER_NODE_OLDER] = "older release",
        [CLUSTER_NODE_OPENING] = "opening",
        [CLUSTER_NODE_OPEN] = "open",
        [CLUSTER_NODE_FAILED] = "failed"};
    return names[state];
}

/* ---- nodes ---- */

struct inquiry {
    struct cluster *cluster;
    struct cluster_node_status *v; /* sorted by name */
    size_t n;
    int64_t *asked_ns; /* times of questions, by the monotonic clock */
};

static int by_name(const void *pa, const void *pb)
{
    const struct cluster_node_status *a = pa, *b = pb;
    return strcmp(a->name, b->name);
}

static struct cluster_node_status *node_of(const struct inquiry *q, const char *name)
{
    struct cluster_node_status key = {.name = name};
    return bsearch(&key, q->v, q->n, sizeof key, by_name);
}

/* Lists nodes with a readable entry, and those with an unreadable one. */
static void list_nodes(struct inquiry *q)
{
    const struct cluster_membership *r = q->cluster->membership;
    size_t n = 0;
    q->v = arena_new(&q->cluster->names, struct cluster_node_status, r->n_entries + r->n_missing + 1);
    for (size_t i = 0; i < r->n_entries; i++)
        q->v[n++].name = r->entries[i].node;
    for (size_t i = 0; i < r->n_missing; i++)
        q->v[n++].name = r->missing[i].node;
    if (n)
        qsort(q->v, n, sizeof *q->v, by_name);
    for (size_t i = 0; i < n; i++)
        if (!q->n || strcmp(q->v[q->n - 1].name, q->v[i].name) != 0)
            q->v[q->n++] = q->v[i];
    for (size_t i = 0; i < q->n; i++)
        q->v[i].text = q->v[i].release = q->v[i].disk.path = "";
}

static bool is_unrelated(const struct cluster *c, size_t host)
{
    const struct clock_map *m = cluster_clock_map(c, host);
    return m && m->category == CLOCK_ABSENT;
}

static void add_hosts(struct inquiry *q)
{
    const struct cluster_membership *r = q->cluster->membership;
    for (size_t i = 0; i < r->n_hosts; i++)
        for (size_t k = 0; k < r->hosts[i].n_nodes + r->hosts[i].n_excerpts; k++) {
            struct cluster_node_status *s = node_of(q, r->hosts[i].nodes[k]);
            const struct cluster_entry_host *h = r->hosts[i].copies[k];
            s->hosts++;
            s->unrelated += is_unrelated(q->cluster, i);
            s->bytes += h->bytes;
            s->store_bytes += h->store_bytes;
            s->events += h->events;
        }
}

static void find_leader(struct inquiry *q)
{
    char *name;
    if (cluster_clock_leader_find(q->cluster->bus, q->cluster->name, &name, NULL))
        return;
    struct cluster_node_status *s = node_of(q, name);
    if (s)
        s->leads_clocks = true;
    free(name);
}

/* ---- asking ---- */

static void take(struct inquiry *q, const struct bus_reply *reply)
{
    struct cluster_node_status *s = &q->v[reply->tag];
    struct report r;
    struct err e = {0};
    int64_t half = (time_monotonic_ns() - q->asked_ns[reply->tag]) / 2, now = time_now_ns();
    if (reply->code == ERR_UNSUPPORTED && reply->received_messages) { /* refusal by the node, not by the broker */
        s->state = CLUSTER_NODE_OLDER;
        return;
    }
    if (reply->code == ERR_NOTFOUND) {
        s->text = "it is not connected to the broker: it does not run, or is cut off";
        return;
    }
    if (reply->code || cluster_report_read(&q->cluster->names, reply->data, reply->n, &r, &e)) {
        s->text = arena_strdup(&q->cluster->names, reply->code ? reply->text : e.text);
        return;
    }
    s->state = r.state;
    s->text = r.text;
    s->release = r.release;
    s->load = r.load;
    s->disk = r.disk;
    s->ahead_ns = r.now_ns - (now - half);
    s->error_ns = half;
}

size_t cluster_status(struct cluster *c, int64_t deadline_ns, struct cluster_node_status **out)
{
    struct inquiry q = {.cluster = c};
    struct bus_calls *calls = bus_calls_new(c->bus);
    struct text t = {.fd = -1};
    struct bus_reply reply;
    char subject[CLUSTER_SUBJECT];
    list_nodes(&q);
    add_hosts(&q);
    find_leader(&q);
    q.asked_ns = mem_zalloc((q.n + 1) * sizeof *q.asked_ns);
    cluster_question_begin(&t, CLUSTER_STATUS);
    for (size_t i = 0; i < q.n; i++) {
        q.asked_ns[i] = time_monotonic_ns();
        if (!cluster_subject_of(c->name, q.v[i].name, subject, NULL))
            bus_call(calls, subject, t.v, t.n, deadline_ns, i);
    }
    while (bus_calls_next(calls, &reply)) {
        take(&q, &reply);
        bus_reply_free(&reply);
    }
    bus_calls_free(calls);
    text_fini(&t);
    free(q.asked_ns);
    *out = q.v;
    return q.n;
}
