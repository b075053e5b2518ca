/* SPDX-License-Identifier: MIT */
/* Files that are cut off while they are in use: whatever is asked comes to its end inside the file,
 * index_experiment_intact tells, and the next opening builds again what was cut. The recorded cluster is copied; each
 * store and a stream are cut at many places, and all that can be asked is asked. */
#include <dirent.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "../base/test.h"
#include "../state/read_all.h"
#include "base/mem.h"
#include "clock/clock.h"
#include "flow/flow.h"
#include "graph/graph.h"
#include "index/index.h"
#include "path/path.h"
#include "state/state.h"

enum { CUTS = 20 };

static char place[] = "/tmp/weft-cut-XXXXXX";

static void run(const char *fmt, const char *a, const char *b)
{
    char command[8192];
    snprintf(command, sizeof command, fmt, a, b);
    assert_int_equal(system(command), 0);
}

static int make_place(void **state)
{
    (void)state;
    char path[4096];
    const char *data = getenv("WEFT_DATA");
    snprintf(path, sizeof path, "%s/traces/mpi", data ? data : WEFT_SOURCE_ROOT "/../shared/data");
    if (access(path, R_OK))
        exit(test_absent("no %s", path));
    if (!mkdtemp(place))
        return -1;
    run("cp -r '%s' '%s/trace'", path, place);
    run("chmod -R u+w '%s'%s", place, "");
    return 0;
}

static int remove_place(void **state)
{
    (void)state;
    run("rm -rf '%s'%s", place, "");
    return 0;
}

struct opened {
    struct experiment *x;
    const struct index_host *hosts;
    size_t n;
    const struct clock_net *net;
    bool built;
};

static struct opened open_all(void)
{
    struct opened o = {0};
    struct err e = {0};
    char trace[64], store[64];
    snprintf(trace, sizeof trace, "%s/trace", place);
    snprintf(store, sizeof store, "%s/store", place);
    const char *args[] = {trace};
    struct clock_options clocks = clock_defaults();
    if (index_experiment_open(
            args, 1, &(struct index_options){.store = store, .stores = true, .states = true}, &o.x, &e) ||
        index_experiment_sync(o.x, &clocks, &o.net, &e))
        fail_msg("%s", e.text);
    o.n = index_experiment_hosts(o.x, &o.hosts);
    for (size_t i = 0; i < o.n; i++)
        o.built |= o.hosts[i].built;
    return o;
}

/* ---- queries of every kind ---- */

static volatile uint64_t sink;

static void ask_graph(const struct graph *g)
{
    for (size_t r = 0; r < graph_rows(g); r++) {
        struct graph_row row;
        struct graph_interval iv;
        struct graph_cause c;
        int64_t totals[GRAPH_STATE_COUNT];
        graph_row(g, (int32_t)r, &row);
        sink += strlen(row.name);
        graph_row_totals(g, (int32_t)r, row.begin, row.end, totals);
        for (uint64_t i = graph_first(g, (int32_t)r); i != GRAPH_NO_INTERVAL; i = graph_next(g, (int32_t)r, i)) {
            graph_interval(g, (int32_t)r, i, &iv);
            graph_interval_cause(g, (int32_t)r, i, &c);
            sink += (iv.detail ? strlen(iv.detail) : 0) + graph_find(g, (int32_t)r, iv.end);
            assert_true(
                iv.begin <= iv.end && iv.state < GRAPH_STATE_COUNT && c.row >= -1 && c.row < (int64_t)graph_rows(g));
        }
    }
}

static void on_pair(void *arg, int64_t sent, int64_t received)
{
    (void)arg;
    sink += (uint64_t)(sent ^ received);
}

static void ask_flows(const struct opened *o, const struct flow_store *s)
{
    struct flow_packet p, send;
    bool is_send;
    for (uint32_t number = 0; number < 20000; number++)
        if (flow_by_number(s, number, &p, &is_send) && !is_send) {
            struct flow_message_key m;
            flow_message_key_of(s, &p, &m);
            struct flow_window w = flow_window_at(&m, p.ts, 1000000000);
            for (size_t h = 0; h < o->n; h++)
                sink += flow_find_send(o->hosts[h].flows, &m, &w, &send);
        }
    for (int32_t row = 0; row < 4000; row++) {
        size_t receives, n = flow_messages(s, row, &receives);
        for (size_t i = 0; i < n; i++) {
            flow_message(s, row, i, &p, &is_send);
            sink += flow_connection(s, p.flow);
        }
    }
    for (size_t i = 0; i < flow_replies(s); i++)
        flow_reply(s, i, &p);
    for (size_t i = 0; i < flow_wakes(s); i++)
        flow_wake(s, i, &(struct flow_wake){0});
    for (size_t f = 0; f < flow_count(s); f++)
        for (size_t i = 0; i < flow_sends(s, f); i++)
            flow_send(s, f, i, &p);
    for (size_t h = 0; h < o->n; h++) {
        const struct flow_store *both[] = {s, o->hosts[h].flows};
        struct flow_link *links;
        size_t n = flow_links(both, 2, 2, &links);
        for (size_t i = 0; i < n; i++)
            flow_pairs(both[links[i].a], both[links[i].b], &links[i], 1, on_pair, NULL);
        free(links);
    }
}

static void ask_paths(const struct opened *o)
{
    struct path_local_host *parts = mem_zalloc(o->n * sizeof *parts);
    for (size_t i = 0; i < o->n; i++)
        parts[i] = (struct path_local_host){
            o->hosts[i].name, o->hosts[i].graph, o->hosts[i].flows, clock_net_map(o->net, i)};
    struct path_local *l = path_local_new(parts, o->n);
    for (size_t h = 0; h < o->n; h++)
        for (size_t r = 0; r < graph_rows(o->hosts[h].graph); r += 3) {
            struct path *p;
            struct err e = {0};
            struct path_options options = {.begin = INT64_MIN, .end = INT64_MAX, .no_early_return = r % 2};
            if (!path_walk(path_local_source(l), (struct path_row){(int32_t)h, (int32_t)r}, &options, &p, &e)) {
                assert_true(path_covers(p, NULL));
                path_free(p);
            }
        }
    path_local_free(l);
    free(parts);
}

