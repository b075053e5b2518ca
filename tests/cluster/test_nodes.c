/* SPDX-License-Identifier: MIT */
/* Nodes of a cluster in one process: what they give is what all traces in one place give. */
#include <ftw.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../base/test.h"
#include "base/json.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/text.h"
#include "base/time.h"
#include "bus/bus.h"
#include "clock/clock.h"
#include "cluster/cluster.h"
#include "cluster/node_parts.h"
#include "cluster/question.h"
#include "cluster/report.h"
#include "graph/graph.h"
#include "index/index.h"
#include "path/path.h"
#include "show/show.h"

enum { HOSTS = 3 };
static const char *const names[HOSTS] = {"client", "db", "web"};
static char top[] = "/tmp/weft-nodes-XXXXXX";
static struct bus *hub;

static int drop(const char *file, const struct stat *st, int flag, struct FTW *at)
{
    (void)st;
    (void)flag;
    (void)at;
    return remove(file);
}

static int make_traces(void **state)
{
    char command[4096];
    struct err e = {0};
    (void)state;
    if (!mkdtemp(top))
        return -1;
    snprintf(command, sizeof command, "tar -xJf '%s/examples/three-tier.tar.xz' -C '%s'", WEFT_SOURCE_ROOT, top);
    struct bus_options o = {.url = "local:test-nodes"};
    return system(command) || bus_open(&o, &hub, &e) ? -1 : 0;
}

static int drop_traces(void **state)
{
    (void)state;
    bus_close(hub);
    return nftw(top, drop, 16, FTW_DEPTH | FTW_PHYS);
}

/* ---- nodes ---- */

struct node {
    struct cluster_node *is;
    char traces[HOSTS][4096], store[4096];
    const char *args[HOSTS + 1];
};

static void start(struct node *n, const char *cluster, const char *name, const char *const *hosts)
{
    struct err e = {0};
    size_t i = 0;
    for (; hosts[i]; i++) {
        snprintf(n->traces[i], sizeof n->traces[i], "%s/three-tier/%s", top, hosts[i]);
        n->args[i] = n->traces[i];
    }
    n->args[i] = NULL;
    snprintf(n->store, sizeof n->store, "%s/store-%s", top, name);
    struct cluster_node_options o = {.cluster = cluster, .name = name, .traces = n->args, .store = n->store};
    if (cluster_node_start(hub, &o, &n->is, &e))
        fail_msg("%s", e.text);
    for (int k = 0; !cluster_node_ready(n->is); k++) {
        if (k > 6000)
            fail_msg("node %s is not ready after a minute", name);
        usleep(10000);
    }
}

static void start_one_each(struct node *nodes, const char *cluster)
{
    for (size_t i = 0; i < HOSTS; i++) {
        char name[64];
        snprintf(name, sizeof name, "node of %s", names[i]);
        start(&nodes[i], cluster, name, (const char *const[]){names[i], NULL});
    }
}

static int64_t in_seconds(int s)
{
    return time_monotonic_ns() + s * NS_PER_S;
}

static struct cluster *relate(struct cluster *c, size_t n_hosts)
{
    struct err e = {0};
    bool stale = false;
    const struct cluster_host *hosts;
    struct clock_options o = clock_defaults();
    if (cluster_sync(c, &o, in_seconds(60), &stale, &e))
        fail_msg("%s", e.text);
    assert_false(stale);
    assert_int_equal(cluster_hosts(c, &hosts), n_hosts);
    return c;
}

static struct cluster *ask(const char *cluster, size_t n_hosts)
{
    struct cluster *c;
    struct err e = {0};
    if (cluster_open(hub, cluster, &c, &e))
        fail_msg("%s", e.text);
    return relate(c, n_hosts);
}

/* ---- single place ---- */

struct place {
    struct experiment *experiment;
    const struct index_host *hosts;
    const struct clock_net *net;
    struct path_local_host parts[HOSTS];
    struct path_local *local;
};

static struct place open_place(void)
{
    struct place p = {0};
    struct err e = {0};
    char store[4096], path[4096];
    const char *args[] = {path};
    snprintf(store, sizeof store, "%s/store", top);
    snprintf(path, sizeof path, "%s/three-tier", top);
    struct index_options o = {.store = store, .stores = true};
    struct clock_options clocks = clock_defaults();
    if (index_experiment_open(args, 1, &o, &p.experiment, &e) ||
        index_experiment_sync(p.experiment, &clocks, &p.net, &e))
        fail_msg("%s", e.text);
    assert_int_equal(index_experiment_hosts(p.experiment, &p.hosts), HOSTS);
    for (size_t i = 0; i < HOSTS; i++)
        p.parts[i] = (struct path_local_host){
            p.hosts[i].name, p.hosts[i].graph, p.hosts[i].flows, clock_net_map(p.net, i)};
    p.local = path_local_new(p.parts, HOSTS);
    return p;
}

