/* SPDX-License-Identifier: MIT */
/* Call stacks of made user-space traces: every interval as the rules of docs/formats/stacks.md give it by hand; samples
 * against brute force. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../base/test.h"
#include "fixture.h"
#include "ust_world.h"

struct place {
    char dir[200], store[240];
};

static void make_place(struct place *p)
{
    const char *tmp = getenv("TMPDIR");
    snprintf(p->dir, sizeof p->dir, "%s/weft-stacks-XXXXXX", tmp ? tmp : "/tmp");
    assert_non_null(mkdtemp(p->dir));
    snprintf(p->store, sizeof p->store, "%s.store", p->dir);
}

static struct stack_store *open_store(const struct place *p)
{
    struct stack_store *s = NULL;
    struct err e = {0};
    if (stack_fixture(p->dir, p->store, &s, &e))
        fail_msg("%s", e.text);
    return s;
}

static void remove_place(const struct place *p)
{
    char command[512];
    snprintf(command, sizeof command, "rm -rf '%s' '%s'", p->dir, p->store);
    assert_int_equal(system(command), 0);
}

static size_t find_thread(const struct stack_store *s, int32_t pid, int32_t tid, struct stack_thread *out)
{
    for (size_t i = 0; i < stack_threads(s); i++) {
        struct stack_process p;
        stack_thread(s, i, out);
        stack_process(s, out->process, &p);
        if (p.pid == pid && out->tid == tid)
            return i;
    }
    fail_msg("no thread %d of %d", tid, pid);
    return 0;
}

struct wanted {
    int64_t begin, end;
    enum stack_how how;
    const char *name;
};

static void check_level(
    const struct stack_store *s, int32_t pid, int32_t tid, uint32_t level, const struct wanted *w, size_t n)
{
    struct stack_thread t;
    find_thread(s, pid, tid, &t);
    assert_true(level < t.rows);
    assert_int_equal(stack_calls(s, t.first_row + level), n);
    for (size_t i = 0; i < n; i++) {
        struct stack_call c;
        struct stack_function f;
        stack_call(s, t.first_row + level, i, &c);
        if (c.begin != UST_START + w[i].begin || c.end != UST_START + w[i].end || c.how != w[i].how)
            fail_msg("thread %d, level %u, call %zu: [%lld, %lld] %d", tid, level, i, (long long)(c.begin - UST_START),
                (long long)(c.end - UST_START), c.how);
        if (!w[i].name)
            continue;
        stack_function(s, c.function, &f);
        assert_string_equal(f.name, w[i].name);
    }
}

#define LEVEL(pid, tid, level, ...) \
    do { \
        const struct wanted w[] = {__VA_ARGS__}; \
        check_level(s, pid, tid, level, w, sizeof w / sizeof *w); \
    } while (0)

static void test_sample_trace(void **state)
{
    struct place p;
    make_place(&p);
    ust_write_sample(p.dir, "made");
    struct stack_store *s = open_store(&p);
    assert_int_equal(stack_processes(s), 2);
    assert_int_equal(stack_threads(s), 3);
    struct stack_process process;
    stack_process(s, 0, &process);
    assert_int_equal(process.pid, 100);
    assert_string_equal(process.name, "app");
    assert_int_equal(process.threads, 2);
    stack_process(s, 1, &process);
    assert_int_equal(process.first_thread, 2);
    assert_string_equal(process.name, "tool");

    LEVEL(100, 100, 0, {2000, 2970, STACK_CUT, "app+0x10"}, {2970, 6000, STACK_UNKNOWN, NULL},
        {6000, 6000, STACK_CUT, "app+0x60"}, {6000, 7000, STACK_UNKNOWN, NULL}, {7000, 8000, STACK_CUT, "app+0x70"});
    LEVEL(100, 100, 1, {2100, 2500, STACK_WHOLE, "app+0x20"}, {2600, 2700, STACK_WHOLE, "parse(char const*)"},
        {2900, 2950, STACK_WHOLE, "plugin.so+0x100"});
    LEVEL(100, 101, 0, {2200, 2970, STACK_CUT, "app+0x30"}, {2970, 5000, STACK_UNKNOWN, NULL},
        {5000, 5200, STACK_WHOLE, "app+0x50"}, {5200, 8000, STACK_UNKNOWN, NULL});
    LEVEL(200, 200, 0, {3000, 3400, STACK_WHOLE, "tool@0x400800"}, {4000, 4000, STACK_CUT, "tool@0x400b00"},
        {4000, 5600, STACK_UNKNOWN, NULL});
    LEVEL(200, 200, 1, {3100, 3400, STACK_CUT, "tool@0x400900"});
    LEVEL(200, 200, 2, {3200, 3400, STACK_CUT, "tool@0x400a00"});

    const struct stack_totals *t = stack_totals(s);
    assert_int_equal(t->events, 27);
    assert_int_equal(t->lost_events, 5);
    assert_int_equal(t->calls, 12);
    assert_int_equal(t->strange_exits, 2);
    assert_int_equal(t->missing_exits, 2);
    assert_int_equal(t->begin, UST_START + 1000);
    assert_int_equal(t->end, UST_START + 8000);
    assert_int_equal(stack_losses(s), 1);
    struct stack_loss loss;
    stack_loss(s, 0, &loss);
    assert_int_equal(loss.begin, UST_START + 2970);
    assert_int_equal(loss.end, UST_START + 6000);
    assert_int_equal(loss.count, 5);

    struct stack_thread thread;
    size_t worker = find_thread(s, 100, 101, &thread);
    assert_string_equal(thread.name, "worker");
    assert_string_equal(stack_thread_name(s, worker, UST_START + 4999), "app");
    assert_string_equal(stack_thread_name(s, worker, UST_START + 5000), "worker");
    assert_false(thread.has_memory);
    size_t first = find_thread(s, 100, 100, &thread);
    assert_true(thread.has_memory);
    const int64_t times[] = {
        UST_START + 2149, UST_START + 2150, UST_START + 2969, UST_START + 2970, UST_START + 5299, UST_START + 5300};
    int64_t bytes[6];
    stack_memory(s, first, times, 6, bytes);
    assert_memory_equal(bytes, ((int64_t[]){0, 4096, 4096, 0, 0, 1000}), sizeof bytes);
    stack_close(s);
    remove_place(&p);
}

/* Frames, memory and libraries of a program end when another one takes its place, but not at a state dump on demand. */
static void test_exec(void **state)
{
    struct place p;
    make_place(&p);
    ust_write_exec(p.dir);
    struct stack_store *s = open_store(&p);
    LEVEL(100, 100, 0, {200, 500, STACK_CUT, "first+0x10"}, {600, 710, STACK_CUT, "second+0x10"},
        {800, 900, STACK_WHOLE, "third+0x10"});
    LEVEL(100, 100, 1, {300, 450, STACK_WHOLE, "first+0x20"});
    LEVEL(100, 101, 0, {350, 500, STACK_CUT, "first+0x30"});
    const struct stack_totals *t = stack_totals(s);
    assert_int_equal(t->strange_exits, 1);
    assert_int_equal(t->strange_frees, 1);
    struct stack_thread thread;
    const int64_t times[] = {UST_START + 310, UST_START + 499, UST_START + 500, UST_START + 610, UST_START + 709,
        UST_START + 710, UST_START + 950};
    int64_t bytes[7];
    stack_memory(s, find_thread(s, 100, 100, &thread), times, 7, bytes);
    assert_memory_equal(bytes, ((int64_t[]){4096, 4096, 0, 50, 50, 0, 0}), sizeof bytes);
    stack_memory(s, find_thread(s, 100, 101, &thread), times, 7, bytes);
    assert_memory_equal(bytes, ((int64_t[]){0, 100, 0, 0, 0, 0, 0}), sizeof bytes);
    stack_close(s);
    remove_place(&p);
}

