/* SPDX-License-Identifier: MIT */
/* Bytes that threads read and wrote, against a count over all returns of calls that this test keeps for itself: files,
 * pipes and what is known of neither, used by random threads on a clock so coarse that calls take no time, with lost
 * events and CPUs of which it turns out later who had them. */
#include "../base/test.h"
#include "world.h"

enum { FIRST = WORLD_CPUS, THREADS = 9, STEPS = 80000, PHASE = 20000, DESCRIPTORS = 9, QUERIES = 60, SAMPLES = 200 };

struct moved {
    int64_t ts, bytes;
};
/* Steps of a sum: the bytes of all up to each. */
struct sum {
    struct moved v[STEPS];
    size_t n;
};
struct model {
    struct kernel_tracker w;
    struct sum sums[THREADS][2];
    struct sum unknown[WORLD_CPUS][2]; /* sums moved by an unknown thread on the CPU */
    int32_t on[WORLD_CPUS];            /* truly */
    int64_t since[WORLD_CPUS];         /* time since which an unknown thread is this one */
    int call[THREADS];                 /* enum kernel_io, NONE: in none */
    int only;                          /* operation of all calls now; NONE: any */
    int64_t ts;
};

/* ---- the world ---- */

static void count(struct sum *s, int64_t ts, int64_t bytes)
{
    int64_t before = s->n ? s->v[s->n - 1].bytes : 0;
    if (s->n && s->v[s->n - 1].ts == ts)
        s->v[s->n - 1].bytes += bytes;
    else
        s->v[s->n++] = (struct moved){ts, before + bytes};
}

/* Assigns activity before the CPU's thread was known to it, from `since` on. */
static void reveal(struct model *m, int cpu, int64_t since)
{
    for (int way = 0; way < 2; way++) {
        struct sum *u = &m->unknown[cpu][way];
        for (size_t i = 0; i < u->n; i++)
            if (u->v[i].ts >= since)
                count(&m->sums[m->on[cpu]][way], u->v[i].ts, u->v[i].bytes - (i ? u->v[i - 1].bytes : 0));
        u->n = 0;
    }
}

static void switch_to(struct model *m, int cpu, int32_t next)
{
    int64_t since = m->w.on[cpu] < 0 ? m->since[cpu] : m->ts;
    reveal(m, cpu, since);
    world_switch_since(&m->w, m->ts, cpu, m->on[cpu], next, KERNEL_LEAVE_RUNNABLE, since);
    m->on[cpu] = next;
}

static void lose(struct model *m, int cpu)
{
    int64_t begin = m->ts;
    m->ts += (int64_t)world_random(9);
    world_lost(&m->w, begin, (uint32_t)cpu, begin, m->ts, 7);
    m->unknown[cpu][0].n = m->unknown[cpu][1].n = 0;
    m->since[cpu] = m->ts + (int64_t)world_random(3);
    if (world_random(2))
        m->call[m->on[cpu]] = KERNEL_IO_NONE;
}

static void call(struct model *m, int cpu)
{
    static const uint8_t ios[] = {KERNEL_IO_READ, KERNEL_IO_READ, KERNEL_IO_READ, KERNEL_IO_WRITE, KERNEL_IO_WRITE,
        KERNEL_IO_COPY, KERNEL_IO_COPY, KERNEL_IO_SYNC, KERNEL_IO_OPEN, KERNEL_IO_CLOSE, KERNEL_IO_DUP,
        KERNEL_IO_HIDDEN};
    static const char *const paths[] = {"/a", "b", "/c"};
    int io = ios[world_random(sizeof ios)];
    if ((io == KERNEL_IO_CLOSE || io == KERNEL_IO_HIDDEN) && world_random(4))
        io = KERNEL_IO_READ;
    io = m->only ? m->only : io;
    m->call[m->on[cpu]] = io;
    world_io(&m->w, m->ts, cpu, io, (int32_t)world_random(DESCRIPTORS), (int64_t)world_random(DESCRIPTORS), 0,
        paths[world_random(3)]);
}

