/* SPDX-License-Identifier: MIT */
/* A node: takes its name, answers questions, leaves in order. What it answers from: opener.c. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/pool.h"
#include "base/time.h"
#include "cluster/clock_leader.h"
#include "cluster/node.h"
#include "cluster/report.h"
#include "cluster/routes.h"
#include "cluster/trace_set.h"

enum {
    HELLO_NS = 1000000000,
    MOST_WAITING = 1024 /* questions */
};

#define LONGEST_ANSWER_NS INT64_C(60000000000) /* limit, whatever deadline the question has */

/* Timeout for the others to open this node's shared traces, before it leaves. */
#define HAND_OVER_NS (10 * NS_PER_S)
/* Silence after which a leaving node stops answering, and the limit of waiting for it. */
#define LAST_QUIET_NS (NS_PER_S / 2)
#define LAST_ANSWERS_NS (3 * NS_PER_S)
enum { LOOK_US = 20000 };

struct question {
    struct bus_question *asked;
    struct question *next;
};

/* ---- answering ---- */

static struct cluster_load load_of(struct cluster_node *n)
{
    double load[1] = {0};
    bool known = getloadavg(load, 1) == 1;
    struct cluster_load out = {.cpus = pool_cpus(),
        .load_percent = known && load[0] < 10000 ? (unsigned)(load[0] * 100) : 0,
        .questions = atomic_load(&n->questions)};
    if (n->mover)
        n->moving->load(n->mover, &out);
    return out;
}

static void answer_load(struct cluster_node *n, struct text *out)
{
    struct cluster_load load = load_of(n);
    cluster_load_write(&load, out);
}

static void answer_status(struct cluster_node *n, struct text *out)
{
    static const int states[] = {[CONDITION_OPENING] = CLUSTER_NODE_OPENING,
        [CONDITION_OPEN] = CLUSTER_NODE_OPEN,
        [CONDITION_FAILED] = CLUSTER_NODE_FAILED};
    const char **paths = mem_zalloc((n->n_given + 4) * sizeof *paths);
    size_t n_paths = 0;
    struct report r = {.release = n->release, .now_ns = time_now_ns(), .load = load_of(n)};
    pthread_mutex_lock(&n->lock);
    struct err failure = n->failure;
    r.state = states[n->state];
    pthread_mutex_unlock(&n->lock);
    r.text = failure.text;
    paths[n_paths++] = n->store ? n->store : "";
    paths[n_paths++] = n->share_dir ? n->share_dir : "";
    paths[n_paths++] = n->receive_dir ? n->receive_dir : "";
    for (size_t i = 0; i < n->n_given; i++) {
        const char *eq = strchr(n->given[i], '='), *slash = strchr(n->given[i], '/'); /* NAME=PATH */
        paths[n_paths++] = eq && (!slash || eq < slash) ? eq + 1 : n->given[i];
    }
    r.disk = cluster_report_disk(paths);
    cluster_report_write(&r, out);
    free(paths);
}

static int answer_move(struct cluster_node *n, struct cluster_trace_set *trace_set, enum cluster_question kind,
    const void *bytes, size_t size, struct text *out, struct err *e)
{
    struct cluster_node_traces traces = {0};
    if (!n->mover)
        return err_set(e, ERR_UNSUPPORTED, "node %s moves no traces", n->name);
    if (trace_set) {
        traces.is = cluster_trace_set_experiment(trace_set);
        traces.n_hosts = cluster_trace_set_hosts(trace_set, &traces.hosts);
    }
    return n->moving->answer(n->mover, trace_set ? &traces : NULL, kind, bytes, size, out, e);
}

static void answer(struct cluster_node *n, struct cluster_trace_set *trace_set, struct bus_question *asked)
{
    enum cluster_question kind = CLUSTER_HELLO;
    struct text out = {.fd = -1};
    struct err e = {0};
    int64_t until = time_monotonic_ns() + LONGEST_ANSWER_NS;
    int rc = cluster_question_kind(asked->data, asked->n, &kind, &e);
    if (!rc && time_monotonic_ns() >= asked->deadline_ns)
        rc = err_set(&e, ERR_TIMEOUT, "nobody waits for the answer any more");
    if (!rc && kind == CLUSTER_HELLO)
        text_puts(&out, n->instance);
    else if (!rc && kind == CLUSTER_STATUS)
        answer_status(n, &out);
    else if (!rc && kind == CLUSTER_DELAYS)
        rc = cluster_clock_leader_answer(
            n->leader, (const char *)asked->data + QUESTION_BYTES, asked->n - QUESTION_BYTES, &out, &e);
    else if (!rc && kind == CLUSTER_LOAD)
        answer_load(n, &out);
    else if (!rc && kind > CLUSTER_LOAD)
        rc = answer_move(
            n, trace_set, kind, (const char *)asked->data + QUESTION_BYTES, asked->n - QUESTION_BYTES, &out, &e);
    else if (!rc && !trace_set)
        rc = err_set(&e, ERR_BUSY, "node %s has not opened its traces yet", n->name);
    else if (!rc)
        rc = cluster_trace_set_answer(trace_set, kind, (const char *)asked->data + QUESTION_BYTES,
            asked->n - QUESTION_BYTES, until < asked->deadline_ns ? until : asked->deadline_ns, &out, &e);
    if (kind < CLUSTER_LOAD)
        atomic_fetch_add(&n->questions, 1);
    if (!rc && trace_set)
        rc = cluster_trace_set_intact(trace_set, &e);
    if (rc)
        bus_refuse(asked, rc, e.text);
    else
        bus_answer(asked, out.v, out.n, &e);
    text_fini(&out);
}

