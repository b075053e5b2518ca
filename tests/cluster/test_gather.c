/* SPDX-License-Identifier: MIT */
/* Queries of the leader: everything once, then the changes. The node is a trace set, queried over a hub. */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../base/test.h"
#include "base/mem.h"
#include "base/time.h"
#include "bus/bus.h"
#include "clock/clock.h"
#include "cluster/gather.h"
#include "cluster/trace_set.h"

enum { HOSTS = 3 };
static char top[] = "/tmp/weft-gather-XXXXXX";

static int make_traces(void **state)
{
    char command[4096];
    (void)state;
    snprintf(command, sizeof command, "tar -xJf '%s/examples/three-tier.tar.xz' -C '%s'", WEFT_SOURCE_ROOT,
        mkdtemp(top) ? top : ".");
    return system(command);
}

static int drop_traces(void **state)
{
    char command[64];
    (void)state;
    snprintf(command, sizeof command, "rm -rf '%s'", top);
    return system(command);
}

struct node {
    struct cluster_trace_set *trace_set;
    atomic_int flows, extracts;
    atomic_bool refuses; /* packets */
};

static void on_question(void *arg, struct bus_question *asked)
{
    struct node *n = arg;
    enum cluster_question kind;
    struct text out = {.fd = -1};
    struct err e = {0};
    assert_int_equal(cluster_question_kind(asked->data, asked->n, &kind, &e), 0);
    atomic_fetch_add(kind == CLUSTER_FLOWS ? &n->flows : &n->extracts, 1);
    if (atomic_load(&n->refuses) && kind == CLUSTER_EXTRACT)
        bus_refuse(asked, ERR_BUSY, "not now");
    else if (cluster_trace_set_answer(n->trace_set, kind, (const char *)asked->data + QUESTION_BYTES,
                 asked->n - QUESTION_BYTES, INT64_MAX, &out, &e))
        bus_refuse(asked, ERR_IO, e.text);
    else
        bus_answer(asked, out.v, out.n, &e);
    text_fini(&out);
}

struct world {
    struct bus *bus;
    struct node nodes[HOSTS];
    struct bus_service *services[HOSTS];
    struct gathered *gathered;
};

static void start(struct world *w)
{
    static const char *const names[HOSTS] = {"client", "db", "web"};
    struct bus_options o = {.url = "local:test-gather"};
    struct err e = {0};
    assert_int_equal(bus_open(&o, &w->bus, &e), 0);
    w->gathered = cluster_gathered_new();
    for (size_t i = 0; i < HOSTS; i++) {
        char trace[4096], store[4096], subject[CLUSTER_SUBJECT];
        const char *traces[] = {trace, NULL};
        struct experiment *x;
        snprintf(trace, sizeof trace, "%s/three-tier/%s", top, names[i]);
        snprintf(store, sizeof store, "%s/store-%s", top, names[i]);
        struct index_options io = {.store = store, .stores = true, .join = true};
        if (index_experiment_open(traces, 1, &io, &x, &e))
            fail_msg("%s", e.text);
        w->nodes[i].trace_set = cluster_trace_set_new(x, NULL, NULL);
        assert_int_equal(cluster_subject_of("gather", names[i], subject, &e), 0);
        assert_int_equal(bus_serve(w->bus, subject, NULL, on_question, &w->nodes[i], &w->services[i], &e), 0);
    }
}

static void stop(struct world *w)
{
    cluster_gathered_free(w->gathered);
    for (size_t i = 0; i < HOSTS; i++) {
        bus_stop(w->services[i]);
        cluster_trace_set_unref(w->nodes[i].trace_set);
    }
    bus_close(w->bus);
}

/* Gathers, with `grown` added to the hash of the last node's host as if its trace had grown; `beside`: an unreachable
 * node has more of that host, and it has an older copy, or an excerpt. Returns the number of hosts not available in
 * their current state. */
