/* SPDX-License-Identifier: MIT */
/* Sampled queries, ranges and counters against brute force over the histories of a random world, which this test keeps
 * for itself. */
#include "../base/test.h"
#include "state/store.h"
#include "world.h"

enum { ROWS = 24, EVENTS = 60000, HISTORY = EVENTS, QUERIES = 400, SAMPLES = 300 };

struct span {
    int64_t begin, end;
    uint8_t value;
};

/* Model of the test: states of thread `row`, and threads of the CPUs. */
struct model {
    struct kernel_tracker w;
    struct span *threads[ROWS], *cpus[WORLD_CPUS];
    size_t n_threads[ROWS], n_cpus[WORLD_CPUS];
    enum { RUNNING, READY, BLOCKED } now[ROWS];
    bool in_call[ROWS];
    int64_t ts;
};

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
    bool blocks = prev >= WORLD_CPUS && world_random(2);
    if (prev >= 0) {
        m->now[prev] = blocks ? BLOCKED : READY;
        becomes(m, prev, blocks ? STATE_WAIT_BLOCKED : STATE_WAIT_FOR_CPU);
    }
    world_switch(
        &m->w, m->ts, cpu, prev >= 0 ? prev : cpu, next, blocks ? KERNEL_LEAVE_BLOCKED : KERNEL_LEAVE_RUNNABLE);
    m->now[next] = RUNNING;
    becomes(m, next, next < WORLD_CPUS ? STATE_IDLE : m->in_call[next] ? STATE_SYSCALL : STATE_USERMODE);
    occupied(m, cpu, next);
}