static void *work(void *arg)
{
    struct cluster_node *n = arg;
    pthread_mutex_lock(&n->lock);
    for (;;) {
        while (!n->first && !n->closed)
            pthread_cond_wait(&n->asked, &n->lock);
        struct question *q = n->first;
        if (!q)
            break;
        n->first = q->next;
        n->last = n->first ? n->last : &n->first;
        n->waiting--;
        struct cluster_trace_set *trace_set = n->trace_set ? cluster_trace_set_ref(n->trace_set) : NULL;
        bool closed = n->closed;
        pthread_mutex_unlock(&n->lock);
        if (closed)
            bus_refuse(q->asked, ERR_CANCELLED, "the node is leaving");
        else
            answer(n, trace_set, q->asked);
        cluster_trace_set_unref(trace_set);
        free(q);
        pthread_mutex_lock(&n->lock);
    }
    pthread_mutex_unlock(&n->lock);
    return NULL;
}

static void on_question(void *arg, struct bus_question *asked)
{
    struct cluster_node *n = arg;
    struct question *q = mem_zalloc(sizeof *q);
    q->asked = asked;
    pthread_mutex_lock(&n->lock);
    bool take = n->waiting < MOST_WAITING && !n->closed;
    n->last_asked_ns = time_monotonic_ns();
    if (take) {
        *n->last = q;
        n->last = &q->next;
        n->waiting++;
        pthread_cond_signal(&n->asked);
    }
    pthread_mutex_unlock(&n->lock);
    if (!take) {
        bus_refuse(asked, ERR_BUSY, "the node has too many questions");
        free(q);
    }
}

/* ---- beginning and end ---- */

static void make_instance(char out[33])
{
    uint8_t random[16] = {0};
    if (getrandom(random, sizeof random, 0) < 0)
        memcpy(random, &(int64_t){time_now_ns()}, sizeof(int64_t));
    for (size_t i = 0; i < sizeof random; i++)
        snprintf(out + 2 * i, 3, "%02x", random[i]);
}

static int name_is_taken(const struct cluster_node *n, struct err *e)
{
    return err_set(e, ERR_AMBIGUOUS, "there is a node named %s already: give each its own name", n->name);
}

static int refuse_namesake(struct cluster_node *n, const char *subject, struct err *e)
{
    struct text t = {.fd = -1};
    struct bus_reply r;
    cluster_question_begin(&t, CLUSTER_HELLO);
    /* Anybody's answer counts: this name has no key yet, and each node would read the keys of all to find it. */
    int rc = bus_ask_anybody(n->bus, subject, t.v, t.n, time_monotonic_ns() + HELLO_NS, &r);
    text_fini(&t);
    if (rc == ERR_TIMEOUT && !r.sent_messages) /* question not sent */
        rc = err_set(e, rc, "%s", r.text);
    else
        rc = rc == 0 || rc == ERR_BUSY ? name_is_taken(n, e) : 0;
    bus_reply_free(&r);
    return rc;
}

/* Puts the first condition. Others keep the traces that they share with it until it has opened its part. Serial number
 * 0 of an entry without hosts means that hosts will come. */
static void begin_condition(struct cluster_node *n)
{
    struct arena a = {0};
    struct cluster_trace_args received = {0};
    if (n->mover)
        n->moving->list(n->mover, &a, &received);
    bool some = n->n_given || received.n;
    n->state = some ? CONDITION_OPENING : CONDITION_OPEN;
    n->serial = !some;
    vec_free(&received);
    arena_fini(&a);
}

/* Serves the name's questions, and puts an entry if the table is unchanged since the name was asked for. ERR_STALE: it
 * has changed. An entry of a killed run stays until this one has a better one: clients then report its hosts away, not
 * unknown. */
