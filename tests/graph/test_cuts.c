/* SPDX-License-Identifier: MIT */
/* Lists of chunks equal the store of one pass, wherever the cuts are. */
#include "../base/test.h"

#include "../kernel/cuts.h"
#include "base/carry.h"
#include "base/file.h"
#include "base/mem.h"
#include "graph/graph.h"

enum { MOST_CUTS = 12, MOST_LISTED = 256 };

/* ---- building ---- */

/* Graph of the files of its chunks. Every fifth wake is said to be by a packet, with numbers that continue over cuts,
 * and of every hundredth of them the last one is repeated. */
struct run {
    const struct cuts_trace *trace;
    struct graph_builder *builder;
    struct cuts cuts;
    char paths[MOST_LISTED][40];
    size_t n;
    uint64_t wakes, packets;
    size_t skipped; /* a chunk of which no record reaches the builder; SIZE_MAX: none */
    int64_t gap_from, gap_to;
    size_t chunk;
};

static void begin(void *arg, const struct cuts_chunk *c)
{
    struct run *r = arg;
    r->builder = graph_builder_new(c->tracker);
    r->chunk = c->number;
}

static void carry(void *arg, const struct cuts_chunk *c, struct carry *to)
{
    struct run *r = arg;
    graph_builder_carry(r->builder, to);
    graph_builder_carry_stacks(r->builder, to);
}

static void record(void *arg, const struct kernel_record *rec)
{
    struct run *r = arg;
    uint64_t wake = 0;
    if (r->chunk == r->skipped)
        return;
    if (r->gap_to && r->chunk == r->skipped + 1)
        graph_builder_gap(r->builder, r->gap_from, r->gap_to);
    r->gap_to = r->chunk > r->skipped && r->skipped != SIZE_MAX ? 0 : r->gap_to;
    struct kernel_record without; /* state that the tracker has from the skipped chunk */
    if (r->chunk && r->chunk == r->skipped + 1 && rec->kind == KERNEL_SWITCH) {
        without = *rec;
        without.u.sw.since = rec->ts;
        rec = &without;
    }
    if (rec->kind == KERNEL_WAKE && r->wakes++ % 5 == 0)
        wake = r->wakes % 100 == 1 && r->packets ? r->packets : ++r->packets;
    graph_builder_add(r->builder, rec, wake);
}

static const char *next_path(struct run *r)
{
    assert_true(r->n < MOST_LISTED);
    /* Files that are not forced to a disk: there are thousands. */
    strcpy(r->paths[r->n], access("/dev/shm", W_OK) ? "/tmp/weft-cut-XXXXXX" : "/dev/shm/weft-cut-XXXXXX");
    close(mkstemp(r->paths[r->n]));
    return r->paths[r->n++];
}

static void cut(void *arg, const struct cuts_chunk *c, int64_t at)
{
    struct run *r = arg;
    struct err e = {0};
    const char *path = next_path(r);
    if (graph_builder_cut(r->builder, at, store_file(path), 1, &e) || graph_check(path, NULL, &e))
        fail_msg("%s", e.text);
    graph_builder_free(r->builder);
}

static void finish(void *arg, const struct cuts_chunk *c)
{
    struct run *r = arg;
    struct err e = {0};
    const char *path = next_path(r);
    const struct cuts_trace *t = r->trace;
    int64_t end = t->times.n ? t->times.v[t->times.n - 1] : 0;
    if (graph_builder_write(r->builder, end, store_file(path), 1, &e) || graph_check(path, NULL, &e))
        fail_msg("%s", e.text);
    graph_builder_free(r->builder);
}

static void drop(void *arg, const struct cuts_chunk *c)
{
    graph_builder_free(((struct run *)arg)->builder);
}

static const struct cuts_user user = {
    .begin = begin, .carry = carry, .record = record, .cut = cut, .finish = finish, .drop = drop};

static void build(struct run *r, const struct cuts_trace *t, const int64_t *at, size_t n, size_t skipped)
{
    *r = (struct run){.trace = t, .skipped = skipped};
    cuts_run(t, at, n, &user, r, &r->cuts);
    for (size_t i = 0; i < r->n; i++)
        r->cuts.chunks[i].chunk.path = r->paths[i];
}