enum beside { NOBODY, OLDER, EXCERPT };
static int gather_beside(struct world *w, uint64_t grown, enum beside beside)
{
    static const char *const names[HOSTS] = {"client", "db", "web"};
    struct cluster_membership r = {0};
    struct cluster_entry *entries = arena_new(&r.arena, struct cluster_entry, HOSTS + 1);
    struct clocks_host used[HOSTS];
    struct clock_options o = clock_defaults();
    struct clock_net *net;
    struct err e = {0};
    for (size_t i = 0; i < HOSTS; i++) {
        const struct cluster_entry_host *said;
        struct cluster_entry_host *own = arena_new(&r.arena, struct cluster_entry_host, 1);
        assert_int_equal(cluster_trace_set_hosts(w->nodes[i].trace_set, &said), 1);
        *own = *said;
        own->hash += i == HOSTS - 1 ? grown : 0;
        entries[i] = (struct cluster_entry){.node = names[i], .instance = "i", .hosts = own, .n_hosts = 1};
        atomic_store(&w->nodes[i].flows, 0);
        atomic_store(&w->nodes[i].extracts, 0);
    }
    if (beside) {
        struct cluster_entry_host *more = arena_new(&r.arena, struct cluster_entry_host, 1);
        *more = entries[HOSTS - 1].hosts[0];
        more->hash++;
        more->end++;
        if (beside == EXCERPT)
            ((struct cluster_entry_host *)entries[HOSTS - 1].hosts)->excerpt = (struct cluster_excerpt){
                true, more->hash, 0, 1, "away"};
        entries[HOSTS] = (struct cluster_entry){.node = "away", .instance = "i", .hosts = more, .n_hosts = 1};
    }
    cluster_membership_make(&r, entries, HOSTS + (beside != NOBODY));
    assert_int_equal(r.n_hosts, HOSTS);
    if (cluster_gather_clocks(w->gathered, w->bus, "gather", &r, &o, NULL, used, &net, &e))
        fail_msg("%s", e.text);
    int lacking = 0;
    for (size_t i = 0; i < HOSTS; i++)
        lacking += used[i].hash != r.hosts[i].entry->hash;
    assert_int_equal(clock_net_hosts(net), HOSTS);
    clock_net_free(net);
    cluster_membership_fini(&r);
    return lacking;
}

static int gather(struct world *w, uint64_t grown)
{
    return gather_beside(w, grown, NOBODY);
}

static void expect(const struct world *w, const char *what)
{
    char is[32];
    for (size_t i = 0; i < HOSTS; i++)
        snprintf(is + 4 * i, sizeof is - 4 * i, "%d,%d ", atomic_load(&w->nodes[i].flows) % 10,
            atomic_load(&w->nodes[i].extracts) % 10);
    assert_string_equal(is, what);
}

static void only_what_changed_is_asked(void **state)
{
    struct world w = {0};
    (void)state;
    start(&w);
    assert_int_equal(gather(&w, 0), 0);
    expect(&w, "1,1 1,1 1,1 ");
    assert_int_equal(gather(&w, 0), 0);
    expect(&w, "0,0 0,0 0,0 ");
    assert_int_equal(gather(&w, 1), 0);
    expect(&w, "0,0 0,0 1,1 ");
    stop(&w);
}

/* Checks that a node that refuses its packets is queried from the beginning: another one may have a copy that
 * answers. */
static void who_does_not_answer_is_asked_again(void **state)
{
    struct world w = {0};
    (void)state;
    start(&w);
    atomic_store(&w.nodes[1].refuses, true);
    assert_int_equal(gather(&w, 0), 1);
    expect(&w, "1,1 1,1 1,1 ");
    assert_int_equal(gather(&w, 0), 1);
    expect(&w, "0,0 1,1 0,0 ");
    atomic_store(&w.nodes[1].refuses, false);
    assert_int_equal(gather(&w, 0), 0);
    expect(&w, "0,0 1,1 0,0 ");
    stop(&w);
}

/* Checks that data of an older copy are used, but do not count as current. */
static void an_older_copy_is_not_the_newest(void **state)
{
    struct world w = {0};
    (void)state;
    start(&w);
    assert_int_equal(gather_beside(&w, 0, OLDER), 1);
    assert_int_equal(gather_beside(&w, 0, NOBODY), 0);
    stop(&w);
}

/* Checks that clocks are found from an excerpt if no node has more, and from more once a node has it. */
static void an_excerpt_is_asked_where_nobody_answers(void **state)
{
    struct world w = {0};
    (void)state;
    start(&w);
    assert_int_equal(gather_beside(&w, 0, EXCERPT), 1);
    expect(&w, "1,1 1,1 1,1 ");
    assert_int_equal(gather_beside(&w, 0, NOBODY), 0);
    stop(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_what_changed_is_asked),
        cmocka_unit_test(who_does_not_answer_is_asked_again),
        cmocka_unit_test(an_older_copy_is_not_the_newest),
        cmocka_unit_test(an_excerpt_is_asked_where_nobody_answers),
    };
    return cmocka_run_group_tests(tests, make_traces, drop_traces);
}
