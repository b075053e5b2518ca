/* Sampled queries, ranges and counters against brute force over the histories of a random world, which this test keeps for itself. */
#include "world.h"

enum { ROWS = 24, EVENTS = 60000, HISTORY = EVENTS, QUERIES = 400, SAMPLES = 300 };

struct span {
    int64_t begin, end;
    uint8_t value;
};

/* What thread `row` did, as the test itself sees it; and who had each CPU. */
struct model {
    struct kernel_tracker w;
    struct span *threads[ROWS], *cpus[WORLD_CPUS];
    size_t n_threads[ROWS], n_cpus[WORLD_CPUS];
    enum { RUNNING, READY, BLOCKED } now[ROWS];
    bool in_call[ROWS];
    int64_t ts;
};

static uint64_t seed;

static uint64_t random_number(uint64_t below)
{
    seed = seed * 6364136223846793005 + 1442695040888963407;
    return (seed >> 33) % below;
}

static void becomes(struct model *m, int32_t row, uint8_t value)
{
    struct span *s = m->threads[row];
    size_t *n = &m->n_threads[row];
    if (*n && s[*n - 1].value == value)
        return;
    if (*n)
        s[*n - 1].end = m->ts;
    s[(*n)++] = (struct span){m->ts, INT64_MAX, value};
}

static void occupied(struct model *m, int cpu, int32_t row)
{
    struct span *s = m->cpus[cpu];
    size_t *n = &m->n_cpus[cpu];
    if (*n)
        s[*n - 1].end = m->ts;
    s[(*n)++] = (struct span){m->ts, INT64_MAX, (uint8_t)row};
}

static void switch_to(struct model *m, int cpu, int32_t next)
{
    int32_t prev = m->w.on[cpu];
    bool blocks = prev >= WORLD_CPUS && random_number(2);
    if (prev >= 0) {
        m->now[prev] = blocks ? BLOCKED : READY;
        becomes(m, prev, blocks ? STATE_WAIT_BLOCKED : STATE_WAIT_FOR_CPU);
    }
    world_switch(&m->w, m->ts, cpu, prev >= 0 ? prev : cpu, next, blocks ? KERNEL_LEAVE_BLOCKED : KERNEL_LEAVE_RUNNABLE);
    m->now[next] = RUNNING;
    becomes(m, next, next < WORLD_CPUS ? STATE_IDLE : m->in_call[next] ? STATE_SYSCALL : STATE_USERMODE);
    occupied(m, cpu, next);
}

static void step(struct model *m)
{
    int cpu = (int)random_number(WORLD_CPUS);
    int32_t row = m->w.on[cpu], other = WORLD_CPUS + (int32_t)random_number(ROWS - WORLD_CPUS);
    /* Bursts and pauses: a grid over time must not rely on evenness. */
    m->ts += random_number(1000) ? 1 + (int64_t)random_number(random_number(50) ? 20 : 5000) : (int64_t)random_number(1000000);
    switch (random_number(4)) {
    case 0:
        if (m->now[other] == BLOCKED) {
            world_wake(&m->w, m->ts, cpu, other);
            m->now[other] = READY;
            becomes(m, other, STATE_WAIT_FOR_CPU);
        }
        break;
    case 1:
        if (m->now[other] == READY)
            switch_to(m, cpu, other);
        else if (row != cpu)
            switch_to(m, cpu, cpu);
        break;
    default:
        if (row < WORLD_CPUS)
            break;
        if (m->in_call[row])
            world_return(&m->w, m->ts, cpu, NAME_READ, 0);
        else
            world_call(&m->w, m->ts, cpu, NAME_READ);
        m->in_call[row] = !m->in_call[row];
        becomes(m, row, m->in_call[row] ? STATE_SYSCALL : STATE_USERMODE);
    }
}

static void model_make(struct model *m, uint64_t with_seed)
{
    seed = with_seed;
    memset(m, 0, sizeof *m);
    world_begin(&m->w);
    m->ts = INT64_C(1700000000000000000);
    for (int i = 0; i < ROWS; i++)
        m->threads[i] = malloc(HISTORY * sizeof(struct span));
    for (int cpu = 0; cpu < WORLD_CPUS; cpu++) {
        m->cpus[cpu] = malloc(HISTORY * sizeof(struct span));
        switch_to(m, cpu, cpu);
    }
    for (int i = WORLD_CPUS; i < ROWS; i++) { /* so that all is known from the begin on */
        world_wake(&m->w, m->ts, 0, i);
        m->now[i] = READY;
        becomes(m, i, STATE_WAIT_FOR_CPU);
    }
    for (int i = 0; i < EVENTS; i++)
        step(m);
    world_end(&m->w);
    for (int i = 0; i < ROWS; i++)
        m->threads[i][m->n_threads[i] - 1].end = m->w.last;
    for (int i = 0; i < WORLD_CPUS; i++)
        m->cpus[i][m->n_cpus[i] - 1].end = m->w.last;
}

