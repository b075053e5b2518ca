/* SPDX-License-Identifier: MIT */
/* Interrupts over all CPUs: rows that follow from those of single CPUs. Written cases, and random ones against brute
 * force over the rows of the CPUs. */
#include "../base/test.h"
#include "world.h"

enum { VECTOR = KERNEL_SOFTIRQ_RCU };

#define check_row(kind, number, text) assert_string_equal(world_row(&w, kind, number), text)

static void enter(struct kernel_tracker *w, int64_t ts, int cpu)
{
    world_irq(w, ts, cpu, KERNEL_SOFTIRQ_ENTRY, VECTOR, (uint32_t)cpu + 1);
}
static void leave(struct kernel_tracker *w, int64_t ts, int cpu)
{
    world_irq(w, ts, cpu, KERNEL_SOFTIRQ_EXIT, VECTOR, (uint32_t)cpu + 1);
}

/* The ends of those that began earlier do not show; when the last one ends, the one before shows again. */
static void last_begun_shows(void **state)
{
    struct kernel_tracker w;
    world_begin(&w);
    enter(&w, 110, 0);
    enter(&w, 120, 1);
    leave(&w, 125, 0);
    leave(&w, 130, 1);
    enter(&w, 200, 0);
    enter(&w, 210, 2);
    enter(&w, 220, 1);
    leave(&w, 230, 1);
    enter(&w, 240, 1);
    leave(&w, 250, 2);
    leave(&w, 260, 1);
    leave(&w, 300, 0);
    w.first = 100;
    w.last = 400;
    world_end(&w);
    check_row(STATE_SOFTIRQ_VECTOR, VECTOR,
        "none:100-110 active@0:110-120 active@1:120-130 none:130-200 active@0:200-210 active@2:210-220 "
        "active@1:220-230 active@2:230-240 "
        "active@1:240-260 active@0:260-300 none:300-400");
    check_row(STATE_IRQ_LINE, VECTOR, "no such row");
    struct state_row r;
    state_row(w.store, STATE_SOFTIRQ_VECTOR, 0, &r);
    assert_int_equal(state_rows(w.store, STATE_SOFTIRQ_VECTOR), 1);
    assert_int_equal(r.kind, STATE_SOFTIRQ_VECTOR);
    assert_int_equal(r.number, VECTOR);
    assert_int_equal(r.intervals, 4 + 6 + 2); /* intervals of the CPUs' rows */
    assert_int_equal(r.begin, 100);
    assert_int_equal(r.end, 400);
    assert_string_equal(r.name, "RCU");
    world_close(&w);
}

static void in_the_same_ns(void **state)
{
    struct kernel_tracker w;
    world_begin(&w);
    enter(&w, 110, 1); /* simultaneous begin: the higher CPU is shown, whatever the order of records */
    enter(&w, 110, 0);
    leave(&w, 120, 1);
    leave(&w, 130, 0);
    enter(&w, 200, 0);
    enter(&w, 210, 1);
    leave(&w, 220, 0); /* ends and begins again: it never was away */
    enter(&w, 220, 0);
    leave(&w, 230, 1);
    leave(&w, 240, 0);
    enter(&w, 300, 2);
    leave(&w, 310, 2); /* hands over */
    enter(&w, 310, 3);
    enter(&w, 315, 0); /* takes no time */
    leave(&w, 315, 0);
    leave(&w, 320, 3);
    w.first = 100;
    w.last = 400;
    world_end(&w);
    check_row(STATE_SOFTIRQ_VECTOR, VECTOR,
        "none:100-110 active@1:110-120 active@0:120-130 none:130-200 active@0:200-210 active@1:210-230 "
        "active@0:230-240 none:240-300 "
        "active@2:300-310 active@3:310-320 none:320-400");
    world_close(&w);
}

