/* SPDX-License-Identifier: MIT */
/* Opener of a node: opens its traces, publishes their description, and opens them anew when they grow or change. */
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/map.h"
#include "base/time.h"
#include "base/watch.h"
#include "cluster/node.h"
#include "cluster/routes.h"
#include "cluster/trace_set.h"

enum {
    QUIET_NS = 200000000,  /* delay after a change, before traces are opened anew */
    LATEST_NS = 800000000, /* limit after the first of endless changes */
    RETRY_NS = 2000000000  /* delay after a failed opening or publication */
};

/* Interval of looks for a share that does not exist here; others keep it meanwhile. */
#define NOT_THERE_NS (5 * NS_PER_S)
/* Interval of checks that the table of routes still has this node's routes. */
#define CHECK_NS (10 * NS_PER_S)

static void tell(const struct cluster_node *n, const char *what)
{
    if (n->tell)
        n->tell(n->tell_arg, what);
}

/* ---- publishing ---- */

int cluster_opener_put_condition(struct cluster_node *n, bool anew, struct err *e)
{
    char key[CLUSTER_SUBJECT];
    struct text t = {.fd = -1};
    cluster_condition_write(&(struct condition){.node = n->name,
                                .instance = n->instance,
                                .release = n->release,
                                .serial = n->serial,
                                .oldest = CLUSTER_OLDEST,
                                .newest = CLUSTER_VERSION,
                                .state = n->state,
                                .text = n->failure.text,
                                .problems = (const char *const *)n->problems.v,
                                .n_problems = n->problems.n,
                                .all_problems = n->all_problems},
        &t);
    uint64_t hash = map_hash(t.v, t.n);
    bool known = !anew && hash == n->condition;
    int rc = known ? 0 : cluster_condition_key(n->key, key, e);
    if (!rc && !known)
        rc = bus_table_put(n->table, key, t.v, t.n, NULL, e);
    n->condition = rc ? 0 : hash;
    text_fini(&t);
    return rc;
}

/* Sets the state, which others may ask for (node.c). */
static void set_state(struct cluster_node *n, int state, const struct err *failure)
{
    pthread_mutex_lock(&n->lock);
    n->state = state;
    n->failure = *failure;
    pthread_mutex_unlock(&n->lock);
}

/* Publishes opened traces. The condition precedes the entry: a reader in between sees something missing, rather than an
 * answer that looks complete. */
static int say(struct cluster_node *n, struct err *e)
{
    struct text t = {.fd = -1};
    pthread_mutex_lock(&n->lock);
    struct cluster_entry c = {.node = n->name, .instance = n->instance, .serial = n->serial};
    struct cluster_trace_set *trace_set = n->trace_set ? cluster_trace_set_ref(n->trace_set) : NULL;
    bool anew = n->say_again;
    n->say_again = false;
    pthread_mutex_unlock(&n->lock);
    if (trace_set)
        c.n_hosts = cluster_trace_set_hosts(trace_set, &c.hosts);
    cluster_entry_write(&c, &t);
    pthread_mutex_lock(&n->lock);
    n->entry.n = 0;
    text_put(&n->entry, t.v, t.n);
    pthread_mutex_unlock(&n->lock);
    set_state(n, CONDITION_OPEN, &(struct err){0});
    int rc = cluster_opener_put_condition(n, anew, e);
    if (!rc)
        rc = bus_table_put(n->table, n->key, t.v, t.n, NULL, e);
    if (!rc && trace_set)
        cluster_routes_publish(n->routes_published, n->routes, trace_set, anew);
    cluster_trace_set_unref(trace_set);
    text_fini(&t);
    pthread_mutex_lock(&n->lock);
    n->said = !rc && (trace_set || !n->n_given);
    pthread_mutex_unlock(&n->lock);
    return rc;
}

void cluster_opener_wake(const struct cluster_node *n)
{
    if (write(n->wake, &(uint64_t){1}, sizeof(uint64_t)) < 0)
        return; /* counter full: the opener is about to wake */
}

/* Returns whether the table has what this node, or another one that took its name, put there. Older puts of this node
 * may still be reported. */