/* The same program, thread numbers included, at another address: another process that got the numbers of an earlier
 * one, as in containers. It began with none of the earlier one's calls and memory. */
static void test_numbers_reused(void **state)
{
    struct place p;
    struct ust u;
    make_place(&p);
    ust_create(&u, p.dir, "made", false);
    static const struct {
        int64_t t;
        uint64_t base;
    } dumps[] = {{100, 0x10000}, {400, 0x10000}, {500, 0x30000}}; /* the second one is on demand */
    for (size_t i = 0; i < 3; i++) {
        u.tid = 102;
        ust_dump(&u, dumps[i].t);
        ust_bin_info(&u, dumps[i].t + 10, dumps[i].base, 0x1000, "/bin/app", true);
        u.tid = 100;
        ust_enter(&u, dumps[i].t + 50, dumps[i].base + 0x10);
        ust_malloc(&u, dumps[i].t + 60, 4096, 0x9000 + 0x1000 * i);
    }
    ust_exit(&u, 600, 0x30010);
    ust_close(&u);
    struct stack_store *s = open_store(&p);
    LEVEL(100, 100, 0, {150, 510, STACK_CUT, "app+0x10"}, {550, 600, STACK_WHOLE, "app+0x10"});
    LEVEL(100, 100, 1, {450, 510, STACK_CUT, "app+0x10"});
    struct stack_thread thread;
    const int64_t times[] = {UST_START + 509, UST_START + 510, UST_START + 560};
    int64_t bytes[3];
    stack_memory(s, find_thread(s, 100, 100, &thread), times, 3, bytes);
    assert_memory_equal(bytes, ((int64_t[]){8192, 0, 4096}), sizeof bytes);
    stack_close(s);
    remove_place(&p);
}