static void step(struct model *m)
{
    int cpu = (int)world_random(WORLD_CPUS);
    int32_t row = m->w.on[cpu], other = WORLD_CPUS + (int32_t)world_random(ROWS - WORLD_CPUS);
    /* Bursts and pauses: a grid over time must not rely on evenness. */
    m->ts += world_random(1000) ? 1 + (int64_t)world_random(world_random(50) ? 20 : 5000)
                                : (int64_t)world_random(1000000);
    switch (world_random(4)) {
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
    world_seed = test_seed(with_seed);
    memset(m, 0, sizeof *m);
    world_begin(&m->w);
    m->ts = INT64_C(1700000000000000000);
    for (int i = 0; i < ROWS; i++)
        m->threads[i] = malloc(HISTORY * sizeof(struct span));
    for (int cpu = 0; cpu < WORLD_CPUS; cpu++) {
        m->cpus[cpu] = malloc(HISTORY * sizeof(struct span));
        switch_to(m, cpu, cpu);
    }
    for (int i = WORLD_CPUS; i < ROWS; i++) { /* initial states, so that all is known from the begin on */
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
    int64_t length = m->w.last - m->w.first, range = length >> world_random(28), begin, step;
    begin = m->w.first + (int64_t)world_random((uint64_t)(length - range) + 1) - (world_random(8) ? 0 : range / 4);
    step = range / SAMPLES > 0 ? range / SAMPLES : 1;
    size_t n = 1 + world_random(SAMPLES);
    for (size_t i = 0; i < n; i++)
        times[i] = begin + (int64_t)i * step;
    if (!world_random(4))
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

static void check_samples(
    const struct model *m, int kind, size_t row, const struct span *s, size_t n, const int64_t *times, size_t n_times)
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
            size_t n = make_times(&m, times), row = world_random(ROWS), cpu = world_random(WORLD_CPUS);
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
        size_t n = make_times(&m, times), cpu = world_random(WORLD_CPUS), k = 0;
        size_t got = state_sample(m.w.store, STATE_CPU, cpu, times, n, found);
        int64_t until = INT64_MIN;
        for (size_t i = 0; i < n; i++) {
            const struct span *who = brute(m.cpus[cpu], m.n_cpus[cpu], m.w.first, m.w.last, times[i]);
            if (!who || times[i] < until || (k && times[i] == m.w.last && until == m.w.last))
                continue;
            const struct span *what = brute(
                m.threads[who->value], m.n_threads[who->value], m.w.first, m.w.last, times[i]);
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
        for (size_t n; (n = state_range(m.w.store, STATE_THREAD, row, at, INT64_MAX, list, 64)) > 0;
             at = list[n - 1].end) {
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
            int64_t t = m.w.first + (int64_t)world_random((uint64_t)(m.w.last - m.w.first) + 1);
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
        size_t n = make_times(&m, times), row = world_random(ROWS), cpu = world_random(WORLD_CPUS);
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
    uint64_t wide = world_random(below) << 33 ^ world_random(below) << 2 ^ world_random(4);
    return wide >> (64 - bits);
}

/* History of a row: from `ts` on it is at `value`. */
struct told {
    int64_t ts, value;
};
struct history {
    struct told *v;
    size_t n;
};

static void tell(struct history *h, int64_t ts, int64_t value)
{
    h->n -= h->n && h->v[h->n - 1].ts == ts; /* replaces a state without duration */
    if (h->n ? h->v[h->n - 1].value != value : value != 0)
        h->v[h->n++] = (struct told){ts, value};
}

/* Amounts of a row at random times. */
static void check_amounts(const struct kernel_tracker *w, int kind, size_t row, const struct history *h, int queries)
{
    static int64_t times[SAMPLES];
    static struct state_interval found[SAMPLES];
    for (int q = 0; q < queries; q++) {
        size_t m = 1 + world_random(SAMPLES), from = world_random(h->n), at = from, k = 0;
        int64_t step = 1 + (int64_t)random_bits(1 + world_random(44));
        for (size_t i = 0; i < m; i++)
            times[i] = h->v[from].ts + (int64_t)i * step;
        size_t got = state_sample(w->store, kind, row, times, m, found);
        for (size_t i = 0; i < m && times[i] < w->last; i++) {
            while (at + 1 < h->n && h->v[at + 1].ts <= times[i])
                at++;
            k += k < got && found[k].end <= times[i];
            assert_true(k < got && found[k].begin == h->v[at].ts && found[k].amount == h->v[at].value);
            assert_true(found[k].end == (at + 1 < h->n ? h->v[at + 1].ts : w->last));
        }
    }
}

/* Checks the amounts of a row over all its time. */
static void check_all_amounts(const struct kernel_tracker *w, int kind, size_t row, const struct history *h)
{
    static struct state_interval list[64];
    size_t k = 0;
    for (int64_t at = h->v[0].ts; at < w->last; at = list[0].end) {
        size_t n = state_range(w->store, kind, row, at, w->last, list, 64);
        for (size_t i = 0; i < n; i++, k++) {
            assert_true(k < h->n && list[i].begin == h->v[k].ts && list[i].amount == h->v[k].value);
            assert_true(list[i].end == (k + 1 < h->n ? h->v[k + 1].ts : w->last));
        }
        list[0] = list[n - 1];
    }
    assert_int_equal(k, h->n - (h->v[h->n - 1].ts == w->last));
}

/* Numbers and pauses of any size, so that entries need few bits or many, in all mixtures. */
static void any_width(void **state)
{
    enum { STEPS = 20000, STRETCH = 40 };
    static struct told told[STEPS];
    static int64_t times[SAMPLES], values[SAMPLES];
    struct history h = {told, 0};
    struct kernel_tracker w;
    struct err e = {0};
    int64_t ts = INT64_C(-4000000000000000000), least = 0;
    uint64_t time_bits = 1, number_bits = 1;
    world_seed = test_seed(4711);
    world_begin(&w);
    for (size_t i = 0; i < STEPS; i++) {
        if (i % STRETCH == 0) {
            time_bits = 1 + world_random(i % 400 ? 30 : 48);
            number_bits = 2 + world_random(63);
        }
        const int64_t value = world_random(2) ? (int64_t)random_bits(number_bits)
                                              : -(int64_t)random_bits(number_bits - 1);
        const int64_t shown[2] = {0, value};
        ts += 1 + (int64_t)random_bits(time_bits);
        world_add(&w,
            (struct kernel_record){
                .ts = ts, .kind = KERNEL_COUNTERS, .row = -1, .u.counters = {.present = 2, .values = shown}});
        least = value < least ? value : least;
        tell(&h, ts, value);
    }
    world_end(&w);
    assert_int_equal(state_check(w.path, NULL, &e), 0);
    int64_t counter = state_find_counter(w.store, STATE_CPU_COUNTER, 1);
    assert_true(counter >= 0);
    assert_true(state_counter_least(w.store, STATE_CPU_COUNTER, (size_t)counter) == least);
    check_amounts(&w, STATE_COUNTER_ROWS + STATE_CPU_COUNTER, (size_t)counter, &h, 4 * QUERIES);
    for (size_t at = 0, m; at < h.n; at += m) {
        m = h.n - at < SAMPLES ? h.n - at : SAMPLES;
        for (size_t i = 0; i < m; i++)
            times[i] = told[at + i].ts +
                (int64_t)world_random(at + i + 1 < h.n ? (uint64_t)(told[at + i + 1].ts - told[at + i].ts) : 1);
        state_counter_values(w.store, STATE_CPU_COUNTER, (size_t)counter, times, m, values);
        for (size_t i = 0; i < m; i++)
            assert_true(values[i] == told[at + i].value);
    }
    world_close(&w);
}

/* A thread reads a file, which it opened or of which it knows the descriptor alone; it opens and closes it now and
 * then. */
struct reader {
    struct kernel_tracker w;
    struct history open, closed; /* rows of the file with a name, and of the descriptor */
    bool is_open;
    int64_t ts;
};
enum { READER = 4 };

static void use_file(struct reader *r, int io, int64_t pause, int64_t duration, int64_t bytes)
{
    struct history *h = r->is_open || io == KERNEL_IO_OPEN ? &r->open : &r->closed;
    int64_t begin = r->ts + pause, end = begin + duration;
    world_io(&r->w, begin, 0, io, io == KERNEL_IO_OPEN ? -100 : 3, -1, 0, io == KERNEL_IO_OPEN ? "/file" : NULL);
    world_io_return(&r->w, end, 0, io, io == KERNEL_IO_OPEN ? 3 : io == KERNEL_IO_CLOSE ? 0 : bytes);
    r->is_open = io == KERNEL_IO_OPEN || (io != KERNEL_IO_CLOSE && r->is_open);
    if (io != KERNEL_IO_CLOSE)
        tell(h, begin, io == KERNEL_IO_READ ? bytes << STATE_FILE_USE_BITS | STATE_FILE_READ : STATE_FILE_OTHER);
    tell(h, end, r->is_open ? STATE_FILE_OPEN : STATE_FILE_NOTHING);
    r->ts = end;
}

static size_t find_file(const struct state_store *s, const char *name)
{
    struct state_file f;
    for (size_t i = 0; i < state_files(s); i++) {
        state_file(s, i, &f);
        if (!strcmp(f.name, name))
            return i;
    }
    fail_msg("%s is not there", name);
    return 0;
}

static void random_uses(struct reader *r, size_t uses)
{
    enum { STRETCH = 60 };
    uint64_t pause_bits = 1, duration_bits = 1, byte_bits = 1, changes = 1;
    int64_t bytes = 0;
    for (size_t i = 0; i < uses; i++) {
        if (i % STRETCH == 0) {
            pause_bits = 1 + world_random(i % 600 ? 30 : 44);
            duration_bits = 1 + world_random(i % 480 ? 24 : 44);
            byte_bits = 1 + world_random(i % 300 ? 30 : 47);
            changes = world_random(2) ? 200 : 1 + world_random(20);
        }
        int64_t pause = world_random(30) ? 1 + (int64_t)random_bits(pause_bits) : 0,
                duration = 1 + (int64_t)random_bits(duration_bits);
        int io = world_random(changes) == 0 ? (r->is_open ? KERNEL_IO_CLOSE : KERNEL_IO_OPEN)
            : world_random(5)               ? KERNEL_IO_READ
                                            : KERNEL_IO_OTHER;
        /* Adjacent uses that move equal amounts are one entry: the row has no bytes for the second. */
        int64_t more = (int64_t)random_bits(byte_bits);
        bytes = !pause && more == bytes ? more + 1 : more;
        use_file(r, io, pause, duration, bytes);
    }
}

static void reader_begin(struct reader *r, int64_t ts, struct told *open, struct told *closed)
{
    *r = (struct reader){.open = {open, 0}, .closed = {closed, 0}, .ts = ts};
    world_begin(&r->w);
    r->w.threads[READER].tgid = r->w.threads[READER].tid;
    world_switch(&r->w, ts, 0, 0, READER, KERNEL_LEAVE_RUNNABLE);
}

static const struct state_disk_row *file_row(const struct state_chunk *s, size_t file)
{
    return &s->rows[s->first[STATE_FILE_ROWS] + file];
}

/* Uses whose rhythm breaks, of any size; also when all is packed anew, as after a loss. */
static void file_uses(void **state)
{
    enum { USES = 20000 };
    static struct told open[2 * USES], closed[2 * USES];
    static struct reader r;
    struct err e = {0};
    for (int lossy = 0; lossy < 2; lossy++) {
        world_seed = test_seed(1213);
        reader_begin(&r, 1000, open, closed);
        random_uses(&r, USES);
        if (lossy)
            world_lost(&r.w, r.ts, 1, r.ts, r.ts + 10, 5);
        world_end(&r.w);
        assert_int_equal(state_check(r.w.path, NULL, &e), 0);
        const struct state_store *s = r.w.store;
        const struct state_chunk *c = s->parts->chunk;
        const struct history *rows[2] = {&r.open, &r.closed};
        size_t cells[3] = {0}; /* numbers of cells without pairs, with pairs that all end at nothing, with others */
        for (int k = 0; k < 2; k++) {
            size_t file = find_file(s, k ? "fd 3 of  (104)" : "/file");
            const struct state_disk_row *row = file_row(c, file);
            assert_true(rows[k]->n > USES / 4);
            check_amounts(&r.w, STATE_FILE_ROWS, file, rows[k], 4 * QUERIES);
            check_all_amounts(&r.w, STATE_FILE_ROWS, file, rows[k]);
            for (uint32_t i = 0; i < row->n_cells; i++) {
                uint8_t n = c->cells[c->blocks[row->first_block + i / STATE_CELLS] + i % STATE_CELLS].n;
                cells[!(n & STATE_PAIRED) ? 0 : n & STATE_RESTS ? 2 : 1]++;
            }
        }
        assert_true(cells[0] > 100 && cells[1] > 100 && cells[2] > 100);
        world_close(&r.w);
    }
}

/* A steady rhythm takes cells of 32 entries, all that the place of a pair allows, and blocks of them; also after it was
 * out of step. */
static void steady_uses(void **state)
{
    enum { USES = 2000 };
    static struct told open[2 * USES + 8], closed[2 * USES];
    static struct reader r;
    struct err e = {0};
    for (int out_of_step = 0; out_of_step < 2; out_of_step++) {
        world_seed = test_seed(99);
        reader_begin(&r, 1000, open, closed);
        for (int i = 0; i < 3 && out_of_step; i++)
            use_file(&r, i == 1 ? KERNEL_IO_CLOSE : KERNEL_IO_OPEN, 10, 10, 0);
        for (size_t i = 0; i < USES; i++)
            use_file(&r, KERNEL_IO_READ, 1 + (int64_t)world_random(500), 1 + (int64_t)world_random(7),
                (int64_t)world_random(2));
        world_end(&r.w);
        assert_int_equal(state_check(r.w.path, NULL, &e), 0);
        size_t file = find_file(r.w.store, out_of_step ? "/file" : "fd 3 of  (104)");
        const struct history *h = out_of_step ? &r.open : &r.closed;
        assert_in_range(
            file_row(r.w.store->parts->chunk, file)->n_cells, h->n / STATE_CELL_ENTRIES, h->n / STATE_CELL_ENTRIES + 2);
        check_amounts(&r.w, STATE_FILE_ROWS, file, h, QUERIES);
        check_all_amounts(&r.w, STATE_FILE_ROWS, file, h);
        world_close(&r.w);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(samples), cmocka_unit_test(composed), cmocka_unit_test(ranges),
        cmocka_unit_test(cpu_time), cmocka_unit_test(any_width), cmocka_unit_test(file_uses),
        cmocka_unit_test(steady_uses)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
