/* SPDX-License-Identifier: MIT */
/* Call stacks in the contexts of events: which wait, and which stretch of running, they belong to. Made traces; what is
 * expected is what they were made of. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "base/text.h"
#include "graph/builder.h"
#include "graph/layout.h"
#include "made.h"

static const uint64_t lock[] = {0x7f01, 0x4010, 0x4000}, work[] = {0x4020, 0x4000}, other[] = {0x4030, 0x4000},
                      schedule[] = {0xffffffff81000010, 0xffffffff81000020};
#define STACK(a) a, sizeof(a) / sizeof *(a)
#define NONE NULL, 0

/* "user … | kernel …", "×N" if of several events; "-": there is none. */
static const char *text_of(bool has, const struct graph_stack *s, char *buf, size_t n)
{
    struct text t = {.fd = -1};
    for (int i = 0; has && i < s->n_user; i++)
        text_printf(&t, "%s%llx", i ? " " : "", (unsigned long long)s->user[i]);
    if (has && s->user_cut)
        text_puts(&t, " …");
    for (int i = 0; has && i < s->n_kernel; i++)
        text_printf(&t, "%s%llx", i ? " " : "|", (unsigned long long)s->kernel[i]);
    if (has && s->kernel_cut)
        text_puts(&t, " …");
    if (has && s->samples > 1)
        text_printf(&t, " ×%u", s->samples);
    snprintf(buf, n, "%s", has ? text_cstr(&t) : "-");
    text_fini(&t);
    return buf;
}

static void expect_wait(const struct graph *g, int tid, int64_t begin, const char *want)
{
    char got[8192];
    struct graph_stack s;
    bool has = graph_wait_stack(g, made_row(g, tid, 0), begin, &s);
    assert_string_equal(text_of(has, &s, got, sizeof got), want);
}

static void expect_running(const struct graph *g, int tid, int64_t begin, int64_t end, const char *want)
{
    char got[8192];
    struct graph_stack s;
    bool has = graph_running_stack(g, made_row(g, tid, 0), begin, end, &s);
    assert_string_equal(text_of(has, &s, got, sizeof got), want);
}

/* All events of the channel have contexts. */
static void waits_and_runs(void **state)
{
    struct maker *m = maker_new(2, M_STACKS);
    maker_switch(m, 0, 100, 0, READY, 1);
    maker_switch(m, 1, 100, 0, READY, 2);
    maker_stacks(m, STACK(lock), STACK(schedule));
    maker_switch(m, 0, 110, 1, SLEEP, 0); /* the stack is of the thread that leaves */
    maker_stacks(m, STACK(work), NONE);
    maker_wake(m, 1, 120, M_WAKING, 1, 0); /* that of the waker */
    maker_plain(m, 1, 121, M_OTHER);
    maker_stacks(m, STACK(other), NONE);
    maker_plain(m, 1, 122, M_OTHER);
    maker_stacks(m, NONE, NONE);
    maker_plain(m, 1, 123, M_OTHER);
    maker_switch(m, 0, 125, 0, READY, 1);
    maker_stacks(m, STACK(other), NONE);
    maker_switch(m, 0, 130, 1, PREEMPTED, 0); /* it wanted to run on */
    maker_stacks(m, NONE, NONE);
    maker_switch(m, 1, 140, 2, SLEEP, 0);
    struct graph *g = made_whole(m);
    assert_true(graph_has_stacks(g));
    expect_wait(g, 1, 110, "7f01 4010 4000|ffffffff81000010 ffffffff81000020");
    expect_wait(g, 1, 111, "-");
    expect_wait(g, 1, 130, "-");
    expect_wait(g, 2, 140, "-");
    expect_running(g, 2, 100, 140, "4020 4000 ×2");
    expect_running(g, 2, 119, 120, "4020 4000");
    expect_running(g, 2, 121, 140, "4030 4000");
    expect_running(g, 2, 122, 140, "-");
    expect_running(g, 1, 100, 120, "-"); /* where it waits is not where it ran */
    expect_running(g, 1, 120, 130, "4030 4000");
    graph_close(g);
}

/* The system calls' channel has stacks, that of the switches has none. Kernel frames of a call's begin are not those of
 * its wait. */
static void waits_in_calls(void **state)
{
    struct maker *m = maker_new(1, M_STACKS);
    maker_switch(m, 0, 100, 0, READY, 1);
    maker_stacks(m, STACK(lock), STACK(schedule));
    maker_number(m, 0, 105, M_FUTEX_ENTRY, 0x1000);
    maker_stacks(m, NONE, NONE);
    maker_switch(m, 0, 110, 1, SLEEP, 0);
    maker_wake(m, 0, 115, M_WAKING, 1, 0);
    maker_switch(m, 0, 120, 0, READY, 1);
    maker_switch(m, 0, 125, 1, SLEEP, 0);
    maker_wake(m, 0, 126, M_WAKING, 1, 0);
    maker_switch(m, 0, 127, 0, READY, 1);
    maker_number(m, 0, 128, M_FUTEX_EXIT, 0);
    maker_switch(m, 0, 130, 1, SLEEP, 0); /* no more in the call */
    maker_wake(m, 0, 135, M_WAKING, 1, 0);
    maker_switch(m, 0, 140, 0, READY, 1);
    maker_number(m, 0, 145, M_READ_ENTRY, 3); /* this call's stack was not recorded */
    maker_switch(m, 0, 150, 1, SLEEP, 0);
    struct graph *g = made_whole(m);
    expect_wait(g, 1, 110, "7f01 4010 4000");
    expect_wait(g, 1, 125, "7f01 4010 4000");
    expect_wait(g, 1, 130, "-");
    expect_wait(g, 1, 150, "-");
    graph_close(g);
}

