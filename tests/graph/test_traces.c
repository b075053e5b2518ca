/* SPDX-License-Identifier: MIT */
/* Recorded traces: each thread's running time against babeltrace2's text of the same trace, computed here from its
 * sched_switch lines alone. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "../base/test.h"
#include "base/mem.h"
#include "made.h"

enum { TIDS = 65536, CPUS = 64 };

static const char *data_dir(void)
{
    const char *data = getenv("WEFT_DATA");
    return data ? data : WEFT_SOURCE_ROOT "/../shared/data";
}

static void open_trace(const char *name, struct ctf_schemas **schemas, struct ctf_trace **trace)
{
    char path[4096];
    struct ctf_group *groups;
    size_t n;
    struct err e = {0};
    snprintf(path, sizeof path, "%s/%s", data_dir(), name);
    if (ctf_discover(path, &groups, &n, &e))
        skip_without("%s", e.text);
    *schemas = ctf_schemas_new();
    if (ctf_trace_open(&groups[0], *schemas, trace, &e))
        fail_msg("%s", e.text);
    ctf_groups_free(groups, n);
}

/* Running time by tid; idle threads are left out. A CPU's first thread ran since the CPU's first event, its last one
 * until the end. */
static bool oracle(const char *name, int64_t running[TIDS])
{
    char command[4200], *line = NULL;
    size_t cap = 0;
    struct {
        bool heard, known;
        int tid;
        int64_t since;
    } cpus[CPUS] = {{0}};
    int64_t last = 0;
    bool any = false;
    snprintf(command, sizeof command, "babeltrace2 --clock-seconds --no-delta '%s/%s' 2>/dev/null", data_dir(), name);
    FILE *f = popen(command, "r");
    while (f && getline(&line, &cap, f) > 0) {
        long long s, ns;
        const char *at = strstr(line, "cpu_id = ");
        unsigned cpu;
        if (sscanf(line, "[%lld.%lld]", &s, &ns) != 2 || !at || sscanf(at, "cpu_id = %u", &cpu) != 1 || cpu >= CPUS)
            continue;
        last = s * 1000000000 + ns;
        any = true;
        if (!cpus[cpu].heard) {
            cpus[cpu].heard = true;
            cpus[cpu].since = last;
        }
        if (!strstr(line, "sched_switch: "))
            continue;
        int prev = atoi(strstr(line, "prev_tid = ") + 11), next = atoi(strstr(line, "next_tid = ") + 11);
        if (cpus[cpu].known)
            assert_int_equal(cpus[cpu].tid, prev);
        running[prev] += last - cpus[cpu].since;
        cpus[cpu].known = true;
        cpus[cpu].tid = next;
        cpus[cpu].since = last;
    }
    for (unsigned c = 0; c < CPUS; c++)
        if (cpus[c].known)
            running[cpus[c].tid] += last - cpus[c].since;
    free(line);
    if (f)
        pclose(f);
    return any;
}

static void running_time(void **state)
{
    const char *name = *state;
    struct ctf_schemas *schemas;
    struct ctf_trace *trace;
    open_trace(name, &schemas, &trace);
    int64_t *want = mem_zalloc(TIDS * sizeof *want), *got = mem_zalloc(TIDS * sizeof *got);
    struct graph *g = made_graph_of(trace, NULL, NULL);
    made_check(g);
    bool have = oracle(name, want);
    for (size_t r = 0; r < graph_rows(g); r++) {
        struct graph_row row;
        int64_t totals[GRAPH_STATE_COUNT];
        graph_row(g, (int32_t)r, &row);
        graph_row_totals(g, (int32_t)r, INT64_MIN, INT64_MAX, totals);
        if (row.tid > 0 && row.tid < TIDS)
            got[row.tid] += totals[GRAPH_RUNNING];
    }
    for (int tid = 1; have && tid < TIDS; tid++)
        if (want[tid] != got[tid])
            fail_msg("%s: thread %d ran %lld ns, not %lld", name, tid, (long long)want[tid], (long long)got[tid]);
    free(want);
    free(got);
    graph_close(g);
    ctf_trace_close(trace);
    ctf_schemas_free(schemas);
    if (!have)
        skip_without("babeltrace2 is not installed");
}

