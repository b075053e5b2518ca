/* SPDX-License-Identifier: MIT */
/* Hosts of a cluster, according to registry entries: names against their rule, and cost that grows with the entries. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "../base/test.h"
#include "base/mem.h"
#include "bus/bus.h"
#include "cluster/membership.h"

static struct bus *hub;

static int open_hub(void **state)
{
    struct bus_options o = {.url = "local:test-roster"};
    struct err e = {0};
    (void)state;
    return bus_open(&o, &hub, &e);
}

static int close_hub(void **state)
{
    (void)state;
    bus_close(hub);
    return 0;
}

/* ---- entries ---- */

struct made {
    struct bus_table *table;
    size_t n;
};

static struct cluster_entry_host host_of(uint64_t key, const char *name)
{
    int64_t begin = INT64_C(1700000000000000000) + (int64_t)key;
    return (struct cluster_entry_host){.key = key,
        .hash = key,
        .name = name,
        .clock_name = name,
        .begin = begin,
        .end = begin + 1,
        .by_session = true};
}

/* Returns a host of a boot recorded in the trace; 0: none. shift_ns: a session's error of the clock's distance to the
 * epoch. */
static struct cluster_entry_host of_boot(struct cluster_entry_host h, uint8_t boot, int64_t shift_ns)
{
    h.clock = (struct index_far_clock){.name = "monotonic", .freq = boot ? 1000000000 : 0};
    h.clock.uuid[0] = boot;
    h.clock.offset = boot ? (uint64_t)(INT64_C(1700000000000000000) + shift_ns) : 0;
    return h;
}

static void put(struct made *m, const char *node, const struct cluster_entry_host *hosts, size_t n)
{
    char key[CLUSTER_SUBJECT];
    struct text t = {.fd = -1};
    struct err e = {0};
    cluster_entry_write(
        &(struct cluster_entry){.node = node, .instance = "i", .serial = 1, .hosts = hosts, .n_hosts = n}, &t);
    assert_int_equal(bus_token(node, key, sizeof key), 0);
    assert_int_equal(bus_table_put(m->table, key, t.v, t.n, NULL, &e), 0);
    text_fini(&t);
    m->n++;
}

static struct made make(const char *table)
{
    struct made m = {0};
    struct err e = {0};
    assert_int_equal(bus_table_open(hub, table, &(struct bus_table_options){.memory = true}, &m.table, &e), 0);
    return m;
}

static struct cluster_membership read_all(const struct made *m)
{
    struct cluster_membership r;
    struct err e = {0};
    assert_int_equal(cluster_membership_read(m->table, &r, &e), 0);
    return r;
}

/* ---- names ---- */

static bool is_apart(const struct cluster_entry_host *a, const struct cluster_entry_host *b)
{
    return a->clock.freq && b->clock.freq && a->clock.uuid[0] != b->clock.uuid[0] &&
        (a->begin > b->end || a->end < b->begin);
}

/* Returns whether the host may be of that machine: all hosts with its name so far are other boots. */
static bool may_be_called(const struct cluster_membership *r, size_t host, const char *name)
{
    for (size_t i = 0; i < host; i++)
        if (!strcmp(r->hosts[i].name, name) && !is_apart(r->hosts[i].entry, r->hosts[host].entry))
            return false;
    return true;
}

/* Checks that each host, one after the other, has the first name, its own or with a number, under which there are only
 * other boots. */
static void expect_names(const struct cluster_membership *r)
{
    for (size_t i = 0; i < r->n_hosts; i++) {
        const struct cluster_membership_host *h = &r->hosts[i];
        char expected[64];
        snprintf(expected, sizeof expected, "%s", h->entry->name);
        for (int number = 2; !may_be_called(r, i, expected); number++)
            snprintf(expected, sizeof expected, "%s#%d", h->entry->name, number);
        assert_string_equal(h->name, expected);
    }
}

/* "solo#2" of a node that has "solo", too, is called so by that node alone. */
static void numbers_of_nodes_count_for_nothing(void **state)
{
    struct made m = make("numbers");
    struct cluster_entry_host first = of_boot(host_of(1, "solo"), 1, 0), second = of_boot(host_of(3, "solo#2"), 1, 7),
                              other = of_boot(host_of(2, "solo"), 1, 9), given = host_of(4, "web#2");
    static const char *const expected[] = {"solo", "solo#2", "solo#3", "web#2"};
    (void)state;
    put(&m, "a", (const struct cluster_entry_host[]){first, second}, 2);
    put(&m, "b", (const struct cluster_entry_host[]){other, given}, 2);
    struct cluster_membership r = read_all(&m);
    assert_int_equal(r.n_hosts, 4);
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(r.hosts[i].entry->key, i + 1);
        assert_string_equal(r.hosts[i].name, expected[i]);
        assert_string_equal(r.hosts[i].clock_name, expected[i]);
    }
    assert_int_equal(r.n_unclear, 0);
    cluster_membership_fini(&r);
    bus_table_close(m.table);
}

