/* SPDX-License-Identifier: MIT */
#include "cluster/clock_leader.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/mem.h"
#include "base/time.h"
#include "bus/bus.h"
#include "clock/clock.h"
#include "cluster/clocks.h"
#include "cluster/gather.h"
#include "cluster/lease.h"

enum {
    QUIET_MS = 200,   /* delay after a change of entries, for others that come at the same time, */
    LATEST_MS = 1000, /* at most so long after the first of an endless series */
    LEADING_MS = CLUSTER_LEASE_RENEW_NS / 1000000,
    AGAIN_MS = 2000,     /* delay before hosts that did not answer are asked again; doubled if none does, */
    SELDOM_MS = 30000,   /* up to this limit */
    FOLLOWING_MS = 5000, /* interval of looks whether the lease is free, even without news; */
    TAKEN_MS = 60000,    /* likewise, if another owner was reported */
    CHECK_MS = 10000     /* interval of checks whether the shared clocks were changed */
};
#define LEASE "keeper"

struct cluster_clock_leader {
    struct bus *bus;
    char *cluster, *node;
    void (*tell)(void *arg, const char *what);
    void *tell_arg;
    struct cluster_lease lease;
    struct bus_table *nodes, *clocks;
    struct bus_watch *watch_lease;
    struct bus_watch *watch_nodes, *watch_head; /* entries of nodes, and head of the clocks; watched while it leads */
    pthread_t thread;
    pthread_mutex_t lock; /* guards all below */
    pthread_cond_t news;
    bool stop, look, changed, taken;
    bool wanted;               /* a client wants packets: they are gathered even if the clocks are known */
    struct gathered *gathered; /* set while it leads; changed by the thread only */
    bool has_gathered;         /* everything available was gathered once */
    /* Used by the thread only: */
    bool leading;
    int64_t look_ns;            /* time of the next look whether the lease is free */
    size_t missing;             /* hosts that could not be asked */
    int64_t check_ns;           /* time of the next check of the shared clocks */
    uint64_t checked;           /* version of their table at the last good check; 0: none yet */
    int64_t pause_ms, again_ns; /* pause, and time, before hosts are asked again */
    struct err said;            /* latest message to users */
};

/* ---- news ---- */

static void on_lease(void *arg, const struct bus_entry *entry)
{
    struct cluster_clock_leader *l = arg;
    pthread_mutex_lock(&l->lock);
    if (entry->kind != BUS_ENTRY_ALL)
        l->taken = entry->kind == BUS_ENTRY_PUT;
    l->look |= !l->taken;
    if (l->look)
        pthread_cond_signal(&l->news);
    pthread_mutex_unlock(&l->lock);
}

static void on_change(void *arg, const struct bus_entry *entry)
{
    struct cluster_clock_leader *l = arg;
    (void)entry;
    pthread_mutex_lock(&l->lock);
    l->changed = true;
    pthread_cond_signal(&l->news);
    pthread_mutex_unlock(&l->lock);
}

/* Waits until there is news or the time is over. Returns false if the thread must stop. */
static bool wait_news(struct cluster_clock_leader *l, int ms, bool *changed)
{
    int64_t until = time_monotonic_ns() + (int64_t)ms * 1000000;
    struct timespec at = {until / NS_PER_S, until % NS_PER_S};
    pthread_mutex_lock(&l->lock);
    while (!l->stop && !l->look && !l->changed && !l->wanted)
        if (pthread_cond_timedwait(&l->news, &l->lock, &at))
            break;
    *changed |= l->changed;
    l->look = l->changed = false;
    bool go_on = !l->stop;
    pthread_mutex_unlock(&l->lock);
    return go_on;
}

static bool wait_quiet(struct cluster_clock_leader *l)
{
    int64_t latest = time_monotonic_ns() + LATEST_MS * INT64_C(1000000);
    bool more = true, go_on = true;
    while (more && go_on && time_monotonic_ns() < latest) {
        more = false;
        go_on = wait_news(l, QUIET_MS, &more);
    }
    return go_on;
}

/* ---- the lease ---- */