/* Exits without an address end the innermost call; addresses may come to mean something else. */
static void test_fast_and_reloaded(void **state)
{
    struct place p;
    struct ust u;
    make_place(&p);
    ust_create(&u, p.dir, "made", false);
    ust_fast_exit(&u, 50);
    ust_fast_enter(&u, 100, 0x5010);
    ust_fast_enter(&u, 110, 0x5020);
    ust_fast_exit(&u, 120);
    ust_fast_exit(&u, 130);
    ust_bin_info(&u, 140, 0x5000, 0x100, "/lib/one.so", true);
    ust_fast_enter(&u, 150, 0x5010);
    ust_fast_exit(&u, 160);
    ust_dlclose(&u, 170, 0x5000);
    ust_dlopen(&u, 180, 0x5000, 0x100, "/lib/two.so");
    ust_fast_enter(&u, 190, 0x5010);
    ust_fast_exit(&u, 200);
    ust_fast_enter(&u, 210, 0x5100);
    ust_fast_exit(&u, 220);
    ust_close(&u);
    struct stack_store *s = open_store(&p);
    LEVEL(100, 100, 0, {100, 130, STACK_WHOLE, "one.so+0x10"}, {150, 160, STACK_WHOLE, "one.so+0x10"},
        {190, 200, STACK_WHOLE, "two.so+0x10"}, {210, 220, STACK_WHOLE, "0x5100"});
    LEVEL(100, 100, 1, {110, 120, STACK_WHOLE, "one.so+0x20"});
    assert_int_equal(stack_functions(s), 4);
    assert_int_equal(stack_totals(s)->strange_exits, 1);
    stack_close(s);
    remove_place(&p);
}

/* Checks traces without contexts: the records of a stream are one stack, and a loss affects only the stream that
 * reported it. */
