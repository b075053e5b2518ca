/* A node: opens its traces, says what they are, answers questions, opens them anew when they grow. */
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/pool.h"
#include "base/time.h"
#include "base/watch.h"
#include "bus/bus.h"
#include "cluster/cluster.h"
#include "cluster/holding.h"
#include "cluster/keeper.h"

enum {
    QUIET_NS = 200000000,  /* after a change, before traces are opened anew */
    LATEST_NS = 800000000, /* after the first of those that do not end */
    RETRY_NS = 2000000000, /* after an opening or a saying that failed */
    HELLO_NS = 1000000000,
    MOST_WAITING = 1024 /* questions */
};

struct question {
    struct bus_question *asked;
    struct question *next;
};

struct cluster_node {
    struct bus *bus;
    const char *cluster;
    char *name, *store;
    char instance[33];
    const char *const *traces;
    size_t n_traces;
    void (*tell)(void *arg, const char *what);
    void *tell_arg;
    struct bus_service *service;
    struct bus_table *table;
    struct bus_watch *own_card;
    struct keeper *keeper;
    pthread_t opener, *workers;
    unsigned n_workers;
    int wake;             /* of the opener */
    pthread_mutex_t lock; /* of all below */
    pthread_cond_t asked;
    struct question *first, **last;
    size_t waiting;
    struct holding *holding; /* NULL: none yet */
    uint64_t serial;
    bool stop, said, say_again;
};

static void tell(const struct cluster_node *n, const char *what)
{
    if (n->tell)
        n->tell(n->tell_arg, what);
}

/* ---- answering ---- */