static void step_down(struct cluster_clock_leader *l)
{
    if (l->watch_nodes)
        bus_watch_stop(l->watch_nodes);
    if (l->watch_head)
        bus_watch_stop(l->watch_head);
    l->watch_nodes = l->watch_head = NULL;
    l->leading = false;
    l->missing = 0;
    l->checked = 0;
    l->again_ns = INT64_MAX;
    pthread_mutex_lock(&l->lock);
    struct gathered *gathered = l->gathered;
    l->gathered = NULL;
    l->has_gathered = l->wanted = false;
    pthread_mutex_unlock(&l->lock);
    cluster_gathered_free(gathered);
}

/* Returns whether the lease may be free. Nodes that know of an owner look rarely. */
static bool may_be_free(struct cluster_clock_leader *l)
{
    pthread_mutex_lock(&l->lock);
    bool taken = l->taken;
    pthread_mutex_unlock(&l->lock);
    return !taken || time_monotonic_ns() >= l->look_ns;
}

/* Takes the lease if it is free, or renews it. */
static void take_lease(struct cluster_clock_leader *l)
{
    struct err e = {0};
    l->look_ns = time_monotonic_ns() + TAKEN_MS * INT64_C(1000000);
    int rc = cluster_lease_take(&l->lease, l->node, &e);
    if (rc == ERR_STALE)
        step_down(l);
    if (rc || l->leading)
        return; /* a broker that is away lets nobody else take it either */
    l->leading = true;
    pthread_mutex_lock(&l->lock);
    l->gathered = cluster_gathered_new();
    pthread_mutex_unlock(&l->lock);
    if (bus_table_watch(l->nodes, on_change, l, &l->watch_nodes, &e) ||
        bus_table_watch_key(l->clocks, CLOCKS_HEAD, on_change, l, &l->watch_head, &e))
        step_down(l);
}

/* ---- leading ---- */

static void complain(struct cluster_clock_leader *l, const struct err *e)
{
    if (l->tell && strcmp(l->said.text, e->text) != 0)
        l->tell(l->tell_arg, e->text);
    l->said = *e;
}

/* Returns whether the table of clocks has changed since the last check. A change without a notification is a purge. */
static bool is_check_due(struct cluster_clock_leader *l)
{
    uint64_t version;
    if (time_monotonic_ns() < l->check_ns)
        return false;
    l->check_ns = time_monotonic_ns() + CHECK_MS * INT64_C(1000000);
    return !bus_table_version(l->clocks, &version, NULL) && version != l->checked;
}

/* Returns whether the shared clocks are complete. While the broker is away they count as complete. */
static bool are_whole(struct cluster_clock_leader *l, const struct clocks_head *h)
{
    uint64_t version;
    if (bus_table_version(l->clocks, &version, NULL))
        return true;
    int rc = version == l->checked ? 0 : cluster_clocks_check(l->clocks, h, NULL);
    l->checked = rc ? 0 : version;
    return rc != ERR_STALE;
}

/* Plans the next question. Frequent questions are for nodes that are slow, or too many for one time: a node that comes
 * back changes its entry. */
static void set_again(struct cluster_clock_leader *l, size_t missing)
{
    bool none_answered = l->missing && missing >= l->missing;
    l->pause_ms = !none_answered ? AGAIN_MS : 2 * l->pause_ms < SELDOM_MS ? 2 * l->pause_ms : SELDOM_MS;
    l->missing = missing;
    l->again_ns = missing ? time_monotonic_ns() + l->pause_ms * 1000000 : INT64_MAX;
}

static bool take_wanted(struct cluster_clock_leader *l)
{
    pthread_mutex_lock(&l->lock);
    bool wanted = l->wanted && !l->has_gathered;
    l->wanted = false;
    pthread_mutex_unlock(&l->lock);
    return wanted;
}

static void note_gathered(struct cluster_clock_leader *l)
{
    pthread_mutex_lock(&l->lock);
    l->has_gathered = true;
    pthread_mutex_unlock(&l->lock);
}