/* ---- nodes of the version before, whose keys are of a boot, whatever the session ---- */

static struct cluster_entry_host old(struct cluster_entry_host h, uint64_t key)
{
    h.by_session = false;
    h.key = key;
    return h;
}

static struct cluster_membership of_cards(const char *table, const struct cluster_entry_host *hosts, size_t n)
{
    struct made m = make(table);
    char node[8];
    for (size_t i = 0; i < n; i++) {
        snprintf(node, sizeof node, "n%zu", i);
        put(&m, node, &hosts[i], 1);
    }
    struct cluster_membership r = read_all(&m);
    bus_table_close(m.table);
    return r;
}

static void expect_unclear(const struct cluster_membership *r, const char *const *nodes, size_t n)
{
    assert_int_equal(r->n_unclear, n);
    assert_int_equal(r->n_missing, n);
    for (size_t i = 0; i < n; i++) {
        assert_string_equal(r->unclear[i].node, nodes[i]);
        assert_string_equal(r->unclear[i].host, "solo");
        assert_string_equal(r->missing[i].node, nodes[i]);
        assert_non_null(strstr(r->missing[i].text, "does not tell sessions of one boot apart"));
    }
}

static void old_nodes_are_not_taken_for_others(void **state)
{
    struct cluster_entry_host one = of_boot(host_of(10, "solo"), 1, 0), other = of_boot(host_of(20, "solo"), 1, 5),
                              longer = one;
    (void)state;
    longer.end += 100;
    /* Copies on old nodes are copies. */
    struct cluster_membership r = of_cards(
        "old-copies", (const struct cluster_entry_host[]){old(one, 5), old(one, 5)}, 2);
    assert_int_equal(r.n_hosts, 1);
    assert_int_equal(r.hosts[0].n_nodes, 2);
    expect_unclear(&r, NULL, 0);
    cluster_membership_fini(&r);
    /* Sessions on old nodes with one key: one of the two can be queried, the other is missing. */
    r = of_cards("old-two", (const struct cluster_entry_host[]){old(one, 5), old(other, 5)}, 2);
    assert_int_equal(r.n_hosts, 1);
    assert_int_equal(r.hosts[0].n_nodes, 1);
    assert_string_equal(r.hosts[0].nodes[0], "n1");
    expect_unclear(&r, (const char *const[]){"n0"}, 1);
    cluster_membership_fini(&r);
    /* Data of the old node that the new one has, too, count once; the rest is missing. */
    r = of_cards("old-copy", (const struct cluster_entry_host[]){one, old(one, 5)}, 2);
    assert_int_equal(r.n_hosts, 1);
    assert_string_equal(r.hosts[0].nodes[0], "n0");
    expect_unclear(&r, NULL, 0);
    cluster_membership_fini(&r);
    r = of_cards("old-longer", (const struct cluster_entry_host[]){old(longer, 5), one}, 2);
    assert_int_equal(r.n_hosts, 1);
    assert_string_equal(r.hosts[0].nodes[0], "n1");
    expect_unclear(&r, (const char *const[]){"n0"}, 1);
    cluster_membership_fini(&r);
    /* Sessions on nodes of both versions, and hosts of another boot or name. */
    struct cluster_entry_host boot = of_boot(host_of(30, "solo"), 2, 0), name = of_boot(host_of(40, "duo"), 1, 0);
    r = of_cards("old-new", (const struct cluster_entry_host[]){one, old(other, 5), old(boot, 6), old(name, 7)}, 4);
    assert_int_equal(r.n_hosts, 4);
    expect_unclear(&r, NULL, 0);
    cluster_membership_fini(&r);
}

static void expect_held(const struct cluster_membership *r)
{
    for (size_t c = 0; c < r->n_entries; c++) {
        size_t n = 0;
        for (size_t i = 0; i < r->n_hosts; i++) {
            bool holds = false;
            for (size_t k = 0; k < r->hosts[i].n_nodes; k++)
                holds |= r->hosts[i].entries[k] == c;
            if (holds)
                assert_int_equal(r->node_hosts[c].hosts[n++], i);
        }
        assert_int_equal(r->node_hosts[c].n, n);
    }
}

/* Checks random hosts with few names and keys, so that there are copies, boots, namesakes, and entries that claim a
 * host twice. */