static void test_without_contexts(void **state)
{
    struct place p;
    struct ust u;
    make_place(&p);
    ust_create(&u, p.dir, "made", true);
    ust_enter(&u, 100, 0x10);
    ust_lose(&u, 0);
    u.cpu = 1;
    ust_enter(&u, 150, 0x20);
    u.cpu = 0;
    ust_message(&u, 200, "after");
    ust_lose(&u, 3);
    ust_exit(&u, 300, 0x10);
    u.cpu = 1;
    ust_exit(&u, 400, 0x20);
    ust_close(&u);
    struct stack_store *s = open_store(&p);
    assert_int_equal(stack_threads(s), 2);
    struct stack_process process;
    struct stack_thread t;
    struct stack_call c;
    assert_int_equal(stack_processes(s), 1);
    stack_process(s, 0, &process);
    assert_int_equal(process.pid, 321);
    stack_thread(s, 0, &t);
    assert_int_equal(t.tid, -1);
    assert_int_equal(t.cpu, 0);
    assert_int_equal(stack_calls(s, t.first_row), 2);
    stack_call(s, t.first_row, 0, &c);
    assert_int_equal(c.how, STACK_CUT);
    assert_int_equal(c.end, UST_START + 100);
    stack_call(s, t.first_row, 1, &c);
    assert_int_equal(c.how, STACK_UNKNOWN);
    assert_int_equal(c.end, UST_START + 300);
    stack_thread(s, 1, &t);
    assert_int_equal(t.cpu, 1);
    assert_int_equal(stack_calls(s, t.first_row), 1);
    stack_call(s, t.first_row, 0, &c);
    assert_int_equal(c.how, STACK_WHOLE);
    assert_int_equal(c.end, UST_START + 400);
    stack_close(s);
    remove_place(&p);
}

/* Checks a function that calls itself, and leaves the inner calls by longjmp: the return address of its exit identifies
 * the call. An address of no call is no reason to end none. */
static void test_left_by_longjmp(void **state)
{
    struct place p;
    struct ust u;
    make_place(&p);
    ust_create(&u, p.dir, "made", false);
    ust_enter_from(&u, 100, 0x100, 0x10);
    ust_enter_from(&u, 200, 0x200, 0x150);
    ust_enter_from(&u, 300, 0x200, 0x250);
    ust_enter_from(&u, 400, 0x200, 0x250);
    ust_exit_to(&u, 500, 0x200, 0x150); /* back in the outermost one, which returns */
    ust_enter_from(&u, 600, 0x200, 0x160);
    ust_exit_to(&u, 700, 0x200, 0x999);
    ust_exit_to(&u, 800, 0x100, 0x10);
    ust_close(&u);
    struct stack_store *s = open_store(&p);
    LEVEL(100, 100, 0, {100, 800, STACK_WHOLE, "0x100"});
    LEVEL(100, 100, 1, {200, 500, STACK_WHOLE, "0x200"}, {600, 700, STACK_WHOLE, "0x200"});
    LEVEL(100, 100, 2, {300, 500, STACK_CUT, "0x200"});
    LEVEL(100, 100, 3, {400, 500, STACK_CUT, "0x200"});
    assert_int_equal(stack_totals(s)->missing_exits, 2);
    assert_int_equal(stack_totals(s)->strange_exits, 0);
    stack_close(s);
    remove_place(&p);
}

/* Checks exits after lost events: an exit proves that a call from before them went on, and those around it still do. A
 * call is reported only where none is known to be open. */
