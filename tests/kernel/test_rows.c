/* SPDX-License-Identifier: MIT */
/* The registry of a host's rows: the same lives in whatever order chunks come, and rows and ids that stay. */
#include <dirent.h>

#include "../base/test.h"

#include "base/err.h"
#include "base/file.h"
#include "base/map.h"
#include "base/mem.h"
#include "cuts.h"

enum { HOST = 77, MOST_CHUNKS = 12 };
static uint64_t random_seed;

static unsigned dice(uint64_t *state, unsigned sides)
{
    *state += UINT64_C(0x9e3779b97f4a7c15);
    return (unsigned)(map_mix(*state) % sides);
}

/* ---- a host whose chunks come in any order ---- */

struct piece {
    bool built, after_another; /* built; built after the chunk before */
    struct cuts_chunk c;
    int32_t *rows; /* host's rows, by row */
    size_t n;
};

struct host {
    const struct cuts_trace *trace;
    struct kernel_rows *rows;
    char *directory;
    int64_t bounds[MOST_CHUNKS + 1];
    struct piece pieces[MOST_CHUNKS];
    size_t n, now;                /* now: that is built */
    VEC(struct kernel_row) known; /* earlier state, by row */
    struct map ended;
};

static void open_rows(struct host *h)
{
    struct err e = {0};
    if (kernel_rows_open(h->directory, HOST, &h->rows, &e))
        fail_msg("%s", e.text);
}

static void host_open(struct host *h, const struct cuts_trace *t, const int64_t *at, size_t n_cuts)
{
    *h = (struct host){.trace = t, .n = n_cuts + 1, .directory = test_directory_make()};
    h->bounds[0] = INT64_MIN;
    for (size_t i = 0; i < n_cuts; i++)
        h->bounds[i + 1] = at[i];
    h->bounds[h->n] = INT64_MAX;
    open_rows(h);
}

static void host_close(struct host *h)
{
    for (size_t i = 0; i < h->n; i++) {
        free(h->pieces[i].rows);
        cuts_chunk_free(&h->pieces[i].c);
    }
    vec_free(&h->known);
    kernel_rows_close(h->rows);
    test_directory_remove(h->directory);
}

/* Checks that earlier facts about a row stay, and new ones were unknown before. */
static void check_rows(struct host *h)
{
    for (int32_t i = 0; i < kernel_rows_count(h->rows); i++) {
        struct kernel_row r;
        assert_true(kernel_rows_get(h->rows, i, &r));
        assert_int_equal(kernel_rows_find(h->rows, r.id), i);
        assert_true(r.id > 0 && r.id < UINT64_C(1) << 52);
        r.name = NULL;
        if ((size_t)i == h->known.n)
            vec_push(&h->known, r);
        struct kernel_row *k = &h->known.v[i];
        assert_true(r.id == k->id && r.idle_cpu == k->idle_cpu);
        assert_true(r.tid == k->tid || (r.later_tid == k->tid && r.first < k->first));
        assert_true(r.first <= k->first);
        if (k->birth != KERNEL_UNBORN)
            assert_true(r.birth == k->birth && r.first == k->first);
        assert_true(r.birth == KERNEL_UNBORN || r.birth == r.first);
        *k = r;
    }
    assert_int_equal(h->known.n, kernel_rows_count(h->rows));
}

static void on_end(void *arg, const struct cuts_chunk *c)
{
    struct host *h = arg;
    struct piece *p = &h->pieces[h->now];
    const struct piece *before = p->after_another ? &h->pieces[h->now - 1] : NULL;
    const struct kernel_thread *threads;
    struct err e = {0};
    int64_t until = c->chunk.end == INT64_MAX ? h->trace->times.v[h->trace->times.n - 1] + 1 : c->chunk.end;
    size_t n_carried = kernel_tracker_carried(c->tracker);
    int32_t *carried = mem_alloc((n_carried + 1) * sizeof *carried);
    for (size_t i = 0; i < n_carried; i++)
        carried[i] = before->rows[before->c.leaving[i]];
    size_t n = kernel_tracker_threads(c->tracker, &threads);
    int32_t *rows = mem_alloc((n + 1) * sizeof *rows);
    struct kernel_rows_chunk chunk = {c->tracker, c->chunk.begin, until, carried, p->rows, p->n};
    if (kernel_rows_resolve(h->rows, &chunk, rows, &e))
        fail_msg("%s", e.text);
    const int32_t *ended;
    size_t n_ended = kernel_rows_ended(h->rows, &ended);
    for (size_t i = 0; i < n_ended; i++)
        map_put(&h->ended, (uint64_t)ended[i], NULL);
    free(p->rows);
    free(carried);
    p->rows = rows;
    p->n = n;
    check_rows(h);
}