static bool is_good(struct cluster_node *n, const struct bus_entry *entry)
{
    struct arena a = {0};
    struct cluster_entry c;
    pthread_mutex_lock(&n->lock);
    bool good = !n->entry.n || (entry->n == n->entry.n && !memcmp(entry->data, n->entry.v, entry->n));
    pthread_mutex_unlock(&n->lock);
    good = good || (!cluster_entry_read(&a, entry->data, entry->n, &c, NULL) && !strcmp(c.node, n->name));
    arena_fini(&a);
    return good;
}

/* Puts its entry again if the broker lost its tables, or somebody removed or damaged it. */
void cluster_opener_on_entry(void *arg, const struct bus_entry *entry)
{
    struct cluster_node *n = arg;
    if (entry->kind == BUS_ENTRY_ALL || (entry->kind == BUS_ENTRY_PUT && is_good(n, entry)))
        return;
    pthread_mutex_lock(&n->lock);
    n->say_again = true;
    pthread_mutex_unlock(&n->lock);
    cluster_opener_wake(n);
}

/* ---- opening ---- */

void cluster_opener_on_moved(void *arg)
{
    struct cluster_node *n = arg;
    pthread_mutex_lock(&n->lock);
    n->moved = true;
    pthread_mutex_unlock(&n->lock);
    cluster_opener_wake(n);
}

static bool stopped(void *arg)
{
    struct cluster_node *n = arg;
    pthread_mutex_lock(&n->lock);
    bool stop = n->stop;
    pthread_mutex_unlock(&n->lock);
    return stop;
}

static void forget_problems(struct cluster_node *n)
{
    for (size_t i = 0; i < n->problems.n; i++)
        free(n->problems.v[i]);
    n->problems.n = n->all_problems = 0;
}

static void add_problem(struct cluster_node *n, const char *text)
{
    if (n->problems.n < MOST_PROBLEMS)
        vec_push(&n->problems, mem_strdup(text));
    n->all_problems++;
}

/* Notes unreadable parts of the traces, and parts of its share that do not exist here. Clients get them with each
 * answer, users once. */
static void note_problems(struct cluster_node *n, const struct experiment *x, bool aloud)
{
    const struct index_note *notes;
    size_t count = x ? index_experiment_notes(x, &notes) : 0;
    forget_problems(n);
    for (size_t i = 0; i < count; i++)
        if (notes[i].kind == INDEX_NOTE_LEFT_OUT || notes[i].kind == INDEX_NOTE_INPUT) {
            add_problem(n, notes[i].text);
            if (aloud)
                tell(n, notes[i].text);
        }
    for (size_t i = 0; i < n->absent.n; i++)
        add_problem(n, n->absent.v[i]);
}

/* Goes on with these traces; NULL: with none. */
static void hold(struct cluster_node *n, struct experiment *x)
{
    struct cluster_trace_set *now = x ? cluster_trace_set_new(x, n->moving, n->mover) : NULL;
    pthread_mutex_lock(&n->lock);
    struct cluster_trace_set *before = n->trace_set;
    n->trace_set = now;
    n->serial++;
    pthread_mutex_unlock(&n->lock);
    note_problems(n, x, !before);
    cluster_trace_set_unref(before);
}

/* Limits an excerpt: before and behind it only some CPUs were recorded. */
static void within_excerpt(void *arg, const struct ctf_trace *t, int64_t *begin, int64_t *end)
{
    const struct cluster_node *n = arg;
    struct arena a = {0};
    struct cluster_excerpt excerpt;
    if (n->mover && n->moving->excerpt(n->mover, t, &a, &excerpt)) {
        *begin = excerpt.begin;
        *end = excerpt.end;
    }
    arena_fini(&a);
}

/* A node of shared traces only, or of such as have come from other nodes, may have none. */
static int open_traces(struct cluster_node *n, struct err *e)
{
    struct experiment *x = NULL;
    struct index_options o = {.store = n->store,
        .stores = true,
        .join = true,
        .within = within_excerpt,
        .within_arg = n,
        .stop = stopped,
        .stop_arg = n};
    int rc = n->traces.n ? index_experiment_open((const char *const *)n->traces.v, n->traces.n, &o, &x, e) : 0;
    if (!rc)
        hold(n, x);
    return rc;
}

/* Reports an error, unless it is the same as before. */
static void complain(struct cluster_node *n, const struct err *e)
{
    if (strcmp(n->complaint.text, e->text) != 0)
        tell(n, e->text);
    n->complaint = *e;
}

static void forget_traces(struct cluster_node *n)
{
    for (size_t i = 0; i < n->traces.n; i++)
        free(n->traces.v[i]);
    n->traces.n = 0;
}

