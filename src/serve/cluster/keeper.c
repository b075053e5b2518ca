/* SPDX-License-Identifier: MIT */
#include "cluster/keeper.h"

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
    QUIET_MS = 200,   /* after a change of entries, for others that come at the same time, */
    LATEST_MS = 1000, /* but no longer after the first of those that do not end */
    LEADING_MS = CLUSTER_LEASE_RENEW_NS / 1000000,
    AGAIN_MS = 2000,     /* before hosts that did not answer are asked again; each time that none does, twice that, */
    SELDOM_MS = 30000,   /* but no more than this */
    FOLLOWING_MS = 5000, /* between two looks whether it is free, although nothing was told; */
    TAKEN_MS = 60000,    /* where another was reported as the owner */
    CHECK_MS = 10000     /* between two looks whether somebody changed what it shared */
};
#define LEASE "keeper"

struct keeper {
    struct bus *bus;
    char *cluster, *node;
    void (*tell)(void *arg, const char *what);
    void *tell_arg;
    struct cluster_lease lease;
    struct bus_table *nodes, *clocks;
    struct bus_watch *watch_lease, *watch_nodes,
        *watch_head; /* of the nodes, and of the clocks' head: while it keeps */
    pthread_t thread;
    pthread_mutex_t lock; /* of all below */
    pthread_cond_t news;
    bool stop, look, changed, taken;
    bool wanted;               /* packets, by somebody who asked: they are gathered also where the clocks are known */
    struct gathered *gathered; /* while it is leading; changed by the thread alone */
    bool has_gathered;         /* all that could be had, once */
    /* The thread's. */
    bool leading;
    int64_t look_ns;            /* when to look whether the lease is free, whatever was told */
    size_t missing;             /* hosts that could not be asked */
    int64_t check_ns;           /* when to look whether the shared clocks are whole */
    uint64_t checked;           /* version of their table when they were; 0: they were not yet */
    int64_t pause_ms, again_ns; /* before they are asked again; when */
    struct err said;            /* what people were told last */
};

/* ---- news ---- */

static void on_lease(void *arg, const struct bus_entry *entry)
{
    struct keeper *k = arg;
    pthread_mutex_lock(&k->lock);
    if (entry->kind != BUS_ENTRY_ALL)
        k->taken = entry->kind == BUS_ENTRY_PUT;
    k->look |= !k->taken;
    if (k->look)
        pthread_cond_signal(&k->news);
    pthread_mutex_unlock(&k->lock);
}

static void on_change(void *arg, const struct bus_entry *entry)
{
    struct keeper *k = arg;
    (void)entry;
    pthread_mutex_lock(&k->lock);
    k->changed = true;
    pthread_cond_signal(&k->news);
    pthread_mutex_unlock(&k->lock);
}

/* Waits until there are news or the time is over. False: it shall stop. */
static bool wait_news(struct keeper *k, int ms, bool *changed)
{
    int64_t until = time_monotonic_ns() + (int64_t)ms * 1000000;
    struct timespec at = {until / NS_PER_S, until % NS_PER_S};
    pthread_mutex_lock(&k->lock);
    while (!k->stop && !k->look && !k->changed && !k->wanted)
        if (pthread_cond_timedwait(&k->news, &k->lock, &at))
            break;
    *changed |= k->changed;
    k->look = k->changed = false;
    bool go_on = !k->stop;
    pthread_mutex_unlock(&k->lock);
    return go_on;
}

static bool wait_quiet(struct keeper *k)
{
    int64_t latest = time_monotonic_ns() + LATEST_MS * INT64_C(1000000);
    bool more = true, go_on = true;
    while (more && go_on && time_monotonic_ns() < latest) {
        more = false;
        go_on = wait_news(k, QUIET_MS, &more);
    }
    return go_on;
}

/* ---- the lease ---- */

static void stand_up(struct keeper *k)
{
    if (k->watch_nodes)
        bus_watch_stop(k->watch_nodes);
    if (k->watch_head)
        bus_watch_stop(k->watch_head);
    k->watch_nodes = k->watch_head = NULL;
    k->leading = false;
    k->missing = 0;
    k->checked = 0;
    k->again_ns = INT64_MAX;
    pthread_mutex_lock(&k->lock);
    struct gathered *gathered = k->gathered;
    k->gathered = NULL;
    k->has_gathered = k->wanted = false;
    pthread_mutex_unlock(&k->lock);
    gathered_free(gathered);
}

/* All nodes look whether the lease is free; those that know of an owner seldom. */
static bool may_be_free(struct keeper *k)
{
    pthread_mutex_lock(&k->lock);
    bool taken = k->taken;
    pthread_mutex_unlock(&k->lock);
    return !taken || time_monotonic_ns() >= k->look_ns;
}