static void on_cut(void *arg, const struct cuts_chunk *c, int64_t at)
{
    on_end(arg, c);
}

static const struct cuts_user user = {.cut = on_cut, .finish = on_end};

static bool same_leaving(const struct piece *a, const int32_t *rows, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (a->rows[a->c.leaving[i]] != rows[i])
            return false;
    return true;
}

/* Builds a chunk; are those that leave it, and all that is known of them, the same as before? */
static bool build_one(struct host *h, size_t i)
{
    struct piece *p = &h->pieces[i];
    bool was_built = p->built;
    uint64_t hash = p->c.hash;
    size_t n = p->c.n_carried;
    int32_t *rows = mem_alloc((n + 1) * sizeof *rows);
    for (size_t k = 0; k < n; k++)
        rows[k] = p->rows[p->c.leaving[k]];
    cuts_chunk_free(&p->c);
    h->now = i;
    p->after_another = i && h->pieces[i - 1].built;
    cuts_build(
        h->trace, h->bounds[i], h->bounds[i + 1], p->after_another ? &h->pieces[i - 1].c : NULL, &user, h, &p->c);
    p->built = true;
    bool same = was_built && hash == p->c.hash && n == p->c.n_carried && same_leaving(p, rows, n);
    free(rows);
    return same;
}

static bool has_ended(const struct host *h, const struct piece *p)
{
    for (size_t i = 0; i < p->n; i++)
        if (map_find(&h->ended, (uint64_t)p->rows[i]))
            return true;
    return false;
}

/* Builds a chunk, and the later ones named by kernel_rows_ended. */
static void build(struct host *h, size_t i)
{
    map_fini(&h->ended);
    bool same = build_one(h, i);
    while (++i < h->n)
        if (h->pieces[i].built && ((!same && h->pieces[i - 1].built) || has_ended(h, &h->pieces[i])))
            same = build_one(h, i);
        else
            same = true;
    map_fini(&h->ended);
}

static void save(struct host *h)
{
    struct err e = {0};
    if (kernel_rows_save(h->rows, &e) || kernel_rows_check(h->directory, HOST, &e))
        fail_msg("%s", e.text);
    check_rows(h);
}

static void save_and_open(struct host *h)
{
    save(h);
    kernel_rows_close(h->rows);
    open_rows(h);
    check_rows(h);
}

/* ---- equal lives ---- */

static void in_order(struct host *h)
{
    for (size_t i = 0; i < h->n; i++)
        build(h, i);
}

static void in_any_order(struct host *h, uint64_t seed)
{
    size_t order[MOST_CHUNKS];
    for (size_t i = 0; i < h->n; i++)
        order[i] = i;
    for (size_t i = h->n; i-- > 1;) {
        size_t k = dice(&seed, (unsigned)i + 1), swap = order[k];
        order[k] = order[i];
        order[i] = swap;
    }
    for (size_t i = 0; i < h->n; i++) {
        build(h, order[i]);
        unsigned what = dice(&seed, 12); /* wait for the disk */
        if (what == 0)
            save(h);
        else if (what == 1)
            save_and_open(h);
    }
}

/* Rows of both hosts that chunks speak of: each is one of the other's, the same life. */
static void same_lives(const struct host *a, const struct host *b)
{
    struct map to = {0}, back = {0};
    for (size_t i = 0; i < a->n; i++) {
        assert_int_equal(a->pieces[i].n, b->pieces[i].n);
        for (size_t k = 0; k < a->pieces[i].n; k++) {
            int32_t x = a->pieces[i].rows[k], y = b->pieces[i].rows[k];
            struct kernel_row of_x, of_y;
            bool fresh;
            uint64_t *at = map_put(&to, (uint64_t)x, &fresh);
            if (fresh)
                *at = (uint64_t)y;
            assert_int_equal(*at, y);
            at = map_put(&back, (uint64_t)y, &fresh);
            if (fresh)
                *at = (uint64_t)x;
            assert_int_equal(*at, x);
            assert_true(kernel_rows_get(a->rows, x, &of_x) && kernel_rows_get(b->rows, y, &of_y));
            if (of_x.tid != of_y.tid || of_x.birth != of_y.birth || of_x.first != of_y.first ||
                of_x.death != of_y.death || of_x.idle_cpu != of_y.idle_cpu || strcmp(of_x.name, of_y.name))
                fail_msg("chunk %zu, row %zu: tid %d %s, %lld to %lld, is tid %d %s, %lld to %lld", i, k, of_x.tid,
                    of_x.name, (long long)of_x.first, (long long)of_x.death, of_y.tid, of_y.name, (long long)of_y.first,
                    (long long)of_y.death);
        }
    }
    map_fini(&to);
    map_fini(&back);
}