/* Gathers packets, finds the clocks, and shares them in place of `before`, unless both are equal. */
static int find_clocks(struct cluster_clock_leader *l, const struct cluster_membership *membership,
    const struct clocks_head *before, bool whole, struct err *e)
{
    struct arena a = {0};
    struct clock_options o = clock_defaults();
    struct clock_net *net = NULL, *net_before = NULL;
    struct clocks_head now = {.hosts = arena_new(&a, struct clocks_host, membership->n_hosts + 1)};
    now.n_hosts = membership->n_hosts;
    int rc = before->serial && whole ? cluster_clocks_load(l->clocks, before, &o, &net_before, e) : 0;
    if (rc && rc != ERR_STALE && rc != ERR_FORMAT) { /* later: their results for absent hosts exist nowhere else */
        arena_fini(&a);
        return rc;
    }
    struct gather_before known = {before, net_before};
    rc = cluster_gather_clocks(l->gathered, l->bus, l->cluster, membership, &o, &known, now.hosts, &net, e);
    if (!rc)
        note_gathered(l);
    bool same = whole && before->n_hosts == now.n_hosts &&
        !memcmp(before->hosts, now.hosts, now.n_hosts * sizeof *now.hosts);
    if (!rc && !same)
        rc = cluster_clocks_share(l->clocks, bus_max_payload(l->bus) / 2, before, &now, net, e);
    clock_net_free(net);
    clock_net_free(net_before);
    arena_fini(&a);
    return rc;
}

/* anyway: even if the clocks are known. */
static int lead(struct cluster_clock_leader *l, bool anyway, struct err *e)
{
    struct cluster_membership membership;
    struct arena a = {0};
    struct clocks_head before;
    int rc = cluster_membership_read(l->nodes, &membership, e);
    if (rc)
        return rc;
    rc = cluster_clocks_head_read(l->clocks, &a, &before, e);
    if (rc == ERR_NOTFOUND || rc == ERR_FORMAT) {
        before = (struct clocks_head){0};
        rc = 0;
    }
    bool whole = !rc && before.serial && are_whole(l, &before);
    bool known = whole && cluster_clocks_match(&before, &membership) && cluster_clocks_are_whole(&before, &membership);
    if (!rc && (anyway || !known || l->missing))
        rc = find_clocks(l, &membership, &before, whole, e);
    if (!rc)
        set_again(l, cluster_gathered_missing(l->gathered));
    arena_fini(&a);
    cluster_membership_fini(&membership);
    return rc;
}

static void *run(void *arg)
{
    struct cluster_clock_leader *l = arg;
    bool changed = true;
    do {
        if (l->leading || may_be_free(l))
            take_lease(l);
        bool wanted = take_wanted(l);
        if (l->leading && (changed || wanted || time_monotonic_ns() >= l->again_ns || is_check_due(l))) {
            struct err e = {0};
            if (lead(l, wanted, &e)) {
                complain(l, &e);
                l->again_ns = 0;
            }
            changed = false;
        }
        int ms = !l->leading ? FOLLOWING_MS : LEADING_MS;
        if (!wait_news(l, ms, &changed))
            break;
        if (changed && l->leading && !wait_quiet(l))
            break;
    } while (true);
    return NULL;
}

/* ---- answering ---- */

/* The packets of these hosts, as far as they were gathered. */
static int take_flows(
    struct cluster_clock_leader *l, const uint64_t *keys, size_t n, struct gathered_flows **out, struct err *e)
{
    pthread_mutex_lock(&l->lock);
    bool leading = l->gathered != NULL, gathered = leading && l->has_gathered;
    if (gathered) {
        cluster_gathered_take(l->gathered, keys, n, out);
    } else if (leading) {
        l->wanted = true;
        pthread_cond_signal(&l->news);
    }
    pthread_mutex_unlock(&l->lock);
    return gathered ? 0
        : leading   ? err_set(e, ERR_BUSY, "what hosts have in common is being gathered")
                    : err_set(e, ERR_BUSY, "the node does not keep the clocks any more");
}

static void find_delays(const struct delays_question *q, struct gathered_flows **flows, struct text *out)
{
    size_t n = q->hosts.n_hosts;
    struct talk_host *hosts = mem_zalloc((n + 1) * sizeof *hosts);
    bool *known = mem_zalloc((n + 1) * sizeof *known);
    struct talk_delays found = {0};
    for (size_t i = 0; i < n; i++) {
        hosts[i] = (struct talk_host){cluster_gathered_store(flows[i]), q->hosts.hosts[i].map};
        known[i] = flows[i];
    }
    path_talk_find_delays(hosts, n, q->begin, q->end, q->by_flow, &found);
    cluster_delays_write(&found, known, n, q->by_flow, out);
    vec_free(&found);
    free(known);
    free(hosts);
}