/* In an interrupt the stack is of what it interrupted, and has nothing to do with the thread that is woken. */
static void interrupts(void **state)
{
    struct maker *m = maker_new(1, M_STACKS);
    maker_switch(m, 0, 100, 0, READY, 2);
    maker_stacks(m, STACK(work), STACK(schedule));
    maker_irq(m, 0, 110, true, 4, "disk");
    maker_wake(m, 0, 111, M_WAKING, 1, 0);
    maker_stacks(m, NONE, NONE);
    maker_irq(m, 0, 112, false, 4, "disk");
    maker_switch(m, 0, 120, 2, SLEEP, 0);
    struct graph *g = made_whole(m);
    assert_false(graph_has_stacks(g));
    graph_close(g);
}

/* LTTng records 128 addresses and one of all ones if there are more; nothing stops others from recording more. */
static void deep(void **state)
{
    static uint64_t marked[129], longer[200];
    uint64_t cut, left_out;
    char want[8192];
    struct text t = {.fd = -1};
    for (uint64_t i = 0; i < 200; i++) {
        longer[i] = 0x1000 + i;
        if (i < 128)
            marked[i] = 0x1000 + i;
    }
    marked[128] = UINT64_MAX;
    struct maker *m = maker_new(1, M_STACKS);
    maker_switch(m, 0, 100, 0, READY, 1);
    maker_stacks(m, STACK(marked), NONE);
    maker_switch(m, 0, 110, 1, SLEEP, 0);
    maker_stacks(m, NONE, NONE);
    maker_wake(m, 0, 111, M_WAKING, 1, 0);
    maker_switch(m, 0, 120, 0, READY, 1);
    maker_stacks(m, STACK(longer), NONE);
    maker_switch(m, 0, 130, 1, SLEEP, 0);
    struct graph *g = made_whole(m);
    for (uint64_t i = 0; i < 128; i++)
        text_printf(&t, "%llx ", (unsigned long long)longer[i]);
    snprintf(want, sizeof want, "%s…", text_cstr(&t));
    expect_wait(g, 1, 110, want);
    expect_wait(g, 1, 130, want);
    graph_stack_totals(g, &cut, &left_out);
    assert_int_equal(cut, 1); /* one stack, kept once */
    assert_int_equal(left_out, 0);
    graph_close(g);
    text_fini(&t);
}

/* Equal stacks are kept once; a trace without any has nothing more in its store. */
static void kept_once(void **state)
{
    for (int with = 0; with < 2; with++) {
        struct maker *m = maker_new(1, M_STACKS);
        for (int64_t t = 100; t < 3100; t += 30) {
            maker_switch(m, 0, t, 0, READY, 1);
            if (with)
                maker_stacks(m, STACK(lock), STACK(schedule));
            maker_switch(m, 0, t + 10, 1, SLEEP, 0);
            maker_stacks(m, NONE, NONE);
            maker_wake(m, 0, t + 20, M_WAKING, 1, 0);
        }
        struct graph *g = made_whole(m);
        const struct graph_chunk *c = g->chunks;
        assert_int_equal(c->n_samples, with ? 100 : 0);
        assert_int_equal(c->n_stacks, with ? 2 : 0);
        assert_int_equal(c->n_frames, with ? 5 : 0);
        size_t n;
        assert_true(!store_section(c->store, "stack-rows", 4, &n) == !with);
        assert_true(!store_section(c->store, "stack-totals", 16, &n) == !with);
        graph_close(g);
    }
}

/* A chunk's frames have a limit. An event whose one stack is beyond it counts, even if its other one is kept. */
static void left_out(void **state)
{
    struct graph_builder b = {0};
    struct graph_building_row row = {.now = GRAPH_NOW_RUNNING};
    struct kernel_stack stacks[KERNEL_STACK_KINDS] = {
        [KERNEL_STACK_USER] = {.n = 100}, [KERNEL_STACK_KERNEL] = {.n = 3}};
    struct kernel_record rec = {.ctx = KERNEL_CTX_THREAD, .kind = KERNEL_OTHER, .stacks = stacks};
    vec_push(&b.rows, row);
    b.stacks.frames.cap = GRAPH_MOST_STACK_FRAMES;
    b.stacks.frames.v = mem_try(b.stacks.frames.cap, sizeof *b.stacks.frames.v); /* not touched but at its end */
    assert_non_null(b.stacks.frames.v);
    b.stacks.frames.n = b.stacks.frames.cap - 5;
    for (uint64_t i = 0; i < 2; i++) {
        graph_builder_stacks(&b, &rec);
        assert_int_equal(b.stacks.left_out, i + 1);
        assert_int_equal(b.stacks.samples.n, i + 1);
    }
    stacks[KERNEL_STACK_USER].n = 0;
    graph_builder_stacks(&b, &rec);
    assert_int_equal(b.stacks.left_out, 2);
    graph_stacks_fini(&b.stacks);
    vec_free(&b.rows);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(waits_and_runs),
        cmocka_unit_test(waits_in_calls),
        cmocka_unit_test(interrupts),
        cmocka_unit_test(deep),
        cmocka_unit_test(kept_once),
        cmocka_unit_test(left_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
