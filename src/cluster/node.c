/* A node: opens its traces, says what they are, answers questions, opens them anew when they grow. */
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/file.h"
#include "base/mem.h"
#include "base/pool.h"
#include "base/time.h"
#include "base/watch.h"
#include "bus/bus.h"
#include "cluster/cluster.h"
#include "cluster/holding.h"
#include "cluster/keeper.h"
#include "cluster/mover.h"
#include "cluster/routes.h"
#include "cluster/shares.h"
#include "cluster/worker.h"

enum {
    QUIET_NS = 200000000,  /* after a change, before traces are opened anew */
    LATEST_NS = 800000000, /* after the first of those that do not end */
    RETRY_NS = 2000000000, /* after an opening or a saying that failed */
    HELLO_NS = 1000000000,
    MOST_WAITING = 1024 /* questions */
};

#define LONGEST_ANSWER_NS INT64_C(60000000000) /* however long somebody says that he waits */

/* How long the others have to open what this node had of the shared traces, before it goes. */
#define HAND_OVER_NS (10 * NS_PER_S)
/* When it goes it answers on until nobody has asked for so long, or it took too long. */
#define LAST_QUIET_NS (NS_PER_S / 2)
#define LAST_ANSWERS_NS (3 * NS_PER_S)
enum { LOOK_US = 20000 };
/* What it shares is not there: others keep it, and it looks again. */
#define NOT_THERE_NS (5 * NS_PER_S)

struct question {
    struct bus_question *asked;
    struct question *next;
};

struct cluster_node {
    struct bus *bus;
    const char *cluster;
    char *name, *store, *share; /* share: a real path, or NULL */
    char instance[33];
    const char *const *given; /* traces */
    size_t n_given;
    void (*tell)(void *arg, const char *what);
    void *tell_arg;
    struct bus_service *service;
    struct bus_table *table, *routes;
    struct routes_said *routes_said; /* the opener's */
    struct bus_watch *own_card;
    struct keeper *keeper;
    struct mover *mover;
    struct shares *shares; /* NULL: it shares none */
    struct worker *indexer;
    pthread_t opener, *workers;
    unsigned n_workers;
    int wake;             /* of the opener */
    pthread_mutex_t lock; /* of all below */
    pthread_cond_t asked;
    struct question *first, **last;
    size_t waiting;
    struct holding *holding; /* NULL: none yet */
    uint64_t serial;
    bool stop, said, say_again, shares_changed;
    bool moved;  /* traces have come from other nodes, or gone */
    bool closed; /* no question is answered any more */
    int64_t last_asked_ns;
    /* The opener's. */
    struct shares_list shared;      /* what it shall have of the shared ones */
    VEC(char *) traces;             /* all, given and shared, that are to be opened */
    struct err complaint;           /* what was told last */
    int64_t look_ns, rest_until_ns; /* when to look at its share; before that nothing is opened for its sake */
    int64_t list_again_ns;          /* nothing of its share is there, as before a disk is mounted: when to look again */
};

static void tell(const struct cluster_node *n, const char *what)
{
    if (n->tell)
        n->tell(n->tell_arg, what);
}

/* ---- answering ---- */