/* Traces that have no such oracle: every interval still covers, nothing crashes. */
static void covers(void **state)
{
    struct ctf_schemas *schemas;
    struct ctf_trace *trace;
    open_trace(*state, &schemas, &trace);
    struct graph *g = made_graph_of(trace, NULL, NULL);
    made_check(g);
    assert_true(graph_rows(g) > 0);
    graph_close(g);
    ctf_trace_close(trace);
    ctf_schemas_free(schemas);
}

/* The row behind the known path of many-threads (reference/critical-path.md 5.7): the path's window is 406.492 ms from
 * the first switch-in to the end. The fork, 16.587 us earlier, is the row's begin here. */
static void many_threads(void **state)
{
    struct ctf_schemas *schemas;
    struct ctf_trace *trace;
    open_trace("traces-public/single-host/many-threads", &schemas, &trace);
    struct graph *g = made_graph_of(trace, NULL, NULL);
    struct graph_row row;
    struct graph_interval first;
    int32_t r = made_row(g, 2673, 0);
    graph_row(g, r, &row);
    graph_interval(g, r, graph_first(g, r), &first);
    assert_int_equal(first.state, GRAPH_PREEMPTED);
    assert_int_equal((row.end - first.end + 500) / 1000, 406492);
    assert_int_equal(first.end - first.begin, 16587);
    assert_true(row.born && row.died);
    graph_close(g);
    ctf_trace_close(trace);
    ctf_schemas_free(schemas);
}

/* three-tier-disk: the database thread writes synchronously to a disk of 40 operations a second; its waits are for that
 * disk. */
static void disk_waits(void **state)
{
    struct ctf_schemas *schemas;
    struct ctf_trace *trace;
    open_trace("traces/three-tier-disk/db/kernel", &schemas, &trace);
    struct graph *g = made_graph_of(trace, NULL, NULL);
    int64_t most = 0, on_disk = 0;
    for (size_t r = 0; r < graph_rows(g); r++) {
        struct graph_row row;
        graph_row(g, (int32_t)r, &row);
        for (uint64_t i = graph_first(g, (int32_t)r); i != GRAPH_NO_INTERVAL; i = graph_next(g, (int32_t)r, i)) {
            struct graph_interval iv;
            graph_interval(g, (int32_t)r, i, &iv);
            if (iv.state != GRAPH_BLOCK_DEVICE)
                continue;
            on_disk += iv.end - iv.begin;
            most = iv.end - iv.begin > most ? iv.end - iv.begin : most;
            assert_non_null(iv.detail);
            assert_true(!strncmp(iv.detail, "vd", 2));
        }
    }
    assert_true(most > 15000000 && most < 60000000); /* waits of about 25 ms each */
    assert_true(on_disk > 4 * most);
    graph_close(g);
    ctf_trace_close(trace);
    ctf_schemas_free(schemas);
}

int main(void)
{
    static char *whole[] = {"traces/three-tier/client/kernel", "traces/three-tier/web/kernel",
        "traces/three-tier/db/kernel", "traces/bsp/n3/kernel", "traces/mpi/n1/kernel", "traces/scp-net/n1/kernel",
        "traces/vm/vmhost/kernel", "traces-public/single-host/many-threads",
        "traces-public/single-host/flipping-endianness", "traces-public/single-host/bug446190"};
    static char *other[] = {"traces/lost-events", "traces/perf-ctf", "traces/snapshot", "traces/rotated",
        "traces/live-relayd", "traces-public/single-host/perf-taskset2", "traces-public/synctraces/scp_src",
        "traces-public/synctraces/scp_dest"};
    enum { WHOLE = sizeof whole / sizeof *whole, OTHER = sizeof other / sizeof *other };
    struct CMUnitTest tests[WHOLE + OTHER + 2];
    size_t n = 0;
    for (size_t i = 0; i < WHOLE; i++)
        tests[n++] = (struct CMUnitTest){.name = whole[i], .test_func = running_time, .initial_state = whole[i]};
    for (size_t i = 0; i < OTHER; i++)
        tests[n++] = (struct CMUnitTest){.name = other[i], .test_func = covers, .initial_state = other[i]};
    tests[n++] = (struct CMUnitTest)cmocka_unit_test(many_threads);
    tests[n++] = (struct CMUnitTest)cmocka_unit_test(disk_waits);
    return _cmocka_run_group_tests("recorded traces", tests, n, NULL, NULL);
}
