/* SPDX-License-Identifier: MIT */
#include "cuts.h"

#include "../base/test.h"
#include "base/mem.h"
#include "base/order.h"

enum { BATCH = 64 };

/* ---- traces ---- */

static struct ctf_merge *merge_of(const struct cuts_trace *t)
{
    struct err e = {0};
    struct ctf_source source = {.trace = t->trace};
    struct ctf_merge *m;
    if (ctf_merge_new(&source, 1, (struct ctf_window){INT64_MIN, INT64_MAX}, -1, &m, &e))
        fail_msg("%s", e.text);
    return m;
}

static void bind_trace(struct cuts_trace *t)
{
    struct err e = {0};
    struct ctf_event ev[BATCH];
    if (kernel_bind(t->trace, &t->binding, &e))
        fail_msg("%s", e.text);
    struct ctf_merge *m = merge_of(t);
    for (size_t n; (n = ctf_merge_next(m, ev, BATCH)) > 0;)
        for (size_t i = 0; i < n; i++)
            vec_push(&t->times, ev[i].ts);
    ctf_merge_free(m);
}

bool cuts_open(struct cuts_trace *t, const char *directory, size_t number)
{
    struct ctf_group *groups;
    size_t n;
    struct err e = {0};
    *t = (struct cuts_trace){0};
    if (ctf_discover(directory, &groups, &n, &e))
        return false;
    t->schemas = ctf_schemas_new();
    for (size_t i = 0; i < n && !t->trace; i++) {
        if (ctf_trace_open(&groups[i], t->schemas, &t->trace, &e))
            fail_msg("%s", e.text);
        if (kernel_is_kernel_trace(t->trace) && number-- == 0)
            break;
        ctf_trace_close(t->trace);
        t->trace = NULL;
    }
    ctf_groups_free(groups, n);
    if (t->trace)
        bind_trace(t);
    else
        ctf_schemas_free(t->schemas);
    return t->trace != NULL;
}

void cuts_open_made(struct cuts_trace *t, const struct maker *m)
{
    *t = (struct cuts_trace){.is_made = true};
    maker_open(m, SIZE_MAX, false, &t->made);
    t->trace = t->made.trace;
    bind_trace(t);
}

void cuts_close(struct cuts_trace *t)
{
    kernel_binding_free(t->binding);
    vec_free(&t->times);
    if (t->is_made) {
        maker_close(&t->made);
        return;
    }
    ctf_trace_close(t->trace);
    ctf_schemas_free(t->schemas);
}

void cuts_each(void (*one)(const struct cuts_trace *, const char *, void *), void *arg)
{
    char data[4096];
    const char *set = getenv("WEFT_DATA");
    snprintf(data, sizeof data, "%s/traces", set ? set : WEFT_SOURCE_ROOT "/../shared/data");
    const char *roots[] = {data, WEFT_SOURCE_ROOT "/examples/three-tier"};
    struct cuts_trace t;
    for (size_t r = 0; r < sizeof roots / sizeof *roots; r++) {
        if (r == 0 ? !test_have(roots[r]) : access(roots[r], R_OK) != 0)
            continue;
        for (size_t i = 0; cuts_open(&t, roots[r], i); i++) {
            one(&t, ctf_trace_path(t.trace), arg);
            cuts_close(&t);
        }
    }
}

/* ---- single chunk ---- */

struct run {
    const struct cuts_trace *trace;
    const struct cuts_user *user;
    void *arg;
    struct ctf_merge *merge;
    struct ctf_event batch[BATCH];
    size_t at, n; /* position in the batch, and its size */
    int64_t now;  /* the greatest time so far: items that step back belong to it */
    VEC(struct cuts_chunk) done;
    int32_t n_rows;
};

static void on_record(void *arg, const struct kernel_record *r)
{
    struct run *run = arg;
    run->user->record(run->arg, r);
}

static void ignore(void *arg, const struct kernel_record *r) {}

static void call_carry(const struct run *r, struct cuts_chunk *c, struct carry *carry)
{
    kernel_tracker_carry(c->tracker, carry);
    c->of_tracker = carry->bytes.n;
    if (r->user->carry)
        r->user->carry(r->arg, c, carry);
}