/* Items read until there are no more, and a number made of their times. */
static size_t read_events(const struct opened *o, size_t most, uint64_t *times)
{
    const struct ctf_source *sources;
    size_t n = index_experiment_sources(o->x, &sources), sum = 0, k;
    struct ctf_merge *m;
    struct ctf_event ev[256];
    *times = 0;
    assert_int_equal(ctf_merge_new(sources, n, (struct ctf_window){INT64_MIN, INT64_MAX}, -1, &m, NULL), 0);
    while (sum < most && (k = ctf_merge_next(m, ev, most - sum < 256 ? most - sum : 256)) > 0)
        for (size_t i = 0; i < k; i++, sum++)
            *times = *times * 31 + (uint64_t)ev[i].ts;
    struct err e = {0};
    sink += (size_t)ctf_merge_seek(m, 5000, &e);
    sink += ctf_merge_next(m, ev, 256);
    ctf_merge_free(m);
    return sum;
}

static void ask_all(const struct opened *o)
{
    uint64_t times;
    for (size_t h = 0; h < o->n; h++) {
        ask_graph(o->hosts[h].graph);
        ask_flows(o, o->hosts[h].flows);
        read_all_states(o->hosts[h].states);
    }
    ask_paths(o);
    read_events(o, SIZE_MAX, &times);
}

/* ---- cuts ---- */

/* Runs a task in a child, because cmocka catches SIGBUS itself; kills it if it does not end. */
static void in_a_child(bool (*task)(const char *file, off_t to), const char *file, off_t to)
{
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        signal(SIGSEGV, SIG_DFL);
        signal(SIGBUS, SIG_DFL);
        alarm(120);
        _exit(task(file, to) ? 0 : 1);
    }
    int status = -1;
    waitpid(child, &status, 0);
    if (status)
        fail_msg("%s cut to %lld bytes: status %#x", file, (long long)to, (unsigned)status);
}

struct cut {
    const char *file;
    off_t to;
    useconds_t after_us;
};

static void *make_cut(void *arg)
{
    const struct cut *c = arg;
    usleep(c->after_us);
    return truncate(c->file, c->to) ? NULL : arg;
}

/* Cuts before or, every other time, during the queries. */
static bool cut_and_ask(const char *file, off_t to)
{
    struct opened o = open_all();
    struct err e = {0};
    struct cut cut = {file, to, (useconds_t)(to % 5) * 3000};
    pthread_t cutter;
    void *done = NULL;
    bool good = !o.built && !index_experiment_intact(o.x, &e) && !pthread_create(&cutter, NULL, make_cut, &cut);
    if (!cut.after_us)
        usleep(2000);
    ask_all(&o);
    good = good && !pthread_join(cutter, &done) && done && index_experiment_intact(o.x, &e) == ERR_LOST &&
        strstr(e.text, file) && strstr(e.text, "shorter");
    index_experiment_close(o.x);
    return good;
}

/* Opens what is there; was anything built? */
static bool builds(const char *file, off_t to)
{
    (void)file;
    (void)to;
    struct opened o = open_all();
    bool good = o.built && !index_experiment_intact(o.x, NULL);
    index_experiment_close(o.x);
    return good;
}

/* The store of that name of some host. */
static void store_of(const char *name, char *path, size_t n)
{
    char dir[64];
    snprintf(dir, sizeof dir, "%s/store", place);
    DIR *d = opendir(dir);
    assert_non_null(d);
    off_t most = -1;
    for (struct dirent *de; (de = readdir(d));) {
        char one[512];
        struct stat st;
        snprintf(one, sizeof one, "%s/%s/%s", dir, de->d_name, name);
        if (de->d_name[0] != '.' && !stat(one, &st) && st.st_size > most) {
            most = st.st_size;
            snprintf(path, n, "%s", one);
        }
    }
    closedir(d);
    assert_true(most > 8192);
}

static void cut_store(const char *name)
{
    in_a_child(builds, name, -1);
    for (int i = 0; i < CUTS; i++) {
        char file[512];
        struct stat st;
        store_of(name, file, sizeof file);
        assert_int_equal(stat(file, &st), 0);
        off_t whole = (st.st_size - 1) / 4096 * 4096;
        in_a_child(cut_and_ask, file, i ? whole * i / CUTS + i * 7 : 0);
        in_a_child(builds, file, -1);
    }
    run("rm -r '%s/store'%s", place, "");
}

static void chunk(void **state)
{
    (void)state;
    cut_store("chunk.1");
}

static void stream(void **state)
{
    (void)state;
    char file[64], saved[64];
    struct stat st;
    snprintf(file, sizeof file, "%s/trace/n1/kernel/ch_0", place);
    snprintf(saved, sizeof saved, "%s/saved", place);
    run("cp -p '%s' '%s'", file, saved);
    assert_int_equal(stat(file, &st), 0);
    in_a_child(builds, file, -1);
    for (int i = 0; i < CUTS; i++) {
        in_a_child(cut_and_ask, file, (st.st_size - 1) / 4096 * 4096 * i / CUTS + i * 7);
        in_a_child(builds, file, -1);
        run("cp -p '%s' '%s'", saved, file);
        in_a_child(builds, file, -1);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(chunk), cmocka_unit_test(stream)};
    return cmocka_run_group_tests(tests, make_place, remove_place);
}