static void test_proven_by_exits(void **state)
{
    struct place p;
    struct ust u;
    make_place(&p);
    ust_create(&u, p.dir, "made", false);
    for (uint64_t i = 1; i <= 4; i++) /* 0x10 calls 0x20, that 0x30, that 0x40 */
        ust_enter(&u, (int64_t)(i * 100), i * 0x10);
    ust_lose(&u, 0);
    ust_exit(&u, 1000, 0x50); /* entered meanwhile, by 0x40 or another one */
    ust_lose(&u, 3);
    ust_enter(&u, 1100, 0x60);
    ust_exit(&u, 1200, 0x60);
    ust_exit(&u, 1300, 0x30); /* proof that 0x10 and 0x20 were open all the time */
    ust_enter(&u, 1400, 0x70);
    ust_exit(&u, 1500, 0x70);
    ust_exit(&u, 1600, 0x20);
    ust_exit(&u, 1700, 0x10);
    ust_enter(&u, 1800, 0x10); /* known again: nothing was called before it */
    ust_exit(&u, 1900, 0x10);
    ust_close(&u);
    struct stack_store *s = open_store(&p);
    LEVEL(100, 100, 0, {100, 400, STACK_CUT, "0x10"}, {400, 1100, STACK_UNKNOWN, NULL},
        {1100, 1200, STACK_WHOLE, "0x60"}, {1200, 1400, STACK_UNKNOWN, NULL}, {1400, 1500, STACK_WHOLE, "0x70"},
        {1500, 1700, STACK_UNKNOWN, NULL}, {1800, 1900, STACK_WHOLE, "0x10"});
    LEVEL(100, 100, 1, {200, 400, STACK_CUT, "0x20"}, {400, 1600, STACK_UNKNOWN, NULL});
    LEVEL(100, 100, 2, {300, 400, STACK_CUT, "0x30"}, {400, 1300, STACK_UNKNOWN, NULL});
    LEVEL(100, 100, 3, {400, 400, STACK_CUT, "0x40"}, {400, 1300, STACK_UNKNOWN, NULL});
    assert_int_equal(stack_totals(s)->strange_exits, 4);
    stack_close(s);
    remove_place(&p);
}

/* Functions that are called again and again: each later entry shows that the one before has returned. */
static void test_entered_anew(void **state)
{
    struct place p;
    struct ust u;
    make_place(&p);
    ust_create(&u, p.dir, "made", false);
    ust_enter(&u, 100, 0x10);
    ust_enter(&u, 200, 0x20);
    ust_lose(&u, 0);
    ust_message(&u, 900, "the loss is before this");
    ust_lose(&u, 3);
    ust_enter(&u, 1000, 0x20);
    ust_exit(&u, 1100, 0x20);
    ust_enter(&u, 1200, 0x10);
    ust_exit(&u, 1300, 0x10);
    ust_message(&u, 1500, "end");
    ust_close(&u);
    struct stack_store *s = open_store(&p);
    LEVEL(100, 100, 0, {100, 200, STACK_CUT, "0x10"}, {200, 1000, STACK_UNKNOWN, NULL},
        {1000, 1100, STACK_WHOLE, "0x20"}, {1100, 1200, STACK_UNKNOWN, NULL}, {1200, 1300, STACK_WHOLE, "0x10"});
    LEVEL(100, 100, 1, {200, 200, STACK_CUT, "0x20"}, {200, 1000, STACK_UNKNOWN, NULL});
    stack_close(s);
    remove_place(&p);
}

