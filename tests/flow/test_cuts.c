/* Recordings that are cut at random: the list of their chunks says what one pass says. */
#include <stdio.h>
#include <unistd.h>

#include "../base/test.h"
#include "../kernel/cuts.h"
#include "same.h"

enum { CUTS = 8 };

struct made {
    struct flow_builder *builder;
    char folder[64];
    VEC(char *) paths;
};

static const char *next_path(struct made *m)
{
    char path[128];
    static int serial;
    snprintf(path, sizeof path, "%s/%d", m->folder, serial++);
    vec_push(&m->paths, mem_strdup(path));
    return m->paths.v[m->paths.n - 1];
}

static void begin(void *arg, const struct cuts_chunk *c)
{
    ((struct made *)arg)->builder = flow_builder_new(c->tracker);
}

static void carry(void *arg, const struct cuts_chunk *chunk, struct carry *c)
{
    (void)chunk;
    flow_builder_carry(((struct made *)arg)->builder, c);
}

static void record(void *arg, const struct kernel_record *r)
{
    flow_builder_add(((struct made *)arg)->builder, r);
}

static void drop(void *arg, const struct cuts_chunk *c)
{
    (void)c;
    flow_builder_free(((struct made *)arg)->builder);
}

static void cut(void *arg, const struct cuts_chunk *c, int64_t at)
{
    struct made *m = arg;
    struct err e = {0};
    if (flow_builder_cut(m->builder, at, store_file(next_path(m)), 1, &e))
        fail_msg("%s", e.text);
    drop(arg, c);
}

static void finish(void *arg, const struct cuts_chunk *c)
{
    struct made *m = arg;
    struct err e = {0};
    if (flow_builder_write(m->builder, store_file(next_path(m)), 1, &e))
        fail_msg("%s", e.text);
    drop(arg, c);
}

static const struct cuts_user USER = {
    .begin = begin, .carry = carry, .record = record, .cut = cut, .finish = finish, .drop = drop};

static void begin_made(struct made *m)
{
    *m = (struct made){0};
    snprintf(m->folder, sizeof m->folder, "%s/weft-cuts-XXXXXX", access("/dev/shm", W_OK) ? "/tmp" : "/dev/shm");
    assert_non_null(mkdtemp(m->folder));
}

/* missing: a chunk that is left out; SIZE_MAX: none. */
static struct flow_store *open_made(struct made *m, struct cuts *cuts, size_t missing)
{
    struct err e = {0};
    struct flow_store *out;
    struct chunk *chunks = mem_alloc(sizeof *chunks * cuts->n);
    size_t n = 0;
    assert_int_equal(m->paths.n, cuts->n);
    for (size_t i = 0; i < cuts->n; i++) {
        if (i == missing)
            continue;
        chunks[n] = cuts->chunks[i].chunk;
        chunks[n++].path = m->paths.v[i];
        if (flow_check(m->paths.v[i], NULL, &e))
            fail_msg("%s", e.text);
    }
    if (flow_open_list(chunks, n, &out, &e))
        fail_msg("%s", e.text);
    free(chunks);
    for (size_t i = 0; i < m->paths.n; i++) {
        unlink(m->paths.v[i]);
        free(m->paths.v[i]);
    }
    vec_free(&m->paths);
    rmdir(m->folder);
    return out;
}

static struct flow_store *build(const struct cuts_trace *t, const int64_t *at, size_t n, size_t missing, int32_t *rows)
{
    struct made m;
    struct cuts cuts;
    begin_made(&m);
    cuts_run(t, at, n, &USER, &m, &cuts);
    struct flow_store *out = open_made(&m, &cuts, missing);
    *rows = cuts.n_rows;
    cuts_free(&cuts);
    return out;
}

