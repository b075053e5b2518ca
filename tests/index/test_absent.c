/* SPDX-License-Identifier: MIT */
/* Recording without the stream of a CPU: no answer about its threads may contradict the whole recording. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "../base/test.h"
#include "base/mem.h"
#include "graph/graph.h"
#include "index/index.h"
#include "state/state.h"

static char scratch[64] = "/tmp/weft-test-absent-XXXXXX";

static void shell(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
static void shell(const char *fmt, ...)
{
    va_list ap;
    char *command;
    va_start(ap, fmt);
    assert_true(vasprintf(&command, fmt, ap) > 0);
    va_end(ap);
    assert_int_equal(system(command), 0);
    free(command);
}

static int make_scratch(void **state)
{
    assert_non_null(mkdtemp(scratch));
    shell("tar -xJf '%s/examples/three-tier.tar.xz' -C '%s'", WEFT_SOURCE_ROOT, scratch);
    return 0;
}

static int remove_scratch(void **state)
{
    shell("rm -rf '%s'", scratch);
    return 0;
}

static struct experiment *open_in(const char *dir, const char *store, uint64_t memory)
{
    char *at = mem_printf("%s/%s", scratch, store);
    struct index_options how = {.stores = true, .states = true, .store = at, .memory = memory};
    struct experiment *x;
    struct err e = {0};
    if (index_experiment_open(&dir, 1, &how, &x, &e))
        fail_msg("%s", e.text);
    free(at);
    return x;
}

/* ---- comparing ---- */

struct told {
    int64_t known, unknown;
};

static bool is_wait(uint8_t state)
{
    return state != GRAPH_UNKNOWN && !graph_is_awake(state);
}

/* Returns whether some life of the tid was in that state from begin to end. The kind of a wait that was cut off may be
 * unknown. */
static bool graph_agrees(const struct graph *g, int32_t tid, const struct graph_interval *iv, bool cut_off)
{
    for (size_t row = 0; row < graph_rows(g); row++) {
        struct graph_row r;
        graph_row(g, (int32_t)row, &r);
        if (r.tid != tid || r.begin > iv->begin || r.end < iv->end)
            continue;
        bool same = true;
        for (uint64_t i = graph_find(g, (int32_t)row, iv->begin + 1); i != GRAPH_NO_INTERVAL && same;
             i = graph_next(g, (int32_t)row, i)) {
            struct graph_interval of;
            graph_interval(g, (int32_t)row, i, &of);
            if (of.begin >= iv->end)
                break;
            bool throttled = iv->detail && !strcmp(iv->detail, "throttled");
            bool same_wait = cut_off && is_wait(of.state) && is_wait(iv->state);
            same = (same_wait || of.state == iv->state) && (of.state != GRAPH_RUNNING || of.cpu == iv->cpu) &&
                (!throttled || (of.detail && !strcmp(of.detail, "throttled")));
        }
        if (same)
            return true;
    }
    return false;
}

static void compare_graphs(const char *what, const struct graph *whole, const struct graph *cut, struct told *told)
{
    for (size_t row = 0; row < graph_rows(cut); row++) {
        struct graph_row r;
        graph_row(cut, (int32_t)row, &r);
        if (r.idle_cpu >= 0)
            continue;
        for (uint64_t i = graph_first(cut, (int32_t)row); i != GRAPH_NO_INTERVAL;
             i = graph_next(cut, (int32_t)row, i)) {
            struct graph_interval iv;
            graph_interval(cut, (int32_t)row, i, &iv);
            *(iv.state == GRAPH_UNKNOWN ? &told->unknown : &told->known) += iv.end - iv.begin;
            if (iv.state == GRAPH_UNKNOWN)
                continue;
            struct graph_cause cause;
            graph_interval_cause(cut, (int32_t)row, i, &cause);
            if (!graph_agrees(whole, r.tid, &iv, cause.kind == GRAPH_CAUSE_LOST))
                fail_msg("%s: thread %d %s is told to be %s from %lld to %lld, which it is not", what, r.tid, r.name,
                    graph_state_name(iv.state), (long long)iv.begin, (long long)iv.end);
        }
    }
}

enum { OTHER, RUNS, WANTS_CPU, BLOCKED };
static int class_of(uint8_t value)
{
    switch (value) {
    case STATE_USERMODE:
    case STATE_SYSCALL:
    case STATE_INTERRUPTED: return RUNS;
    case STATE_WAIT_FOR_CPU: return WANTS_CPU;
    case STATE_WAIT_UNKNOWN:
    case STATE_WAIT_BLOCKED: return BLOCKED;
    default: return OTHER;
    }
}

static bool states_agree(
    const struct state_store *s, const struct graph *g, int32_t tid, const struct state_interval *iv)
{
    struct state_interval of[64];
    for (size_t row = 0; row < graph_rows(g) && row < state_rows(s, STATE_THREAD); row++) {
        struct graph_row r;
        graph_row(g, (int32_t)row, &r);
        if (r.tid != tid)
            continue;
        bool same = true, any = false;
        for (int64_t at = iv->begin; at < iv->end && same;) {
            size_t n = state_range(s, STATE_THREAD, row, at, iv->end, of, 64);
            for (size_t i = 0; i < n && same; i++) {
                if (of[i].begin >= iv->end || of[i].end <= at)
                    continue;
                any = true;
                same = class_of(of[i].value) == class_of(iv->value);
            }
            same &= n > 0;
            at = n ? of[n - 1].end : iv->end;
        }
        if (same && any)
            return true;
    }
    return false;
}