static void end_call(struct model *m, int cpu)
{
    static const int64_t results[] = {-11, 0, 5, 5, 5, 5, 100, INT64_C(1) << 36};
    int32_t row = m->on[cpu];
    int io = m->call[row];
    if ((io == KERNEL_IO_READ || io == KERNEL_IO_WRITE) && !m->only && !world_random(50))
        io = KERNEL_IO_READ + KERNEL_IO_WRITE - io; /* missing end and begin, without a reported loss */
    bool moves = io <= KERNEL_IO_COPY;
    int64_t ret = moves || io == KERNEL_IO_SYNC ? results[world_random(8)] : (int64_t)world_random(DESCRIPTORS + 1) - 1;
    m->call[row] = KERNEL_IO_NONE;
    world_io_return(&m->w, m->ts, cpu, io, ret);
    for (int way = 0; way < 2 && moves && ret > 0; way++)
        if (io == KERNEL_IO_COPY || io == (way ? KERNEL_IO_WRITE : KERNEL_IO_READ))
            count(m->w.on[cpu] < 0 ? &m->unknown[cpu][way] : &m->sums[row][way], m->ts, ret);
}

static void step(struct model *m, bool losses)
{
    int cpu = (int)world_random(WORLD_CPUS);
    int32_t next = FIRST + (int32_t)world_random(THREADS - FIRST);
    for (int i = 0; i < WORLD_CPUS; i++)
        next = m->on[i] == next ? cpu : next; /* idle thread if it would be the same */
    m->ts += (int64_t)world_random(world_random(200) ? 3 : 4000);
    switch (world_random(60)) {
    case 0:
        if (m->on[cpu] != next)
            switch_to(m, cpu, next);
        break;
    case 1:
        if (losses && !world_random(10))
            lose(m, cpu);
        break;
    case 2:
        if (m->w.on[cpu] >= FIRST && !world_random(10))
            world_add(&m->w,
                (struct kernel_record){.ts = m->ts,
                    .cpu = (uint32_t)cpu,
                    .kind = KERNEL_EXEC,
                    .ctx = KERNEL_CTX_THREAD,
                    .row = m->on[cpu]});
        break;
    default:
        if (m->on[cpu] < FIRST)
            break;
        if (m->call[m->on[cpu]])
            end_call(m, cpu);
        else
            call(m, cpu);
    }
}

static void make(struct model *m, uint64_t with_seed, bool losses)
{
    world_seed = test_seed(with_seed);
    memset(m, 0, sizeof *m);
    world_begin(&m->w);
    m->w.first = m->ts = 1000;
    for (int i = FIRST; i < THREADS; i++)
        m->w.threads[i].tgid = 100 + i - i % 2; /* two of a process share its descriptors */
    for (int cpu = 0; cpu < WORLD_CPUS; cpu++) {
        m->on[cpu] = FIRST + cpu;
        m->since[cpu] = m->ts;
    }
    for (int i = 0; i < STEPS; i++) {
        static const int only[STEPS / PHASE] = {KERNEL_IO_NONE, KERNEL_IO_WRITE, KERNEL_IO_READ, KERNEL_IO_NONE};
        m->only = only[i / PHASE];
        step(m, losses);
    }
    world_end(&m->w);
}

/* ---- judging ---- */

/* Returns the number of steps up to a time. */
static size_t steps_until(const struct sum *s, int64_t t)
{
    size_t n = 0;
    for (size_t step = 1 << 16; step; step /= 2)
        if (n + step <= s->n && s->v[n + step - 1].ts <= t)
            n += step;
    return n;
}

static void expect_interval(const struct model *m, const struct sum *s, size_t steps, const struct state_interval *x)
{
    assert_true(x->begin == (steps ? s->v[steps - 1].ts : m->w.first));
    assert_true(x->end == (steps < s->n ? s->v[steps].ts : m->w.last));
    assert_int_equal(x->value, steps ? STATE_ACTIVE : STATE_NONE);
    assert_true(x->amount == (steps ? s->v[steps - 1].bytes : 0));
    assert_true(x->thread == -1 && x->cpu == -1 && !x->name && !x->cut);
}

static int ascending(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return x < y ? -1 : x > y;
}

/* Times anywhere, near each other or far apart; many in the moment of a step or just before. */
static size_t make_times(const struct model *m, const struct sum *s, int64_t *times)
{
    size_t n = 1 + world_random(SAMPLES);
    uint64_t length = (uint64_t)(m->w.last - m->w.first) + 200, share = length >> world_random(12);
    int64_t from = m->w.first - 100 + (int64_t)world_random(length - share + 1);
    for (size_t i = 0; i < n; i++) {
        times[i] = from + (int64_t)world_random(share + 1);
        if (world_random(2) && s->n)
            times[i] = s->v[world_random(s->n)].ts - (int64_t)world_random(2);
    }
    qsort(times, n, sizeof *times, ascending);
    return n;
}