static void model_free(struct model *m)
{
    world_close(&m->w);
    for (int i = 0; i < ROWS; i++)
        free(m->threads[i]);
    for (int i = 0; i < WORLD_CPUS; i++)
        free(m->cpus[i]);
}

/* An ascending list of times in a random range, now and then denser than time itself, or beyond the ends. */
static size_t make_times(const struct model *m, int64_t *times)
{
    int64_t length = m->w.last - m->w.first, range = length >> random_number(28), begin, step;
    begin = m->w.first + (int64_t)random_number((uint64_t)(length - range) + 1) - (random_number(8) ? 0 : range / 4);
    step = range / SAMPLES > 0 ? range / SAMPLES : 1;
    size_t n = 1 + random_number(SAMPLES);
    for (size_t i = 0; i < n; i++)
        times[i] = begin + (int64_t)i * step;
    if (!random_number(4))
        times[n - 1] = times[n - 1] > m->w.last ? times[n - 1] : m->w.last;
    return n;
}

/* The span in force at t, or NULL; the last instant counts as the one before. */
static const struct span *brute(const struct span *s, size_t n, int64_t first, int64_t last, int64_t t)
{
    if (t < first || t > last)
        return NULL;
    t -= t == last;
    for (size_t i = 0; i < n; i++)
        if (s[i].begin <= t && t < s[i].end)
            return &s[i];
    return NULL;
}

static void check_samples(const struct model *m, int kind, size_t row, const struct span *s, size_t n, const int64_t *times, size_t n_times)
{
    static struct state_interval found[SAMPLES];
    const struct span *before = NULL;
    size_t k = 0, got = state_sample(m->w.store, kind, row, times, n_times, found);
    for (size_t i = 0; i < n_times; i++) {
        const struct span *x = brute(s, n, m->w.first, m->w.last, times[i]);
        if (!x || x == before)
            continue;
        before = x;
        assert_true(k < got);
        assert_true(found[k].begin == x->begin && found[k].end == x->end);
        if (kind == STATE_CPU_THREAD)
            assert_int_equal(found[k].thread, x->value);
        else
            assert_int_equal(found[k].value, x->value);
        k++;
    }
    assert_int_equal(k, got);
}

static void samples(void **state)
{
    static int64_t times[SAMPLES];
    for (uint64_t run = 1; run <= 3; run++) {
        static struct model m;
        model_make(&m, run * 77);
        for (int q = 0; q < QUERIES; q++) {
            size_t n = make_times(&m, times), row = random_number(ROWS), cpu = random_number(WORLD_CPUS);
            check_samples(&m, STATE_THREAD, row, m.threads[row], m.n_threads[row], times, n);
            check_samples(&m, STATE_CPU_THREAD, cpu, m.cpus[cpu], m.n_cpus[cpu], times, n);
        }
        model_free(&m);
    }
}

/* A CPU does what its thread does. */
static void composed(void **state)
{
    static struct model m;
    static int64_t times[SAMPLES];
    static struct state_interval found[SAMPLES];
    model_make(&m, 5);
    for (int q = 0; q < QUERIES; q++) {
        size_t n = make_times(&m, times), cpu = random_number(WORLD_CPUS), k = 0;
        size_t got = state_sample(m.w.store, STATE_CPU, cpu, times, n, found);
        int64_t until = INT64_MIN;
        for (size_t i = 0; i < n; i++) {
            const struct span *who = brute(m.cpus[cpu], m.n_cpus[cpu], m.w.first, m.w.last, times[i]);
            if (!who || times[i] < until || (k && times[i] == m.w.last && until == m.w.last))
                continue;
            const struct span *what = brute(m.threads[who->value], m.n_threads[who->value], m.w.first, m.w.last, times[i]);
            assert_true(k < got);
            assert_true(found[k].begin == (who->begin > what->begin ? who->begin : what->begin));
            assert_true(found[k].end == (who->end < what->end ? who->end : what->end));
            assert_int_equal(found[k].value, what->value);
            assert_int_equal(found[k].thread, who->value);
            until = found[k++].end;
        }
        assert_int_equal(k, got);
    }
    model_free(&m);
}

static void ranges(void **state)
{
    static struct model m;
    static struct state_interval list[64];
    model_make(&m, 9);
    for (size_t row = 0; row < ROWS; row++) {
        size_t k = 0;
        int64_t at = INT64_MIN;
        for (size_t n; (n = state_range(m.w.store, STATE_THREAD, row, at, INT64_MAX, list, 64)) > 0; at = list[n - 1].end) {
            for (size_t i = 0; i < n; i++, k++) {
                assert_true(k < m.n_threads[row]);
                const struct span *s = &m.threads[row][k];
                assert_true(list[i].begin == s->begin && list[i].end == s->end && list[i].value == s->value);
            }
            if (n < 64)
                break;
        }
        assert_int_equal(k, m.n_threads[row] - (m.threads[row][m.n_threads[row] - 1].begin == m.w.last));
        for (int q = 0; q < 50; q++) {
            int64_t t = m.w.first + (int64_t)random_number((uint64_t)(m.w.last - m.w.first) + 1);
            struct state_interval x;
            assert_true(state_at(m.w.store, STATE_THREAD, row, t, &x));
            const struct span *s = brute(m.threads[row], m.n_threads[row], m.w.first, m.w.last, t);
            assert_true(x.begin == s->begin && x.end == s->end && x.value == s->value);
        }
    }
    model_free(&m);
}