static void names_follow_the_rule(void **state)
{
    static const char *const names[] = {"web", "db", "localhost"};
    uint64_t random = test_seed(7);
    size_t copies = 0, numbered = 0, shared = 0;
    (void)state;
    for (int round = 0; round < 200; round++) {
        char table[32], node[8];
        snprintf(table, sizeof table, "names-%d", round);
        struct made m = make(table);
        for (size_t c = 0; c < 12; c++) {
            struct cluster_entry_host hosts[5];
            size_t n = 0;
            for (; n < 1 + c % 5; n++) {
                uint64_t key = 1 + test_random(&random, 40);
                hosts[n] = of_boot(host_of(key, names[key % 3]), (uint8_t)(key % 7), 0);
                hosts[n].end = hosts[n].begin + (int64_t)(key % 5);
            }
            snprintf(node, sizeof node, "n%zu", c);
            put(&m, node, hosts, n);
        }
        struct cluster_membership r = read_all(&m);
        assert_int_equal(r.n_entries, 12);
        expect_names(&r);
        expect_held(&r);
        for (size_t i = 0; i < r.n_hosts; i++) {
            copies += r.hosts[i].n_nodes > 1;
            numbered += strchr(r.hosts[i].name, '#') != NULL;
            shared += i && !strcmp(r.hosts[i].name, r.hosts[i - 1].name);
        }
        cluster_membership_fini(&r);
        bus_table_close(m.table);
    }
    assert_true(copies && numbered && shared);
}

/* An entry that is put again counts as it was put last; one that is removed is no more; one that makes no sense, or
 * speaks for another node, is named as missing. */
static void the_last_card_of_a_node_counts(void **state)
{
    struct made m = make("last");
    struct cluster_entry_host a = host_of(1, "a"), b = host_of(2, "b");
    struct text t = {.fd = -1};
    struct err e = {0};
    (void)state;
    put(&m, "one", &a, 1);
    put(&m, "two", &a, 1);
    put(&m, "three", &a, 1);
    put(&m, "one", &b, 1);
    assert_int_equal(bus_table_remove(m.table, "three", &e), 0);
    assert_int_equal(bus_table_put(m.table, "four", "?", 1, NULL, &e), 0);
    cluster_entry_write(&(struct cluster_entry){.node = "one", .instance = "i", .hosts = &a, .n_hosts = 1}, &t);
    assert_int_equal(bus_table_put(m.table, "five", t.v, t.n, NULL, &e), 0);
    text_fini(&t);
    struct cluster_membership r = read_all(&m);
    assert_int_equal(r.n_entries, 2);
    assert_int_equal(r.n_missing, 2);
    assert_string_equal(r.missing[0].node, "five");
    assert_int_equal(r.missing[0].kind, CLUSTER_MISSING_ENTRY);
    assert_string_equal(r.missing[1].node, "four");
    assert_int_equal(r.missing[1].kind, CLUSTER_MISSING_VERSION);
    assert_int_equal(r.n_hosts, 2);
    assert_string_equal(r.hosts[0].nodes[0], "two");
    assert_string_equal(r.hosts[1].nodes[0], "one");
    cluster_membership_fini(&r);
    bus_table_close(m.table);
}

/* ---- conditions ---- */

static void put_condition(struct made *m, const struct condition *c)
{
    char entry[CLUSTER_SUBJECT], key[CLUSTER_SUBJECT];
    struct text t = {.fd = -1};
    struct err e = {0};
    cluster_condition_write(c, &t);
    assert_int_equal(bus_token(c->node, entry, sizeof entry), 0);
    assert_int_equal(cluster_condition_key(entry, key, &e), 0);
    assert_int_equal(bus_table_put(m->table, key, t.v, t.n, NULL, &e), 0);
    text_fini(&t);
}

static void expect_missing(const struct made *m, int kind)
{
    struct cluster_membership r = read_all(m);
    assert_int_equal(r.n_missing, kind >= 0);
    if (kind >= 0)
        assert_int_equal(r.missing[0].kind, kind);
    cluster_membership_fini(&r);
}