/* What is known of a packet without the chunk that is missing: nothing, or what is known with it. */
static void less(const struct flow_store *one, const struct flow_store *list, uint64_t number, size_t *missing)
{
    struct flow_packet p, q, sent, also;
    struct flow_key key;
    bool is_send, also_send;
    if (!flow_by_number(one, number, &p, &is_send))
        return;
    if (!flow_by_number(list, number, &q, &also_send)) {
        ++*missing;
        return;
    }
    assert_true(p.ts == q.ts && p.row == q.row && p.origin == q.origin && p.receive == q.receive);
    assert_true(p.seq_end == q.seq_end && is_send == also_send);
    flow_key(one, p.flow, &key);
    assert_int_equal(flow_lookup(list, &key), q.flow);
    if (is_send)
        return;
    struct flow_message_key of_one, of_list;
    flow_message_key_of(one, &p, &of_one);
    flow_message_key_of(list, &q, &of_list);
    struct flow_window w = flow_window_at(&of_one, p.ts, 0);
    if (flow_find_send(one, &of_one, &w, &sent) != FLOW_NOT_SENT &&
        flow_find_send(list, &of_list, &w, &also) != FLOW_NOT_SENT && flow_by_number(list, sent.number, &also, NULL))
        assert_int_equal(sent.ts, also.ts);
}

static void leave_out(
    const struct cuts_trace *t, const struct flow_store *one, const int64_t *at, size_t n, uint64_t packets)
{
    size_t missing = 0;
    for (size_t k = 0; k <= n; k++) {
        int32_t rows;
        struct flow_wake w, v;
        struct flow_store *list = build(t, at, n, k, &rows);
        for (uint64_t i = 0; i < packets; i++)
            less(one, list, i, &missing);
        for (uint64_t i = 0; i < flow_wakes(one); i++) {
            flow_wake(one, i, &w);
            flow_wake(list, i, &v);
            assert_true(v.row < 0 || (v.row == w.row && v.receive == w.receive));
        }
        flow_close(list);
    }
    assert_int_equal(missing, packets); /* each is in one chunk */
}

static void compare(const struct cuts_trace *t, const char *name, void *arg)
{
    uint64_t *packets = arg, count;
    int32_t rows, same_rows;
    int64_t at[CUTS];
    struct flow_packet p;
    struct flow_store *one = build(t, NULL, 0, SIZE_MAX, &rows);
    for (count = 0; flow_by_number(one, count, &p, NULL);)
        count++;
    *packets += count;
    for (uint64_t first = test_seed(1), seed = first; count && seed < first + 5; seed++) {
        size_t n = cuts_random(t, seed, CUTS, at);
        struct flow_store *list = build(t, at, n, SIZE_MAX, &same_rows);
        printf("%s, %d packets, %d flows: cut %d times\n", name, (int)count, (int)flow_count(one), (int)n);
        assert_int_equal(rows, same_rows);
        same_stores(one, list, rows);
        flow_close(list);
        if (seed == first)
            leave_out(t, one, at, n, count);
    }
    flow_close(one);
}

static void recordings(void **state)
{
    uint64_t packets = 0;
    cuts_each(compare, &packets);
    if (packets) /* else it was said that there are none */
        assert_true(packets > 100);
}

static void damage(const struct cuts_trace *t, const char *name, void *arg)
{
    struct made m;
    int64_t at[3];
    (void)name;
    if ((*(int *)arg)++ >= 3)
        return;
    begin_made(&m);
    cuts_random(t, test_seed(1), 3, at);
    cuts_damage(t, at[1], test_seed(1), 100, &USER, &m);
    for (size_t i = 0; i < m.paths.n; i++) {
        unlink(m.paths.v[i]);
        free(m.paths.v[i]);
    }
    vec_free(&m.paths);
    rmdir(m.folder);
}

/* What is carried may be damaged on the way: it is refused, or does no harm. */
static void damaged(void **state)
{
    int n = 0;
    cuts_each(damage, &n);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(recordings), cmocka_unit_test(damaged)};
    return cmocka_run_group_tests_name("flow: cuts", tests, NULL, NULL);
}