static void forget_absent(struct cluster_node *n)
{
    for (size_t i = 0; i < n->absent.n; i++)
        free(n->absent.v[i]);
    n->absent.n = 0;
}

/* Lists traces: those given, those received, and the node's share of the shared ones, as far as they exist here. */
static void list_traces(struct cluster_node *n)
{
    struct arena a = {0};
    struct cluster_trace_args received = {0};
    pthread_mutex_lock(&n->lock);
    n->moved = false; /* later changes are seen the next time */
    pthread_mutex_unlock(&n->lock);
    forget_traces(n);
    forget_absent(n);
    if (n->mover)
        n->moving->list(n->mover, &a, &received);
    for (size_t i = 0; i < received.n; i++)
        vec_push(&n->traces, mem_strdup(received.v[i]));
    vec_free(&received);
    arena_fini(&a);
    for (size_t i = 0; i < n->n_given; i++)
        vec_push(&n->traces, mem_strdup(n->given[i]));
    size_t there = 0;
    for (size_t i = 0; i < n->shared.paths.n; i++) {
        struct err e = {0};
        char *path;
        if (n->sharing->resolve(n->sharer, n->shared.paths.v[i], &path, &e)) {
            complain(n, &e);
            vec_push(&n->absent, mem_strdup(e.text));
        } else {
            vec_push(&n->traces, path);
            there++;
        }
    }
    n->list_again_ns = n->shared.paths.n && !there ? time_monotonic_ns() + NOT_THERE_NS : INT64_MAX;
}

static void share_fini(struct cluster_share *s)
{
    for (size_t i = 0; i < s->paths.n; i++)
        free(s->paths.v[i]);
    vec_free(&s->paths);
}

static bool same_paths(const struct cluster_share *a, const struct cluster_share *b)
{
    size_t i = 0;
    while (a->paths.n == b->paths.n && i < a->paths.n && !strcmp(a->paths.v[i], b->paths.v[i]))
        i++;
    return a->paths.n == b->paths.n && i == a->paths.n;
}

/* Returns whether the node has another share now. *due_ns: time of the next look. Several changes are taken together,
 * and at most half of the time is spent on opening. */
static bool has_another_share(struct cluster_node *n, int64_t now, int64_t *due_ns)
{
    struct cluster_share list;
    if (!n->sharer) {
        *due_ns = INT64_MAX;
        return false;
    }
    pthread_mutex_lock(&n->lock);
    if (n->assignment_changed && n->look_ns == INT64_MAX)
        n->look_ns = now + QUIET_NS > n->rest_until_ns ? now + QUIET_NS : n->rest_until_ns;
    n->assignment_changed = n->assignment_changed && now < n->look_ns;
    *due_ns = n->look_ns;
    pthread_mutex_unlock(&n->lock);
    if (now < *due_ns || !n->sharing->list(n->sharer, &list, &n->look_ns))
        return false;
    *due_ns = n->look_ns = INT64_MAX;
    bool other = !same_paths(&n->shared, &list);
    share_fini(&n->shared);
    n->shared = list;
    return other;
}

/* Tasks of the opener. */
enum task { TASK_SAY, TASK_OPEN, TASK_LIST };

static void sleep_until(struct cluster_node *n, int watched, int64_t ns)
{
    int64_t ms = (ns - time_monotonic_ns()) / 1000000 + 1;
    struct pollfd fds[] = {{.fd = n->wake, .events = POLLIN}, {.fd = watched, .events = POLLIN}};
    uint64_t ignored;
    poll(fds, 2, ms > 60000 ? 60000 : ms < 1 ? 1 : (int)ms);
    if (fds[0].revents && read(n->wake, &ignored, sizeof ignored) < 0)
        return; /* counter was read before */
}

static bool has_lost_condition(struct cluster_node *n)
{
    char key[CLUSTER_SUBJECT];
    void *said = NULL;
    size_t size = 0;
    int rc = cluster_condition_key(n->key, key, NULL);
    if (!rc)
        rc = bus_table_get(n->table, key, &said, &size, NULL, NULL);
    struct arena a = {0};
    struct condition c;
    bool namesake = !rc && !cluster_condition_read(&a, said, size, &c, NULL) && strcmp(c.instance, n->instance) != 0;
    bool lost = rc == ERR_NOTFOUND || (!rc && !namesake && map_hash(said, size) != n->condition);
    arena_fini(&a);
    if (lost)
        n->condition = 0; /* forces a new put */
    free(said);
    return lost;
}