/* realloc moves, fails, frees; what was freed without notice is not counted twice; strangers are counted. */
static void test_memory(void **state)
{
    struct place p;
    struct ust u;
    make_place(&p);
    ust_create(&u, p.dir, "made", false);
    ust_malloc(&u, 10, 100, 0x1);
    ust_realloc(&u, 20, 0x1, 300, 0x2);
    ust_realloc(&u, 30, 0x2, 1 << 30, 0); /* fails */
    ust_malloc(&u, 40, 50, 0);            /* fails */
    ust_malloc(&u, 50, 7, 0x2);           /* proof that the first one is gone */
    ust_free(&u, 60, 0x99);
    ust_free(&u, 65, 0);
    u.tid = 101;
    ust_free(&u, 70, 0x2);
    u.tid = 100;
    ust_malloc(&u, 80, 1000, 0x3);
    ust_realloc(&u, 90, 0x3, 0, 0); /* frees */
    u.pid = 200;
    u.tid = 200;
    ust_malloc(&u, 95, 5, 0x3);
    ust_malloc(&u, 100, UINT64_MAX, 0x4); /* impossible size */
    ust_close(&u);
    struct stack_store *s = open_store(&p);
    const int64_t times[] = {UST_START + 10, UST_START + 20, UST_START + 49, UST_START + 50, UST_START + 79,
        UST_START + 80, UST_START + 100};
    int64_t bytes[7];
    struct stack_thread t;
    stack_memory(s, find_thread(s, 100, 100, &t), times, 7, bytes);
    assert_memory_equal(bytes, ((int64_t[]){100, 300, 300, 7, 7, 1007, 7}), sizeof bytes);
    stack_memory(s, find_thread(s, 100, 101, &t), times, 7, bytes);
    assert_memory_equal(bytes, ((int64_t[]){0, 0, 0, 0, -7, -7, -7}), sizeof bytes);
    stack_memory(s, find_thread(s, 200, 200, &t), times, 7, bytes);
    assert_int_equal(bytes[6], 5);
    assert_int_equal(stack_totals(s)->strange_frees, 1);
    stack_close(s);
    remove_place(&p);
}

/* Recursion beyond what is kept does no harm. */
static void test_depth(void **state)
{
    enum { DEPTH = STACK_MOST_LEVELS + 100 };
    struct place p;
    struct ust u;
    make_place(&p);
    ust_create(&u, p.dir, "made", false);
    for (int i = 0; i < DEPTH; i++)
        ust_enter(&u, i, 0x10);
    for (int i = 0; i < DEPTH; i++)
        ust_exit(&u, DEPTH + i, 0x10);
    ust_close(&u);
    struct stack_store *s = open_store(&p);
    assert_int_equal(stack_rows(s), STACK_MOST_LEVELS);
    assert_int_equal(stack_totals(s)->calls, DEPTH);
    assert_int_equal(stack_totals(s)->too_deep, 100);
    LEVEL(100, 100, 0, {0, 2 * DEPTH - 1, STACK_WHOLE, "0x10"});
    stack_close(s);
    remove_place(&p);
}

/* The state at t by looking at every call. */
static struct stack_call brute(const struct stack_store *s, size_t row, int64_t t)
{
    struct stack_call c, none = {stack_totals(s)->begin, stack_totals(s)->end, 0, STACK_NOTHING};
    for (size_t i = 0; i < stack_calls(s, row); i++) {
        stack_call(s, row, i, &c);
        if (c.begin <= t && t < c.end)
            return c;
        if (c.begin <= t)
            none.begin = c.end;
        else if (c.begin < none.end)
            none.end = c.begin;
    }
    return none;
}

static void test_samples(void **state)
{
    enum { SAMPLES = 200 };
    struct place p;
    make_place(&p);
    ust_write_random(p.dir, (uint32_t)test_seed(99), 4000, true);
    struct stack_store *s = open_store(&p);
    int64_t begin = stack_totals(s)->begin, end = stack_totals(s)->end;
    for (size_t row = 0; row < stack_rows(s); row++)
        for (int64_t zoom = 1; zoom < 1000000; zoom *= 97) {
            int64_t times[SAMPLES], from = begin + (end - begin) / 2 * (row % 3 > 0) - 1,
                                    step = (end - from) / zoom / (SAMPLES - 1) + 1;
            struct stack_call got[SAMPLES], last = {0};
            size_t at = 0;
            for (int i = 0; i < SAMPLES; i++)
                times[i] = from + step * i;
            size_t n = stack_sample(s, row, times, SAMPLES, got);
            for (int i = 0; i < SAMPLES; i++) {
                if (times[i] < begin || times[i] > end)
                    continue;
                struct stack_call c = brute(s, row, times[i] == end ? end - 1 : times[i]);
                if (at && c.begin == last.begin && c.end == last.end)
                    continue;
                assert_true(at < n);
                assert_int_equal(got[at].begin, c.begin);
                assert_int_equal(got[at].end, c.end);
                assert_int_equal(got[at].how, c.how);
                assert_int_equal(got[at].function, c.function);
                last = c;
                at++;
            }
            assert_int_equal(at, n);
            size_t i = stack_find(s, row, times[SAMPLES / 2]);
            struct stack_call c;
            if (i < stack_calls(s, row)) {
                stack_call(s, row, i, &c);
                assert_true(c.end >= times[SAMPLES / 2]);
            }
            if (i > 0) {
                stack_call(s, row, i - 1, &c);
                assert_true(c.end < times[SAMPLES / 2]);
            }
        }
    stack_close(s);
    remove_place(&p);
}

