/* SPDX-License-Identifier: MIT */
/* Rows of futexes and tracks: who waits for which, who wakes others, what goes on at once (docs/formats/states.md). */
#include "world.h"

enum { A = 4, B, C };                                 /* threads */
enum { WAIT, WAKE, FD, TRYLOCK_PI = 8, WAIT_BITSET }; /* Linux's numbers of operations */

#define check_row(kind, number, text) assert_string_equal(world_row(&w, kind, number), text)

static void expect_user(const struct kernel_tracker *w, size_t row, int32_t thread, const char *futex, bool waits)
{
    struct state_row r;
    state_row(w->store, STATE_FUTEX_USER, row, &r);
    assert_int_equal(r.number, row);
    assert_int_equal(r.thread, thread);
    assert_string_equal(r.name, futex);
    assert_int_equal(r.waits, waits);
}

static void waits_and_wakes(void **state)
{
    struct kernel_tracker w;
    world_begin(&w);
    world_switch(&w, 100, 0, 0, A, KERNEL_LEAVE_RUNNABLE);
    world_switch(&w, 100, 1, 1, B, KERNEL_LEAVE_RUNNABLE);
    world_futex(&w, 110, 0, 0x10, WAIT_BITSET);
    world_switch(&w, 120, 0, A, 0, KERNEL_LEAVE_BLOCKED);
    world_futex(&w, 130, 1, 0x10, WAKE);
    world_wake(&w, 135, 1, A);
    world_return(&w, 140, 1, NAME_FUTEX, 1);
    world_switch(&w, 150, 0, 0, A, KERNEL_LEAVE_RUNNABLE);
    world_return(&w, 160, 0, NAME_FUTEX, 0);
    world_futex(&w, 170, 0, 0x20, WAIT);
    world_return(&w, 175, 0, NAME_FUTEX, -11);
    world_futex(&w, 180, 1, 0x10, TRYLOCK_PI); /* neither waits nor wakes (TRYLOCK) */
    world_return(&w, 185, 1, NAME_FUTEX, 0);
    world_futex(&w, 187, 1, 0x30, 200); /* Linux has no such operation */
    world_return(&w, 188, 1, NAME_FUTEX, -38);
    world_futex(&w, 190, 1, 0x10, WAIT_BITSET); /* endless */
    world_switch(&w, 250, 0, A, 0, KERNEL_LEAVE_RUNNABLE);
    world_end(&w);
    assert_int_equal(state_rows(w.store, STATE_FUTEX_USER), 3);
    expect_user(&w, 0, A, "0:0x10", true);
    expect_user(&w, 1, B, "0:0x10", true);
    expect_user(&w, 2, A, "0:0x20", true);
    check_row(STATE_FUTEX_USER, 0, "none:100-110 WAIT_BITSET=0:110-160 none:160-250");
    check_row(STATE_FUTEX_USER, 1, "none:100-130 WAKE=1:130-140 none:140-190 WAIT_BITSET!:190-250");
    check_row(STATE_FUTEX_USER, 2, "none:100-170 WAIT=-11:170-175 none:175-250");
    check_row(STATE_FUTEX_WAITS, 0,
        "none:100-110 0:0x10@4:110-160 none:160-170 0:0x20@4:170-175 none:175-190 0:0x10@5:190-250");
    check_row(STATE_FUTEX_WAKES, 0, "none:100-130 0:0x10@5:130-140 none:140-250");
    assert_int_equal(state_rows(w.store, STATE_FUTEX_WAITS), 1);
    assert_int_equal(state_rows(w.store, STATE_FUTEX_WAKES), 1);
    assert_int_equal(state_latencies(w.store, STATE_LATENCY_LOCK), 2); /* latencies seen from begin to end */
    struct state_interval track;
    assert_true(state_at(w.store, STATE_FUTEX_WAITS, 0, 200, &track));
    assert_int_equal(track.amount, 1); /* row with more details */
    world_close(&w);
}

/* Checks calls without return: one that only wakes; a wait ended by its thread's exit; one ended by another call. */
static void without_return(void **state)
{
    struct kernel_tracker w;
    world_begin(&w);
    world_switch(&w, 100, 0, 0, A, KERNEL_LEAVE_RUNNABLE);
    world_switch(&w, 100, 1, 1, B, KERNEL_LEAVE_RUNNABLE);
    world_futex(&w, 110, 0, 0x10, WAIT);
    world_futex(&w, 115, 1, 0x10, WAKE);
    world_return(&w, 120, 1, NAME_FUTEX, 0);
    world_add(&w,
        (struct kernel_record){
            .ts = 130, .cpu = 0, .kind = KERNEL_EXIT, .ctx = KERNEL_CTX_THREAD, .row = A, .u.thread = {A, 0}});
    world_futex(&w, 140, 1, 0x20, WAIT);
    world_call(&w, 150, 1, NAME_READ);
    world_switch(&w, 160, 0, A, 0, KERNEL_LEAVE_DEAD);
    world_end(&w);
    expect_user(&w, 0, A, "0:0x10", true);
    expect_user(&w, 1, B, "0:0x10", false);
    check_row(STATE_FUTEX_USER, 0, "none:100-110 WAIT!:110-130 none:130-160");
    check_row(STATE_FUTEX_USER, 2, "none:100-140 WAIT!:140-150 none:150-160");
    world_close(&w);
}

