/* SPDX-License-Identifier: MIT */
/* Clocks of the recorded clusters of what each host gives away of its flows: to the last bit those that all traces
 * together give, however these are cut into chunks. */
#include <glob.h>
#include <stdio.h>

#include "../base/test.h"
#include "../flow/extracts.h"
#include "base/mem.h"
#include "far_same.h"
#include "index/index.h"

enum { MOST_HOSTS = 33 };

struct opened {
    struct experiment *x;
    const struct index_host *hosts;
    size_t n;
    char store[64];
};

static const char *recording(const char *name, char path[4096])
{
    const char *data = getenv("WEFT_DATA");
    snprintf(path, 4096, "%s/traces/%s", data ? data : WEFT_SOURCE_ROOT "/../shared/data", name);
    if (access(path, R_OK))
        skip_without("no %s", path);
    return path;
}

/* memory: little of it makes chunks of few events; 0: as usual */
static void open_args(struct opened *o, const char *const *args, size_t n, uint64_t memory)
{
    struct err e = {0};
    *o = (struct opened){.n = 0};
    strcpy(o->store, access("/dev/shm", W_OK) ? "/tmp/weft-far-XXXXXX" : "/dev/shm/weft-far-XXXXXX");
    assert_non_null(mkdtemp(o->store));
    if (index_experiment_open(
            args, n, &(struct index_options){.store = o->store, .stores = true, .memory = memory}, &o->x, &e))
        fail_msg("%s", e.text);
    o->n = index_experiment_hosts(o->x, &o->hosts);
    assert_in_range(o->n, 1, MOST_HOSTS);
}

static void run(const char *format, const char *a, const char *b)
{
    char command[8300];
    snprintf(command, sizeof command, format, a, b);
    assert_int_equal(system(command), 0);
}

static void close_opened(struct opened *o)
{
    index_experiment_close(o->x);
    run("rm -rf %s", o->store, "");
}

/* Compares with the experiment's result, with the flows elsewhere. */
static void compare_by(const struct opened *o, struct flow_store *const *flows, const struct clock_options *by)
{
    struct index_far_host far[MOST_HOSTS];
    const struct clock_net *here;
    struct clock_net *there = NULL;
    struct err e = {0};
    for (size_t h = 0; h < o->n; h++) {
        far[h] = index_far_host_of(&o->hosts[h]);
        far[h].flows = flows[h];
    }
    if (index_experiment_sync(o->x, by, &here, &e) || index_sync_far(far, o->n, by, NULL, &there, &e))
        fail_msg("%s", e.text);
    far_same_nets(here, there, "of extracts");
    clock_net_free(there);
}

static void compare_by_all(const struct opened *o, struct flow_store *const *flows)
{
    static const double priors[] = {300, 100, 2000, -1};
    struct clock_trust all = {.hosts = "*", .error_ns = 50000};
    for (size_t i = 0; i < sizeof priors / sizeof *priors; i++) {
        struct clock_options by = clock_defaults();
        by.drift_prior_ppm = priors[i];
        compare_by(o, flows, &by);
        by.reference = o->hosts[o->n - 1].clock_name;
        compare_by(o, flows, &by);
    }
    struct clock_options by = clock_defaults();
    by.trust = &all;
    by.n_trust = 1;
    compare_by(o, flows, &by);
    by.no_messages = true;
    compare_by(o, flows, &by);
}

/* ---- sizes, and flows at random ---- */

static uint64_t trace_bytes(const struct opened *o)
{
    uint64_t sum = 0;
    for (size_t h = 0; h < o->n; h++)
        for (size_t i = 0; i < ctf_trace_streams(o->hosts[h].trace); i++) {
            struct ctf_stream_info s;
            ctf_trace_stream(o->hosts[h].trace, i, &s);
            sum += s.bytes;
        }
    return sum;
}

/* *bytes: those of all flows. */
static void extract_any(const struct flow_store *s, uint64_t *bytes)
{
    size_t n = flow_count(s);
    uint32_t *flows = mem_alloc((n + 1) * sizeof *flows);
    uint64_t ignored = 0;
    for (int share = 1; share <= 3; share++) {
        size_t some = 0;
        for (size_t f = 0; f < n; f++)
            if (rand() % 3 < share)
                flows[some++] = (uint32_t)f;
        struct flow_store *extract = extract_flows(s, flows, some, share == 3 ? bytes : &ignored);
        same_extract(s, flows, some, extract);
        flow_close(extract);
    }
    free(flows);
}

static size_t chunks_of(const struct opened *o)
{
    char pattern[128];
    glob_t found = {0};
    snprintf(pattern, sizeof pattern, "%s/*/chunk.*", o->store);
    glob(pattern, 0, NULL, &found);
    size_t n = found.gl_pathc;
    globfree(&found);
    return n;
}