static struct graph *open_run(const struct run *r, size_t without)
{
    struct chunk v[MOST_LISTED];
    size_t n = 0;
    struct err e = {0};
    struct graph *g;
    for (size_t i = 0; i < r->n; i++)
        if (i != without)
            v[n++] = r->cuts.chunks[i].chunk;
    if (graph_open_list(v, n, &g, &e))
        fail_msg("%s", e.text);
    return g;
}

static void free_run(struct run *r)
{
    for (size_t i = 0; i < r->n; i++)
        unlink(r->paths[i]);
    cuts_free(&r->cuts);
}

/* ---- comparing ---- */

static void same_text(const char *a, const char *b)
{
    if (a != b)
        assert_string_equal(a ? a : "nothing", b ? b : "nothing");
}

static void same_row(const struct graph_row *a, const struct graph_row *b)
{
    assert_int_equal(a->tid, b->tid);
    assert_int_equal(a->tgid, b->tgid);
    assert_int_equal(a->ppid, b->ppid);
    assert_int_equal(a->parent_row, b->parent_row);
    assert_int_equal(a->idle_cpu, b->idle_cpu);
    assert_int_equal(a->vtid, b->vtid);
    assert_int_equal(a->pid_ns, b->pid_ns);
    if (a->begin != b->begin || a->end != b->end)
        fail_msg("%d %s: [%lld, %lld], and [%lld, %lld]", a->tid, a->name, (long long)a->begin, (long long)a->end,
            (long long)b->begin, (long long)b->end);
    assert_int_equal(a->born, b->born);
    assert_int_equal(a->died, b->died);
    same_text(a->name, b->name);
}

static void same_container(const struct graph *a, int32_t x, const struct graph *b, int32_t y)
{
    const struct graph_container *of_a, *of_b;
    graph_containers(a, &of_a);
    graph_containers(b, &of_b);
    assert_int_equal(x < 0, y < 0);
    if (x < 0)
        return;
    assert_int_equal(of_a[x].since, of_b[y].since);
    assert_int_equal(of_a[x].tid, of_b[y].tid);
    assert_int_equal(of_a[x].kind, of_b[y].kind);
    assert_int_equal(of_a[x].pid_ns, of_b[y].pid_ns);
    assert_int_equal(of_a[x].net_ns, of_b[y].net_ns);
    assert_string_equal(of_a[x].name, of_b[y].name);
    assert_string_equal(of_a[x].called, of_b[y].called);
}

static void same_cause(const struct graph_cause *a, const struct graph_cause *b)
{
    if (a->kind != b->kind || a->row != b->row || a->wake != b->wake || a->ts != b->ts)
        fail_msg("cause %d of row %d wake %llu at %lld, and %d of row %d wake %llu at %lld", a->kind, a->row,
            (unsigned long long)a->wake, (long long)a->ts, b->kind, b->row, (unsigned long long)b->wake,
            (long long)b->ts);
}

static void same_interval(const struct graph_interval *a, const struct graph_interval *b, int32_t row)
{
    if (a->begin != b->begin || a->end != b->end || a->state != b->state || a->cpu != b->cpu)
        fail_msg("row %d: [%lld, %lld) %s on %d, and [%lld, %lld) %s on %d", row, (long long)a->begin,
            (long long)a->end, graph_state_name(a->state), a->cpu, (long long)b->begin, (long long)b->end,
            graph_state_name(b->state), b->cpu);
    same_text(a->detail, b->detail);
}

static uint64_t random_state = 88172645463325252;
static int64_t random_between(int64_t a, int64_t b)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return b > a ? a + (int64_t)(random_state % (uint64_t)(b - a + 1)) : a;
}

static void same_addresses(const uint64_t *a, size_t n, const uint64_t *b, size_t m)
{
    assert_int_equal(n, m);
    if (n)
        assert_memory_equal(a, b, n * sizeof *a);
}