/* ---- a file that is cut off while it is open ---- */

static size_t ask_all(const struct stack_store *s)
{
    const struct stack_totals *span = stack_totals(s);
    struct stack_figures *of = calloc(stack_functions(s) + 1, sizeof *of);
    size_t sum = 0;
    for (size_t i = 0; i < stack_threads(s); i++) {
        struct stack_thread t;
        int64_t times[8], bytes[8];
        struct stack_call found[8];
        stack_thread(s, i, &t);
        for (int k = 0; k < 8; k++)
            times[k] = span->begin + (span->end - span->begin) / 7 * k;
        stack_memory(s, i, times, 8, bytes);
        sum += strlen(t.name);
        for (size_t row = t.first_row; row < t.first_row + t.rows; row++) {
            size_t n = stack_calls(s, row);
            uint64_t counts[8] = {0};
            sum += stack_sample(s, row, times, 8, found);
            stack_figures(s, row, 0, n, of);
            stack_histogram(s, row, n / 3, n, 1000, 8, counts);
            sum += stack_whole_before(s, row, n / 2) + stack_whole_at(s, row, n / 3);
            for (size_t k = 0; k < stack_calls(s, row); k++) {
                struct stack_function f;
                stack_call(s, row, k, &found[0]);
                stack_function(s, found[0].function, &f);
                sum += strlen(f.name) + stack_find(s, row, found[0].begin);
            }
        }
    }
    free(of);
    return sum;
}

/* cmocka catches SIGBUS itself: in a process of its own, in which nothing was opened before. */
static void test_cut_off(void **state)
{
    (void)state;
    for (int page = 0; page < 12; page++) {
        pid_t child = fork();
        if (child == 0) {
            signal(SIGBUS, SIG_DFL);
            struct place p;
            struct stack_store *s;
            struct err e = {0};
            snprintf(p.dir, sizeof p.dir, "/tmp/weft-stacks-XXXXXX");
            bool good = mkdtemp(p.dir) != NULL;
            snprintf(p.store, sizeof p.store, "%s.store", p.dir);
            ust_write_random(p.dir, (uint32_t)test_seed(7), 9000, false);
            good = good && !stack_fixture(p.dir, p.store, &s, &e) && ask_all(s) && !stack_intact(s, &e) &&
                !truncate(p.store, page * 4096 + page);
            good = good && ask_all(s) < SIZE_MAX && stack_intact(s, &e) == ERR_LOST && strstr(e.text, p.store);
            remove_place(&p);
            _exit(good ? 0 : 1);
        }
        int status = -1;
        waitpid(child, &status, 0);
        if (status)
            fail_msg("cut after page %d: status %#x", page, (unsigned)status);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cut_off), /* first: see there */
        cmocka_unit_test(test_sample_trace),
        cmocka_unit_test(test_exec),
        cmocka_unit_test(test_numbers_reused),
        cmocka_unit_test(test_fast_and_reloaded),
        cmocka_unit_test(test_without_contexts),
        cmocka_unit_test(test_left_by_longjmp),
        cmocka_unit_test(test_proven_by_exits),
        cmocka_unit_test(test_entered_anew),
        cmocka_unit_test(test_memory),
        cmocka_unit_test(test_depth),
        cmocka_unit_test(test_samples),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
