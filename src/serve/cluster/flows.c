/* SPDX-License-Identifier: MIT */
/* Traffic between all hosts. Nodes report what their hosts saw of their flows. The clock leader, which has the common
 * packets of hosts, finds the delays. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/time.h"
#include "bus/bus.h"
#include "cluster/client.h"
#include "cluster/clock_leader.h"
#include "cluster/query.h"

enum { ASK_AGAIN_US = 100000, MOST_PAUSE_US = 2000000 };

/* ---- reports of hosts ---- */

struct flows_query {
    const struct cluster *cluster;
    const struct cluster_flows_question *is;
    struct talk_told *reported; /* indexed by host */
};

static void write_question(void *arg, const size_t *hosts, size_t n, struct text *out)
{
    const struct flows_query *t = arg;
    struct talk_question q = {mem_alloc((n + 1) * sizeof *q.hosts), n};
    for (size_t i = 0; i < n; i++) {
        const struct cluster_entry_host *entry = t->cluster->membership->hosts[hosts[i]].entry;
        q.hosts[i] = (struct talk_question_host){entry->key, t->is->begin, t->is->end};
        path_talk_window(cluster_clock_map(t->cluster, hosts[i]), &q.hosts[i].begin, &q.hosts[i].end);
    }
    cluster_question_begin(out, CLUSTER_TALK);
    cluster_talk_question_write(&q, out);
    free(q.hosts);
}

static int take(void *arg, const size_t *hosts, size_t n, const void *bytes, size_t size, struct err *e)
{
    struct flows_query *t = arg;
    struct talk_reports *got = mem_zalloc((n + 1) * sizeof *got);
    int rc = cluster_talk_read(bytes, size, n, got, e);
    for (size_t i = 0; i < n; i++) {
        if (rc)
            vec_free(&got[i]);
        else
            t->reported[hosts[i]].flows = got[i];
    }
    free(got);
    return rc;
}

size_t cluster_find_flows(struct cluster *c, const struct cluster_flows_question *q, int64_t deadline_ns,
    struct talk_lines *out, bool *reported, struct err *e)
{
    size_t n = c->membership->n_hosts, *by = mem_alloc((n + 1) * sizeof *by);
    bool *wanted = mem_zalloc((n + 1) * sizeof *wanted);
    struct flows_query t = {c, q, mem_zalloc((n + 1) * sizeof *t.reported)};
    int rc;
    for (size_t i = 0; i < n; i++) {
        const struct cluster_entry_host *entry = c->membership->hosts[i].entry;
        wanted[i] = entry->has_packets;
        t.reported[i].own = entry->own;
        t.reported[i].n_own = entry->n_own;
    }
    struct cluster_host_query query = cluster_query_of(c, wanted, deadline_ns);
    query.write = write_question;
    query.take = take;
    query.arg = &t;
    size_t away = cluster_query_run(&query, by, &rc, e);
    path_talk_join(t.reported, n, out);
    for (size_t i = 0; i < n; i++) {
        reported[i] = by[i] != SIZE_MAX;
        vec_free(&t.reported[i].flows);
    }
    free(t.reported);
    free(wanted);
    free(by);
    return away;
}

/* ---- delays ---- */

static void write_delays_question(const struct cluster *c, const struct cluster_flows_question *q, struct text *out)
{
    size_t n = c->membership->n_hosts;
    struct path_remote_host *hosts = mem_zalloc((n + 1) * sizeof *hosts);
    uint64_t *keys = mem_alloc((n + 1) * sizeof *keys);
    for (size_t i = 0; i < n; i++) {
        const struct cluster_membership_host *h = &c->membership->hosts[i];
        hosts[i] = (struct path_remote_host){h->id, h->name, cluster_clock_map(c, i)};
        keys[i] = h->entry->key;
    }
    cluster_question_begin(out, CLUSTER_DELAYS);
    cluster_delays_question_write(
        &(struct delays_question){keys, q->begin, q->end, q->by_flow, {.hosts = hosts, .n_hosts = n}}, out);
    free(hosts);
    free(keys);
}

/* Asks the present clock leader once. ERR_NOTFOUND, ERR_TIMEOUT, ERR_BUSY: not available now. */
static int ask_leader(const struct cluster *c, const struct cluster_flows_question *q, const struct text *question,
    int64_t deadline_ns, struct talk_delays *out, bool *known, struct err *e)
{
    char *node, subject[CLUSTER_SUBJECT];
    struct bus_reply reply;
    int rc = cluster_clock_leader_find(c->bus, c->name, &node, e);
    if (rc)
        return rc;
    rc = cluster_subject_of(c->name, node, subject, e);
    if (!rc) {
        rc = bus_ask(c->bus, subject, question->v, question->n, deadline_ns, &reply);
        if (rc)
            err_set(e, rc, "node %s: %s", node, reply.text);
        else if ((rc = cluster_delays_read(reply.data, reply.n, c->membership->n_hosts, q->by_flow, out, known, e)))
            err_wrap(e, "node %s", node);
        bus_reply_free(&reply);
    }
    free(node);
    return rc;
}

/* Hosts whose packets the clock leader does not have; of: NULL, or of these. */
static size_t count_lacking(const struct cluster *c, const bool *known, const bool *of)
{
    size_t lacking = 0;
    for (size_t i = 0; i < c->membership->n_hosts; i++)
        lacking += c->membership->hosts[i].entry->has_packets && !known[i] && (!of || of[i]);
    return lacking;
}

size_t cluster_find_delays(struct cluster *c, const struct cluster_flows_question *q, const bool *reported,
    int64_t deadline_ns, struct talk_delays *out, struct err *e)
{
    bool *known = mem_zalloc((c->membership->n_hosts + 1) * sizeof *known), again;
    int64_t patience = cluster_query_patience(deadline_ns);
    struct text question = {.fd = -1};
    int rc;
    useconds_t pause = ASK_AGAIN_US;
    if (count_lacking(c, known, NULL) < 2) { /* fewer than two hosts have packets */
        free(known);
        return 0;
    }
    write_delays_question(c, q, &question);
    do { /* nodes that answered now soon send their packets to the present clock leader */
        memset(known, 0, (c->membership->n_hosts + 1) * sizeof *known);
        out->n = 0;
        rc = ask_leader(c, q, &question, deadline_ns, out, known, e);
        bool not_now = rc == ERR_NOTFOUND || rc == ERR_TIMEOUT || rc == ERR_BUSY;
        again = rc ? not_now && time_monotonic_ns() < deadline_ns
                   : count_lacking(c, known, reported) && time_monotonic_ns() < patience;
        pause = rc ? ASK_AGAIN_US : 2 * pause;
    } while (again && !usleep(pause < MOST_PAUSE_US ? pause : MOST_PAUSE_US));
    size_t lacking = count_lacking(c, known, NULL);
    if (!rc && lacking)
        err_set(e, ERR_NOTFOUND, "their nodes did not give their packets to the node that keeps the clocks");
    text_fini(&question);
    free(known);
    return lacking;
}