static void same_stack(bool has_a, const struct graph_stack *a, bool has_b, const struct graph_stack *b)
{
    assert_int_equal(has_a, has_b);
    if (!has_a)
        return;
    same_addresses(a->user, a->n_user, b->user, b->n_user);
    same_addresses(a->kernel, a->n_kernel, b->kernel, b->n_kernel);
    assert_int_equal(a->samples, b->samples);
}

/* The stacks of an interval, as a wait and as one that runs. */
static void same_stacks(const struct graph *a, const struct graph *b, int32_t row, int64_t begin, int64_t end)
{
    struct graph_stack s, t;
    bool in_a = graph_wait_stack(a, row, begin, &s), in_b = graph_wait_stack(b, row, begin, &t);
    same_stack(in_a, &s, in_b, &t);
    in_a = graph_running_stack(a, row, begin, end, &s);
    in_b = graph_running_stack(b, row, begin, end, &t);
    same_stack(in_a, &s, in_b, &t);
}

static void same_questions(const struct graph *a, const struct graph *b, int32_t row, int64_t begin, int64_t end)
{
    int64_t from = random_between(begin, end), to = random_between(from, end), of_a[GRAPH_STATE_COUNT],
            of_b[GRAPH_STATE_COUNT];
    struct graph_row x, y;
    struct graph_interval i, k;
    graph_row_totals(a, row, from, to, of_a);
    graph_row_totals(b, row, from, to, of_b);
    assert_memory_equal(of_a, of_b, sizeof of_a);
    graph_row_then(a, row, from, to, &x);
    graph_row_then(b, row, from, to, &y);
    same_row(&x, &y);
    assert_true(graph_row_is(a, row, y.name) && graph_row_is(b, row, x.name));
    graph_interval(a, row, graph_find(a, row, from), &i);
    graph_interval(b, row, graph_find(b, row, from), &k);
    same_interval(&i, &k, row);
}

static void same_rows(const struct graph *a, const struct graph *b, int32_t row)
{
    struct graph_row x, y;
    struct graph_cause c, d;
    struct graph_interval iv, jv;
    int64_t of_a[GRAPH_STATE_COUNT], of_b[GRAPH_STATE_COUNT];
    graph_row(a, row, &x);
    graph_row(b, row, &y);
    same_row(&x, &y);
    same_container(a, x.container, b, y.container);
    graph_row_origin(a, row, &c);
    graph_row_origin(b, row, &d);
    same_cause(&c, &d);
    uint64_t i = graph_first(a, row), k = graph_first(b, row), last = GRAPH_NO_INTERVAL;
    for (; i != GRAPH_NO_INTERVAL && k != GRAPH_NO_INTERVAL; i = graph_next(a, row, i), k = graph_next(b, row, k)) {
        graph_interval(a, row, i, &iv);
        graph_interval(b, row, k, &jv);
        same_interval(&iv, &jv, row);
        same_stacks(a, b, row, iv.begin, iv.end);
        graph_interval_cause(a, row, i, &c);
        graph_interval_cause(b, row, k, &d);
        same_cause(&c, &d);
        assert_true(graph_find(b, row, jv.end) == k && graph_find(b, row, jv.begin + 1) == k);
        assert_true(graph_previous(b, row, k) == last);
        last = k;
    }
    assert_true(i == k && graph_last(b, row) == last);
    assert_true(graph_find(b, row, x.begin) == GRAPH_NO_INTERVAL);
    assert_true(graph_find(b, row, x.end + 1) == GRAPH_NO_INTERVAL);
    graph_row_totals(a, row, INT64_MIN, INT64_MAX, of_a);
    graph_row_totals(b, row, INT64_MIN, INT64_MAX, of_b);
    assert_memory_equal(of_a, of_b, sizeof of_a);
    for (int n = 0; n < 4; n++)
        same_questions(a, b, row, x.begin - 2, x.end + 2);
}

