/* SPDX-License-Identifier: MIT */
#include "cut.h"

#include "../base/test.h"

enum { BATCH = 64 };

/* ---- traces ---- */

static bool is_user_space(const struct ctf_trace *t)
{
    const char *domain = ctf_trace_env_string(t, "domain");
    return domain && !strcmp(domain, "ust");
}

static struct ctf_merge *merge_of(const struct cut_trace *t)
{
    struct err e = {0};
    struct ctf_source source = {.trace = t->trace};
    struct ctf_merge *m;
    if (ctf_merge_new(&source, 1, (struct ctf_window){INT64_MIN, INT64_MAX}, -1, &m, &e))
        fail_msg("%s", e.text);
    return m;
}

bool cut_open(struct cut_trace *t, const char *directory, size_t number)
{
    struct ctf_group *groups;
    size_t n;
    struct err e = {0};
    struct ctf_event ev[BATCH];
    *t = (struct cut_trace){0};
    if (ctf_discover(directory, &groups, &n, &e))
        return false;
    t->schemas = ctf_schemas_new();
    for (size_t i = 0; i < n && !t->trace; i++) {
        if (ctf_trace_open(&groups[i], t->schemas, &t->trace, &e)) {
            t->trace = NULL; /* some recordings are damaged */
            continue;
        }
        if (is_user_space(t->trace) && number-- == 0)
            break;
        ctf_trace_close(t->trace);
        t->trace = NULL;
    }
    ctf_groups_free(groups, n);
    if (!t->trace) {
        ctf_schemas_free(t->schemas);
        return false;
    }
    struct ctf_merge *m = merge_of(t);
    for (size_t k; (k = ctf_merge_next(m, ev, BATCH)) > 0;)
        for (size_t i = 0; i < k; i++)
            vec_push(&t->times, ev[i].ts);
    ctf_merge_free(m);
    return true;
}

void cut_close(struct cut_trace *t)
{
    ctf_trace_close(t->trace);
    ctf_schemas_free(t->schemas);
    vec_free(&t->times);
}

/* ---- single chunk ---- */

struct feeding {
    struct ctf_merge *merge;
    struct ctf_event batch[BATCH];
    size_t at, n;
    int64_t now; /* the greatest time so far: items that step back belong to it */
};

/* Up to `end`; a builder that is NULL hears nothing. */
static void feed(struct feeding *f, struct stack_builder *b, int64_t end, bool last)
{
    for (;;) {
        if (f->at == f->n) {
            f->at = 0;
            f->n = ctf_merge_next(f->merge, f->batch, BATCH);
        }
        size_t n = 0;
        while (f->at + n < f->n && (last || (f->batch[f->at + n].ts < end && f->now < end))) {
            f->now = f->batch[f->at + n].ts > f->now ? f->batch[f->at + n].ts : f->now;
            n++;
        }
        if (!n)
            return;
        if (b)
            stack_builder_feed(b, &f->batch[f->at], n);
        f->at += n;
    }
}

static struct text save(struct stack_builder *b)
{
    struct carry c;
    struct text bytes = {.fd = -1};
    carry_init(&c);
    stack_builder_carry(b, &c);
    carry_save(&c, NULL, 0);
    stack_builder_carry(b, &c);
    text_put(&bytes, c.bytes.v ? c.bytes.v : "", c.bytes.n);
    carry_fini(&c);
    return bytes;
}

static int load(struct stack_builder *b, const void *bytes, size_t n)
{
    struct carry c;
    struct err e = {0};
    char *exact = mem_alloc(n ? n : 1); /* exact size, for a sanitizer */
    memcpy(exact, bytes, n);
    carry_load(&c, exact, n, 0);
    stack_builder_carry(b, &c);
    int rc = carry_loaded(&c, &e);
    carry_fini(&c);
    free(exact);
    return rc;
}

static struct stack_builder *begin(const struct cut_trace *t, const struct text *carried)
{
    struct stack_builder *b = stack_builder_new(t->trace);
    if (!carried)
        return b;
    assert_int_equal(load(b, carried->v, carried->n), 0);
    struct text again = save(b);
    assert_int_equal(again.n, carried->n);
    assert_memory_equal(again.v, carried->v, again.n);
    text_fini(&again);
    return b;
}