static struct cuts_chunk new_chunk(struct run *r, size_t number, int64_t begin, int64_t end)
{
    struct cuts_chunk c = {.number = number,
        .tracker = kernel_tracker_new(r->trace->binding, r->user->record ? on_record : ignore, r),
        .first = INT64_MAX,
        .last = INT64_MIN,
        .chunk = {.begin = begin, .end = end},
        .carried = {.fd = -1}};
    return c;
}

static const int32_t *carry_out(const struct run *r, struct cuts_chunk *c, struct carry *carry)
{
    const int32_t *rows = NULL;
    carry_init(carry);
    call_carry(r, c, carry);
    c->n_carried = kernel_tracker_carry_rows(c->tracker, carry, &rows);
    call_carry(r, c, carry);
    return rows;
}

static int carry_in(
    const struct run *r, struct cuts_chunk *c, const void *bytes, size_t n, size_t n_rows, struct err *e)
{
    struct carry in;
    carry_load(&in, bytes, n, n_rows);
    call_carry(r, c, &in);
    int rc = carry_loaded(&in, e);
    carry_fini(&in);
    return rc;
}

/* Checks that saving gives the bytes just loaded. */
static void check_same(const struct run *r, struct cuts_chunk *c, const struct cuts_chunk *before)
{
    struct carry again;
    const int32_t *rows = carry_out(r, c, &again);
    assert_int_equal(c->n_carried, before->n_carried);
    for (size_t i = 0; i < c->n_carried; i++)
        assert_int_equal(rows[i], i);
    assert_int_equal(again.bytes.n, before->carried.n);
    assert_memory_equal(again.bytes.v, before->carried.v, again.bytes.n);
    carry_fini(&again);
    c->n_carried = 0;
}

static void load(const struct run *r, struct cuts_chunk *c, const struct cuts_chunk *before)
{
    struct err e = {0};
    /* Exact size, for a sanitizer. */
    char *bytes = mem_alloc(before->carried.n ? before->carried.n : 1);
    memcpy(bytes, before->carried.v, before->carried.n);
    if (carry_in(r, c, bytes, before->carried.n, before->n_carried, &e))
        fail_msg("chunk %zu: %s", c->number, e.text);
    free(bytes);
    assert_int_equal(kernel_tracker_carried(c->tracker), before->n_carried);
    check_same(r, c, before);
}

/* Items of one chunk out of the batch. */
static void feed_some(struct run *r, struct cuts_chunk *c, size_t n)
{
    int64_t times[BATCH];
    size_t n_times = 0;
    const struct ctf_event *ev = &r->batch[r->at];
    kernel_tracker_feed(c->tracker, ev, n);
    for (size_t i = 0; i < n; i++) {
        if (ev[i].cls->item != CTF_EVENT)
            continue;
        times[n_times++] = ev[i].ts;
        c->first = ev[i].ts < c->first ? ev[i].ts : c->first;
        c->last = ev[i].ts > c->last ? ev[i].ts : c->last;
    }
    if (r->user->events && n_times)
        r->user->events(r->arg, times, n_times);
    r->at += n;
}

/* Up to the cut; at most `most` items. */
static void feed(struct run *r, struct cuts_chunk *c, int64_t end, bool last, size_t most)
{
    while (most) {
        if (r->at == r->n) {
            r->at = 0;
            r->n = ctf_merge_next(r->merge, r->batch, BATCH);
        }
        size_t n = 0;
        while (r->at + n < r->n && n < most && (last || (r->batch[r->at + n].ts < end && r->now < end))) {
            r->now = r->batch[r->at + n].ts > r->now ? r->batch[r->at + n].ts : r->now;
            n++;
        }
        if (!n)
            return;
        feed_some(r, c, n);
        most -= n;
    }
}

int32_t cuts_row(const struct cuts_chunk *c, int32_t row)
{
    if (row < 0)
        return row;
    return (size_t)row < c->chunk.n_rows ? c->chunk.rows[row] : c->first_new + row - (int32_t)c->chunk.n_rows;
}