static void same_graphs(const struct graph *a, const struct graph *b, const struct cuts_trace *t)
{
    const struct graph_loss *la, *lb;
    assert_int_equal(graph_rows(a), graph_rows(b));
    for (size_t r = 0; r < graph_rows(a); r++)
        same_rows(a, b, (int32_t)r);
    assert_int_equal(graph_cpus(a), graph_cpus(b));
    for (size_t i = 0; t->times.n && i < 1000; i++) {
        uint32_t cpu = (uint32_t)random_between(0, (int64_t)graph_cpus(a));
        int64_t ts = t->times.v[random_between(0, (int64_t)t->times.n - 1)] + random_between(-1, 1);
        assert_int_equal(graph_cpu_occupant(a, cpu, ts), graph_cpu_occupant(b, cpu, ts));
    }
    size_t n = graph_losses(a, &la);
    assert_int_equal(graph_losses(b, &lb), n);
    if (n)
        assert_memory_equal(la, lb, n * sizeof *la);
    const struct graph_mark *ma, *mb;
    n = graph_marks(a, &ma);
    assert_int_equal(graph_marks(b, &mb), n);
    if (n)
        assert_memory_equal(ma, mb, n * sizeof *ma);
}

/* ---- recordings and made traces ---- */

static void compare(const struct cuts_trace *t, const char *name, void *rounds)
{
    struct run one, many;
    int64_t at[MOST_CUTS];
    build(&one, t, NULL, 0, SIZE_MAX);
    struct graph *a = open_run(&one, SIZE_MAX);
    for (int i = 0; i < *(const int *)rounds; i++) {
        size_t n = cuts_random(t, (uint64_t)random_between(0, INT64_MAX - 1), (size_t)random_between(1, MOST_CUTS), at);
        build(&many, t, at, n, SIZE_MAX);
        struct graph *b = open_run(&many, SIZE_MAX);
        same_graphs(a, b, t);
        graph_close(b);
        free_run(&many);
    }
    graph_close(a);
    free_run(&one);
}

static int rounds_of(int usual)
{
    const char *set = getenv("WEFT_CUTS");
    return set ? atoi(set) : usual;
}

static void recorded(void **state)
{
    int rounds = rounds_of(1);
    cuts_each(compare, &rounds);
}

/* Threads that are forked, wait for each other, change names and die, and losses, on two or three CPUs at random. */
static struct maker *random_story(void)
{
    uint32_t cpus = (uint32_t)random_between(1, 3);
    static const uint64_t addresses[] = {0x401000, 0x402000, 0x403000, 0x404000, 0x405000, UINT64_MAX};
    uint64_t stacks = random_between(0, 1) ? M_STACKS : 0;
    struct maker *m = maker_new(cpus, stacks | (random_between(0, 3) ? 0 : UINT64_C(1) << M_WAKING));
    int current[3] = {0}, next_tid = 20;
    int64_t t = 100;
    for (int i = 0; i < 400; i++, t += random_between(0, 3)) {
        uint32_t cpu = (uint32_t)random_between(0, cpus - 1);
        int tid = (int)random_between(1, 8);
        int64_t first = random_between(0, 5), frames = random_between(0, 6 - first);
        maker_stacks(m, addresses + first, (size_t)frames, addresses + first / 2, (size_t)(frames / 2));
        static const int64_t states[] = {0, 0, 1, 1, 2, 4, 16, 64};
        switch (random_between(0, 22)) {
        case 0:
        case 1:
        case 2:
        case 3:
        case 4:
        case 5:
        case 6:
            tid = random_between(0, 3) ? tid : 0;
            maker_switch(m, cpu, t, current[cpu], states[random_between(0, 7)], tid);
            current[cpu] = tid;
            break;
        case 7:
        case 8:
        case 9:
        case 10: maker_wake(m, cpu, t, M_WAKING, tid, 0); break;
        case 11:
        case 12: maker_wake(m, cpu, t, M_WAKEUP, tid, 0); break;
        case 13:
            maker_fork(m, cpu, t, current[cpu] ? current[cpu] : 1, random_between(0, 1) ? tid : next_tid++, tid, 0);
            break;
        case 14: maker_exec(m, cpu, t, i % 2 ? "/bin/one" : "/bin/two", tid, random_between(0, 2) ? tid : 9); break;
        case 15:
            maker_task(m, cpu, t, M_EXIT, tid);
            maker_task(m, cpu, t, M_FREE, tid);
            break;
        case 20:
            maker_fork_in(
                m, cpu, t, current[cpu] ? current[cpu] : 1, next_tid, next_tid, 1 + i % 2, 500 + (uint32_t)i % 3);
            next_tid++;
            break;
        case 21:
            maker_dump_space(m, cpu, t, (enum maker_event)(M_DUMP_NET + i % 3), tid, (uint32_t)random_between(1, 3));
            break;
        case 22:
            maker_hostname(m, cpu, t, i % 3 ? "pod" : "other");
            maker_number(m, cpu, t, M_HOSTNAME_EXIT, 0);
            break;
        case 16: maker_dump_thread(m, cpu, t, tid, tid, 1, (int)random_between(0, 7), "dumped"); break;
        case 17:
            if (random_between(0, 1)) {
                char text[120];
                snprintf(text, sizeof text, "weft-span %s %032x %016x - %d step", i % 2 ? "begin" : "end", i / 8 + 1,
                    i / 2 + 1, tid);
                maker_logger(m, cpu, t, text);
                break;
            }
            maker_number(m, cpu, t, random_between(0, 1) ? M_FUTEX_ENTRY : M_FUTEX_EXIT, 0);
            break;
        case 18:
            maker_irq(m, cpu, t, true, 4, "disk");
            maker_block_complete(m, cpu, t, 8 << 20);
            if (random_between(0, 1))
                maker_irq(m, cpu, ++t, false, 4, "disk");
            break;
        default:
            if (random_between(0, 3) == 0)
                maker_lose(m, cpu, t);
            else if (random_between(0, 20) == 0)
                t += INT64_C(20000000000);
            else
                maker_cut(m, cpu, t);
        }
    }
    return m;
}