static void close_place(struct place *p)
{
    path_local_free(p->local);
    index_experiment_close(p->experiment);
}

static char *shown(const struct path *p, const struct path_source *source)
{
    struct text t = {.fd = -1};
    struct json j = JSON_TO(&t);
    struct path copy = *p;
    copy.cost = (struct path_cost){0};
    show_json(&copy, source, "-", &j);
    char *s = mem_strdup(text_cstr(&t));
    text_fini(&t);
    return s;
}

/* The thread's path, from the cluster. */
static struct cluster_path *find(struct cluster *c, const char *thread, enum cluster_method method, int timeout_s)
{
    struct cluster_lives found = {0};
    struct err e = {0};
    struct cluster_path *p;
    struct cluster_path_options o = {.path = {.begin = INT64_MIN, .end = INT64_MAX},
        .method = method,
        .count_windows = true,
        .deadline_ns = in_seconds(timeout_s)};
    if (cluster_find_lives(c, thread, INT64_MIN, INT64_MAX, o.deadline_ns, &found, &e))
        fail_msg("%s: %s", thread, e.text);
    assert_int_equal(found.n, 1);
    if (cluster_path_find(c, found.v[0].host, found.v[0].row, &o, &p, &e))
        fail_msg("%s: %s", thread, e.text);
    vec_free(&found);
    return p;
}

static void expect_same(struct place *here, struct cluster *c, const char *thread, enum cluster_method method)
{
    struct path_lives found = {0};
    struct err e = {0};
    struct path *p;
    struct path_options o = {.begin = INT64_MIN, .end = INT64_MAX};
    path_find_lives(here->local, thread, NULL, INT64_MIN, INT64_MAX, &found);
    assert_int_equal(found.n, 1);
    if (path_walk(path_local_source(here->local), found.v[0].row, &o, &p, &e))
        fail_msg("%s: %s", thread, e.text);
    struct cluster_path *far = find(c, thread, method, 60);
    char *a = shown(p, path_local_source(here->local)), *b = shown(cluster_path_answer(far), cluster_path_source(far));
    assert_string_equal(a, b);
    free(a);
    free(b);
    path_free(p);
    cluster_path_free(far);
    vec_free(&found);
}

static const char *const threads[] = {"client:204", "web:196", "db:204", "client:1"};
enum { THREADS = sizeof threads / sizeof *threads };

static void expect_all_same(const char *cluster)
{
    struct place here = open_place();
    struct cluster *c = ask(cluster, HOSTS);
    for (size_t i = 0; i < HOSTS; i++) {
        const struct clock_map *a = clock_net_map(here.net, i), *b = cluster_clock_map(c, i);
        assert_int_equal(a->n, b->n);
        assert_memory_equal(a->pieces, b->pieces, a->n * sizeof *a->pieces);
    }
    for (size_t i = 0; i < THREADS; i++) {
        expect_same(&here, c, threads[i], CLUSTER_INDEX);
        expect_same(&here, c, threads[i], CLUSTER_BROADCAST);
    }
    cluster_close(c);
    close_place(&here);
}

/* ---- tests ---- */

static void one_each(void **state)
{
    (void)state;
    struct node nodes[HOSTS];
    start_one_each(nodes, "one");
    expect_all_same("one");
    for (size_t i = 0; i < HOSTS; i++)
        cluster_node_stop(nodes[i].is);
}

static void copies(void **state)
{
    (void)state;
    struct node nodes[3];
    start(&nodes[0], "copies", "a", (const char *const[]){"client", "web", NULL});
    start(&nodes[1], "copies", "b", (const char *const[]){"web", "db", NULL});
    start(&nodes[2], "copies", "c", (const char *const[]){"client", "db", "web", NULL});
    expect_all_same("copies");
    cluster_node_stop(nodes[2].is);
    expect_all_same("copies");
    cluster_node_stop(nodes[1].is);
    cluster_node_stop(nodes[0].is);
}