static int try_name(struct cluster_node *n, const char *subject, struct err *e)
{
    struct cluster_entry empty = {.node = n->name, .instance = n->instance, .serial = n->serial};
    struct text t = {.fd = -1};
    void *entry = NULL;
    size_t size = 0;
    uint64_t revision = 0;
    int rc = bus_table_get(n->table, n->key, &entry, &size, &revision, e);
    if (rc == ERR_NOTFOUND) {
        revision = 0;
        rc = 0;
        cluster_entry_write(&empty, &t);
    } else if (!rc) {
        text_put(&t, entry, size);
    }
    if (!rc)
        rc = refuse_namesake(n, subject, e);
    if (!rc)
        rc = bus_serve(n->bus, subject, NULL, on_question, n, &n->service, e);
    if (!rc)
        rc = bus_table_put_if(n->table, n->key, t.v, t.n, revision, NULL, e);
    text_fini(&t);
    free(entry);
    return rc;
}

/* Takes the name. If two nodes do so at the same moment, one is refused: it finds the other answering, at the latest
 * after its own entry was stale. An entry put by an earlier attempt, which the broker was too slow to confirm, is
 * stale, too. */
static int claim_name(struct cluster_node *n, const char *subject, struct err *e)
{
    enum { ATTEMPTS = 4 };
    int rc = ERR_STALE;
    for (int i = 0; i < ATTEMPTS && rc == ERR_STALE; i++) {
        rc = try_name(n, subject, e);
        if (rc == ERR_STALE) {
            bus_stop(n->service);
            n->service = NULL;
        }
    }
    return rc == ERR_STALE ? name_is_taken(n, e) : rc;
}

static void on_assignment(void *arg)
{
    struct cluster_node *n = arg;
    pthread_mutex_lock(&n->lock);
    n->assignment_changed = true;
    pthread_mutex_unlock(&n->lock);
    cluster_opener_wake(n);
}

/* The parts of other rooms. Both may refuse their options, before anybody has heard of the node. */
static int open_parts(struct cluster_node *n, const struct cluster_node_options *o, struct err *e)
{
    struct cluster_node_context c = {.bus = n->bus,
        .cluster = n->cluster,
        .node = n->name,
        .instance = n->instance,
        .store = n->store,
        .registry = n->table,
        .has_traces = n->n_given > 0,
        .tell = n->tell,
        .tell_arg = n->tell_arg,
        .changed_arg = n};
    n->of_mover = n->of_sharer = c;
    n->of_mover.changed = cluster_opener_on_moved;
    n->of_sharer.changed = on_assignment;
    const char *share_dir = NULL;
    int rc = n->sharing ? n->sharing->open(o->sharing_options, &n->of_sharer, &n->sharer, &share_dir, e) : 0;
    if (!rc && share_dir)
        n->share_dir = mem_strdup(share_dir); /* questions are answered after the sharer is closed */
    if (!rc && n->moving)
        rc = n->moving->open(o->moving_options, &n->of_mover, &n->mover, &n->receive_dir, e);
    return rc;
}

static int start(struct cluster_node *n, const struct cluster_node_options *o, struct err *e)
{
    char subject[CLUSTER_SUBJECT], table[CLUSTER_SUBJECT];
    int rc = cluster_subject_of(n->cluster, n->name, subject, e);
    if (!rc && bus_token(n->name, n->key, sizeof n->key))
        rc = err_set(e, ERR_LIMIT, "the name of the node is too long: %.40s", n->name);
    if (!rc)
        rc = cluster_bind(n->bus, n->cluster, e);
    if (!rc)
        rc = cluster_table_name(n->cluster, "nodes", table, e);
    if (!rc)
        rc = bus_table_open(n->bus, table, NULL, &n->table, e);
    if (!rc)
        rc = cluster_table_name(n->cluster, "routes", table, e);
    if (!rc)
        rc = bus_table_open(n->bus, table, NULL, &n->routes, e);
    if (!rc)
        rc = open_parts(n, o, e);
    if (!rc) {
        begin_condition(n);
        rc = claim_name(n, subject, e);
    }
    if (!rc)
        rc = cluster_opener_put_condition(n, true, e);
    if (!rc)
        rc = bus_table_watch_key(n->table, n->key, cluster_opener_on_entry, n, &n->own_entry, e);
    if (!rc)
        rc = cluster_clock_leader_start(n->bus, n->cluster, n->name, n->tell, n->tell_arg, &n->leader, e);
    if (!rc && n->sharer)
        rc = n->sharing->start(n->sharer, e);
    if (rc)
        return rc;
    n->n_workers = o->workers ? o->workers : pool_cpus();
    n->workers = mem_zalloc(n->n_workers * sizeof *n->workers);
    for (unsigned i = 0; i < n->n_workers; i++)
        pthread_create(&n->workers[i], NULL, work, n);
    pthread_create(&n->opener, NULL, cluster_opener_run, n);
    return 0;
}