static int64_t brute_sum(const struct span *s, size_t n, bool threads, int64_t t)
{
    int64_t sum = 0;
    for (size_t i = 0; i < n && s[i].begin < t; i++) {
        bool counts = threads ? s[i].value == STATE_USERMODE || s[i].value == STATE_SYSCALL : s[i].value >= WORLD_CPUS;
        sum += counts ? (s[i].end < t ? s[i].end : t) - s[i].begin : 0;
    }
    return sum;
}

static void cpu_time(void **state)
{
    static struct model m;
    static int64_t times[SAMPLES], values[SAMPLES];
    model_make(&m, 13);
    for (int q = 0; q < QUERIES / 4; q++) {
        size_t n = make_times(&m, times), row = random_number(ROWS), cpu = random_number(WORLD_CPUS);
        state_counter_values(m.w.store, STATE_CPU_TIME, row, times, n, values);
        for (size_t i = 0; i < n; i++)
            assert_true(values[i] == brute_sum(m.threads[row], m.n_threads[row], true, times[i]));
        int64_t c = state_find_counter(m.w.store, STATE_CPU_TIME, -1 - (int32_t)cpu);
        assert_true(c >= 0);
        state_counter_values(m.w.store, STATE_CPU_TIME, (size_t)c, times, n, values);
        for (size_t i = 0; i < n; i++)
            assert_true(values[i] == brute_sum(m.cpus[cpu], m.n_cpus[cpu], false, times[i]));
    }
    model_free(&m);
}

static uint64_t random_bits(uint64_t bits)
{
    const uint64_t below = UINT64_C(1) << 31;
    uint64_t wide = random_number(below) << 33 ^ random_number(below) << 2 ^ random_number(4);
    return wide >> (64 - bits);
}

/* Numbers and pauses of any size, so that entries need few bits or many, in all mixtures. */
static void any_width(void **state)
{
    enum { STEPS = 20000, STRETCH = 40 };
    static struct told {
        int64_t ts, value;
    } told[STEPS];
    static int64_t times[SAMPLES], values[SAMPLES];
    static struct state_interval found[SAMPLES];
    struct kernel_tracker w;
    struct err e = {0};
    int64_t ts = INT64_C(-4000000000000000000), least = 0;
    uint64_t time_bits = 1, number_bits = 1;
    size_t n = 0;
    seed = 4711;
    world_begin(&w);
    for (size_t i = 0; i < STEPS; i++) {
        if (i % STRETCH == 0) {
            time_bits = 1 + random_number(i % 400 ? 30 : 48);
            number_bits = 2 + random_number(63);
        }
        const int64_t value = random_number(2) ? (int64_t)random_bits(number_bits) : -(int64_t)random_bits(number_bits - 1);
        const int64_t shown[2] = {0, value};
        ts += 1 + (int64_t)random_bits(time_bits);
        world_add(&w, (struct kernel_record){.ts = ts, .kind = KERNEL_COUNTERS, .row = -1, .u.counters = {.present = 2, .values = shown}});
        least = value < least ? value : least;
        if (!n || told[n - 1].value != value)
            told[n++] = (struct told){ts, value};
    }
    world_end(&w);
    assert_int_equal(state_check(w.path, &e), 0);
    int64_t counter = state_find_counter(w.store, STATE_CPU_COUNTER, 1);
    assert_true(counter >= 0);
    assert_true(state_counter_least(w.store, STATE_CPU_COUNTER, (size_t)counter) == least);
    for (int q = 0; q < 4 * QUERIES; q++) {
        size_t m = 1 + random_number(SAMPLES), from = random_number(n), at = from, k = 0;
        int64_t step = 1 + (int64_t)random_bits(1 + random_number(44));
        for (size_t i = 0; i < m; i++)
            times[i] = told[from].ts + (int64_t)i * step;
        state_counter_values(w.store, STATE_CPU_COUNTER, (size_t)counter, times, m, values);
        size_t got = state_sample(w.store, STATE_COUNTER_ROWS + STATE_CPU_COUNTER, (size_t)counter, times, m, found);
        for (size_t i = 0; i < m; i++) {
            while (at + 1 < n && told[at + 1].ts <= times[i])
                at++;
            assert_true(values[i] == told[at].value);
            if (times[i] >= w.last)
                continue;
            k += k < got && found[k].end <= times[i];
            assert_true(k < got && found[k].begin == told[at].ts && found[k].amount == told[at].value);
            assert_true(found[k].end == (at + 1 < n ? told[at + 1].ts : w.last));
        }
    }
    world_close(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(samples), cmocka_unit_test(composed), cmocka_unit_test(ranges),
        cmocka_unit_test(cpu_time), cmocka_unit_test(any_width)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