/* Checks that only entries and conditions of the node's current run count, in whatever order they are read. */
static void conditions_of_runs(void **state)
{
    struct made m = make("conditions");
    struct cluster_entry_host a = host_of(1, "a");
    struct condition c = {.node = "n 1", .instance = "i", .serial = 0, .oldest = 3, .newest = 3};
    (void)state;
    put_condition(&m, &c); /* the claim of its name comes first, but may be lost */
    expect_missing(&m, CLUSTER_MISSING_OPENING);
    c.state = CONDITION_OPEN;
    c.serial = 1;
    put_condition(&m, &c);
    expect_missing(&m, CLUSTER_MISSING_ENTRY);
    put(&m, "n 1", &a, 1); /* instance i, serial 1 */
    expect_missing(&m, -1);
    c.state = CONDITION_FAILED; /* entry extended since then */
    put_condition(&m, &c);
    expect_missing(&m, CLUSTER_MISSING_FAILED);
    c.serial = 0; /* condition older than the entry */
    put_condition(&m, &c);
    expect_missing(&m, -1);
    c.instance = "next"; /* entry of the run before: it is queried about those hosts */
    put_condition(&m, &c);
    expect_missing(&m, -1);
    put(&m, "n 1", NULL, 0); /* condition without entries */
    put_condition(&m, &c);
    expect_missing(&m, CLUSTER_MISSING_FAILED);
    put(&m, "n 1", &a, 1); /* entry of a node that reports no condition, after the one that did was killed */
    expect_missing(&m, -1);
    bus_table_close(m.table);
}

/* ---- cost by size ---- */

static double cpu_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* Machines that all have the name that their vendor gave them: each is compared with the others of that name. */
static double best_of_three(size_t n)
{
    char table[32], node[32];
    double best = 0;
    snprintf(table, sizeof table, "many-%zu", n);
    struct made m = make(table);
    for (size_t i = 0; i < n; i++) {
        struct cluster_entry_host host = host_of(i + 1, "localhost");
        snprintf(node, sizeof node, "node-%zu", i);
        put(&m, node, &host, 1);
    }
    for (int i = 0; i < 3; i++) {
        double begin = cpu_s();
        struct cluster_membership r = read_all(&m);
        double took = cpu_s() - begin;
        assert_int_equal(r.n_hosts, n);
        assert_string_equal(r.hosts[n - 1].name + strlen("localhost#"), strrchr(r.hosts[n - 1].name, '#') + 1);
        best = i && best < took ? best : took;
        cluster_membership_fini(&r);
    }
    bus_table_close(m.table);
    return best;
}

/* Eight times as many: sorting takes 11 times as long, comparing each with each 64 times. */
static void work_grows_with_the_cards(void **state)
{
    (void)state;
    double few = best_of_three(2000), many = best_of_three(16000);
    print_message("2000 hosts: %.1f ms, 16000: %.1f ms\n", few * 1000, many * 1000);
    assert_true(many < 30 * few);
}

/* Checks that all hosts of an entry are read, however little it has of each. */
static void little_said(void **state)
{
    struct arena a = {0};
    struct text t = {.fd = -1};
    struct err e = {0};
    struct cluster_entry_host hosts[100];
    struct cluster_entry entry;
    (void)state;
    for (size_t i = 0; i < 100; i++)
        hosts[i] = (struct cluster_entry_host){.key = i, .name = "a", .clock_name = "a", .clock.name = ""};
    cluster_entry_write(&(struct cluster_entry){.node = "n", .instance = "i", .hosts = hosts, .n_hosts = 100}, &t);
    if (cluster_entry_read(&a, t.v, t.n, &entry, &e))
        fail_msg("%s", e.text);
    assert_int_equal(entry.n_hosts, 100);
    text_fini(&t);
    arena_fini(&a);
}

/* ---- copies that have less ---- */

static void expect_nodes(const struct cluster_membership_host *h, const char *const *nodes, size_t n)
{
    assert_int_equal(h->n_nodes, n);
    for (size_t i = 0; i < n; i++)
        assert_string_equal(h->nodes[i], nodes[i]);
}

/* Checks that the node with most of a host is queried first, whatever was moved last; nodes with less are not queried
 * beside others. */
static void lesser_copies(void **state)
{
    struct made m = make("lesser");
    struct cluster_entry_host all = host_of(7, "web"), other = host_of(8, "db");
    (void)state;
    all.begin = 100, all.end = 200, all.events = 50;
    struct cluster_entry_host touched = all, hole = all, late = all, early = all;
    touched.hash++; /* files of other times */
    hole.hash += 2, hole.events = 20, hole.since = 1;
    late.hash += 3, late.begin = 150, late.events = 25, late.since = 2;
    early.hash += 4, early.end = 150, early.events = 49;
    put(&m, "a-late", (const struct cluster_entry_host[]){late, other}, 2);
    put(&m, "b-hole", &hole, 1);
    put(&m, "c-early", &early, 1);
    put(&m, "d-all", &all, 1);
    put(&m, "e-touched", &touched, 1);
    struct cluster_membership r = read_all(&m);
    assert_int_equal(r.n_hosts, 2);
    const struct cluster_membership_host *web = &r.hosts[!strcmp(r.hosts[0].name, "db")];
    expect_nodes(web, (const char *const[]){"d-all", "e-touched", "b-hole", "a-late", "c-early"}, 5);
    for (size_t i = 0; i < 5; i++)
        assert_int_equal(cluster_membership_is_lesser(web, i), i >= 2);
    for (size_t c = 0; c < r.n_entries; c++)
        assert_int_equal(
            r.node_hosts[c].n, !strcmp(r.entries[c].node, "b-hole") || !strcmp(r.entries[c].node, "c-early") ? 0 : 1);
    cluster_membership_fini(&r);
    bus_table_close(m.table);
}