/* Checks a querying node that still knows a node that has left: its data are missing, and reported so. */
static void left(void **state)
{
    (void)state;
    struct node nodes[HOSTS];
    start_one_each(nodes, "left");
    struct cluster *c = ask("left", HOSTS);
    struct cluster_path *whole = find(c, "client:204", CLUSTER_INDEX, 60);
    assert_int_equal(cluster_path_answer(whole)->n_gaps, 0);
    cluster_node_stop(nodes[2].is);
    struct cluster_path *p = find(c, "client:204", CLUSTER_INDEX, 60);
    const struct path *path = cluster_path_answer(p);
    assert_true(path->n_gaps > 0);
    for (size_t i = 0; i < path->n_gaps; i++) {
        assert_int_equal(path->gaps[i].reason, PATH_OFFLINE_NODE);
        assert_non_null(strstr(path->gaps[i].peer, "node of web (10.77.0.12:8080)"));
    }
    cluster_path_free(p);
    start(&nodes[2], "left", "node of web", (const char *const[]){"web", NULL});
    p = find(c, "client:204", CLUSTER_INDEX, 60);
    char *a = shown(cluster_path_answer(whole), cluster_path_source(whole)),
         *b = shown(cluster_path_answer(p), cluster_path_source(p));
    assert_string_equal(a, b);
    free(a);
    free(b);
    cluster_path_free(p);
    cluster_path_free(whole);
    cluster_close(c);
    for (size_t i = 0; i < HOSTS; i++)
        cluster_node_stop(nodes[i].is);
    c = NULL;
    struct err e = {0};
    const struct cluster_host *hosts;
    assert_int_equal(cluster_open(hub, "left", &c, &e), 0);
    assert_int_equal(cluster_hosts(c, &hosts), 0);
    cluster_close(c);
}

/* ---- cache ---- */

static uint64_t roll(uint64_t *dice, uint64_t sides)
{
    *dice = map_mix(*dice);
    return *dice % sides;
}

static struct cluster_cache *remember(const char *cluster, size_t most_bytes)
{
    struct cluster_cache *m;
    struct err e = {0};
    if (cluster_cache_open(hub, cluster, most_bytes, &m, &e))
        fail_msg("%s", e.text);
    return m;
}

static struct cluster *open_cached(struct cluster_cache *m, size_t n_hosts)
{
    struct cluster *c;
    struct err e = {0};
    if (cluster_open_cached(m, &c, &e))
        fail_msg("%s", e.text);
    return relate(c, n_hosts);
}

/* Messages that it took to ask for all these threads. */
static uint64_t messages_of_all(struct cluster_cache *m)
{
    uint64_t messages = 0;
    for (size_t i = 0; i < THREADS; i++) {
        struct cluster *c = open_cached(m, HOSTS);
        struct cluster_path *p = find(c, threads[i], CLUSTER_INDEX, 60);
        const struct path_cost *cost = &cluster_path_answer(p)->cost;
        if (!cost->messages)
            assert_true(!cost->n_nodes && !cost->bytes && !cost->rounds && !cost->windows && !cost->windows_unused);
        messages += cost->messages;
        cluster_path_free(p);
        cluster_close(c);
    }
    return messages;
}

static void expect_all_same_from(struct cluster_cache *m)
{
    struct place here = open_place();
    struct cluster *c = open_cached(m, HOSTS);
    for (size_t i = 0; i < THREADS; i++)
        expect_same(&here, c, threads[i], CLUSTER_INDEX);
    cluster_close(c);
    close_place(&here);
}

/* Checks that a query is not repeated while the traces are unchanged, not even for a node that was away in between. A
 * small cache queries again. */
static void remembers(void **state)
{
    (void)state;
    struct node nodes[HOSTS];
    start_one_each(nodes, "remembers");
    struct cluster_cache *m = remember("remembers", 0), *small = remember("remembers", 10000),
                         *none = remember("remembers", 1);
    uint64_t first = messages_of_all(m), of_small = messages_of_all(small);
    assert_true(first > 0);
    assert_int_equal(messages_of_all(m), 0);
    assert_true(messages_of_all(small) > 0);
    assert_int_equal(messages_of_all(none), messages_of_all(none));
    assert_true(of_small <= messages_of_all(none));
    expect_all_same_from(m);
    expect_all_same_from(small);
    expect_all_same_from(none);
    cluster_node_stop(nodes[2].is);
    start(&nodes[2], "remembers", "node of web", (const char *const[]){"web", NULL});
    assert_int_equal(messages_of_all(m), 0);
    expect_all_same_from(m);
    cluster_cache_close(m);
    cluster_cache_close(small);
    cluster_cache_close(none);
    for (size_t i = 0; i < HOSTS; i++)
        cluster_node_stop(nodes[i].is);
}