static void compare_states(
    const char *what, const struct index_host *whole, const struct index_host *cut, struct told *told)
{
    struct state_interval v[64];
    for (size_t row = 0; row < state_rows(cut->states, STATE_THREAD); row++) {
        struct graph_row r;
        struct state_row s;
        graph_row(cut->graph, (int32_t)row, &r);
        state_row(cut->states, STATE_THREAD, row, &s);
        if (r.idle_cpu >= 0)
            continue;
        for (int64_t at = s.begin; at < s.end;) {
            size_t n = state_range(cut->states, STATE_THREAD, row, at, s.end, v, 64);
            for (size_t i = 0; i < n; i++) {
                bool known = class_of(v[i].value) != OTHER;
                *(known ? &told->known : &told->unknown) += v[i].end - v[i].begin;
                if (known && v[i].end > v[i].begin && v[i].begin >= at &&
                    !states_agree(whole->states, whole->graph, r.tid, &v[i]))
                    fail_msg("%s: thread %d %s shows %d from %lld to %lld, which it is not", what, r.tid, r.name,
                        v[i].value, (long long)v[i].begin, (long long)v[i].end);
            }
            if (!n || v[n - 1].end <= at)
                break;
            at = v[n - 1].end;
        }
    }
}

static bool notes_cpu(const struct experiment *x, int cpu)
{
    const struct index_note *notes;
    char words[40];
    int found = 0;
    snprintf(words, sizeof words, " CPU %d:", cpu);
    for (size_t i = 0, n = index_experiment_notes(x, &notes); i < n; i++)
        found += notes[i].kind == INDEX_NOTE_INPUT && strstr(notes[i].text, words);
    return found == 1;
}

/* The recording below `dir` without the files of that name. */
static void without(const char *dir, const char *file, bool and_index, int cpu, uint64_t memory, double least_known)
{
    shell("rm -rf '%s/cut' && cp -r '%s' '%s/cut' && find '%s/cut' -name .weft -prune -exec rm -r {} +", scratch, dir,
        scratch, scratch);
    shell("find '%s/cut' -path '*%s' -delete", scratch, file);
    if (and_index)
        shell("find '%s/cut' -name '%s.idx' -delete", scratch, strrchr(file, '/') ? strrchr(file, '/') + 1 : file);
    char *path = mem_printf("%s/cut", scratch);
    shell("rm -rf '%s/a' '%s/b'", scratch, scratch);
    struct experiment *whole = open_in(dir, "a", 0), *cut = open_in(path, "b", memory);
    const struct index_host *of_whole, *of_cut;
    assert_int_equal(index_experiment_hosts(whole, &of_whole), 1);
    assert_int_equal(index_experiment_hosts(cut, &of_cut), 1);
    assert_false(index_experiment_partial(whole));
    assert_true(index_experiment_partial(cut));
    assert_true(notes_cpu(cut, cpu));
    struct told graph = {0}, states = {0};
    compare_graphs(path, of_whole->graph, of_cut->graph, &graph);
    compare_states(path, of_whole, of_cut, &states);
    print_message("%s without %s: %.0f and %.0f %% known\n", dir, file,
        100.0 * (double)graph.known / (double)(graph.known + graph.unknown),
        100.0 * (double)states.known / (double)(states.known + states.unknown));
    assert_true((double)graph.known > least_known * (double)(graph.known + graph.unknown));
    assert_true((double)states.known > least_known * (double)(states.known + states.unknown));
    index_experiment_close(whole);
    index_experiment_close(cut);
    free(path);
}

static void without_index(void **state)
{
    for (int cpu = 0; cpu < 2; cpu++) {
        char file[8];
        snprintf(file, sizeof file, "ch_%d", cpu);
        char *dir = mem_printf("%s/three-tier/client", scratch);
        without(dir, file, true, cpu, 0, 0.02);
        free(dir);
    }
}

static void with_index(void **state)
{
    char *dir = mem_printf("%s/three-tier/client", scratch);
    without(dir, "ch_1", false, 1, 8 << 20, 0.02); /* chunks */
    free(dir);
}

/* Archives of one session, of which one lacks a CPU's stream; and all archives, without the indexes as well. */
static void archives(void **state)
{
    const char *data = getenv("WEFT_DATA");
    char *dir = mem_printf("%s/traces/rotated/solo", data ? data : WEFT_SOURCE_ROOT "/../shared/data");
    if (access(dir, R_OK)) {
        free(dir);
        skip_without("no recording `rotated`");
    }
    for (int archive = 0; archive < 5; archive++) {
        char *only = mem_printf("*-%d/kernel/ch_1", archive);
        without(dir, only, false, 1, 0, 0.02);
        free(only);
    }
    without(dir, "*/ch_1", true, 1, 0, 0.02);
    free(dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_index), cmocka_unit_test(with_index), cmocka_unit_test(archives)};
    return cmocka_run_group_tests(tests, make_scratch, remove_scratch);
}