/* Takes the lease if it is free, or renews it. */
static void take_lease(struct keeper *k)
{
    struct err e = {0};
    k->look_ns = time_monotonic_ns() + TAKEN_MS * INT64_C(1000000);
    int rc = cluster_lease_take(&k->lease, k->node, &e);
    if (rc == ERR_STALE)
        stand_up(k);
    if (rc || k->leading)
        return; /* a broker that is away lets nobody else take it either */
    k->leading = true;
    pthread_mutex_lock(&k->lock);
    k->gathered = gathered_new();
    pthread_mutex_unlock(&k->lock);
    if (bus_table_watch(k->nodes, on_change, k, &k->watch_nodes, &e) ||
        bus_table_watch_key(k->clocks, CLOCKS_HEAD, on_change, k, &k->watch_head, &e))
        stand_up(k);
}

/* ---- keeping ---- */

static void complain(struct keeper *k, const struct err *e)
{
    if (k->tell && strcmp(k->said.text, e->text) != 0)
        k->tell(k->tell_arg, e->text);
    k->said = *e;
}

/* Has the table of clocks changed since they were checked? A change that nobody is told of is a purge. */
static bool is_check_due(struct keeper *k)
{
    uint64_t version;
    if (time_monotonic_ns() < k->check_ns)
        return false;
    k->check_ns = time_monotonic_ns() + CHECK_MS * INT64_C(1000000);
    return !bus_table_version(k->clocks, &version, NULL) && version != k->checked;
}

/* Are the shared clocks whole? Where the broker is away they count as whole until it is back. */
static bool are_whole(struct keeper *k, const struct clocks_head *h)
{
    uint64_t version;
    if (bus_table_version(k->clocks, &version, NULL))
        return true;
    int rc = version == k->checked ? 0 : clocks_check(k->clocks, h, NULL);
    k->checked = rc ? 0 : version;
    return rc != ERR_STALE;
}

/* A node that comes back says so by its entry: asking often is for those that are slow, or too many for one time. */
static void set_again(struct keeper *k, size_t missing)
{
    bool none_answered = k->missing && missing >= k->missing;
    k->pause_ms = !none_answered ? AGAIN_MS : 2 * k->pause_ms < SELDOM_MS ? 2 * k->pause_ms : SELDOM_MS;
    k->missing = missing;
    k->again_ns = missing ? time_monotonic_ns() + k->pause_ms * 1000000 : INT64_MAX;
}

static bool take_wanted(struct keeper *k)
{
    pthread_mutex_lock(&k->lock);
    bool wanted = k->wanted && !k->has_gathered;
    k->wanted = false;
    pthread_mutex_unlock(&k->lock);
    return wanted;
}

static void note_gathered(struct keeper *k)
{
    pthread_mutex_lock(&k->lock);
    k->has_gathered = true;
    pthread_mutex_unlock(&k->lock);
}

/* Gathers packets, finds the clocks, and shares them in place of `before` unless those say the same. */
static int find_clocks(struct keeper *k, const struct cluster_membership *membership, const struct clocks_head *before,
    bool whole, struct err *e)
{
    struct arena a = {0};
    struct clock_options o = clock_defaults();
    struct clock_net *net = NULL, *net_before = NULL;
    struct clocks_head now = {.hosts = arena_new(&a, struct clocks_host, membership->n_hosts + 1)};
    now.n_hosts = membership->n_hosts;
    int rc = before->serial && whole ? clocks_load(k->clocks, before, &o, &net_before, e) : 0;
    if (rc && rc != ERR_STALE && rc != ERR_FORMAT) { /* later: what they say of hosts that are away is nowhere else */
        arena_fini(&a);
        return rc;
    }
    struct gather_before known = {before, net_before};
    rc = gather_clocks(k->gathered, k->bus, k->cluster, membership, &o, &known, now.hosts, &net, e);
    if (!rc)
        note_gathered(k);
    bool same = whole && before->n_hosts == now.n_hosts &&
        !memcmp(before->hosts, now.hosts, now.n_hosts * sizeof *now.hosts);
    if (!rc && !same)
        rc = clocks_share(k->clocks, bus_max_payload(k->bus) / 2, before, &now, net, e);
    clock_net_free(net);
    clock_net_free(net_before);
    arena_fini(&a);
    return rc;
}

/* anyway: even if the clocks are known. */
static int keep(struct keeper *k, bool anyway, struct err *e)
{
    struct cluster_membership membership;
    struct arena a = {0};
    struct clocks_head before;
    int rc = cluster_membership_read(k->nodes, &membership, e);
    if (rc)
        return rc;
    rc = clocks_head_read(k->clocks, &a, &before, e);
    if (rc == ERR_NOTFOUND || rc == ERR_FORMAT) {
        before = (struct clocks_head){0};
        rc = 0;
    }
    bool whole = !rc && before.serial && are_whole(k, &before);
    bool known = whole && clocks_are_of(&before, &membership) && clocks_are_whole(&before, &membership);
    if (!rc && (anyway || !known || k->missing))
        rc = find_clocks(k, &membership, &before, whole, e);
    if (!rc)
        set_again(k, gathered_missing(k->gathered));
    arena_fini(&a);
    cluster_membership_fini(&membership);
    return rc;
}

