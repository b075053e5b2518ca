/* SPDX-License-Identifier: MIT */
#include "share/assignment.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/order.h"
#include "base/time.h"
#include "base/wait.h"
#include "bus/bus.h"

#define BEAT_NS (3 * NS_PER_S)
/* Time after a start for the others to announce themselves. */
#define GREETING_NS (1 * NS_PER_S)

/* Shared trace of the table. */
struct trace {
    char *path;
    bool seen;    /* reported since the table was last listed anew */
    bool is_open; /* this node has it open, or shall open it */
};

/* Another node; or another run under the same name, which counts once. */
struct peer {
    char *name, *instance;
    uint64_t view; /* view whose share it has open */
};

struct share_assignment {
    struct bus *bus;
    struct share_assignment_options o;
    struct bus_table *table;
    struct bus_watch *watch;
    struct bus_member *member;
    struct bus_members *members;
    int64_t ready_ns;
    pthread_mutex_t lock; /* guards all below */
    bool all_seen;
    pthread_cond_t said; /* news of another node */
    uint64_t opened;     /* view reported as open */
    VEC(struct trace) traces;
    VEC(struct peer) peers;
};

/* ---- the table ---- */

/* Called with the lock held. */
static struct trace *find_trace(struct share_assignment *s, const char *path)
{
    for (size_t i = 0; i < s->traces.n; i++)
        if (!strcmp(s->traces.v[i].path, path))
            return &s->traces.v[i];
    return NULL;
}

static void drop_trace(struct share_assignment *s, struct trace *t)
{
    free(t->path);
    *t = s->traces.v[--s->traces.n];
}

/* Called with the lock held. */
static void on_put(struct share_assignment *s, const struct bus_entry *entry)
{
    struct arena a = {0};
    struct shared_trace shared;
    if (!share_entry_check(&a, entry, &shared, NULL)) {
        struct trace *t = find_trace(s, shared.work.path);
        if (t && !shared.shared)
            drop_trace(s, t);
        else if (!t && shared.shared)
            vec_push(&s->traces, ((struct trace){mem_strdup(shared.work.path), true, false}));
        else if (t)
            t->seen = true;
    }
    arena_fini(&a);
}

/* Called with the lock held. */
static void on_removed(struct share_assignment *s, const char *removed)
{
    char key[SHARED_KEY];
    for (size_t i = 0; i < s->traces.n; i++) {
        share_key(s->traces.v[i].path, key);
        if (!strcmp(key, removed)) {
            drop_trace(s, &s->traces.v[i]);
            return;
        }
    }
}

/* Puts this node's traces again after the broker lost the table, unless somebody did so already. */
static void put_again(struct share_assignment *s)
{
    VEC(char *) lost = {0};
    pthread_mutex_lock(&s->lock);
    for (size_t i = 0; i < s->traces.n; i++)
        if (!s->traces.v[i].seen && s->traces.v[i].is_open)
            vec_push(&lost, mem_strdup(s->traces.v[i].path));
        else if (!s->traces.v[i].seen)
            drop_trace(s, &s->traces.v[i--]);
    pthread_mutex_unlock(&s->lock);
    for (size_t i = 0; i < lost.n; i++) {
        char key[SHARED_KEY];
        struct text t = {.fd = -1};
        struct shared_trace shared = {
            .work = {.path = lost.v[i], .state = SHARE_WORK_CURRENT, .node = s->o.node}, .shared = true};
        share_key(lost.v[i], key);
        share_entry_write(&shared, &t);
        bus_table_put_if(s->table, key, t.v, t.n, 0, NULL, NULL);
        text_fini(&t);
        free(lost.v[i]);
    }
    vec_free(&lost);
}

static void on_entry(void *arg, const struct bus_entry *entry)
{
    struct share_assignment *s = arg;
    pthread_mutex_lock(&s->lock);
    switch (entry->kind) {
    case BUS_ENTRY_PUT: on_put(s, entry); break;
    case BUS_ENTRY_REMOVED: on_removed(s, entry->key); break;
    case BUS_ENTRY_ALL: s->all_seen = true; break;
    case BUS_ENTRY_ANEW:
        s->all_seen = false;
        for (size_t i = 0; i < s->traces.n; i++)
            s->traces.v[i].seen = false;
    }
    pthread_mutex_unlock(&s->lock);
    if (entry->kind == BUS_ENTRY_ALL)
        put_again(s);
    s->o.changed(s->o.arg);
}

/* ---- members ---- */

static void drop_peer(struct share_assignment *s, size_t i)
{
    free(s->peers.v[i].name);
    free(s->peers.v[i].instance);
    s->peers.v[i] = s->peers.v[--s->peers.n];
}

static void on_member(void *arg, const struct bus_member_news *news)
{
    struct share_assignment *s = arg;
    struct peer p = {.name = (char *)news->name, .instance = (char *)news->instance};
    size_t i = 0;
    if (!strcmp(news->name, s->o.node))
        return;
    if (news->n == sizeof p.view)
        memcpy(&p.view, news->data, sizeof p.view);
    pthread_mutex_lock(&s->lock);
    while (i < s->peers.n && (strcmp(s->peers.v[i].name, p.name) || strcmp(s->peers.v[i].instance, p.instance)))
        i++;
    if (i < s->peers.n)
        drop_peer(s, i);
    if (news->event == BUS_JOINED || news->event == BUS_CHANGED)
        vec_push(&s->peers, ((struct peer){mem_strdup(p.name), mem_strdup(p.instance), p.view}));
    pthread_cond_signal(&s->said);
    pthread_mutex_unlock(&s->lock);
    s->o.changed(s->o.arg);
}