/* ---- a world in which threads begin, run, call exec, wait and end ---- */

enum { CPUS = 2, TIDS = 12 };
struct world {
    struct maker *m;
    uint64_t d;
    int64_t now;
    int process[TIDS + 1]; /* process by tid: tid of its first thread; 0: none */
    int runs[CPUS];
};

static int any_thread(struct world *w)
{
    int tid = 1 + (int)dice(&w->d, TIDS);
    for (int i = 0; i < TIDS && !w->process[tid]; i++)
        tid = tid % TIDS + 1;
    return tid;
}

static bool runs(const struct world *w, int tid)
{
    return w->runs[0] == tid || w->runs[1] == tid;
}

static void give_cpu(struct world *w, uint32_t cpu, int next, int64_t state)
{
    maker_switch(w->m, cpu, ++w->now, w->runs[cpu], state, next);
    w->runs[cpu] = next;
}

static void fork_one(struct world *w, uint32_t cpu)
{
    int parent = w->runs[cpu], child = 1;
    while (child <= TIDS && w->process[child])
        child++;
    if (!parent || child > TIDS)
        return;
    w->process[child] = dice(&w->d, 2) ? w->process[parent] : child;
    maker_fork(w->m, cpu, ++w->now, parent, child, w->process[child], 0);
    maker_wake(w->m, cpu, ++w->now, M_WAKEUP_NEW, child, (int)cpu);
}

static void end_one(struct world *w, uint32_t cpu)
{
    int tid = w->runs[cpu];
    if (tid < 3)
        return;
    maker_task(w->m, cpu, ++w->now, M_EXIT, tid);
    give_cpu(w, cpu, 0, 32);
    w->now += dice(&w->d, 100);
    maker_task(w->m, cpu, ++w->now, M_FREE, tid);
    w->process[tid] = 0;
}

/* A thread takes over its process: the first one ends, and gives it its tid. */
static void exec_one(struct world *w, uint32_t cpu)
{
    int tid = w->runs[cpu], first = tid ? w->process[tid] : 0;
    if (!first || (first != tid && (runs(w, first) || !w->process[first])))
        return;
    maker_exec(w->m, cpu, ++w->now, dice(&w->d, 2) ? "/bin/one" : "/bin/two", first, tid);
    w->process[tid] = 0;
    w->process[first] = first;
    w->runs[cpu] = first;
}

static struct maker *make_world(uint64_t seed, size_t n)
{
    struct world w = {.m = maker_new(CPUS, 0), .d = seed, .now = 1000};
    w.process[1] = 1;
    w.process[2] = 2;
    for (size_t i = 0; i < n; i++) {
        uint32_t cpu = dice(&w.d, CPUS);
        int tid = any_thread(&w);
        w.now += dice(&w.d, 300);
        switch (dice(&w.d, 10)) {
        case 0:
        case 1: fork_one(&w, cpu); break;
        case 2: end_one(&w, cpu); break;
        case 3: exec_one(&w, cpu); break;
        case 4: give_cpu(&w, cpu, 0, 1); break;
        case 5: maker_dump_thread(w.m, cpu, ++w.now, tid, w.process[tid], 1, KERNEL_DUMPED_WAITING, "dumped"); break;
        default:
            if (runs(&w, tid))
                break;
            maker_wake(w.m, cpu, ++w.now, M_WAKING, tid, (int)cpu);
            give_cpu(&w, cpu, tid, 1);
        }
    }
    return w.m;
}

