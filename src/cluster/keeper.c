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

enum {
    QUIET_MS = 200,    /* after a change of cards, for others that come at the same time */
    SEATED_MS = 2000,  /* between two sayings that the seat is taken */
    STANDING_MS = 5000 /* between two looks whether it is free, although nothing was told */
};
#define SEAT_TTL INT64_C(15000000000)
#define SEAT "keeper"

struct keeper {
    struct bus *bus;
    char *cluster, *node;
    void (*tell)(void *arg, const char *what);
    void *tell_arg;
    struct bus_table *seat, *nodes, *clocks;
    struct bus_watch *watch_seat, *watch_nodes; /* of the nodes: while it keeps */
    pthread_t thread;
    pthread_mutex_t lock; /* of all below */
    pthread_cond_t news;
    bool stop, look, changed;
    /* The thread's. */
    bool seated;
    uint64_t revision;
    struct gathered *gathered;
    struct err said; /* what people were told last */
};

/* ---- news ---- */

static void on_seat(void *arg, const struct bus_entry *entry)
{
    struct keeper *k = arg;
    if (entry->kind == BUS_ENTRY_PUT)
        return;
    pthread_mutex_lock(&k->lock);
    k->look = true;
    pthread_cond_signal(&k->news);
    pthread_mutex_unlock(&k->lock);
}

static void on_node(void *arg, const struct bus_entry *entry)
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
    while (!k->stop && !k->look && !k->changed)
        if (pthread_cond_timedwait(&k->news, &k->lock, &at))
            break;
    *changed |= k->changed;
    k->look = k->changed = false;
    bool go_on = !k->stop;
    pthread_mutex_unlock(&k->lock);
    return go_on;
}

/* ---- the seat ---- */

static void stand_up(struct keeper *k)
{
    if (k->watch_nodes)
        bus_watch_stop(k->watch_nodes);
    k->watch_nodes = NULL;
    k->seated = false;
    k->revision = 0;
    gathered_free(k->gathered);
    k->gathered = NULL;
}

/* Takes the seat if it is free, or says that it is still taken. */
static void sit(struct keeper *k)
{
    struct err e = {0};
    int rc = bus_table_put_if(k->seat, SEAT, k->node, strlen(k->node), k->revision, &k->revision, &e);
    if (rc == ERR_STALE)
        stand_up(k);
    if (rc || k->seated)
        return; /* a broker that is away has nobody else sit down either */
    k->seated = true;
    k->gathered = gathered_new();
    if (bus_table_watch(k->nodes, on_node, k, &k->watch_nodes, &e))
        stand_up(k);
}

/* ---- keeping ---- */

static void complain(struct keeper *k, const struct err *e)
{
    if (k->tell && strcmp(k->said.text, e->text) != 0)
        k->tell(k->tell_arg, e->text);
    k->said = *e;
}

/* *again: some hosts could not be asked. */
static int keep(struct keeper *k, bool *again, struct err *e)
{
    struct roster roster;
    struct arena a = {0};
    struct clocks_head before, now = {0};
    struct clock_net *net = NULL;
    int rc = roster_read(k->nodes, &roster, e);
    if (rc)
        return rc;
    rc = clocks_head_read(k->clocks, &a, &before, e);
    if (rc == ERR_NOTFOUND || rc == ERR_FORMAT) {
        before = (struct clocks_head){0};
        rc = 0;
    }
    *again = false;
    if (!rc && !(before.serial && clocks_are_of(&before, &roster) && clocks_are_whole(&before, &roster))) {
        struct clock_options o = clock_defaults();
        now.hosts = arena_new(&a, struct clocks_host, roster.n_hosts + 1);
        now.n_hosts = roster.n_hosts;
        rc = gather_clocks(k->gathered, k->bus, k->cluster, &roster, &o, now.hosts, &net, e);
        *again = !clocks_are_whole(&now, &roster);
        bool same = before.serial && before.n_hosts == now.n_hosts &&
            !memcmp(before.hosts, now.hosts, now.n_hosts * sizeof *now.hosts);
        if (!rc && !same)
            rc = clocks_share(k->clocks, bus_max_payload(k->bus) / 2, &before, &now, net, e);
        clock_net_free(net);
    }
    arena_fini(&a);
    roster_fini(&roster);
    return rc;
}

static void *run(void *arg)
{
    struct keeper *k = arg;
    bool changed = true, again = false;
    do {
        sit(k);
        if (k->seated && (changed || again)) {
            struct err e = {0};
            if (keep(k, &again, &e)) {
                complain(k, &e);
                again = true;
            }
            changed = false;
        }
        int ms = !k->seated ? STANDING_MS : SEATED_MS;
        if (!wait_news(k, ms, &changed))
            break;
        if (changed && k->seated && !wait_news(k, QUIET_MS, &changed))
            break;
    } while (true);
    return NULL;
}

/* ---- beginning and end ---- */

static int open_tables(struct keeper *k, struct err *e)
{
    static const char *const kinds[] = {"keeper", "nodes", "clocks"};
    struct bus_table **tables[] = {&k->seat, &k->nodes, &k->clocks};
    for (size_t i = 0; i < 3; i++) {
        char name[CLUSTER_SUBJECT];
        struct bus_table_options o = {.ttl_ns = i ? 0 : SEAT_TTL, .memory = !i};
        int rc = cluster_table_name(k->cluster, kinds[i], name, e);
        if (!rc)
            rc = bus_table_open(k->bus, name, &o, tables[i], e);
        if (rc)
            return rc;
    }
    return bus_table_watch(k->seat, on_seat, k, &k->watch_seat, e);
}

static void free_all(struct keeper *k)
{
    if (k->watch_seat)
        bus_watch_stop(k->watch_seat);
    if (k->seat)
        bus_table_close(k->seat);
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
    bool seated = k->seated;
    stand_up(k);
    if (seated && bus_connected(k->bus))
        bus_table_remove(k->seat, SEAT, NULL);
    free_all(k);
}