/* Rows that were carried are those that they were; others are new to the host. */
static void know_carried(struct run *r, struct cuts_chunk *c, const struct cuts_chunk *before)
{
    size_t n = before ? before->n_carried : 0;
    int32_t *rows = mem_alloc((n + 1) * sizeof *rows);
    for (size_t i = 0; i < n; i++)
        rows[i] = before->chunk.rows[before->leaving[i]];
    c->chunk.rows = rows;
    c->chunk.n_rows = n;
    c->first_new = r->n_rows;
}

static void know_all(struct run *r, struct cuts_chunk *c)
{
    const struct kernel_thread *threads;
    size_t n = kernel_tracker_threads(c->tracker, &threads), known = c->chunk.n_rows;
    int32_t *rows = mem_resize((int32_t *)(uintptr_t)c->chunk.rows, (n + 1) * sizeof *rows);
    for (size_t i = known; i < n; i++)
        rows[i] = r->n_rows++;
    c->chunk.rows = rows;
    c->chunk.n_rows = n;
}

/* ---- list of chunks ---- */

static void begin_run(struct run *r, const struct cuts_trace *t, const struct cuts_user *user, void *arg)
{
    *r = (struct run){.trace = t, .user = user, .arg = arg, .now = INT64_MIN};
    r->merge = merge_of(t);
}

/* Feeds the chunk and ends it. */
static void run_chunk(struct run *r, struct cuts_chunk *c, const struct cuts_chunk *before, bool numbered)
{
    bool last = c->chunk.end == INT64_MAX;
    if (before)
        load(r, c, before);
    feed(r, c, c->chunk.end, last, SIZE_MAX);
    if (numbered)
        know_all(r, c);
    if (last) {
        kernel_tracker_finish(c->tracker);
        if (r->user->finish)
            r->user->finish(r->arg, c);
        return;
    }
    struct carry carry;
    const int32_t *rows = carry_out(r, c, &carry);
    c->leaving = mem_alloc((c->n_carried + 1) * sizeof *c->leaving);
    if (c->n_carried)
        memcpy(c->leaving, rows, c->n_carried * sizeof *c->leaving);
    c->hash = carry_hash(&carry);
    text_put(&c->carried, carry.bytes.v, carry.bytes.n);
    carry_fini(&carry);
    if (r->user->cut)
        r->user->cut(r->arg, c, c->chunk.end);
}

static void end_chunk(struct cuts_chunk *c)
{
    kernel_tracker_free(c->tracker);
    c->tracker = NULL;
}

void cuts_run(
    const struct cuts_trace *t, const int64_t *at, size_t n, const struct cuts_user *user, void *arg, struct cuts *out)
{
    struct run *r = mem_alloc(sizeof *r);
    begin_run(r, t, user, arg);
    for (size_t i = 0; i <= n; i++) {
        const struct cuts_chunk *before = i ? &r->done.v[i - 1] : NULL;
        struct cuts_chunk c = new_chunk(r, i, i ? at[i - 1] : INT64_MIN, i < n ? at[i] : INT64_MAX);
        know_carried(r, &c, before);
        if (user->begin)
            user->begin(arg, &c);
        run_chunk(r, &c, before, true);
        end_chunk(&c);
        vec_push(&r->done, c);
    }
    *out = (struct cuts){.chunks = r->done.v, .n = r->done.n, .n_rows = r->n_rows};
    ctf_merge_free(r->merge);
    free(r);
}

static void skip_to(struct run *r, int64_t begin)
{
    static struct ctf_event skipped[BATCH];
    size_t before = 0;
    while (before < r->trace->times.n && r->trace->times.v[before] < begin)
        before++;
    for (size_t k; before; before -= k)
        k = ctf_merge_next(r->merge, skipped, before < BATCH ? before : BATCH);
}

/* Begins a chunk without the numbers of the host's rows. */
static void begin_alone(struct run *r, size_t number, int64_t begin, int64_t end, struct cuts_chunk *c)
{
    *c = new_chunk(r, number, begin, end);
    if (r->user->begin)
        r->user->begin(r->arg, c);
}

void cuts_build(const struct cuts_trace *t, int64_t begin, int64_t end, const struct cuts_chunk *before,
    const struct cuts_user *user, void *arg, struct cuts_chunk *out)
{
    struct run *r = mem_alloc(sizeof *r);
    begin_run(r, t, user, arg);
    skip_to(r, begin);
    begin_alone(r, before != NULL, begin, end, out);
    run_chunk(r, out, before, false);
    end_chunk(out);
    ctf_merge_free(r->merge);
    free(r);
}