/* Unknown on some CPU that had it before, and known to be at it on none. */
static void losses(void **state)
{
    struct kernel_tracker w;
    world_begin(&w);
    enter(&w, 110, 0);
    leave(&w, 120, 0);
    enter(&w, 130, 1);
    leave(&w, 140, 1);
    world_lost(&w, 150, 3, 150, 160, 1); /* CPU that never handles it */
    world_lost(&w, 200, 0, 200, 260, 1);
    enter(&w, 220, 2);
    leave(&w, 230, 2);
    world_lost(&w, 240, 1, 240, 300, 1);
    world_switch(&w, 265, 0, 0, 4, KERNEL_LEAVE_RUNNABLE);
    world_switch(&w, 290, 1, 1, 5, KERNEL_LEAVE_RUNNABLE);
    enter(&w, 310, 2);
    world_lost(&w, 320, 2, 320, 350, 1); /* CPU that handled it */
    enter(&w, 330, 1);
    leave(&w, 340, 1);
    world_switch(&w, 400, 2, 2, 6, KERNEL_LEAVE_RUNNABLE);
    w.first = 100;
    world_end(&w);
    check_row(STATE_SOFTIRQ_VECTOR, VECTOR,
        "none:100-110 active@0:110-120 none:120-130 active@1:130-140 none:140-200 unknown:200-220 active@2:220-230 "
        "unknown:230-290 "
        "none:290-310 active@2:310-320 unknown:320-330 active@1:330-340 unknown:340-350 none:350-400");
    world_close(&w);
}

/* ---- random ---- */

enum { EVENTS = 12000, MOST = 4 * EVENTS, LINES = 3, QUERIES = 300, SAMPLES = 500 };

/* Interrupts above softirqs above threads; many at once, many in the same ns; losses of one CPU or of all. */
static void make_world(struct kernel_tracker *w, bool lossy)
{
    struct {
        int kind;
        uint16_t number;
        uint32_t serial;
    } open[WORLD_CPUS][2];
    uint32_t serial = 0;
    int64_t ts = 1000;
    world_begin(w);
    for (int i = 0; i < EVENTS; i++) {
        int cpu = (int)world_random(WORLD_CPUS), depth = w->frames[cpu];
        ts += world_random(3) ? (int64_t)world_random(world_random(40) ? 20 : 2000) : 0;
        if (lossy && !world_random(60)) {
            bool all = !world_random(5);
            world_lost(
                w, ts, all ? UINT32_MAX : (uint32_t)cpu, ts, ts + (int64_t)world_random(400), 1 + world_random(5));
            for (int c = 0; c < WORLD_CPUS; c++)
                w->frames[c] = all || c == cpu ? 0 : w->frames[c];
        } else if (depth == 2 || (depth && world_random(2))) {
            world_irq(
                w, ts, cpu, open[cpu][depth - 1].kind + 1, open[cpu][depth - 1].number, open[cpu][depth - 1].serial);
        } else {
            bool soft = !depth && world_random(2);
            open[cpu][depth].kind = soft ? KERNEL_SOFTIRQ_ENTRY : KERNEL_IRQ_ENTRY;
            open[cpu][depth].number = (uint16_t)(depth * LINES +
                (int)world_random(LINES)); /* interrupts differ by depth */
            open[cpu][depth].serial = ++serial;
            world_irq(w, ts, cpu, open[cpu][depth].kind, open[cpu][depth].number, serial);
        }
    }
    world_end(w);
}

/* Computes a line's state by querying all CPUs at each time at which one of them changes. */
static size_t brute(const struct kernel_tracker *w, int kind_of_cpus, int32_t line, struct state_interval *out)
{
    static struct state_interval of[WORLD_CPUS][MOST];
    size_t n[WORLD_CPUS] = {0}, at[WORLD_CPUS] = {0}, found = 0;
    int64_t begin, end;
    state_span(w->store, &begin, &end);
    for (int cpu = 0; cpu < WORLD_CPUS; cpu++) {
        int64_t row = state_find_row(w->store, kind_of_cpus, cpu << 16 | line);
        n[cpu] = row < 0 ? 0 : state_range(w->store, kind_of_cpus, (size_t)row, begin, end, of[cpu], MOST);
    }
    for (int64_t t = begin, next; t < end; t = next) {
        struct state_interval shown = {.value = STATE_NONE, .cpu = -1};
        int64_t since = INT64_MIN;
        next = end;
        for (int cpu = 0; cpu < WORLD_CPUS; cpu++) {
            if (!n[cpu])
                continue;
            while (of[cpu][at[cpu]].end <= t)
                at[cpu]++;
            const struct state_interval *x = &of[cpu][at[cpu]];
            next = x->end < next ? x->end : next;
            if (x->value == STATE_ACTIVE && x->begin >= since) {
                since = x->begin;
                shown.value = STATE_ACTIVE;
                shown.cpu = cpu;
            } else if (x->value == STATE_UNKNOWN && shown.value == STATE_NONE) {
                shown.value = STATE_UNKNOWN;
            }
        }
        shown.begin = t;
        if (found && out[found - 1].value == shown.value && out[found - 1].cpu == shown.cpu)
            shown.begin = out[--found].begin;
        shown.end = next;
        out[found++] = shown;
    }
    return found;
}