static void check(const char *const *args, size_t n, const char *name)
{
    for (int chunks = 0; chunks < 2; chunks++) {
        struct opened o;
        struct flow_store *extracts[MOST_HOSTS];
        const struct flow_store *flows[MOST_HOSTS];
        uint64_t bytes = 0, all = 0;
        open_args(&o, args, n, chunks ? 1024 : 0);
        if (chunks && chunks_of(&o) < 2 * o.n)
            fail_msg("%s: %zu chunks of %zu hosts", name, chunks_of(&o), o.n);
        for (size_t h = 0; h < o.n; h++) {
            flows[h] = o.hosts[h].flows;
            if (flows[h])
                extract_any(flows[h], &all);
        }
        extract_hosts(flows, o.n, extracts, &bytes);
        compare_by_all(&o, extracts);
        compare_by_all(&o, (struct flow_store *const *)flows);
        for (size_t h = 0; h < o.n; h++)
            flow_close(extracts[h]);
        print_message("%s: %llu bytes of %zu hosts, %llu of all flows, traces %llu\n", name, (unsigned long long)bytes,
            o.n, (unsigned long long)all, (unsigned long long)trace_bytes(&o));
        close_opened(&o);
    }
}

static void check_recording(void **state)
{
    char path[4096];
    const char *name = *state, *arg = recording(name, path);
    check(&arg, 1, name);
}

static void check_together(const char *const *names, size_t n, const char *what)
{
    static char paths[MOST_HOSTS][4096];
    const char *args[MOST_HOSTS];
    for (size_t i = 0; i < n; i++)
        args[i] = recording(names[i], paths[i]);
    check(args, n, what);
}

/* Four recordings of one machine, whose clock is one. */
static void test_one_boot(void **state)
{
    static const char *const names[] = {"live-relayd", "lost-events", "rotated", "snapshot"};
    check_together(names, 4, "one machine");
}

/* Clusters that know nothing of each other and have the same names and addresses. */
static void test_all(void **state)
{
    static const char *const names[] = {
        "bsp", "clocks", "mpi", "scp-net", "three-tier", "three-tier-disk", "vm", "rotated", "snapshot"};
    check_together(names, sizeof names / sizeof *names, "all");
}

/* Two traces of one machine, each of which took another time for its begin. */
static void test_one_machine(void **state)
{
    static const int64_t second = 1000000000;
    struct index_far_host far[3];
    struct clock_options by = clock_defaults();
    struct clock_net *net;
    struct err e = {0};
    for (int i = 0; i < 3; i++)
        far[i] = (struct index_far_host){.name = i == 0 ? "a"
                : i == 1                                ? "b"
                                                        : "c",
            .begin = i * second,
            .end = (10 + i) * second,
            .sealed_until = INT64_MIN,
            .clock = {.name = "monotonic", .uuid = {9}, .freq = i < 2 ? second : 0, .offset = 7, .offset_s = 5 * i}};
    if (index_sync_far(far, 3, &by, NULL, &net, &e))
        fail_msg("%s", e.text);
    const struct clock_map *m = clock_net_map(net, clock_net_map(net, 0)->reference == 0);
    int64_t sign = m->host ? -1 : 1;
    assert_int_equal(m->n, 1);
    assert_int_equal(clock_to_reference(m, 3 * second), (3 + 5 * sign) * second);
    assert_in_range(clock_error_at(m, 3 * second), 0, 3); /* rounding error */
    assert_int_equal(clock_net_map(net, 2)->n, 0);        /* unknown clock */
    clock_net_free(net);
}

static void test_errors(void **state)
{
    struct clock_options by = clock_defaults();
    struct index_far_host far = {.name = "a", .sealed_until = INT64_MAX, .begin = INT64_MAX, .end = INT64_MIN};
    struct clock_net *net = NULL;
    struct err e = {0};
    by.reference = "nobody";
    assert_int_equal(index_sync_far(&far, 1, &by, NULL, &net, &e), ERR_ARG);
    assert_null(net);
}

/* Checks that the hash of a host is the same however it is opened, and another one if it has more data. */
static void test_hash(void **state)
{
    char path[4096], copy[] = "/tmp/weft-far-copy-XXXXXX";
    const char *arg = recording("rotated", path), *args[] = {copy};
    uint64_t hashes[3];
    assert_non_null(mkdtemp(copy));
    run("cp -r --preserve=timestamps %s/. %s", arg, copy);
    for (int i = 0; i < 3; i++) {
        struct opened o;
        if (i == 2) /* the last archive is gone */
            run("cd %s%s && rm -r $(find . -type d -name '2*T*' | sort | tail -1)", copy, "");
        open_args(&o, args, 1, i ? 1024 : 0);
        hashes[i] = index_host_hash(&o.hosts[0]);
        close_opened(&o);
    }
    assert_true(hashes[0] == hashes[1]);
    assert_true(hashes[0] != hashes[2]);
    run("rm -rf %s", copy, "");
}

#define RECORDING(test, directory) \
    { \
        .name = #test, .test_func = check_recording, .initial_state = (void *)directory \
    }

int main(void)
{
    srand((unsigned)test_seed(1));
    const struct CMUnitTest tests[] = {RECORDING(three_tier, "three-tier"),
        RECORDING(three_tier_disk, "three-tier-disk"), RECORDING(mpi, "mpi"), RECORDING(bsp, "bsp"),
        RECORDING(scp_net, "scp-net"), RECORDING(clocks, "clocks"), RECORDING(vm, "vm"), RECORDING(rotated, "rotated"),
        RECORDING(snapshot, "snapshot"), RECORDING(lost_events, "lost-events"), cmocka_unit_test(test_one_boot),
        cmocka_unit_test(test_all), cmocka_unit_test(test_one_machine), cmocka_unit_test(test_errors),
        cmocka_unit_test(test_hash)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