static void judge_samples(const struct model *m, int kind, size_t i, const struct sum *s)
{
    static int64_t times[SAMPLES], values[SAMPLES];
    static struct state_interval found[SAMPLES], at;
    size_t n = make_times(m, s, times), k = 0;
    state_counter_values(m->w.store, kind, i, times, n, values);
    size_t got = state_sample(m->w.store, STATE_COUNTER_ROWS + kind, i, times, n, found);
    for (size_t j = 0; j < n; j++) {
        size_t steps = steps_until(s, times[j]);
        assert_true(values[j] == (steps ? s->v[steps - 1].bytes : 0));
        if (times[j] < m->w.first || times[j] >= m->w.last)
            continue;
        k += k < got && found[k].end <= times[j];
        assert_true(k < got);
        expect_interval(m, s, steps, &found[k]);
        assert_true(state_at(m->w.store, STATE_COUNTER_ROWS + kind, i, times[j], &at));
        expect_interval(m, s, steps, &at);
    }
}

static void judge_range(const struct model *m, int kind, size_t i, const struct sum *s)
{
    struct state_interval list[64];
    struct state_row r;
    size_t steps = s->n && s->v[0].ts == m->w.first, all = 0;
    for (int64_t t = m->w.first; t < m->w.last;) {
        size_t n = state_range(m->w.store, STATE_COUNTER_ROWS + kind, i, t, m->w.last, list, 64);
        assert_true(n == 64 || (n > 0 && list[n - 1].end == m->w.last)); /* fewer: that is all */
        for (size_t j = 0; j < n; j++)
            expect_interval(m, s, steps++, &list[j]);
        all += n;
        t = list[n - 1].end;
    }
    state_row(m->w.store, STATE_COUNTER_ROWS + kind, i, &r);
    assert_true(r.intervals >= all - 1);
    assert_int_equal(state_counter_least(m->w.store, kind, i), 0);
}

static void judge(const struct model *m)
{
    for (int32_t row = 0; row < THREADS; row++)
        for (int way = 0; way < 2; way++) {
            const struct sum *s = &m->sums[row][way];
            int kind = STATE_IO_READ + way;
            int64_t i = state_find_counter(m->w.store, kind, row);
            assert_int_equal(i >= 0, s->n > 0);
            if (i < 0)
                continue;
            for (int q = 0; q < QUERIES; q++)
                judge_samples(m, kind, (size_t)i, s);
            judge_range(m, kind, (size_t)i, s);
        }
}

/* Checks that enough bytes are assigned to files, and enough to none, for a meaningful test. In half of the steps
 * nothing is opened or closed: whether the few descriptors of that time are known is up to chance, so the other half
 * alone must suffice. */
static void expect_both(const struct model *m)
{
    int64_t of_files = 0, of_all = 0;
    for (size_t i = 0; i < state_files(m->w.store); i++) {
        struct state_file f;
        state_file(m->w.store, i, &f);
        of_files += f.read + f.written;
    }
    for (int row = 0; row < THREADS; row++)
        for (int way = 0; way < 2; way++)
            of_all += m->sums[row][way].n ? m->sums[row][way].v[m->sums[row][way].n - 1].bytes : 0;
    assert_true(of_files > of_all / 4 && of_files < of_all - of_all / 20);
}

static void all_calls_count(void **state)
{
    static struct model m;
    for (uint64_t with_seed = 1; with_seed < 4; with_seed++) {
        make(&m, with_seed, with_seed > 1);
        judge(&m);
        expect_both(&m);
        world_close(&m.w);
    }
}

/* Checks that sums beyond the range of numbers are left out, and earlier ones kept. */
static void too_many_bytes(void **state)
{
    struct kernel_tracker w;
    const int64_t most = INT64_MAX, ts = 200;
    int64_t value, sum = 0;
    world_begin(&w);
    world_switch(&w, 100, 0, 0, FIRST, KERNEL_LEAVE_RUNNABLE);
    for (int i = 0; i < 40; i++) {
        int64_t bytes = i == 20 ? 1000 : most >> i % 10;
        world_io(&w, 110 + 2 * i, 0, KERNEL_IO_READ, i % 3, -1, 0, NULL);
        world_io_return(&w, 111 + 2 * i, 0, KERNEL_IO_READ, bytes);
    }
    world_end(&w);
    int64_t i = state_find_counter(w.store, STATE_IO_READ, FIRST);
    for (int64_t t = 100; t <= ts; t++) {
        state_counter_values(w.store, STATE_IO_READ, (size_t)i, &t, 1, &value);
        assert_true(value >= sum);
        sum = value;
    }
    assert_true(sum > 1000);
    world_close(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(all_calls_count), cmocka_unit_test(too_many_bytes)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