void cuts_chunk_free(struct cuts_chunk *c)
{
    text_fini(&c->carried);
    free(c->leaving);
    free((int32_t *)(uintptr_t)c->chunk.rows);
    *c = (struct cuts_chunk){.carried = {.fd = -1}};
}

void cuts_free(struct cuts *c)
{
    for (size_t i = 0; i < c->n; i++)
        cuts_chunk_free(&c->chunks[i]);
    free(c->chunks);
    *c = (struct cuts){0};
}

/* ---- cuts ---- */

static uint64_t next_random(uint64_t *state)
{
    *state += UINT64_C(0x9e3779b97f4a7c15);
    return map_mix(*state);
}

static int compare_times(const void *a, const void *b)
{
    const int64_t *x = a, *y = b;
    return order_of(*x, *y);
}

size_t cuts_random(const struct cuts_trace *t, uint64_t seed, size_t n, int64_t *at)
{
    uint64_t state = seed;
    int64_t begin = t->times.n ? t->times.v[0] : 0, end = t->times.n ? t->times.v[t->times.n - 1] : 0;
    for (size_t i = 0; i < n; i++) {
        uint64_t how = next_random(&state) % 32, x = next_random(&state);
        int64_t item = t->times.n ? t->times.v[x % t->times.n] : 0;
        if (how < 18)
            at[i] = end > begin ? begin + (int64_t)(x % (uint64_t)(end - begin)) : begin;
        else if (how < 28)
            at[i] = item + (int64_t)(how % 3) - 1;
        else if (how < 30)
            at[i] = i ? at[x % i] : item;
        else
            at[i] = how == 30 ? begin - (int64_t)(x % 3) : end + (int64_t)(x % 3);
    }
    qsort(at, n, sizeof *at, compare_times);
    return n;
}

/* ---- damage ---- */

static void drop(const struct run *r, struct cuts_chunk *c)
{
    if (r->user->drop)
        r->user->drop(r->arg, c);
    kernel_tracker_free(c->tracker);
    text_fini(&c->carried);
}

/* A chunk that begins with these bytes, fed with what follows `at`. */
static void load_damaged(struct run *r, int64_t at, const void *bytes, size_t n, size_t n_rows)
{
    struct err e = {0};
    struct cuts_chunk c;
    begin_alone(r, 1, at, INT64_MAX, &c);
    if (!carry_in(r, &c, bytes, n, n_rows, &e)) {
        struct carry out;
        ctf_merge_free(r->merge);
        r->merge = merge_of(r->trace);
        r->at = r->n = 0;
        r->now = INT64_MIN;
        skip_to(r, at);
        feed(r, &c, INT64_MAX, true, 2000);
        carry_out(r, &c, &out);
        carry_fini(&out);
    }
    drop(r, &c);
}

void cuts_damage(
    const struct cuts_trace *t, int64_t at, uint64_t seed, size_t times, const struct cuts_user *user, void *arg)
{
    struct run *r = mem_alloc(sizeof *r);
    struct carry carry;
    uint64_t state = seed;
    begin_run(r, t, user, arg);
    struct cuts_chunk c;
    begin_alone(r, 0, INT64_MIN, at, &c);
    feed(r, &c, at, false, SIZE_MAX);
    carry_out(r, &c, &carry);
    size_t n = carry.bytes.n, n_rows = c.n_carried;
    drop(r, &c);
    for (size_t i = 0; i < times && n; i++) {
        uint64_t how = next_random(&state) % 8, x = next_random(&state);
        size_t position = x % n, length = how == 0 ? position : n;
        uint8_t *bytes = mem_alloc(length ? length : 1);
        memcpy(bytes, carry.bytes.v, length);
        if (how)
            bytes[position] = (uint8_t)(how == 1 ? 0xff
                    : how == 2                   ? 0
                    : how == 3                   ? 0x7f
                    : how < 6                    ? bytes[position] ^ 1u << (x >> 32) % 8
                                                 : (x >> 40));
        load_damaged(r, at, bytes, length, n_rows);
        free(bytes);
    }
    carry_fini(&carry);
    ctf_merge_free(r->merge);
    free(r);
}