static void make_path(char *path)
{
    /* Files that are not forced to a disk: there are thousands. */
    strcpy(path, access("/dev/shm", W_OK) ? "/tmp/weft-cut-XXXXXX" : "/dev/shm/weft-cut-XXXXXX");
    close(mkstemp(path));
}

/* ---- list of chunks ---- */

static struct stack_builder *begin_chunk(
    const struct cut_trace *t, size_t i, int64_t from, int64_t to, struct cut_chunks *out)
{
    make_path(out->paths[i]);
    out->chunks[i] = (struct chunk){out->paths[i], from, to, NULL, 0};
    return begin(t, i ? &out->carried[i - 1] : NULL);
}

static void end_chunk(struct stack_builder *b, size_t i, struct cut_chunks *out)
{
    struct err e = {0};
    const struct chunk *c = &out->chunks[i];
    bool last = i + 1 == out->n;
    if (!last)
        out->carried[i] = save(b);
    if (last ? stack_builder_write(b, store_file(c->path), 1, &e)
             : stack_builder_cut(b, c->end, store_file(c->path), 1, &e))
        fail_msg("%s", e.text);
    stack_builder_free(b);
}

void cut_build(const struct cut_trace *t, const int64_t *at, size_t n, size_t skipped, struct cut_chunks *out)
{
    struct feeding f = {.merge = merge_of(t), .now = INT64_MIN};
    *out = (struct cut_chunks){.n = n + 1};
    for (size_t i = 0; i <= n; i++) {
        bool last = i == n;
        struct stack_builder *b = begin_chunk(t, i, i ? at[i - 1] : INT64_MIN, last ? INT64_MAX : at[i], out);
        if (i && i == skipped + 1)
            stack_builder_gap(b, out->chunks[skipped].begin, out->chunks[skipped].end);
        feed(&f, i == skipped ? NULL : b, out->chunks[i].end, last);
        end_chunk(b, i, out);
    }
    ctf_merge_free(f.merge);
}

void cut_build_two(const struct cut_trace *first, const struct cut_trace *second, int64_t at, struct cut_chunks *out)
{
    *out = (struct cut_chunks){.n = 2};
    for (size_t i = 0; i < 2; i++) {
        const struct cut_trace *t = i ? second : first;
        struct feeding f = {.merge = merge_of(t), .now = INT64_MIN};
        struct stack_builder *b = begin_chunk(t, i, i ? at : INT64_MIN, i ? INT64_MAX : at, out);
        feed(&f, b, INT64_MAX, true);
        end_chunk(b, i, out);
        ctf_merge_free(f.merge);
    }
}

struct stack_store *cut_list(const struct cut_chunks *c, size_t without)
{
    struct chunk v[CUT_MOST + 1];
    size_t n = 0;
    struct err e = {0};
    struct stack_store *s;
    for (size_t i = 0; i < c->n; i++)
        if (i != without)
            v[n++] = c->chunks[i];
    if (stack_open_list(v, n, &s, &e))
        fail_msg("%s", e.text);
    return s;
}

void cut_free(struct cut_chunks *c)
{
    for (size_t i = 0; i < c->n; i++) {
        unlink(c->paths[i]);
        if (i + 1 < c->n)
            text_fini(&c->carried[i]);
    }
}

bool cut_go_on(const struct cut_trace *t, int64_t at, const void *bytes, size_t n)
{
    struct feeding f = {.merge = merge_of(t), .now = INT64_MIN};
    struct stack_builder *b = stack_builder_new(t->trace);
    struct stack_store *s;
    struct err e = {0};
    char path[40];
    bool loaded = !load(b, bytes, n);
    if (loaded) {
        make_path(path);
        feed(&f, NULL, at, false);
        feed(&f, b, INT64_MAX, true);
        struct text saved = save(b);
        text_fini(&saved);
        if (!stack_builder_write(b, store_file(path), 1, &e) && !stack_open(path, &s, &e))
            stack_close(s);
        unlink(path);
    }
    stack_builder_free(b);
    ctf_merge_free(f.merge);
    return loaded;
}