static void made(void **state)
{
    int rounds = 5;
    for (int i = 0; i < rounds_of(5) * 8; i++) {
        struct maker *m = random_story();
        struct cuts_trace t;
        cuts_open_made(&t, m);
        compare(&t, "made", &rounds);
        cuts_close(&t);
        maker_free(m);
    }
}

/* ---- damage ---- */

static void damaged_carries(void **state)
{
    struct run r = {.skipped = SIZE_MAX};
    for (int i = 0; i < rounds_of(5); i++) {
        struct maker *m = random_story();
        struct cuts_trace t;
        cuts_open_made(&t, m);
        r.trace = &t;
        cuts_damage(&t, t.times.v[t.times.n / 2], (uint64_t)random_between(0, INT64_MAX - 1), 300, &user, &r);
        cuts_close(&t);
        maker_free(m);
    }
}

/* Queries everything of a list that may be wrong. Returns whether each row is covered from its begin to its end. */
static bool covers(const struct graph *g)
{
    bool all = true;
    const struct graph_loss *losses;
    graph_losses(g, &losses);
    for (size_t r = 0; r < graph_rows(g); r++) {
        int32_t row = (int32_t)r;
        struct graph_row who;
        struct graph_interval iv;
        struct graph_cause c;
        int64_t totals[GRAPH_STATE_COUNT], sums[GRAPH_STATE_COUNT] = {0};
        graph_row(g, row, &who);
        graph_row_origin(g, row, &c);
        int64_t at = who.begin;
        uint64_t last = GRAPH_NO_INTERVAL;
        size_t steps = 0;
        for (uint64_t i = graph_first(g, row); i != GRAPH_NO_INTERVAL; last = i, i = graph_next(g, row, i)) {
            assert_true(++steps < 1000000);
            graph_interval(g, row, i, &iv);
            graph_interval_cause(g, row, i, &c);
            assert_true(iv.state < GRAPH_STATE_COUNT && c.row >= -1 && c.row < (int64_t)graph_rows(g));
            all &= iv.begin == at && iv.begin < iv.end && graph_find(g, row, iv.end) == i &&
                graph_find(g, row, iv.begin + 1) == i && graph_previous(g, row, i) == last;
            sums[iv.state] += iv.end - iv.begin;
            at = iv.end;
        }
        graph_row_totals(g, row, INT64_MIN, INT64_MAX, totals);
        graph_row_then(g, row, who.begin, who.end, &who);
        all &= at == who.end && last == graph_last(g, row) && !memcmp(sums, totals, sizeof sums);
        for (uint32_t cpu = 0; cpu <= graph_cpus(g); cpu++)
            assert_true(graph_cpu_occupant(g, cpu, at - 1) < (int64_t)graph_rows(g));
    }
    return all;
}