static void any_order(void **state)
{
    for (uint64_t i = 0; i < 40; i++) {
        struct maker *m = make_world(random_seed + i, 60 + 10 * i);
        struct cuts_trace t;
        struct host a, b;
        int64_t at[MOST_CHUNKS - 1];
        cuts_open_made(&t, m);
        maker_free(m);
        size_t n = cuts_random(&t, random_seed + i, 1 + i % (MOST_CHUNKS - 1), at);
        host_open(&a, &t, at, n);
        in_order(&a);
        for (uint64_t k = 0; k < 3; k++) {
            host_open(&b, &t, at, n);
            in_any_order(&b, random_seed + 100 * i + k);
            same_lives(&a, &b);
            host_close(&b);
        }
        host_close(&a);
        cuts_close(&t);
    }
}

static void one_recording(const struct cuts_trace *t, const char *name, void *count)
{
    struct host a, b;
    int64_t at[7];
    if (t->times.n > 30000)
        return;
    ++*(size_t *)count;
    cuts_random(t, random_seed + t->times.n, 7, at);
    host_open(&a, t, at, 7);
    in_order(&a);
    host_open(&b, t, at, 7);
    in_any_order(&b, random_seed + t->times.n);
    same_lives(&a, &b);
    host_close(&b);
    host_close(&a);
}

static void recordings(void **state)
{
    size_t n = 0;
    cuts_each(one_recording, &n);
    if (!n)
        skip_without("no recordings");
}

/* ---- single rules ---- */

enum { SECOND = 1000 };

/* Chunks of a second. */
static void open_seconds(struct host *h, struct cuts_trace *t, struct maker *m, size_t n)
{
    static int64_t at[MOST_CHUNKS];
    cuts_open_made(t, m);
    maker_free(m);
    for (size_t i = 1; i < n; i++)
        at[i - 1] = t->times.v[0] + (int64_t)i * SECOND;
    host_open(h, t, at, n - 1);
}

static void close_seconds(struct host *h, struct cuts_trace *t)
{
    host_close(h);
    cuts_close(t);
}

/* The row of the tid's last life in a chunk. */
static struct kernel_row row_in(const struct host *h, size_t chunk, int tid)
{
    struct kernel_row r, found = {.tid = -1};
    for (size_t i = 0; i < h->pieces[chunk].n; i++)
        if (kernel_rows_get(h->rows, h->pieces[chunk].rows[i], &r) && (r.later_tid > 0 ? r.later_tid : r.tid) == tid)
            found = r;
    assert_int_not_equal(found.tid, -1);
    return found;
}

static void late_birth(void **state)
{
    struct maker *m = maker_new(1, 0);
    struct cuts_trace t;
    struct host h;
    maker_switch(m, 0, 0, 1, 1, 2);
    maker_fork(m, 0, SECOND + 100, 2, 7, 7, 0);
    maker_wake(m, 0, 2 * SECOND + 100, M_WAKING, 7, 0);
    maker_switch(m, 0, 2 * SECOND + 200, 2, 1, 7);
    open_seconds(&h, &t, m, 3);
    int64_t zero = t.times.v[0];
    build(&h, 2);
    struct kernel_row before = row_in(&h, 2, 7);
    assert_true(before.birth == KERNEL_UNBORN && before.first == zero + 2 * SECOND + 100);
    save_and_open(&h);
    build(&h, 1);
    struct kernel_row after = row_in(&h, 1, 7);
    assert_true(after.id == before.id && after.birth == zero + SECOND + 100);
    assert_int_equal(row_in(&h, 2, 7).id, before.id);
    close_seconds(&h, &t);
}

/* Checks that a life continues over a gap, unless its end, or another life's begin, was seen. */
static void over_a_gap(void **state)
{
    struct maker *m = maker_new(1, 0);
    struct cuts_trace t;
    struct host h;
    maker_switch(m, 0, 0, 1, 1, 7);
    maker_task(m, 0, 100, M_EXIT, 8);
    maker_task(m, 0, 110, M_FREE, 8);
    maker_wake(m, 0, 120, M_WAKING, 9, 0);
    maker_switch(m, 0, SECOND + 100, 7, 1, 2);
    maker_wake(m, 0, 2 * SECOND + 100, M_WAKING, 7, 0);
    maker_wake(m, 0, 2 * SECOND + 110, M_WAKING, 8, 0);
    maker_fork(m, 0, 2 * SECOND + 120, 2, 9, 9, 0);
    open_seconds(&h, &t, m, 3);
    build(&h, 0);
    build(&h, 2);
    assert_int_equal(row_in(&h, 0, 7).id, row_in(&h, 2, 7).id);
    assert_int_not_equal(row_in(&h, 0, 8).id, row_in(&h, 2, 8).id);
    assert_int_not_equal(row_in(&h, 0, 9).id, row_in(&h, 2, 9).id);
    assert_true(row_in(&h, 0, 9).death == KERNEL_UNDEAD && row_in(&h, 2, 9).birth != KERNEL_UNBORN);
    close_seconds(&h, &t);
}