/* ---- comparing ---- */

static uint64_t random_state = 88172645463325252;

void cut_seed(uint64_t seed)
{
    random_state = seed;
}

int64_t cut_random(int64_t begin, int64_t end)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return end > begin ? begin + (int64_t)(random_state % (uint64_t)(end - begin + 1)) : begin;
}

static int by_time(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static void some_times(const struct stack_store *s, int64_t *times, size_t n)
{
    const struct stack_totals *t = stack_totals(s);
    for (size_t i = 0; i < n; i++)
        times[i] = cut_random(t->begin - 2, t->end + 2);
    times[0] = t->end;
    times[1] = t->begin;
    qsort(times, n, sizeof *times, by_time);
}

static void same_call(const struct stack_call *a, const struct stack_call *b, size_t row)
{
    if (a->begin != b->begin || a->end != b->end || a->function != b->function || a->how != b->how)
        fail_msg("row %zu: [%lld, %lld] of %u, %d, and [%lld, %lld] of %u, %d", row, (long long)a->begin,
            (long long)a->end, a->function, a->how, (long long)b->begin, (long long)b->end, b->function, b->how);
}

static void same_figures(const struct stack_store *a, const struct stack_store *b, size_t row, size_t first, size_t end)
{
    size_t functions = stack_functions(a), reached[2];
    struct stack_figures *f[2];
    struct stack_extremes *x[2];
    uint64_t counts[2][5] = {0};
    int64_t width = cut_random(1, 3000);
    for (int i = 0; i < 2; i++) {
        const struct stack_store *s = i ? b : a;
        uint32_t *of = mem_alloc(sizeof *of * (functions + 1));
        f[i] = mem_zalloc(sizeof *f[i] * (functions + 1));
        x[i] = mem_zalloc(sizeof *x[i] * (functions + 1));
        stack_figures(s, row, first, end, f[i]);
        stack_figures_spread(f[i], functions);
        reached[i] = stack_extremes(s, row, first, end, x[i], of, 0);
        stack_histogram(s, row, first, end, width, 5, counts[i]);
        free(of);
    }
    assert_int_equal(reached[0], reached[1]);
    assert_memory_equal(counts[0], counts[1], sizeof counts[0]);
    for (size_t k = 0; k < functions; k++) {
        const struct figures *p = &f[0][k].calls, *q = &f[1][k].calls;
        assert_int_equal(p->n, q->n);
        assert_int_equal(p->sum, q->sum);
        assert_int_equal(f[0][k].self, f[1][k].self);
        assert_int_equal(p->least, q->least);
        assert_int_equal(p->most, q->most);
        assert_int_equal(p->least_begin, q->least_begin);
        assert_int_equal(p->most_begin, q->most_begin);
        assert_memory_equal(&p->spread, &q->spread, sizeof p->spread);
        assert_int_equal(x[0][k].any, x[1][k].any);
        assert_true(x[0][k].least == x[1][k].least && x[0][k].most == x[1][k].most);
        assert_true(x[0][k].least_begin == x[1][k].least_begin && x[0][k].most_begin == x[1][k].most_begin);
    }
    for (int i = 0; i < 2; i++) {
        free(f[i]);
        free(x[i]);
    }
}

static void same_row(const struct stack_store *a, const struct stack_store *b, size_t row)
{
    enum { TIMES = 40 };
    struct stack_call x[TIMES], y[TIMES];
    int64_t times[TIMES];
    size_t n = stack_calls(a, row), whole = 0;
    assert_int_equal(n, stack_calls(b, row));
    for (size_t i = 0; i < n; i++) {
        stack_call(a, row, i, x);
        stack_call(b, row, i, y);
        same_call(x, y, row);
        assert_int_equal(stack_whole_before(b, row, i), whole);
        if (y->how == STACK_WHOLE)
            assert_int_equal(stack_whole_at(b, row, whole++), i);
    }
    assert_int_equal(stack_whole_before(b, row, n), whole);
    assert_int_equal(stack_whole_before(a, row, n), whole);
    some_times(a, times, TIMES);
    for (size_t i = 0; i < TIMES; i++) {
        size_t at = stack_find(a, row, times[i]), begun = stack_begun(a, row, 0, times[i]);
        assert_int_equal(stack_find(b, row, times[i]), at);
        assert_int_equal(stack_begun(b, row, 0, times[i]), begun);
        assert_int_equal(stack_begun(b, row, (size_t)cut_random(0, (int64_t)begun), times[i]), begun);
        assert_int_equal(stack_at(a, row, times[i], x), stack_at(b, row, times[i], y));
    }
    size_t found = stack_sample(a, row, times, TIMES, x);
    assert_int_equal(stack_sample(b, row, times, TIMES, y), found);
    for (size_t i = 0; i < found; i++)
        same_call(&x[i], &y[i], row);
    same_figures(a, b, row, 0, n);
    for (int turn = 0; turn < 3; turn++) {
        size_t first = (size_t)cut_random(0, (int64_t)n);
        same_figures(a, b, row, first, (size_t)cut_random((int64_t)first, (int64_t)n));
    }
}

static void same_thread(const struct stack_store *a, const struct stack_store *b, size_t i)
{
    enum { TIMES = 60 };
    struct stack_thread x, y;
    int64_t times[TIMES], of_a[TIMES], of_b[TIMES];
    stack_thread(a, i, &x);
    stack_thread(b, i, &y);
    assert_int_equal(x.tid, y.tid);
    assert_int_equal(x.cpu, y.cpu);
    assert_int_equal(x.process, y.process);
    assert_int_equal(x.first_row, y.first_row);
    assert_int_equal(x.rows, y.rows);
    assert_string_equal(x.name, y.name);
    assert_int_equal(x.begin, y.begin);
    assert_int_equal(x.end, y.end);
    assert_int_equal(x.has_memory, y.has_memory);
    some_times(a, times, TIMES);
    for (int k = 0; k < TIMES; k++)
        assert_string_equal(stack_thread_name(a, i, times[k]), stack_thread_name(b, i, times[k]));
    stack_memory(a, i, times, TIMES, of_a);
    stack_memory(b, i, times, TIMES, of_b);
    assert_memory_equal(of_a, of_b, sizeof of_a);
}

void cut_same(const struct stack_store *a, const struct stack_store *b)
{
    assert_memory_equal(stack_totals(a), stack_totals(b), sizeof(struct stack_totals));
    assert_int_equal(stack_processes(a), stack_processes(b));
    for (size_t i = 0; i < stack_processes(a); i++) {
        struct stack_process x, y;
        stack_process(a, i, &x);
        stack_process(b, i, &y);
        assert_int_equal(x.pid, y.pid);
        assert_string_equal(x.name, y.name);
        assert_int_equal(x.first_thread, y.first_thread);
        assert_int_equal(x.threads, y.threads);
    }
    assert_int_equal(stack_functions(a), stack_functions(b));
    for (size_t i = 0; i < stack_functions(a); i++) {
        struct stack_function x, y;
        stack_function(a, i, &x);
        stack_function(b, i, &y);
        assert_string_equal(x.name, y.name);
        assert_int_equal(x.address, y.address);
        assert_int_equal(x.process, y.process);
    }
    assert_int_equal(stack_losses(a), stack_losses(b));
    for (size_t i = 0; i < stack_losses(a); i++) {
        struct stack_loss x, y;
        stack_loss(a, i, &x);
        stack_loss(b, i, &y);
        assert_true(x.begin == y.begin && x.end == y.end && x.count == y.count && x.cpu == y.cpu);
    }
    assert_int_equal(stack_threads(a), stack_threads(b));
    assert_int_equal(stack_rows(a), stack_rows(b));
    for (size_t i = 0; i < stack_threads(a); i++)
        same_thread(a, b, i);
    for (size_t i = 0; i < stack_rows(a); i++)
        same_row(a, b, i);
}