/* Checks the number of tracks: as many as wait at once; the lowest free one is taken. */
static void tracks(void **state)
{
    struct kernel_tracker w;
    world_begin(&w);
    world_switch(&w, 100, 0, 0, A, KERNEL_LEAVE_RUNNABLE);
    world_switch(&w, 100, 1, 1, B, KERNEL_LEAVE_RUNNABLE);
    world_switch(&w, 100, 2, 2, C, KERNEL_LEAVE_RUNNABLE);
    world_futex(&w, 110, 0, 0x10, WAIT);
    world_futex(&w, 120, 1, 0x10, WAIT);
    world_futex(&w, 130, 2, 0x10, WAIT);
    world_return(&w, 140, 1, NAME_FUTEX, 0);
    world_return(&w, 150, 0, NAME_FUTEX, 0);
    world_futex(&w, 160, 1, 0x20, WAIT);
    world_futex(&w, 170, 0, 0x20, WAIT);
    world_return(&w, 180, 1, NAME_FUTEX, 0);
    world_return(&w, 180, 0, NAME_FUTEX, 0);
    world_return(&w, 190, 2, NAME_FUTEX, 0);
    world_switch(&w, 200, 0, A, 0, KERNEL_LEAVE_RUNNABLE);
    world_end(&w);
    assert_int_equal(state_rows(w.store, STATE_FUTEX_WAITS), 3);
    check_row(STATE_FUTEX_WAITS, 0, "none:100-110 0:0x10@4:110-150 none:150-160 0:0x20@5:160-180 none:180-200");
    check_row(STATE_FUTEX_WAITS, 1, "none:100-120 0:0x10@5:120-140 none:140-170 0:0x20@4:170-180 none:180-200");
    check_row(STATE_FUTEX_WAITS, 2, "none:100-130 0:0x10@6:130-190 none:190-200");
    assert_int_equal(state_rows(w.store, STATE_FUTEX_WAKES), 0);
    world_close(&w);
}

/* Checks more than a word of tracks, freed and taken in any order. */
static void many_tracks(void **state)
{
    enum { FIRST = 10, THREADS = 150, CPU = 3 };
    struct kernel_tracker w;
    world_begin(&w);
    for (int round = 0, t = 100; round < 3;
         round++) /* rounds in which each thread gets the CPU, begins to wait and leaves it */
        for (int i = 0; i < THREADS; i++, t += 10) {
            world_switch(&w, t, CPU, w.on[CPU] < 0 ? CPU : w.on[CPU], FIRST + i, KERNEL_LEAVE_BLOCKED);
            if (round)
                world_return(&w, t + 1, CPU, NAME_FUTEX, 0);
            world_futex(&w, t + 2, CPU, 0x10, WAIT);
        }
    world_switch(&w, w.last + 10, CPU, w.on[CPU], CPU, KERNEL_LEAVE_BLOCKED);
    world_end(&w);
    assert_int_equal(state_rows(w.store, STATE_FUTEX_WAITS), THREADS);
    struct state_interval at;
    bool seen[WORLD_THREADS] = {false};
    for (size_t track = 0; track < THREADS; track++) {
        assert_true(state_at(w.store, STATE_FUTEX_WAITS, track, w.last, &at));
        assert_int_equal(at.value, STATE_FUTEX_WAIT);
        assert_false(seen[at.thread]);
        seen[at.thread] = true;
    }
    world_close(&w);
}

/* CPU 0 loses events from 200 to 240. A runs there within its call; C waits and returns when all is seen again. */
static void losses(void **state)
{
    struct kernel_tracker w;
    world_begin(&w);
    world_switch(&w, 100, 0, 0, A, KERNEL_LEAVE_RUNNABLE);
    world_switch(&w, 100, 1, 1, C, KERNEL_LEAVE_RUNNABLE);
    world_futex(&w, 140, 1, 0x20, WAIT);
    world_switch(&w, 150, 1, C, B, KERNEL_LEAVE_BLOCKED);
    world_futex(&w, 160, 0, 0x10, WAIT);
    world_futex(&w, 170, 1, 0x30, WAKE);
    world_lost(&w, 200, 0, 200, 400, 5);
    world_return(&w, 230, 1, NAME_FUTEX, 2); /* B was seen all the time */
    world_return(&w, 240, 0, NAME_READ, 0);  /* CPU 0 is heard of again */
    world_switch_since(&w, 260, 0, A, 0, KERNEL_LEAVE_BLOCKED, 240);
    world_wake(&w, 270, 1, C);
    world_switch(&w, 280, 1, B, C, KERNEL_LEAVE_RUNNABLE);
    world_return(&w, 290, 1, NAME_FUTEX, 0);
    world_futex(&w, 292, 1, 0x20, WAIT);
    world_return(&w, 296, 1, NAME_FUTEX, 0);
    world_switch(&w, 300, 1, C, 1, KERNEL_LEAVE_BLOCKED);
    world_end(&w);
    check_row(
        STATE_FUTEX_USER, 0, "none:100-140 WAIT!:140-200 unknown:200-290 none:290-292 WAIT=0:292-296 none:296-300");
    check_row(STATE_FUTEX_USER, 1, "none:100-160 WAIT!:160-200 unknown:200-240 none:240-300");
    check_row(STATE_FUTEX_USER, 2, "none:100-170 WAKE=2:170-230 none:230-300");
    check_row(STATE_FUTEX_WAITS, 0, "none:100-140 0:0x20@6:140-200 none:200-292 0:0x20@6:292-296 none:296-300");
    check_row(STATE_FUTEX_WAITS, 1, "none:100-160 0:0x10@4:160-200 none:200-300");
    check_row(STATE_FUTEX_WAKES, 0, "none:100-170 0:0x30@5:170-230 none:230-300");
    assert_int_equal(state_latencies(w.store, STATE_LATENCY_LOCK), 1);
    world_close(&w);
}