int cluster_node_start(struct bus *bus, const struct cluster_node_options *o, struct cluster_node **out, struct err *e)
{
    struct cluster_node *n = mem_zalloc(sizeof *n);
    n->bus = bus;
    n->cluster = mem_strdup(o->cluster ? o->cluster : CLUSTER_DEFAULT);
    n->name = mem_strdup(o->name);
    n->release = mem_strdup(o->release ? o->release : "");
    n->moving = o->moving;
    n->sharing = o->sharing;
    n->store = o->store ? mem_strdup(o->store) : NULL;
    n->given = o->traces;
    while (o->traces[n->n_given])
        n->n_given++;
    n->routes_published = cluster_routes_published_new();
    n->tell = o->tell;
    n->tell_arg = o->tell_arg;
    n->last = &n->first;
    n->entry.fd = -1;
    n->wake = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    pthread_mutex_init(&n->lock, NULL);
    pthread_cond_init(&n->asked, NULL);
    make_instance(n->instance);
    int rc = start(n, o, e);
    *out = rc ? NULL : n;
    if (rc)
        cluster_node_stop(n);
    return rc;
}

static void say_goodbye(struct cluster_node *n)
{
    char condition[CLUSTER_SUBJECT];
    if (!n->table || !n->workers || !bus_connected(n->bus))
        return;
    if (!cluster_condition_key(n->key, condition, NULL))
        bus_table_remove(n->table, condition, NULL);
    bus_table_remove(n->table, n->key, NULL);
}

static void stop_opening(struct cluster_node *n)
{
    pthread_mutex_lock(&n->lock);
    n->stop = true;
    pthread_mutex_unlock(&n->lock);
    cluster_opener_wake(n);
    cluster_clock_leader_stop(n->leader);
    if (n->own_entry)
        bus_watch_stop(n->own_entry);
    if (n->workers)
        pthread_join(n->opener, NULL);
}

/* Waits until nobody asks any more. Others have the traces now, but readers of the old entry may still ask. */
static void answer_the_last(struct cluster_node *n)
{
    int64_t begin = time_monotonic_ns(), last;
    do {
        usleep(LOOK_US);
        pthread_mutex_lock(&n->lock);
        last = n->last_asked_ns > begin ? n->last_asked_ns : begin;
        pthread_mutex_unlock(&n->lock);
    } while (time_monotonic_ns() < last + LAST_QUIET_NS && time_monotonic_ns() < begin + LAST_ANSWERS_NS);
}

static void stop_answering(struct cluster_node *n)
{
    pthread_mutex_lock(&n->lock);
    n->closed = true;
    pthread_cond_broadcast(&n->asked);
    pthread_mutex_unlock(&n->lock);
    if (n->service)
        bus_stop(n->service);
    for (unsigned i = 0; i < n->n_workers; i++)
        pthread_join(n->workers[i], NULL);
    for (struct question *q = n->first, *next; q; q = next) { /* came before there were workers */
        next = q->next;
        bus_refuse(q->asked, ERR_CANCELLED, "the node is leaving");
        free(q);
    }
    n->first = NULL;
}

void cluster_node_stop(struct cluster_node *n)
{
    if (!n)
        return;
    bool hands_over = n->sharer && n->workers && bus_connected(n->bus);
    if (n->sharer)
        n->sharing->stop_work(n->sharer);
    if (hands_over)
        n->sharing->hand_over(n->sharer, time_monotonic_ns() + HAND_OVER_NS);
    stop_opening(n);
    say_goodbye(n);
    if (hands_over)
        answer_the_last(n);
    if (n->sharer)
        n->sharing->close(n->sharer);
    stop_answering(n);
    cluster_clock_leader_fini(n->leader);
    if (n->mover)
        n->moving->close(n->mover);
    if (n->table)
        bus_table_close(n->table);
    if (n->routes)
        bus_table_close(n->routes);
    cluster_routes_published_free(n->routes_published);
    cluster_trace_set_unref(n->trace_set);
    close(n->wake);
    pthread_mutex_destroy(&n->lock);
    pthread_cond_destroy(&n->asked);
    cluster_opener_fini(n);
    free(n->workers);
    free((char *)n->cluster);
    free(n->name);
    free(n->release);
    free(n->store);
    free(n->share_dir);
    free(n);
}

bool cluster_node_ready(struct cluster_node *n)
{
    pthread_mutex_lock(&n->lock);
    bool ready = n->said;
    pthread_mutex_unlock(&n->lock);
    return ready;
}