static void *run(void *arg)
{
    struct keeper *k = arg;
    bool changed = true;
    do {
        if (k->leading || may_be_free(k))
            take_lease(k);
        bool wanted = take_wanted(k);
        if (k->leading && (changed || wanted || time_monotonic_ns() >= k->again_ns || is_check_due(k))) {
            struct err e = {0};
            if (keep(k, wanted, &e)) {
                complain(k, &e);
                k->again_ns = 0;
            }
            changed = false;
        }
        int ms = !k->leading ? FOLLOWING_MS : LEADING_MS;
        if (!wait_news(k, ms, &changed))
            break;
        if (changed && k->leading && !wait_quiet(k))
            break;
    } while (true);
    return NULL;
}

/* ---- answering ---- */

/* The packets of these hosts, as far as they were gathered. */
static int take_flows(struct keeper *k, const uint64_t *keys, size_t n, struct gathered_flows **out, struct err *e)
{
    pthread_mutex_lock(&k->lock);
    bool leading = k->gathered != NULL, gathered = leading && k->has_gathered;
    if (gathered) {
        gathered_take(k->gathered, keys, n, out);
    } else if (leading) {
        k->wanted = true;
        pthread_cond_signal(&k->news);
    }
    pthread_mutex_unlock(&k->lock);
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
        hosts[i] = (struct talk_host){gathered_store(flows[i]), q->hosts.hosts[i].map};
        known[i] = flows[i];
    }
    talk_find_delays(hosts, n, q->begin, q->end, q->by_flow, &found);
    delays_write(&found, known, n, q->by_flow, out);
    vec_free(&found);
    free(known);
    free(hosts);
}

int keeper_answer(struct keeper *k, const void *bytes, size_t n, struct text *out, struct err *e)
{
    struct arena a = {0};
    struct delays_question q;
    int rc = delays_question_read(&a, bytes, n, &q, e);
    if (!rc) {
        struct gathered_flows **flows = arena_new(&a, struct gathered_flows *, q.hosts.n_hosts + 1);
        rc = take_flows(k, q.keys, q.hosts.n_hosts, flows, e);
        if (!rc)
            find_delays(&q, flows, out);
        for (size_t i = 0; i < q.hosts.n_hosts && !rc; i++)
            gathered_let_go(flows[i]);
    }
    arena_fini(&a);
    return rc;
}

/* ---- who it is ---- */

int keeper_find(struct bus *bus, const char *cluster, char **node, struct err *e)
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

static int open_table(struct keeper *k, const char *kind, struct bus_table **out, struct err *e)
{
    char name[CLUSTER_SUBJECT];
    int rc = cluster_table_name(k->cluster, kind, name, e);
    return rc ? rc : bus_table_open(k->bus, name, NULL, out, e);
}

static int open_tables(struct keeper *k, struct err *e)
{
    int rc = cluster_lease_open(k->bus, k->cluster, LEASE, &k->lease, e);
    if (!rc)
        rc = open_table(k, "nodes", &k->nodes, e);
    if (!rc)
        rc = open_table(k, "clocks", &k->clocks, e);
    return rc ? rc : bus_table_watch(k->lease.table, on_lease, k, &k->watch_lease, e);
}

static void free_all(struct keeper *k)
{
    if (k->watch_lease)
        bus_watch_stop(k->watch_lease);
    cluster_lease_close(&k->lease);
    if (k->nodes)
        bus_table_close(k->nodes);
    if (k->clocks)
        bus_table_close(k->clocks);
    pthread_mutex_destroy(&k->lock);
    pthread_cond_destroy(&k->news);
    free(k->cluster);
    free(k->node);
    free(k);
}

int keeper_start(struct bus *bus, const char *cluster, const char *node, void (*tell)(void *arg, const char *what),
    void *tell_arg, struct keeper **out, struct err *e)
{
    struct keeper *k = mem_zalloc(sizeof *k);
    pthread_condattr_t monotonic;
    k->bus = bus;
    k->cluster = mem_strdup(cluster);
    k->node = mem_strdup(node);
    k->tell = tell;
    k->tell_arg = tell_arg;
    pthread_mutex_init(&k->lock, NULL);
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&k->news, &monotonic);
    pthread_condattr_destroy(&monotonic);
    int rc = open_tables(k, e);
    if (rc) {
        free_all(k);
        return rc;
    }
    pthread_create(&k->thread, NULL, run, k);
    *out = k;
    return 0;
}

void keeper_stop(struct keeper *k)
{
    if (!k)
        return;
    pthread_mutex_lock(&k->lock);
    k->stop = true;
    pthread_cond_signal(&k->news);
    pthread_mutex_unlock(&k->lock);
    pthread_join(k->thread, NULL);
    bool leading = k->leading;
    stand_up(k);
    if (leading && bus_connected(k->bus))
        cluster_lease_release(&k->lease);
}

void keeper_fini(struct keeper *k)
{
    if (k)
        free_all(k);
}