/* Looks now and then for the node's condition and its entries in the table of routes: purges are not reported. */
static bool has_lost_entries(struct cluster_node *n, int64_t now)
{
    if (now < n->check_ns)
        return false;
    n->check_ns = now + CHECK_NS + (int64_t)arc4random_uniform(NS_PER_S);
    if (!bus_connected(n->bus))
        return false;
    bool lost = has_lost_condition(n);
    return (n->trace_set && !cluster_routes_are_in_table(n->routes_published, n->routes, n->trace_set)) || lost;
}

/* Waits until the traces have changed and been quiet for a moment, or are different ones, or something must be
 * published again. */
static enum task await_change(struct cluster_node *n, struct watch *watch)
{
    int64_t first = 0, last = 0, again, look;
    for (;;) {
        bool changed = watch_look(watch, &again);
        int64_t now = time_monotonic_ns();
        last = changed ? now : last;
        first = changed && !first ? now : first;
        int64_t due = !first ? INT64_MAX : last + QUIET_NS < first + LATEST_NS ? last + QUIET_NS : first + LATEST_NS;
        if (now >= due)
            return TASK_OPEN;
        if (has_another_share(n, now, &look))
            return TASK_LIST;
        if (now >= n->list_again_ns)
            return TASK_LIST;
        if (has_lost_entries(n, now))
            return first ? TASK_OPEN : TASK_SAY;
        due = n->check_ns < due ? n->check_ns : due;
        if (n->sharer && n->list_again_ns == INT64_MAX)
            n->sharing->opened(n->sharer, &n->shared);
        pthread_mutex_lock(&n->lock);
        bool stop = n->stop || n->say_again, moved = n->moved;
        pthread_mutex_unlock(&n->lock);
        if (stop || moved)
            return moved ? TASK_LIST : first ? TASK_OPEN : TASK_SAY;
        due = again < due ? again : due;
        due = n->list_again_ns < due ? n->list_again_ns : due;
        sleep_until(n, watch_descriptor(watch), look < due ? look : due);
    }
}

static void watch_traces(struct cluster_node *n, struct watch **watch)
{
    struct watch_limits limits = watch_limits_usual();
    list_traces(n);
    watch_close(*watch);
    *watch = watch_open((const char *const *)n->traces.v, n->traces.n, "metadata", &limits);
}

/* Plans the failed task again after a while. */
static enum task try_again(struct cluster_node *n, enum task failed, const struct err *e)
{
    int64_t ignored;
    complain(n, e);
    sleep_until(n, -1, time_monotonic_ns() + RETRY_NS);
    return has_another_share(n, time_monotonic_ns(), &ignored) || failed ? TASK_LIST : TASK_SAY;
}

/* Publishes a failure. If that fails, it is repeated with the next attempt. */
static void say_failure(struct cluster_node *n, const struct err *e)
{
    set_state(n, CONDITION_FAILED, e);
    cluster_opener_put_condition(n, false, NULL);
}

void *cluster_opener_run(void *arg)
{
    struct cluster_node *n = arg;
    struct watch *watch = NULL;
    enum task task = TASK_LIST;
    while (!stopped(n)) {
        struct err e = {0};
        int64_t begin = time_monotonic_ns();
        if (task == TASK_LIST)
            watch_traces(n, &watch);
        int rc = task != TASK_SAY ? open_traces(n, &e) : 0;
        task = rc ? TASK_OPEN : TASK_SAY;
        int64_t end = time_monotonic_ns();
        n->rest_until_ns = end + (end - begin);
        if (!rc)
            rc = say(n, &e);
        if (rc && !stopped(n)) {
            if (task == TASK_OPEN || e.code == ERR_LIMIT) /* otherwise the broker failed */
                say_failure(n, &e);
            task = try_again(n, task, &e);
        }
        if (!rc)
            task = await_change(n, watch);
    }
    watch_close(watch);
    return NULL;
}

void cluster_opener_fini(struct cluster_node *n)
{
    forget_traces(n);
    forget_absent(n);
    forget_problems(n);
    vec_free(&n->traces);
    vec_free(&n->absent);
    vec_free(&n->problems);
    share_fini(&n->shared);
    text_fini(&n->entry);
}