static void answer(struct cluster_node *n, struct holding *holding, struct bus_question *asked)
{
    enum cluster_question kind = CLUSTER_HELLO;
    struct text out = {.fd = -1};
    struct err e = {0};
    int64_t until = time_monotonic_ns() + LONGEST_ANSWER_NS;
    int rc = question_kind(asked->data, asked->n, &kind, &e);
    if (!rc && time_monotonic_ns() >= asked->deadline_ns)
        rc = err_set(&e, ERR_TIMEOUT, "nobody waits for the answer any more");
    if (!rc && kind == CLUSTER_HELLO)
        text_puts(&out, n->instance);
    else if (!rc && kind == CLUSTER_DELAYS)
        rc = keeper_answer(n->keeper, (const char *)asked->data + QUESTION_BYTES, asked->n - QUESTION_BYTES, &out, &e);
    else if (!rc && mover_answers(kind))
        rc = mover_answer(
            n->mover, holding, kind, (const char *)asked->data + QUESTION_BYTES, asked->n - QUESTION_BYTES, &out, &e);
    else if (!rc && !holding)
        rc = err_set(&e, ERR_BUSY, "node %s has not opened its traces yet", n->name);
    else if (!rc)
        rc = holding_answer(holding, kind, (const char *)asked->data + QUESTION_BYTES, asked->n - QUESTION_BYTES,
            until < asked->deadline_ns ? until : asked->deadline_ns, &out, &e);
    if (!mover_answers(kind))
        mover_count(n->mover);
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
        while (!n->first && !n->closed)
            pthread_cond_wait(&n->asked, &n->lock);
        struct question *q = n->first;
        if (!q)
            break;
        n->first = q->next;
        n->last = n->first ? n->last : &n->first;
        n->waiting--;
        struct holding *holding = n->holding ? holding_ref(n->holding) : NULL;
        bool closed = n->closed;
        pthread_mutex_unlock(&n->lock);
        if (closed)
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

/* ---- saying what there is ---- */

static int say(struct cluster_node *n, struct err *e)
{
    char key[CLUSTER_SUBJECT];
    struct text t = {.fd = -1};
    pthread_mutex_lock(&n->lock);
    struct card c = {.node = n->name, .instance = n->instance, .serial = n->serial};
    struct holding *holding = n->holding ? holding_ref(n->holding) : NULL;
    bool anew = n->say_again;
    n->say_again = false;
    pthread_mutex_unlock(&n->lock);
    if (holding)
        c.n_hosts = holding_hosts(holding, &c.hosts);
    card_write(&c, &t);
    int rc = bus_token(n->name, key, sizeof key);
    if (!rc)
        rc = bus_table_put(n->table, key, t.v, t.n, NULL, e);
    if (!rc && holding)
        routes_say(n->routes_said, n->routes, holding, anew);
    holding_unref(holding);
    text_fini(&t);
    pthread_mutex_lock(&n->lock);
    n->said = !rc && (holding || !n->n_given);
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

static void on_moved(void *arg)
{
    struct cluster_node *n = arg;
    pthread_mutex_lock(&n->lock);
    n->moved = true;
    pthread_mutex_unlock(&n->lock);
    wake(n);
}

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

/* Goes on with these traces; NULL: with none. */
static void hold(struct cluster_node *n, struct experiment *x)
{
    struct holding *now = x ? holding_new(x, mover_arrivals(n->mover)) : NULL;
    pthread_mutex_lock(&n->lock);
    struct holding *before = n->holding;
    n->holding = now;
    n->serial++;
    pthread_mutex_unlock(&n->lock);
    if (!before && x)
        tell_notes(n, x);
    holding_unref(before);
}

/* A node of shared traces only, or of such as have come from other nodes, may have none. */
static int open_traces(struct cluster_node *n, struct err *e)
{
    struct experiment *x = NULL;
    struct index_options o = {.store = n->store, .stores = true, .join = true, .stop = stopped, .stop_arg = n};
    int rc = n->traces.n ? experiment_open((const char *const *)n->traces.v, n->traces.n, &o, &x, e) : 0;
    if (!rc)
        hold(n, x);
    return rc;
}

/* The same is told once. */
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

/* Those that were given, those that have come from other nodes, and what the node shall have of the shared ones, as far
 * as it is there. */
static void list_traces(struct cluster_node *n)
{
    struct arena a = {0};
    struct arrivals_args arrived = {0};
    pthread_mutex_lock(&n->lock);
    n->moved = false; /* what changes from here on is seen the next time */
    pthread_mutex_unlock(&n->lock);
    forget_traces(n);
    if (mover_arrivals(n->mover))
        arrivals_args(mover_arrivals(n->mover), &a, &arrived);
    for (size_t i = 0; i < arrived.n; i++)
        vec_push(&n->traces, mem_strdup(arrived.v[i]));
    vec_free(&arrived);
    arena_fini(&a);
    for (size_t i = 0; i < n->n_given; i++)
        vec_push(&n->traces, mem_strdup(n->given[i]));
    size_t there = 0;
    for (size_t i = 0; i < n->shared.paths.n; i++) {
        struct err e = {0};
        char *path;
        if (shared_resolve(n->share, n->shared.paths.v[i], &path, &e)) {
            complain(n, &e);
        } else {
            vec_push(&n->traces, path);
            there++;
        }
    }
    n->list_again_ns = n->shared.paths.n && !there ? time_monotonic_ns() + NOT_THERE_NS : INT64_MAX;
}

static bool same_paths(const struct shares_list *a, const struct shares_list *b)
{
    size_t i = 0;
    while (a->paths.n == b->paths.n && i < a->paths.n && !strcmp(a->paths.v[i], b->paths.v[i]))
        i++;
    return a->paths.n == b->paths.n && i == a->paths.n;
}

/* Has the node another share now? *due_ns: when to look again. Not at each of many changes at once, and no more than
 * half of the time is spent on opening. */
static bool has_another_share(struct cluster_node *n, int64_t now, int64_t *due_ns)
{
    struct shares_list list;
    if (!n->shares) {
        *due_ns = INT64_MAX;
        return false;
    }
    pthread_mutex_lock(&n->lock);
    if (n->shares_changed && n->look_ns == INT64_MAX)
        n->look_ns = now + QUIET_NS > n->rest_until_ns ? now + QUIET_NS : n->rest_until_ns;
    n->shares_changed = n->shares_changed && now < n->look_ns;
    *due_ns = n->look_ns;
    pthread_mutex_unlock(&n->lock);
    if (now < *due_ns || !shares_list(n->shares, &list, &n->look_ns))
        return false;
    *due_ns = n->look_ns = INT64_MAX;
    bool other = !same_paths(&n->shared, &list);
    shares_list_fini(&n->shared);
    n->shared = list;
    return other;
}

/* What the opener has to do. */
enum task { TASK_SAY, TASK_OPEN, TASK_LIST };

static void sleep_until(struct cluster_node *n, int watched, int64_t ns)
{
    int64_t ms = (ns - time_monotonic_ns()) / 1000000 + 1;
    struct pollfd fds[] = {{.fd = n->wake, .events = POLLIN}, {.fd = watched, .events = POLLIN}};
    uint64_t ignored;
    poll(fds, 2, ms > 60000 ? 60000 : ms < 1 ? 1 : (int)ms);
    if (fds[0].revents && read(n->wake, &ignored, sizeof ignored) < 0)
        return; /* nothing: it was read before */
}

/* Waits until the traces have changed and been quiet for a moment, or are others, or something is to be said again. */
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
        if (n->shares && n->list_again_ns == INT64_MAX)
            shares_opened(n->shares, &n->shared);
        pthread_mutex_lock(&n->lock);
        bool stop = n->stop || n->say_again, moved = n->moved;
        pthread_mutex_unlock(&n->lock);
        if (stop || moved)
            return moved ? TASK_LIST : TASK_SAY;
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

/* What failed is tried again in a while. */
static enum task try_again(struct cluster_node *n, enum task failed, const struct err *e)
{
    int64_t ignored;
    complain(n, e);
    sleep_until(n, -1, time_monotonic_ns() + RETRY_NS);
    return has_another_share(n, time_monotonic_ns(), &ignored) || failed ? TASK_LIST : TASK_SAY;
}

static void *keep_open(void *arg)
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
        if (rc && !stopped(n))
            task = try_again(n, task, &e);
        else if (!rc)
            task = await_change(n, watch);
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

static int name_is_taken(const struct cluster_node *n, struct err *e)
{
    return err_set(e, ERR_AMBIGUOUS, "there is a node named %s already: give each its own name", n->name);
}

static int refuse_namesake(struct cluster_node *n, const char *subject, struct err *e)
{
    struct text t = {.fd = -1};
    struct bus_reply r;
    question_begin(&t, CLUSTER_HELLO);
    int rc = bus_ask(n->bus, subject, t.v, t.n, time_monotonic_ns() + HELLO_NS, &r);
    bus_reply_free(&r);
    text_fini(&t);
    return rc == 0 || rc == ERR_BUSY ? name_is_taken(n, e) : 0;
}

/* Takes the name. Of two nodes that do so at the same moment one is refused: either it finds the other answering, or
 * the card is not any more as it was before it asked. A card that is there, of a run that was killed, stays as it is
 * until this one knows better: who is asked for meanwhile is away, not unknown. */
static int claim_name(struct cluster_node *n, const char *subject, struct err *e)
{
    char key[CLUSTER_SUBJECT];
    struct card empty = {.node = n->name, .instance = n->instance};
    struct text t = {.fd = -1};
    void *card = NULL;
    size_t size = 0;
    uint64_t revision = 0;
    int rc = bus_token(n->name, key, sizeof key);
    if (!rc)
        rc = bus_table_get(n->table, key, &card, &size, &revision, e);
    if (rc == ERR_NOTFOUND) {
        revision = 0;
        rc = 0;
        card_write(&empty, &t);
    } else if (!rc) {
        text_put(&t, card, size);
    }
    if (!rc)
        rc = refuse_namesake(n, subject, e);
    if (!rc)
        rc = bus_serve(n->bus, subject, NULL, on_question, n, &n->service, e);
    if (!rc)
        rc = bus_table_put_if(n->table, key, t.v, t.n, revision, NULL, e);
    text_fini(&t);
    free(card);
    return rc == ERR_STALE ? name_is_taken(n, e) : rc;
}

static void on_shares(void *arg)
{
    struct cluster_node *n = arg;
    pthread_mutex_lock(&n->lock);
    n->shares_changed = true;
    pthread_mutex_unlock(&n->lock);
    wake(n);
}

static int start_sharing(struct cluster_node *n, struct err *e)
{
    struct shares_options shares = {n->cluster, n->name, n->instance, on_shares, n};
    struct worker_options work = {n->cluster, n->name, n->share, n->store, n->tell, n->tell_arg};
    int rc = shares_start(n->bus, &shares, &n->shares, e);
    return rc ? rc : worker_start(n->bus, &work, &n->indexer, e);
}

static int start(struct cluster_node *n, const struct cluster_node_options *o, struct err *e)
{
    char subject[CLUSTER_SUBJECT], table[CLUSTER_SUBJECT];
    int rc = cluster_subject_of(n->cluster, n->name, subject, e);
    if (!rc && o->share && !(n->share = file_real_path(o->share)))
        rc = err_sys(e, "--share %s", o->share);
    if (!rc)
        rc = cluster_table_name(n->cluster, "nodes", table, e);
    if (!rc)
        rc = bus_table_open(n->bus, table, NULL, &n->table, e);
    if (!rc)
        rc = cluster_table_name(n->cluster, "routes", table, e);
    if (!rc)
        rc = bus_table_open(n->bus, table, NULL, &n->routes, e);
    if (!rc)
        rc = mover_new(&(struct mover_options){n->bus, n->cluster, n->name, n->table, o->receive, o->receive_limit,
                           o->give, on_moved, n},
            &n->mover, e);
    if (!rc)
        rc = claim_name(n, subject, e);
    if (!rc)
        rc = bus_table_watch(n->table, on_own_card, n, &n->own_card, e);
    if (!rc)
        rc = keeper_start(n->bus, n->cluster, n->name, n->tell, n->tell_arg, &n->keeper, e);
    if (!rc && n->share)
        rc = start_sharing(n, e);
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
    n->given = o->traces;
    while (o->traces[n->n_given])
        n->n_given++;
    n->routes_said = routes_said_new();
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

static void stop_opening(struct cluster_node *n)
{
    pthread_mutex_lock(&n->lock);
    n->stop = true;
    pthread_mutex_unlock(&n->lock);
    wake(n);
    keeper_stop(n->keeper);
    if (n->own_card)
        bus_watch_stop(n->own_card);
    if (n->workers)
        pthread_join(n->opener, NULL);
}

/* Others have the traces now, but who has read the card may still come and ask: waits until nobody does. */
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
}

void cluster_node_stop(struct cluster_node *n)
{
    if (!n)
        return;
    bool hands_over = n->shares && n->workers && bus_connected(n->bus);
    worker_stop(n->indexer);
    if (hands_over)
        shares_hand_over(n->shares, time_monotonic_ns() + HAND_OVER_NS);
    stop_opening(n);
    say_goodbye(n);
    if (hands_over)
        answer_the_last(n);
    shares_stop(n->shares);
    stop_answering(n);
    keeper_fini(n->keeper);
    mover_free(n->mover);
    if (n->table)
        bus_table_close(n->table);
    if (n->routes)
        bus_table_close(n->routes);
    routes_said_free(n->routes_said);
    holding_unref(n->holding);
    close(n->wake);
    pthread_mutex_destroy(&n->lock);
    pthread_cond_destroy(&n->asked);
    forget_traces(n);
    vec_free(&n->traces);
    shares_list_fini(&n->shared);
    free(n->workers);
    free((char *)n->cluster);
    free(n->name);
    free(n->store);
    free(n->share);
    free(n);
}

bool cluster_node_ready(struct cluster_node *n)
{
    pthread_mutex_lock(&n->lock);
    bool ready = n->said;
    pthread_mutex_unlock(&n->lock);
    return ready;
}