/* ---- excerpts ---- */

static struct cluster_entry_host excerpt_of(const struct cluster_entry_host *h, int64_t begin, int64_t end)
{
    struct cluster_entry_host s = *h;
    s.hash = (uint64_t)(h->hash + (uint64_t)begin * 100 + (uint64_t)end);
    s.end = h->end + 100; /* irrelevant value */
    s.since = 1;
    s.excerpt = (struct cluster_excerpt){true, h->hash, begin, end, "had-all"};
    return s;
}

/* Checks that no excerpt is queried or reported missing while an entry claims the whole trace. */
static void excerpts_are_the_last_resort(void **state)
{
    struct made m = make("snips");
    const struct cluster_entry_host all = host_of(7, "web"), shorter = excerpt_of(&all, 10, 20),
                                    longer = excerpt_of(&all, 10, 40);
    (void)state;
    put(&m, "short", &shorter, 1);
    put(&m, "long-2", &longer, 1);
    put(&m, "long-1", &longer, 1);
    put(&m, "all-2", &all, 1);
    put(&m, "all-1", (const struct cluster_entry_host[]){all, longer}, 2); /* trace of a node that claims both */
    struct cluster_membership r = read_all(&m);
    assert_int_equal(r.n_hosts, 1);
    expect_nodes(&r.hosts[0], (const char *const[]){"all-1", "all-2"}, 2);
    assert_int_equal(r.hosts[0].entry->hash, all.hash);
    assert_null(r.hosts[0].used);
    expect_held(&r);
    cluster_membership_use_excerpts(&r, &(bool){true}); /* another one exists */
    expect_nodes(&r.hosts[0], (const char *const[]){"all-1", "all-2"}, 2);
    cluster_membership_use_excerpts(&r, &(bool){false});
    expect_nodes(&r.hosts[0], (const char *const[]){"all-1", "long-1", "long-2"}, 3);
    assert_int_equal(r.hosts[0].used->end, 40);
    assert_string_equal(r.hosts[0].whole, "all-1");
    assert_int_equal(r.hosts[0].entry->hash, all.hash); /* clocks were found of it */
    expect_held(&r);
    cluster_membership_use_excerpts(&r, &(bool){false}); /* no other one */
    expect_nodes(&r.hosts[0], (const char *const[]){"all-1", "long-1", "long-2"}, 3);
    cluster_membership_fini(&r);
    bus_table_close(m.table);
}

static void excerpts_are_all_that_is_left(void **state)
{
    struct made m = make("snips-left");
    const struct cluster_entry_host all = host_of(7, "web"), shorter = excerpt_of(&all, 10, 20),
                                    longer = excerpt_of(&all, 10, 40);
    (void)state;
    put(&m, "short", &shorter, 1);
    put(&m, "long", &longer, 1);
    struct cluster_membership r = read_all(&m);
    expect_nodes(&r.hosts[0], (const char *const[]){"long"}, 1);
    assert_int_equal(r.hosts[0].entry->hash, longer.hash);
    assert_int_equal(r.hosts[0].used->end, 40);
    assert_string_equal(r.hosts[0].whole, "had-all");
    assert_string_equal(r.hosts[0].name, "web");
    expect_held(&r);
    cluster_membership_fini(&r);
    bus_table_close(m.table);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(little_said),
        cmocka_unit_test(names_follow_the_rule),
        cmocka_unit_test(numbers_of_nodes_count_for_nothing),
        cmocka_unit_test(old_nodes_are_not_taken_for_others),
        cmocka_unit_test(the_last_card_of_a_node_counts),
        cmocka_unit_test(conditions_of_runs),
        cmocka_unit_test(work_grows_with_the_cards),
        cmocka_unit_test(lesser_copies),
        cmocka_unit_test(excerpts_are_the_last_resort),
        cmocka_unit_test(excerpts_are_all_that_is_left),
    };
    return cmocka_run_group_tests(tests, open_hub, close_hub);
}
