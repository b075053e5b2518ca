/* SPDX-License-Identifier: MIT */
/* Lives of processes are searched once per host, whatever the number of its user-space traces (buffers per process make
 * one of each process), and only where memory was recorded. The graph is a counter of what is read of it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../base/test.h"
#include "../stack/ust_world.h"
#include "views/list.h"
#include "views/stacks.h"

enum { ROWS = 100, TRACES = 50 };
static size_t rows_read;

/* Replace the functions of graph. Row 11 is thread 11, which died after 69.5 µs. */
size_t __wrap_graph_rows(const struct graph *);
size_t __wrap_graph_rows(const struct graph *g)
{
    return ROWS;
}

void __wrap_graph_row(const struct graph *, int32_t row, struct graph_row *out);
void __wrap_graph_row(const struct graph *g, int32_t row, struct graph_row *out)
{
    *out = (struct graph_row){.tid = row + 1000, .tgid = row + 1000, .idle_cpu = -1, .name = ""};
    if (row == 11)
        *out = (struct graph_row){
            .tid = 11, .tgid = 11, .idle_cpu = -1, .begin = UST_START, .end = UST_START + 69500, .died = 1, .name = ""};
    rows_read++;
}

struct fixture {
    char dir[64];
    struct experiment *x;
    struct index_trace traces[TRACES];
    struct index_host host;
    struct view_host hosts[1];
    struct views views;
};

static void set_up(struct fixture *f, void (*write)(const char *dir))
{
    char ust[80], store[80];
    const char *args[] = {ust};
    struct index_options o = {.store = store, .stores = true, .user_space = true};
    const struct index_trace *traces;
    struct err e = {0};
    *f = (struct fixture){.dir = "/tmp/weft-stacks-lives-XXXXXX"};
    assert_non_null(mkdtemp(f->dir));
    snprintf(ust, sizeof ust, "%s/ust", f->dir);
    snprintf(store, sizeof store, "%s/store", f->dir);
    write(ust);
    if (index_experiment_open(args, 1, &o, &f->x, &e))
        fail_msg("%s", e.text);
    assert_int_equal(index_experiment_traces(f->x, &traces), 1);
    for (size_t i = 0; i < TRACES; i++) {
        f->traces[i] = traces[0];
        f->traces[i].host = 0;
    }
    f->host.graph = (const struct graph *)f; /* placeholder, never read */
    f->hosts[0].index = &f->host;
    f->views = (struct views){.traces = f->traces, .n_sources = TRACES, .hosts = f->hosts, .n_hosts = 1};
    rows_read = 0;
}

static void tear_down(struct fixture *f)
{
    char command[96];
    view_stacks.close(&f->views, (void *)stacks_of(&f->views));
    index_experiment_close(f->x);
    snprintf(command, sizeof command, "rm -r %s", f->dir);
    assert_int_equal(system(command), 0);
}

static void killed(const char *dir)
{
    ust_write_killed(dir, "made");
}

static void no_memory(const char *dir)
{
    ust_write_deep(dir, 3);
}

static void once_per_host(void **state)
{
    struct fixture f;
    set_up(&f, killed);
    assert_int_equal(stacks_of(&f.views)->n, TRACES);
    assert_in_range(rows_read, ROWS, 2 * ROWS);
    tear_down(&f);
}

static void not_without_memory(void **state)
{
    struct fixture f;
    set_up(&f, no_memory);
    assert_int_equal(stacks_of(&f.views)->n, TRACES);
    assert_int_equal(rows_read, 0);
    tear_down(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(once_per_host), cmocka_unit_test(not_without_memory)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