/* Changes a byte of one of the files; a file that is sound by itself may still not fit the others. */
static void damaged_chunks(void **state)
{
    int opened = 0, refused = 0;
    for (int i = 0; i < rounds_of(5); i++) {
        struct maker *m = random_story();
        struct cuts_trace t;
        struct run r;
        int64_t at[4];
        cuts_open_made(&t, m);
        build(&r, &t, at, cuts_random(&t, (uint64_t)i, 4, at), SIZE_MAX);
        for (int k = 0; k < 100; k++) {
            size_t victim = (size_t)random_between(0, (int64_t)r.n - 1), n;
            struct err e = {0};
            char *bytes;
            if (file_read(r.paths[victim], 1 << 24, &bytes, &n, &e))
                fail_msg("%s", e.text);
            size_t where = (size_t)random_between(0, (int64_t)n - 1);
            char before = bytes[where];
            bytes[where] = (char)random_between(0, 255);
            FILE *f = fopen(r.paths[victim], "r+b");
            assert_true(f && fwrite(bytes, 1, n, f) == n && !fclose(f));
            struct chunk v[MOST_LISTED];
            for (size_t c = 0; c < r.n; c++)
                v[c] = r.cuts.chunks[c].chunk;
            struct graph *g;
            if (graph_open_list(v, r.n, &g, &e)) {
                assert_non_null(strstr(e.text, "weft-cut-"));
                refused++;
            } else {
                covers(g);
                for (size_t row = 0; row < graph_rows(g); row++)
                    same_stacks(g, g, (int32_t)row, 100, INT64_MAX);
                graph_close(g);
                opened++;
            }
            bytes[where] = before;
            f = fopen(r.paths[victim], "r+b");
            assert_true(f && fwrite(bytes, 1, n, f) == n && !fclose(f));
            free(bytes);
        }
        free_run(&r);
        cuts_close(&t);
        maker_free(m);
    }
    assert_true(opened && refused);
}

/* ---- missing chunks ---- */

static bool has_loss(const struct graph *g, int64_t begin, int64_t end)
{
    const struct graph_loss *losses;
    size_t n = graph_losses(g, &losses);
    for (size_t i = 0; i < n; i++)
        if (losses[i].begin == begin && losses[i].end == end && losses[i].cpu == UINT32_MAX && !losses[i].count)
            return true;
    return false;
}

/* Checks a list without one chunk: it agrees with one pass, or is unknown because of lost events. */
static void same_but(const struct graph *all, const struct graph *some, int32_t row)
{
    struct graph_interval iv, known;
    struct graph_cause c;
    for (uint64_t i = graph_first(all, row); i != GRAPH_NO_INTERVAL; i = graph_next(all, row, i)) {
        graph_interval_bare(all, row, i, &iv);
        uint64_t k = graph_find(some, row, iv.end);
        if (k == GRAPH_NO_INTERVAL)
            continue; /* the row's first or last intervals were decided there */
        graph_interval_bare(some, row, k, &known);
        graph_interval_cause(some, row, k, &c);
        bool same = known.begin == iv.begin && known.end == iv.end && known.state == iv.state;
        assert_true(same || (known.state == GRAPH_UNKNOWN && c.kind == GRAPH_CAUSE_LOST));
    }
}

static void missing_chunk(void **state)
{
    for (int i = 0; i < rounds_of(5) * 4; i++) {
        struct maker *m = random_story();
        struct cuts_trace t;
        struct run one, many;
        cuts_open_made(&t, m);
        int64_t at[] = {t.times.v[t.times.n / 4], t.times.v[t.times.n / 2], t.times.v[t.times.n * 3 / 4]};
        build(&one, &t, NULL, 0, SIZE_MAX);
        build(&many, &t, at, 3, SIZE_MAX);
        struct graph *all = open_run(&one, SIZE_MAX);
        for (size_t without = 1; without < 3; without++) {
            struct graph *some = open_run(&many, without);
            assert_true(covers(some) && has_loss(some, at[without - 1], at[without]));
            for (size_t r = 0; r < graph_rows(some); r++)
                same_but(all, some, (int32_t)r);
            graph_close(some);
        }
        graph_close(all);
        free_run(&one);
        free_run(&many);
        cuts_close(&t);
        maker_free(m);
    }
}