/* Compares any thread within any interval, in either direction, queried with a cache of parts of it. */
static uint64_t expect_same_part(struct place *here, struct cluster_cache *m, uint64_t *dice)
{
    struct err e = {0};
    struct path *p;
    struct cluster_path *far = NULL;
    int64_t begin, end;
    int32_t host = (int32_t)roll(dice, HOSTS);
    struct path_row row = {host, (int32_t)roll(dice, graph_rows(here->parts[host].graph))};
    bool assuming = roll(dice, 3) == 0;
    const struct path_source *s = assuming ? path_local_source_assuming(here->local) : path_local_source(here->local);
    if (s->life(s->arg, row, &begin, &end) != PATH_REPLY_FOUND || end <= begin)
        return 0;
    struct cluster_path_options o = {.assuming = assuming, .count_windows = true, .deadline_ns = in_seconds(60)};
    o.path.begin = begin + (int64_t)roll(dice, (uint64_t)(end - begin));
    o.path.end = o.path.begin + 1 + (int64_t)roll(dice, (uint64_t)(end - o.path.begin));
    o.path.no_early_return = roll(dice, 4) == 0;
    struct cluster *c = open_cached(m, HOSTS);
    if (path_walk(s, row, &o.path, &p, &e) ||
        cluster_path_find(c, host, index_row_id(&here->hosts[host], row.row), &o, &far, &e))
        fail_msg("row %d of %s: %s", row.row, names[host], e.text);
    char *a = shown(p, s), *b = shown(cluster_path_answer(far), cluster_path_source(far));
    assert_string_equal(a, b);
    uint64_t messages = cluster_path_answer(far)->cost.messages;
    free(a);
    free(b);
    path_free(p);
    cluster_path_free(far);
    cluster_close(c);
    return messages;
}

static void remembers_parts(void **state)
{
    (void)state;
    enum { QUESTIONS = 300 };
    struct node nodes[HOSTS];
    start_one_each(nodes, "parts");
    struct place here = open_place();
    for (size_t most_bytes = 0; most_bytes <= 30000; most_bytes += 30000) {
        struct cluster_cache *m = remember("parts", most_bytes);
        uint64_t dice = test_seed(11), first = 0, again = 0;
        for (size_t i = 0; i < QUESTIONS; i++)
            first += expect_same_part(&here, m, &dice);
        dice = test_seed(11);
        for (size_t i = 0; i < QUESTIONS; i++)
            again += expect_same_part(&here, m, &dice);
        print_message("%d parts of paths: %" PRIu64 " messages, again: %" PRIu64 "\n", QUESTIONS, first, again);
        assert_true(first > 0);
        assert_int_equal(again > 0, most_bytes > 0);
        cluster_cache_close(m);
    }
    close_place(&here);
    for (size_t i = 0; i < HOSTS; i++)
        cluster_node_stop(nodes[i].is);
}

/* Checks that an absence is not cached. */
static void forgets_gaps(void **state)
{
    (void)state;
    struct node nodes[HOSTS];
    start_one_each(nodes, "gaps");
    struct cluster_cache *m = remember("gaps", 0);
    struct cluster *c = open_cached(m, HOSTS);
    cluster_node_stop(nodes[2].is);
    struct cluster_path *p = find(c, "client:204", CLUSTER_INDEX, 60);
    assert_true(cluster_path_answer(p)->n_gaps > 0);
    cluster_path_free(p);
    start(&nodes[2], "gaps", "node of web", (const char *const[]){"web", NULL});
    p = find(c, "client:204", CLUSTER_INDEX, 60);
    assert_int_equal(cluster_path_answer(p)->n_gaps, 0);
    cluster_path_free(p);
    cluster_close(c);
    expect_all_same_from(m);
    cluster_cache_close(m);
    for (size_t i = 0; i < HOSTS; i++)
        cluster_node_stop(nodes[i].is);
}

struct asker {
    struct cluster_cache *memory;
    char *said[THREADS];
};

static void *ask_for_all(void *arg)
{
    struct asker *a = arg;
    for (size_t i = 0; i < THREADS; i++) {
        struct cluster *c = open_cached(a->memory, HOSTS);
        struct cluster_path *p = find(c, threads[i], CLUSTER_INDEX, 60);
        a->said[i] = shown(cluster_path_answer(p), cluster_path_source(p));
        cluster_path_free(p);
        cluster_close(c);
    }
    return NULL;
}