/* Checks late news of a second life: the row is the first one's, and the other gets a row of its own. */
static void two_after_all(void **state)
{
    struct maker *m = maker_new(1, 0);
    struct cuts_trace t;
    struct host h;
    maker_switch(m, 0, 0, 1, 1, 7);
    maker_switch(m, 0, SECOND + 100, 7, 32, 2);
    maker_fork(m, 0, SECOND + 200, 2, 7, 7, 0);
    maker_wake(m, 0, 2 * SECOND + 100, M_WAKING, 7, 0);
    open_seconds(&h, &t, m, 3);
    build(&h, 0);
    struct kernel_row first = row_in(&h, 0, 7);
    build(&h, 2);
    assert_int_equal(row_in(&h, 2, 7).id, first.id);
    build(&h, 1);
    assert_int_equal(row_in(&h, 0, 7).id, first.id);
    assert_int_equal(row_in(&h, 0, 7).death, t.times.v[0] + SECOND + 100);
    struct kernel_row second = row_in(&h, 2, 7);
    assert_int_not_equal(second.id, first.id);
    assert_true(second.birth == t.times.v[0] + SECOND + 200 && second.death == KERNEL_UNDEAD);
    close_seconds(&h, &t);
}

/* A thread that calls exec has its process' tid from then on. */
static void another_tid(void **state)
{
    struct maker *m = maker_new(1, 0);
    struct cuts_trace t;
    struct host h;
    maker_switch(m, 0, 0, 1, 1, 9);
    maker_wake(m, 0, 100, M_WAKING, 5, 0);
    maker_wake(m, 0, SECOND + 50, M_WAKING, 9, 0);
    maker_wake(m, 0, SECOND + 60, M_WAKING, 5, 0);
    maker_exec(m, 0, SECOND + 100, "/bin/new", 5, 9);
    maker_wake(m, 0, SECOND + 200, M_WAKING, 9, 0);
    maker_wake(m, 0, 2 * SECOND + 100, M_WAKING, 5, 0);
    maker_wake(m, 0, 2 * SECOND + 200, M_WAKING, 9, 0);
    open_seconds(&h, &t, m, 3);
    build(&h, 2);
    struct kernel_row late = row_in(&h, 2, 5), other = row_in(&h, 2, 9);
    build(&h, 1);
    build(&h, 0);
    struct kernel_row r = row_in(&h, 2, 5);
    assert_int_equal(r.id, late.id);
    assert_true(r.tid == 9 && r.later_tid == 5 && r.renumbered == t.times.v[0] + SECOND + 100);
    assert_string_equal(r.name, "new");
    assert_int_equal(row_in(&h, 2, 9).id, other.id);
    assert_int_not_equal(r.id, other.id);
    assert_int_equal(row_in(&h, 0, 5).death, t.times.v[0] + SECOND + 100);
    close_seconds(&h, &t);
}

/* ---- files ---- */

static void make_files(struct host *h, struct cuts_trace *t, size_t saves)
{
    struct maker *m = make_world(random_seed, 300);
    int64_t at[MOST_CHUNKS - 1];
    cuts_open_made(t, m);
    maker_free(m);
    cuts_random(t, random_seed, MOST_CHUNKS - 1, at);
    host_open(h, t, at, MOST_CHUNKS - 1);
    for (size_t i = 0; i < saves; i++) {
        build(h, i);
        save(h);
    }
}

static size_t copy_of(const char *path, char **data)
{
    struct err e = {0};
    size_t n;
    if (file_read(path, 1 << 24, data, &n, &e))
        fail_msg("%s", e.text);
    return n;
}

static void the_file(const struct host *h, char *path, size_t room)
{
    DIR *d = opendir(h->directory);
    assert_non_null(d);
    for (struct dirent *entry; (entry = readdir(d));)
        if (!strncmp(entry->d_name, "rows.", 5))
            snprintf(path, room, "%s/%s", h->directory, entry->d_name);
    closedir(d);
}