/* Checks that a caller is known by the CPU's first switch. */
static void before_first_switch(void **state)
{
    struct kernel_tracker w;
    world_begin(&w);
    world_switch(&w, 100, 1, 1, C, KERNEL_LEAVE_RUNNABLE);
    world_futex(&w, 110, 0, 0x10, WAIT);
    world_futex(&w, 120, 1, 0x10, WAIT);
    world_return(&w, 130, 1, NAME_FUTEX, 0); /* return: its track is free when this is known, but was not then */
    world_switch_since(&w, 150, 0, A, B, KERNEL_LEAVE_BLOCKED, 90);
    world_wake(&w, 160, 0, A);
    world_switch(&w, 170, 0, B, A, KERNEL_LEAVE_BLOCKED);
    world_return(&w, 180, 0, NAME_FUTEX, 0);
    world_switch(&w, 200, 0, A, 0, KERNEL_LEAVE_BLOCKED);
    world_end(&w);
    check_row(STATE_FUTEX_USER, 1, "none:90-110 WAIT=0:110-180 none:180-200");
    check_row(STATE_FUTEX_WAITS, 0, "none:90-120 0:0x10@6:120-130 none:130-200");
    check_row(STATE_FUTEX_WAITS, 1, "none:90-110 0:0x10@4:110-180 none:180-200");
    world_close(&w);
}

static void interrupts(void **state)
{
    struct kernel_tracker w;
    world_begin(&w);
    world_switch(&w, 100, 1, 1, A, KERNEL_LEAVE_RUNNABLE);
    world_irq(&w, 110, 0, KERNEL_IRQ_ENTRY, 7, 1);
    world_irq(&w, 120, 1, KERNEL_IRQ_ENTRY, 9, 2);
    world_irq(&w, 125, 2, KERNEL_IPI_ENTRY, NAME_IPI, 3);
    world_irq(&w, 130, 1, KERNEL_IRQ_EXIT, 9, 2);
    world_irq(&w, 135, 1, KERNEL_SOFTIRQ_ENTRY, KERNEL_SOFTIRQ_RCU, 4); /* interrupt without a line */
    world_irq(&w, 140, 1, KERNEL_IRQ_ENTRY, 7, 5);
    world_irq(&w, 145, 1, KERNEL_IRQ_EXIT, 7, 5);
    world_irq(&w, 146, 1, KERNEL_SOFTIRQ_EXIT, KERNEL_SOFTIRQ_RCU, 4);
    world_irq(&w, 150, 0, KERNEL_IRQ_EXIT, 7, 1);
    world_irq(&w, 160, 2, KERNEL_IPI_EXIT, NAME_IPI, 3);
    world_irq(&w, 170, 1, KERNEL_IRQ_ENTRY, 9, 6);
    w.frames[1] = 0; /* unrecorded end */
    world_call(&w, 180, 1, NAME_READ);
    world_switch(&w, 200, 1, A, 1, KERNEL_LEAVE_BLOCKED);
    world_end(&w);
    assert_int_equal(state_rows(w.store, STATE_IRQ_HANDLERS), 3);
    check_row(STATE_IRQ_HANDLERS, 0, "none:100-110 timer@0:110-150 none:150-170 9@1!:170-180 none:180-200");
    check_row(STATE_IRQ_HANDLERS, 1, "none:100-120 9@1:120-130 none:130-140 timer@1:140-145 none:145-200");
    check_row(STATE_IRQ_HANDLERS, 2, "none:100-125 reschedule@2:125-160 none:160-200");
    world_close(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(waits_and_wakes), cmocka_unit_test(without_return),
        cmocka_unit_test(tracks), cmocka_unit_test(many_tracks), cmocka_unit_test(losses),
        cmocka_unit_test(before_first_switch), cmocka_unit_test(interrupts)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