/* Checks that several clients share an answer; with little room they displace each other's. */
static void remembers_for_all(void **state)
{
    (void)state;
    enum { ASKERS = 4 };
    struct node nodes[HOSTS];
    start_one_each(nodes, "shared memory");
    for (size_t most_bytes = 0; most_bytes <= 10000; most_bytes += 10000) {
        struct cluster_cache *m = remember("shared memory", most_bytes);
        struct asker askers[ASKERS];
        pthread_t running[ASKERS];
        for (size_t k = 0; k < ASKERS; k++) {
            askers[k].memory = m;
            assert_int_equal(pthread_create(&running[k], NULL, ask_for_all, &askers[k]), 0);
        }
        for (size_t k = 0; k < ASKERS; k++)
            pthread_join(running[k], NULL);
        for (size_t k = 0; k < ASKERS; k++)
            for (size_t i = 0; i < THREADS; i++)
                assert_string_equal(askers[k].said[i], askers[0].said[i]);
        for (size_t k = 0; k < ASKERS; k++)
            for (size_t i = 0; i < THREADS; i++)
                free(askers[k].said[i]);
        expect_all_same_from(m);
        cluster_cache_close(m);
    }
    for (size_t i = 0; i < HOSTS; i++)
        cluster_node_stop(nodes[i].is);
}

static void namesake(void **state)
{
    (void)state;
    struct node first;
    struct cluster_node *second;
    struct err e = {0};
    start(&first, "namesake", "a", (const char *const[]){"db", NULL});
    struct cluster_node_options o = {.cluster = "namesake", .name = "a", .traces = first.args, .store = first.store};
    assert_int_equal(cluster_node_start(hub, &o, &second, &e), ERR_AMBIGUOUS);
    assert_non_null(strstr(e.text, "node named a"));
    cluster_node_stop(first.is);
}

/* ---- a part that is closed while the node still answers ---- */

static struct {
    char directory[sizeof top];
    char told[4096]; /* status requested once the part was gone */
} closing;

static int open_sharer(
    const void *options, const struct cluster_node_context *c, void **part, const char **directory, struct err *e)
{
    (void)options;
    (void)c;
    (void)e;
    memcpy(closing.directory, top, sizeof top);
    *directory = closing.directory;
    *part = &closing;
    return 0;
}

static int start_sharer(void *part, struct err *e)
{
    (void)part;
    (void)e;
    return 0;
}

static void close_sharer(void *part)
{
    char subject[CLUSTER_SUBJECT];
    struct text question = {.fd = -1};
    struct bus_reply reply = {0};
    struct arena arena = {0};
    struct report report = {0};
    struct err e = {0};
    (void)part;
    memset(closing.directory, 0, sizeof closing.directory);
    assert_int_equal(cluster_subject_of("closing", "a", subject, &e), 0);
    cluster_question_begin(&question, CLUSTER_STATUS);
    if (bus_ask(hub, subject, question.v, question.n, in_seconds(60), &reply))
        fail_msg("%s", reply.text);
    assert_int_equal(cluster_report_read(&arena, reply.data, reply.n, &report, &e), 0);
    snprintf(closing.told, sizeof closing.told, "%s", report.disk.path);
    bus_reply_free(&reply);
    arena_fini(&arena);
    text_fini(&question);
}

static bool list_nothing(void *part, struct cluster_share *out, int64_t *again_ns)
{
    (void)part;
    (void)out;
    *again_ns = in_seconds(60);
    return false;
}

static void note_opened(void *part, const struct cluster_share *share)
{
    (void)part;
    (void)share;
}

static void leave_at_once(void *part)
{
    (void)part;
}

static void hand_over_nothing(void *part, int64_t deadline_ns)
{
    (void)part;
    (void)deadline_ns;
}

static void answers_while_parts_close(void **state)
{
    (void)state;
    static const struct cluster_sharing sharing = {.open = open_sharer,
        .start = start_sharer,
        .close = close_sharer,
        .list = list_nothing,
        .opened = note_opened,
        .stop_work = leave_at_once,
        .hand_over = hand_over_nothing};
    static const char *const none[] = {NULL};
    struct cluster_node *n;
    struct err e = {0};
    struct cluster_node_options o = {.cluster = "closing", .name = "a", .traces = none, .sharing = &sharing};
    if (cluster_node_start(hub, &o, &n, &e))
        fail_msg("%s", e.text);
    cluster_node_stop(n);
    assert_string_equal(closing.told, top);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_each),
        cmocka_unit_test(copies),
        cmocka_unit_test(left),
        cmocka_unit_test(remembers),
        cmocka_unit_test(remembers_parts),
        cmocka_unit_test(forgets_gaps),
        cmocka_unit_test(remembers_for_all),
        cmocka_unit_test(namesake),
        cmocka_unit_test(answers_while_parts_close),
    };
    return cmocka_run_group_tests(tests, make_traces, drop_traces);
}