/* ---- owners ---- */

/* Returns a hash of the members: a sum, as order does not matter; each name once. Called with the lock held. */
static uint64_t view_of(const struct share_assignment *s)
{
    uint64_t view = s->member ? map_hash(s->o.node, strlen(s->o.node)) : 0;
    for (size_t i = 0; i < s->peers.n; i++) {
        bool again = false;
        for (size_t k = 0; k < i; k++)
            again |= !strcmp(s->peers.v[k].name, s->peers.v[i].name);
        view += again ? 0 : map_hash(s->peers.v[i].name, strlen(s->peers.v[i].name));
    }
    for (size_t i = 0; i < s->traces.n; i++)
        view += map_mix(map_hash(s->traces.v[i].path, strlen(s->traces.v[i].path)));
    return view;
}

static bool is_own(const struct share_assignment *s, const char *path)
{
    uint64_t own = share_weight(path, s->o.node);
    for (size_t i = 0; i < s->peers.n; i++) {
        uint64_t other = share_weight(path, s->peers.v[i].name);
        if (other > own || (other == own && strcmp(s->peers.v[i].name, s->o.node) > 0))
            return false;
    }
    return true;
}

/* Returns whether every other node has its share of this view open. Of two runs of a name the earlier one is dying. */
static bool others_have(const struct share_assignment *s, uint64_t view)
{
    for (size_t i = 0; i < s->peers.n; i++)
        if (s->peers.v[i].view != view)
            return false;
    return true;
}

bool share_assignment_list(struct share_assignment *s, struct cluster_share *out, int64_t *again_ns)
{
    *out = (struct cluster_share){0};
    pthread_mutex_lock(&s->lock);
    bool known = s->all_seen && s->member && time_monotonic_ns() >= s->ready_ns;
    *again_ns = s->all_seen && s->member ? s->ready_ns : INT64_MAX;
    if (known) {
        out->view = view_of(s);
        bool settled = others_have(s, out->view);
        for (size_t i = 0; i < s->traces.n; i++) {
            struct trace *t = &s->traces.v[i];
            t->is_open = is_own(s, t->path) || (t->is_open && !settled);
            if (t->is_open)
                vec_push(&out->paths, mem_strdup(t->path));
        }
    }
    pthread_mutex_unlock(&s->lock);
    if (out->paths.n)
        qsort(out->paths.v, out->paths.n, sizeof *out->paths.v, order_strings);
    return known;
}

void share_assignment_opened(struct share_assignment *s, const struct cluster_share *l)
{
    pthread_mutex_lock(&s->lock);
    if (s->opened != l->view && s->member)
        bus_member_say(s->member, &l->view, sizeof l->view, NULL);
    s->opened = l->view;
    pthread_mutex_unlock(&s->lock);
}

void share_assignment_hand_over(struct share_assignment *s, int64_t deadline_ns)
{
    bool any = false;
    pthread_mutex_lock(&s->lock);
    struct bus_member *member = s->member;
    s->member = NULL;
    pthread_mutex_unlock(&s->lock);
    bus_leave(member);
    pthread_mutex_lock(&s->lock);
    for (size_t i = 0; i < s->traces.n; i++)
        any |= s->traces.v[i].is_open;
    while (any && s->peers.n && !others_have(s, view_of(s)) && wait_until(&s->said, &s->lock, deadline_ns))
        ;
    pthread_mutex_unlock(&s->lock);
}

/* ---- beginning and end ---- */

int share_assignment_start(
    struct bus *bus, const struct share_assignment_options *o, struct share_assignment **out, struct err *e)
{
    char subject[SHARED_SUBJECT];
    struct share_assignment *s = mem_zalloc(sizeof *s);
    *out = NULL;
    s->bus = bus;
    s->o = *o;
    s->ready_ns = time_monotonic_ns() + GREETING_NS;
    pthread_mutex_init(&s->lock, NULL);
    wait_init(&s->said);
    int rc = share_members_subject(o->cluster, subject, e);
    if (!rc)
        rc = share_open_table(bus, o->cluster, &s->table, e);
    if (!rc)
        rc = bus_join(bus, subject, o->node, o->instance, BEAT_NS, &s->member, e);
    if (!rc)
        rc = bus_watch_members(bus, subject, on_member, s, &s->members, e);
    if (!rc)
        rc = bus_table_watch(s->table, on_entry, s, &s->watch, e);
    if (rc)
        share_assignment_stop(s);
    else
        *out = s;
    return rc;
}

void share_assignment_stop(struct share_assignment *s)
{
    if (!s)
        return;
    bus_leave(s->member);
    if (s->members)
        bus_members_stop(s->members);
    bus_watch_stop(s->watch);
    if (s->table)
        bus_table_close(s->table);
    for (size_t i = 0; i < s->traces.n; i++)
        free(s->traces.v[i].path);
    while (s->peers.n)
        drop_peer(s, 0);
    vec_free(&s->traces);
    vec_free(&s->peers);
    pthread_mutex_destroy(&s->lock);
    pthread_cond_destroy(&s->said);
    free(s);
}