static void resolve_anyway(void *arg, const struct cuts_chunk *c)
{
    struct host *h = arg;
    const struct kernel_thread *threads;
    size_t n = kernel_tracker_threads(c->tracker, &threads);
    int32_t *rows = mem_alloc((n + 1) * sizeof *rows);
    struct kernel_rows_chunk chunk = {c->tracker, c->chunk.begin, INT64_MAX, NULL, NULL, 0};
    struct err e = {0};
    if (kernel_rows_resolve(h->rows, &chunk, rows, &e) == ERR_OK)
        for (size_t i = 0; i < n; i++)
            assert_in_range(rows[i], 0, kernel_rows_count(h->rows) - 1);
    free(rows);
}

/* Changes every byte: the check reports it; reading without the check does no harm. */
static void damaged(void **state)
{
    struct host h;
    struct cuts_trace t;
    struct err e = {0};
    char path[4096], *data;
    make_files(&h, &t, 1);
    kernel_rows_close(h.rows);
    the_file(&h, path, sizeof path);
    size_t n = copy_of(path, &data);
    for (size_t i = 0; i < n; i += 1 + i % 7) {
        char was = data[i];
        data[i] = (char)(i % 3 ? was ^ (1 << i % 8) : was ^ 0xff);
        test_write_file(path, data, n);
        data[i] = was;
        assert_int_equal(kernel_rows_check(h.directory, HOST, &e), ERR_FORMAT);
        if (kernel_rows_open(h.directory, HOST, &h.rows, &e))
            continue;
        struct kernel_row r;
        for (int32_t k = 0; k < kernel_rows_count(h.rows); k++)
            if (kernel_rows_get(h.rows, k, &r))
                kernel_rows_find(h.rows, r.id + strlen(r.name));
        if (i % 5 == 0) {
            const struct cuts_user anyway = {.finish = resolve_anyway};
            struct cuts_chunk c;
            cuts_build(&t, h.bounds[3], INT64_MAX, NULL, &anyway, &h, &c);
            cuts_chunk_free(&c);
            assert_int_equal(kernel_rows_save(h.rows, &e), ERR_FORMAT);
        }
        kernel_rows_close(h.rows);
    }
    for (size_t i = 0; i < n; i += 61) {
        test_write_file(path, data, i);
        assert_int_equal(kernel_rows_check(h.directory, HOST, &e), ERR_FORMAT);
    }
    test_write_file(path, data, n);
    free(data);
    open_rows(&h);
    host_close(&h);
    cuts_close(&t);
}

static void files(void **state)
{
    struct host h;
    struct cuts_trace t;
    struct err e = {0};
    struct kernel_rows *other;
    char first[4096], *data;
    make_files(&h, &t, 1);
    the_file(&h, first, sizeof first);
    size_t n = copy_of(first, &data);
    for (size_t i = 1; i < MOST_CHUNKS; i++) {
        build(&h, i);
        save(&h);
    }
    assert_in_range(test_directory_files(h.directory), 1, 5);
    /* A save that was interrupted left the file that the new one replaces. */
    test_write_file(first, data, n);
    save_and_open(&h);
    free(data);
    assert_int_equal(kernel_rows_open(h.directory, HOST + 1, &other, &e), ERR_STALE);
    assert_int_equal(kernel_rows_open("/nonexistent", HOST, &other, &e), ERR_NOTFOUND);
    /* Removal of one that is not the last. */
    char last[4096], next[4200];
    kernel_rows_close(h.rows);
    the_file(&h, last, sizeof last);
    snprintf(next, sizeof next, "%s/rows.90-90", h.directory);
    assert_int_equal(rename(last, next), 0);
    assert_int_equal(kernel_rows_open(h.directory, HOST, &h.rows, &e), ERR_FORMAT);
    h.rows = NULL;
    host_close(&h);
    cuts_close(&t);
}

int main(void)
{
    random_seed = test_seed(5000);
    const struct CMUnitTest tests[] = {cmocka_unit_test(late_birth), cmocka_unit_test(over_a_gap),
        cmocka_unit_test(two_after_all), cmocka_unit_test(another_tid), cmocka_unit_test(any_order),
        cmocka_unit_test(recordings), cmocka_unit_test(damaged), cmocka_unit_test(files)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