int cluster_clock_leader_answer(
    struct cluster_clock_leader *l, const void *bytes, size_t n, struct text *out, struct err *e)
{
    struct arena a = {0};
    struct delays_question q;
    int rc = cluster_delays_question_read(&a, bytes, n, &q, e);
    if (!rc) {
        struct gathered_flows **flows = arena_new(&a, struct gathered_flows *, q.hosts.n_hosts + 1);
        rc = take_flows(l, q.keys, q.hosts.n_hosts, flows, e);
        if (!rc)
            find_delays(&q, flows, out);
        for (size_t i = 0; i < q.hosts.n_hosts && !rc; i++)
            cluster_gathered_release(flows[i]);
    }
    arena_fini(&a);
    return rc;
}

/* ---- the present leader ---- */

int cluster_clock_leader_find(struct bus *bus, const char *cluster, char **node, struct err *e)
{
    struct cluster_lease lease;
    int rc = cluster_lease_open(bus, cluster, LEASE, &lease, e);
    if (!rc)
        rc = cluster_lease_owner(&lease, node, e);
    if (rc == ERR_NOTFOUND)
        err_set(e, rc, "no node keeps the clocks of cluster %s just now", cluster);
    cluster_lease_close(&lease);
    return rc;
}

/* ---- beginning and end ---- */

static int open_table(struct cluster_clock_leader *l, const char *kind, struct bus_table **out, struct err *e)
{
    char name[CLUSTER_SUBJECT];
    int rc = cluster_table_name(l->cluster, kind, name, e);
    return rc ? rc : bus_table_open(l->bus, name, NULL, out, e);
}

static int open_tables(struct cluster_clock_leader *l, struct err *e)
{
    int rc = cluster_lease_open(l->bus, l->cluster, LEASE, &l->lease, e);
    if (!rc)
        rc = open_table(l, "nodes", &l->nodes, e);
    if (!rc)
        rc = open_table(l, "clocks", &l->clocks, e);
    return rc ? rc : bus_table_watch(l->lease.table, on_lease, l, &l->watch_lease, e);
}

static void free_all(struct cluster_clock_leader *l)
{
    if (l->watch_lease)
        bus_watch_stop(l->watch_lease);
    cluster_lease_close(&l->lease);
    if (l->nodes)
        bus_table_close(l->nodes);
    if (l->clocks)
        bus_table_close(l->clocks);
    pthread_mutex_destroy(&l->lock);
    pthread_cond_destroy(&l->news);
    free(l->cluster);
    free(l->node);
    free(l);
}

int cluster_clock_leader_start(struct bus *bus, const char *cluster, const char *node,
    void (*tell)(void *arg, const char *what), void *tell_arg, struct cluster_clock_leader **out, struct err *e)
{
    struct cluster_clock_leader *l = mem_zalloc(sizeof *l);
    pthread_condattr_t monotonic;
    l->bus = bus;
    l->cluster = mem_strdup(cluster);
    l->node = mem_strdup(node);
    l->tell = tell;
    l->tell_arg = tell_arg;
    pthread_mutex_init(&l->lock, NULL);
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&l->news, &monotonic);
    pthread_condattr_destroy(&monotonic);
    int rc = open_tables(l, e);
    if (rc) {
        free_all(l);
        return rc;
    }
    pthread_create(&l->thread, NULL, run, l);
    *out = l;
    return 0;
}

void cluster_clock_leader_stop(struct cluster_clock_leader *l)
{
    if (!l)
        return;
    pthread_mutex_lock(&l->lock);
    l->stop = true;
    pthread_cond_signal(&l->news);
    pthread_mutex_unlock(&l->lock);
    pthread_join(l->thread, NULL);
    bool leading = l->leading;
    step_down(l);
    if (leading && bus_connected(l->bus))
        cluster_lease_release(&l->lease);
}

void cluster_clock_leader_fini(struct cluster_clock_leader *l)
{
    if (l)
        free_all(l);
}