static void answer(struct cluster_node *n, struct holding *holding, struct bus_question *asked)
{
    enum cluster_question kind;
    struct text out = {.fd = -1};
    struct err e = {0};
    int rc = question_kind(asked->data, asked->n, &kind, &e);
    if (!rc && time_monotonic_ns() >= asked->deadline_ns)
        rc = err_set(&e, ERR_TIMEOUT, "nobody waits for the answer any more");
    if (!rc && kind == CLUSTER_HELLO)
        text_puts(&out, n->instance);
    else if (!rc && !holding)
        rc = err_set(&e, ERR_BUSY, "node %s is still opening its traces", n->name);
    else if (!rc)
        rc = holding_answer(
            holding, kind, (const char *)asked->data + QUESTION_BYTES, asked->n - QUESTION_BYTES, &out, &e);
    if (!rc && holding)
        rc = holding_intact(holding, &e);
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
        while (!n->first && !n->stop)
            pthread_cond_wait(&n->asked, &n->lock);
        struct question *q = n->first;
        if (!q)
            break;
        n->first = q->next;
        n->last = n->first ? n->last : &n->first;
        n->waiting--;
        struct holding *holding = n->holding ? holding_ref(n->holding) : NULL;
        bool stop = n->stop;
        pthread_mutex_unlock(&n->lock);
        if (stop)
            bus_refuse(q->asked, ERR_CANCELLED, "the node is leaving");
        else
            answer(n, holding, q->asked);
        holding_unref(holding);
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
    bool take = n->waiting < MOST_WAITING && !n->stop;
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

/* ---- saying what there is ---- */

static int say(struct cluster_node *n, struct err *e)
{
    char key[CLUSTER_SUBJECT];
    struct text t = {.fd = -1};
    pthread_mutex_lock(&n->lock);
    struct card c = {.node = n->name, .instance = n->instance, .serial = n->serial};
    struct holding *holding = n->holding ? holding_ref(n->holding) : NULL;
    n->say_again = false;
    pthread_mutex_unlock(&n->lock);
    if (holding)
        c.n_hosts = holding_hosts(holding, &c.hosts);
    card_write(&c, &t);
    int rc = bus_token(n->name, key, sizeof key);
    if (!rc)
        rc = bus_table_put(n->table, key, t.v, t.n, NULL, e);
    holding_unref(holding);
    text_fini(&t);
    pthread_mutex_lock(&n->lock);
    n->said = !rc && holding;
    pthread_mutex_unlock(&n->lock);
    return rc;
}

static void wake(const struct cluster_node *n)
{
    if (write(n->wake, &(uint64_t){1}, sizeof(uint64_t)) < 0)
        return; /* it is full: the opener is about to wake */
}

/* A broker that lost its tables, or somebody who removed the card: it is said again. */
static void on_own_card(void *arg, const struct bus_entry *entry)
{
    struct cluster_node *n = arg;
    char key[CLUSTER_SUBJECT];
    bool own = entry->key && !bus_token(n->name, key, sizeof key) && !strcmp(key, entry->key);
    if (entry->kind != BUS_ENTRY_ANEW && !(own && entry->kind == BUS_ENTRY_REMOVED))
        return;
    pthread_mutex_lock(&n->lock);
    n->say_again = true;
    pthread_mutex_unlock(&n->lock);
    wake(n);
}

/* ---- opening ---- */

static bool stopped(void *arg)
{
    struct cluster_node *n = arg;
    pthread_mutex_lock(&n->lock);
    bool stop = n->stop;
    pthread_mutex_unlock(&n->lock);
    return stop;
}

static void tell_notes(const struct cluster_node *n, const struct experiment *x)
{
    const struct index_note *notes;
    size_t count = experiment_notes(x, &notes);
    for (size_t i = 0; i < count; i++)
        if (notes[i].kind == INDEX_NOTE_LEFT_OUT || notes[i].kind == INDEX_NOTE_INPUT)
            tell(n, notes[i].text);
}

static int open_traces(struct cluster_node *n, struct err *e)
{
    struct experiment *x;
    struct index_options o = {.store = n->store, .stores = true, .join = true, .stop = stopped, .stop_arg = n};
    int rc = experiment_open(n->traces, n->n_traces, &o, &x, e);
    if (rc)
        return rc;
    pthread_mutex_lock(&n->lock);
    struct holding *before = n->holding;
    n->holding = holding_new(x);
    n->serial++;
    pthread_mutex_unlock(&n->lock);
    if (!before)
        tell_notes(n, x);
    holding_unref(before);
    return 0;
}

/* Waits until the traces have changed and been quiet for a moment, or something is to be said again. */
static bool await_change(struct cluster_node *n, struct watch *watch)
{
    int64_t first = 0, last = 0, again;
    for (;;) {
        bool changed = watch_look(watch, &again);
        int64_t now = time_monotonic_ns();
        last = changed ? now : last;
        first = changed && !first ? now : first;
        int64_t due = !first ? INT64_MAX : last + QUIET_NS < first + LATEST_NS ? last + QUIET_NS : first + LATEST_NS;
        if (now >= due)
            return true;
        pthread_mutex_lock(&n->lock);
        bool stop = n->stop || n->say_again;
        pthread_mutex_unlock(&n->lock);
        if (stop)
            return false;
        int64_t until = again < due ? again : due, ms = (until - now) / 1000000 + 1;
        struct pollfd fds[] = {{.fd = n->wake, .events = POLLIN}, {.fd = watch_descriptor(watch), .events = POLLIN}};
        poll(fds, 2, ms > 60000 ? 60000 : ms < 1 ? 1 : (int)ms);
        uint64_t ignored;
        if (fds[0].revents && read(n->wake, &ignored, sizeof ignored) < 0)
            continue;
    }
}

static void pause_opener(struct cluster_node *n, int64_t ns)
{
    struct pollfd fd = {.fd = n->wake, .events = POLLIN};
    poll(&fd, 1, (int)(ns / 1000000));
}

static void *keep_open(void *arg)
{
    struct cluster_node *n = arg;
    struct watch_limits limits = watch_limits_usual();
    struct watch *watch = watch_open(n->traces, n->n_traces, "metadata", &limits);
    bool open = true;
    while (!stopped(n)) {
        struct err e = {0};
        int rc = open ? open_traces(n, &e) : 0;
        open = rc != 0;
        if (!rc)
            rc = say(n, &e);
        if (rc && !stopped(n)) {
            tell(n, e.text);
            pause_opener(n, RETRY_NS);
        } else if (!rc) {
            open = await_change(n, watch);
        }
    }
    watch_close(watch);
    return NULL;
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

static int refuse_namesake(struct cluster_node *n, const char *subject, struct err *e)
{
    struct text t = {.fd = -1};
    struct bus_reply r;
    question_begin(&t, CLUSTER_HELLO);
    int rc = bus_ask(n->bus, subject, t.v, t.n, time_monotonic_ns() + HELLO_NS, &r);
    bus_reply_free(&r);
    text_fini(&t);
    return rc == 0 || rc == ERR_BUSY
        ? err_set(e, ERR_AMBIGUOUS, "there is a node named %s already: give each its own name", n->name)
        : 0;
}

static int start(struct cluster_node *n, const struct cluster_node_options *o, struct err *e)
{
    char subject[CLUSTER_SUBJECT], table[CLUSTER_SUBJECT];
    int rc = cluster_subject_of(n->cluster, n->name, subject, e);
    if (!rc)
        rc = cluster_table_name(n->cluster, "nodes", table, e);
    if (!rc)
        rc = refuse_namesake(n, subject, e);
    if (!rc)
        rc = bus_table_open(n->bus, table, NULL, &n->table, e);
    if (!rc)
        rc = bus_serve(n->bus, subject, NULL, on_question, n, &n->service, e);
    if (!rc)
        rc = bus_table_watch(n->table, on_own_card, n, &n->own_card, e);
    if (!rc)
        rc = keeper_start(n->bus, n->cluster, n->name, n->tell, n->tell_arg, &n->keeper, e);
    if (rc)
        return rc;
    n->n_workers = o->workers ? o->workers : pool_cpus();
    n->workers = mem_zalloc(n->n_workers * sizeof *n->workers);
    for (unsigned i = 0; i < n->n_workers; i++)
        pthread_create(&n->workers[i], NULL, work, n);
    pthread_create(&n->opener, NULL, keep_open, n);
    return 0;
}

int cluster_node_start(struct bus *bus, const struct cluster_node_options *o, struct cluster_node **out, struct err *e)
{
    struct cluster_node *n = mem_zalloc(sizeof *n);
    n->bus = bus;
    n->cluster = mem_strdup(o->cluster ? o->cluster : CLUSTER_DEFAULT);
    n->name = mem_strdup(o->name);
    n->store = o->store ? mem_strdup(o->store) : NULL;
    n->traces = o->traces;
    while (o->traces[n->n_traces])
        n->n_traces++;
    n->tell = o->tell;
    n->tell_arg = o->tell_arg;
    n->last = &n->first;
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
    char key[CLUSTER_SUBJECT];
    if (n->table && n->workers && bus_connected(n->bus) && !bus_token(n->name, key, sizeof key))
        bus_table_remove(n->table, key, NULL);
}

void cluster_node_stop(struct cluster_node *n)
{
    if (!n)
        return;
    pthread_mutex_lock(&n->lock);
    n->stop = true;
    pthread_cond_broadcast(&n->asked);
    pthread_mutex_unlock(&n->lock);
    wake(n);
    keeper_stop(n->keeper);
    if (n->own_card)
        bus_watch_stop(n->own_card);
    if (n->workers)
        pthread_join(n->opener, NULL);
    if (n->service)
        bus_stop(n->service);
    for (unsigned i = 0; i < n->n_workers; i++)
        pthread_join(n->workers[i], NULL);
    say_goodbye(n);
    if (n->table)
        bus_table_close(n->table);
    holding_unref(n->holding);
    close(n->wake);
    pthread_mutex_destroy(&n->lock);
    pthread_cond_destroy(&n->asked);
    free(n->workers);
    free((char *)n->cluster);
    free(n->name);
    free(n->store);
    free(n);
}

bool cluster_node_ready(struct cluster_node *n)
{
    pthread_mutex_lock(&n->lock);
    bool ready = n->said;
    pthread_mutex_unlock(&n->lock);
    return ready;
}