/* The next chunk is built from what was carried over the missing one. Nobody runs through it, and who waited may have
 * run in it. */
static void gap(void **state)
{
    for (int i = 0; i < rounds_of(5) * 4; i++) {
        struct maker *m = random_story();
        struct cuts_trace t;
        struct run r;
        cuts_open_made(&t, m);
        int64_t at[] = {t.times.v[t.times.n / 3], t.times.v[t.times.n * 2 / 3]};
        r = (struct run){.trace = &t, .skipped = 1, .gap_from = at[0], .gap_to = at[1]};
        cuts_run(&t, at, 2, &user, &r, &r.cuts);
        for (size_t k = 0; k < r.n; k++)
            r.cuts.chunks[k].chunk.path = r.paths[k];
        struct graph *g = open_run(&r, 1);
        assert_true(covers(g) && has_loss(g, at[0], at[1]));
        for (size_t row = 0; row < graph_rows(g); row++)
            for (uint64_t k = graph_first(g, (int32_t)row); k != GRAPH_NO_INTERVAL;
                 k = graph_next(g, (int32_t)row, k)) {
                struct graph_interval iv;
                struct graph_row who;
                graph_row(g, (int32_t)row, &who);
                graph_interval(g, (int32_t)row, k, &iv);
                assert_true(who.idle_cpu >= 0 || iv.state != GRAPH_RUNNING || iv.begin >= at[1] || iv.end <= at[0]);
            }
        graph_close(g);
        free_run(&r);
        cuts_close(&t);
        maker_free(m);
    }
}

/* ---- size of carried state: only what is open ---- */

/* Two threads that wake each other, others that live for a short time and one that sleeps through it all; each thousand
 * events are lost for a while. */
static void bounded(void **state)
{
    size_t most[2] = {0, 0};
    for (int k = 0; k < 2; k++) {
        struct maker *m = maker_new(1, 0);
        int64_t t = 1000;
        maker_switch(m, 0, t++, 7, 1, 1);
        for (int i = 0; i < 2000 << 2 * k; i++) {
            int child = 100 + i % 5000;
            t += 1000000;
            maker_fork(m, 0, t, 1, child, child, 0);
            maker_switch(m, 0, t + 10, 1, 1, child);
            maker_exec(m, 0, t + 15, "/bin/true", child, child);
            maker_wake(m, 0, t + 20, M_WAKING, 1, 0);
            maker_task(m, 0, t + 25, M_EXIT, child);
            maker_switch(m, 0, t + 30, child, 16, 1);
            maker_task(m, 0, t + 35, M_FREE, child);
            if (i % 100 == 99)
                maker_lose(m, 0, t + 40);
        }
        struct cuts_trace trace;
        struct run r;
        cuts_open_made(&trace, m);
        int64_t at[8];
        for (int i = 0; i < 8; i++)
            at[i] = trace.times.v[(trace.times.n - 1) * (size_t)(i + 1) / 9];
        build(&r, &trace, at, 8, SIZE_MAX);
        for (size_t i = 1; i + 1 < r.cuts.n; i++) {
            size_t bytes = r.cuts.chunks[i].carried.n - r.cuts.chunks[i].of_tracker;
            most[k] = bytes > most[k] ? bytes : most[k];
        }
        free_run(&r);
        cuts_close(&trace);
        maker_free(m);
    }
    assert_true(most[1] <= most[0] + 64 && most[0] < 2000);
}

int main(void)
{
    random_state = test_seed(random_state);
    const struct CMUnitTest tests[] = {cmocka_unit_test(made), cmocka_unit_test(recorded),
        cmocka_unit_test(damaged_carries), cmocka_unit_test(damaged_chunks), cmocka_unit_test(missing_chunk),
        cmocka_unit_test(gap), cmocka_unit_test(bounded)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