static void check_interval(const struct state_interval *found, const struct state_interval *truth)
{
    assert_true(found->begin == truth->begin && found->end == truth->end);
    assert_int_equal(found->value, truth->value);
    assert_int_equal(found->cpu, truth->cpu);
    assert_int_equal(found->thread, -1);
    assert_true(!found->name && !found->amount && !found->cut);
}

/* Returns the interval in force at t; the last instant counts as the one before. */
static size_t place(const struct state_interval *truth, size_t n, int64_t t)
{
    size_t i = 0;
    while (i + 1 < n && truth[i].end <= t)
        i++;
    return i;
}

static void check_samples(
    const struct kernel_tracker *w, int kind, size_t row, const struct state_interval *truth, size_t n)
{
    static int64_t times[SAMPLES];
    static struct state_interval found[SAMPLES];
    int64_t length = w->last - w->first, range = length >> world_random(16);
    int64_t begin = w->first + (int64_t)world_random((uint64_t)(length - range) + 1) -
        (world_random(8) ? 0 : range / 4);
    size_t m = 1 + world_random(SAMPLES), k = 0, before = SIZE_MAX;
    int64_t step = range / (int64_t)m > 0 ? range / (int64_t)m : 1;
    for (size_t i = 0; i < m; i++)
        times[i] = begin + (int64_t)i * step;
    if (!world_random(4))
        times[m - 1] = times[m - 1] > w->last ? times[m - 1] : w->last;
    size_t got = state_sample(w->store, kind, row, times, m, found);
    for (size_t i = 0; i < m; i++) {
        if (times[i] < w->first || times[i] > w->last)
            continue;
        size_t at = place(truth, n, times[i]);
        if (at == before)
            continue;
        assert_true(k < got);
        check_interval(&found[k++], &truth[at]);
        before = at;
    }
    assert_int_equal(k, got);
}

static void check_line(const struct kernel_tracker *w, int kind, size_t row, size_t shortest)
{
    enum { BATCH = 50 };
    static struct state_interval truth[MOST], list[BATCH];
    struct state_row r;
    state_row(w->store, kind, row, &r);
    size_t n = brute(w, kind == STATE_IRQ_LINE ? STATE_CPU_IRQ : STATE_CPU_SOFTIRQ, r.number, truth), k = 0, m;
    assert_true(n > shortest);
    assert_int_equal(state_find_row(w->store, kind, r.number), row);
    for (int64_t at = INT64_MIN; (m = state_range(w->store, kind, row, at, INT64_MAX, list, BATCH)) > 0;
         at = list[m - 1].end)
        for (size_t i = 0; i < m; i++) {
            assert_true(k < n);
            check_interval(&list[i], &truth[k++]);
        }
    assert_int_equal(k, n);
    for (int q = 0; q < QUERIES; q++) {
        int64_t t = q ? w->first + (int64_t)world_random((uint64_t)(w->last - w->first) + 1) : w->last;
        assert_true(state_at(w->store, kind, row, t, list));
        check_interval(list, &truth[place(truth, n, t)]);
        check_samples(w, kind, row, truth, n);
    }
    assert_false(state_at(w->store, kind, row, w->first - 1, list));
    assert_false(state_at(w->store, kind, row, w->last + 1, list));
}

static void against_brute_force(void **state)
{
    for (uint64_t run = 0; run < 4; run++) {
        struct kernel_tracker w;
        world_seed = test_seed(1000 + run);
        make_world(&w, run % 2);
        assert_int_equal(state_rows(w.store, STATE_IRQ_LINE), 2 * LINES);
        assert_int_equal(state_rows(w.store, STATE_SOFTIRQ_VECTOR), LINES);
        for (size_t row = 0; row < 2 * LINES; row++)
            check_line(&w, STATE_IRQ_LINE, row, 500);
        for (size_t row = 0; row < LINES; row++)
            check_line(&w, STATE_SOFTIRQ_VECTOR, row, 500);
        world_close(&w);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(last_begun_shows), cmocka_unit_test(in_the_same_ns),
        cmocka_unit_test(losses), cmocka_unit_test(against_brute_force)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
