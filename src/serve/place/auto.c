/* SPDX-License-Identifier: MIT */
/* Moving by itself: looks, chooses, moves, again and again, as long as the lease is ours. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/time.h"
#include "cluster/lease.h"
#include "place/policy.h"

#define LOAD_NS (2 * NS_PER_S) /* timeout of the nodes' answers about load */
enum { LOOK_US = 100000 };

struct automat {
    struct bus *bus;
    const struct place_auto_options *o;
    const char *cluster;
    struct policy *policy; /* NULL: another owns the lease */
    struct cluster_lease lease;
    int64_t renew_ns, leased_ns;
    bool done;
    int rc; /* result of the last action, and its error */
    struct err *e;
    char said[1024];
};

/* Reports a line, unless it is the same as before. */
__attribute__((format(printf, 2, 3))) static void say(struct automat *a, const char *format, ...)
{
    char line[sizeof a->said];
    va_list args;
    va_start(args, format);
    vsnprintf(line, sizeof line, format, args);
    va_end(args);
    if (strcmp(a->said, line) != 0)
        a->o->say(a->o->arg, line);
    memcpy(a->said, line, sizeof line);
}

/* Reports a failure. The action is repeated, unless `once` is set. */
static void fail(struct automat *a, int rc, const struct err *e)
{
    say(a, "%s", e->text);
    a->rc = rc;
    *a->e = *e;
    a->done = a->o->once;
}

/* ---- the lease ---- */

static void say_owner(struct automat *a)
{
    char *who;
    struct err e;
    if (!cluster_lease_owner(&a->lease, &who, &e))
        say(a, "%s decides here: waits until it ends", who);
    free(who);
    a->done = a->o->once;
}

static int take_lease(struct automat *a, struct err *e)
{
    int rc = a->lease.table ? 0 : cluster_lease_open(a->bus, a->cluster, "placer", &a->lease, e);
    if (!rc)
        rc = cluster_lease_take(&a->lease, a->o->who, e);
    if (rc == ERR_STALE && a->policy) /* perhaps the broker has lost the table */
        rc = cluster_lease_take(&a->lease, a->o->who, e);
    return rc;
}

/* Returns whether the lease is ours. While the broker is away the owner stays the same. */
static bool keep_lease(struct automat *a)
{
    struct err e = {0};
    int64_t now = time_monotonic_ns();
    if (now < a->renew_ns)
        return a->policy != NULL;
    a->renew_ns = now + CLUSTER_LEASE_RENEW_NS;
    int rc = take_lease(a, &e);
    if (!rc && !a->policy) {
        a->policy = place_policy_new(&(struct policy_limits){a->o->load_percent, a->o->questions, a->o->idle_ns});
        a->leased_ns = time_monotonic_ns();
    } else if (rc == ERR_STALE) {
        place_policy_free(a->policy); /* observations are outdated when the lease is ours again */
        a->policy = NULL;
        say_owner(a);
    } else if (rc) {
        fail(a, rc, &e);
    }
    return a->policy != NULL;
}

/* ---- a move ---- */

static bool on_progress(void *arg, const struct place_move_progress *progress)
{
    struct automat *a = arg;
    (void)progress;
    return keep_lease(a) && !a->o->stop(a->o->arg);
}

static void move(struct automat *a, struct cluster *c, size_t host, const char *node)
{
    struct place_move_options o = {.patience_ns = a->o->patience_ns, .progress = on_progress, .arg = a};
    const struct cluster_host *hosts;
    struct err e = {0};
    bool aside;
    cluster_hosts(c, &hosts);
    const char *name = hosts[host].clock_name;
    int rc = place_move(c, host, node, &o, &aside, &e);
    if (!rc) {
        say(a, "%s is with node %s now%s", name, node, aside ? "" : "; the old copy is kept");
        place_policy_succeeded(a->policy, hosts[host].key);
    } else if (a->policy && rc != ERR_CANCELLED) {
        int64_t rest_ns = place_policy_failed(a->policy, hosts[host].key, time_monotonic_ns());
        say(a, "%s was not moved: %s; nothing is lost, and it rests for %d min", name, e.text,
            (int)(rest_ns / NS_PER_S / 60));
    } else {
        say(a, "%s: %s", name, e.text);
    }
    *a->e = e;
    a->rc = rc;
    a->done = a->o->once;
}

/* ---- a look ---- */

/* A move in progress is finished before another one is begun. */
static bool finish(struct automat *a, struct cluster *c)
{
    const struct cluster_host *hosts;
    size_t host;
    cluster_hosts(c, &hosts);
    if (!place_find_unfinished(c, &host) || place_policy_is_resting(a->policy, hosts[host].key, time_monotonic_ns()))
        return false;
    say(a, "%s came to two nodes by moves: the older copy is put aside", hosts[host].clock_name);
    move(a, c, host, hosts[host].nodes[0]);
    return true;
}

static void decide(struct automat *a, struct cluster *c)
{
    struct place_options o = a->o->place;
    struct place_plan *p;
    struct policy_choice choice;
    const struct cluster_host *hosts;
    o.deadline_ns = time_monotonic_ns() + LOAD_NS;
    cluster_hosts(c, &hosts);
    place_advise(c, &o, &p);
    int64_t now = time_monotonic_ns();
    place_policy_observe(a->policy, p, now);
    place_policy_choose(a->policy, p, hosts, now, &choice);
    say(a, "%s", choice.why);
    a->rc = 0;
    a->done = a->o->once && (!choice.advised || now - a->leased_ns > a->o->idle_ns + a->o->every_ns);
    if (choice.move != SIZE_MAX)
        move(a, c, (size_t)p->moves[choice.move].host, p->nodes[p->moves[choice.move].to].name);
    place_plan_free(p);
}

static void look(struct automat *a)
{
    struct cluster *c;
    struct err e = {0};
    int rc = cluster_open(a->bus, a->cluster, &c, &e);
    if (rc)
        fail(a, rc, &e);
    else if (!finish(a, c))
        decide(a, c);
    cluster_close(c);
}

int place_auto(struct bus *bus, const struct place_auto_options *o, struct err *e)
{
    struct automat a = {.bus = bus, .o = o, .cluster = o->cluster ? o->cluster : CLUSTER_DEFAULT, .e = e};
    for (int64_t look_ns = 0; !a.done && !o->stop(o->arg); usleep(LOOK_US)) {
        if (!keep_lease(&a) || time_monotonic_ns() < look_ns)
            continue;
        look(&a);
        look_ns = time_monotonic_ns() + o->every_ns;
    }
    cluster_lease_release(&a.lease);
    cluster_lease_close(&a.lease);
    place_policy_free(a.policy);
    return a.done ? a.rc : 0;
}
