/* SPDX-License-Identifier: MIT */
/* Recordings cut at random: the list of their chunks equals one pass. */
#include <stdio.h>
#include <string.h>
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

/* Checks an answer about a packet without the missing chunk: none, or the same as with it. */
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
    assert_int_equal(missing, packets); /* single chunk for each */
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
    if (packets) /* the store claims that there are none */
        assert_true(packets > 100);
}

/* ---- made traces ---- */

static void put32(uint8_t *p, uint32_t v)
{
    for (int i = 0; i < 4; i++)
        p[i] = (uint8_t)(v >> (24 - 8 * i));
}

/* An IPv4 packet with TCP behind it, each with its tag. */
static size_t header(uint8_t *p, bool back, uint8_t port, uint32_t seq, uint32_t ack, uint8_t bytes, uint8_t flags)
{
    uint8_t *ip = p + 1, *tcp = ip + 21;
    memset(p, 0, 42);
    p[0] = ip[20] = 1;
    ip[0] = 0x45;
    ip[3] = (uint8_t)(40 + bytes);
    ip[9] = 6;
    ip[12] = ip[16] = 10;
    ip[15] = back ? 2 : 1;
    ip[19] = back ? 1 : 2;
    tcp[back ? 3 : 1] = port;
    tcp[back ? 1 : 3] = 80;
    put32(tcp + 4, seq);
    put32(tcp + 8, ack);
    tcp[12] = 5 << 4;
    tcp[13] = flags;
    return 42;
}

/* Makes a few connections whose numbers continue, repeat or jump anywhere, that end and restart, and are quiet for so
 * long that they are forgotten. */
static struct maker *make_jumps(uint64_t seed, int n)
{
    static const uint32_t few[] = {0, 100, UINT32_MAX - 50, UINT32_C(1) << 31, 3000000000};
    struct maker *m = maker_new(2, 0);
    uint32_t next[3][2] = {{0}};
    int64_t ts = 1000;
    maker_switch(m, 0, 1, 0, 0, 100);
    for (int i = 0; i < n; i++) {
        uint64_t r = seed = map_mix(seed + 0x9e3779b97f4a7c15u);
        uint8_t h[42], port = (uint8_t)(r % 3), bytes = r >> 2 & 3 ? (uint8_t)(r >> 4 & 63) : 0;
        bool back = r >> 10 & 1;
        uint32_t *seq = &next[port][back];
        unsigned what = r >> 11 & 31;
        *seq = what == 0 ? (uint32_t)(r >> 32) : what < 4 ? few[(r >> 32) % 5] : what < 8 ? *seq - 40 : *seq;
        uint8_t flags = what == 8 ? 2 : what == 9 ? 17 : what == 10 ? 4 : 16;
        ts += r >> 16 & 255 ? (int64_t)(r >> 40 & 0x3fffffff) : INT64_C(11000000000000);
        size_t length = header(h, back, (uint8_t)(port + 1), *seq, next[port][!back], bytes, flags);
        maker_packet(m, (uint32_t)(r >> 24 & 1), ts, !back, 14 + 40 + bytes, h, length);
        *seq += bytes;
    }
    return m;
}

static void numbers_that_jump(void **state)
{
    const int worlds = getenv("WEFT_CUTTINGS") ? atoi(getenv("WEFT_CUTTINGS")) : 5;
    const uint64_t first = test_seed(7);
    for (int i = 0; i < worlds; i++) {
        int32_t rows, same_rows;
        int64_t at[CUTS];
        struct cuts_trace t;
        struct maker *m = make_jumps(first + (uint64_t)i, 400);
        cuts_open_made(&t, m);
        maker_free(m);
        struct flow_store *one = build(&t, NULL, 0, SIZE_MAX, &rows);
        assert_int_equal(flow_count(one), 6);
        for (uint64_t seed = first + 5 * (uint64_t)i, last = seed + 5; seed < last; seed++) {
            size_t n = cuts_random(&t, seed, CUTS, at);
            struct flow_store *list = build(&t, at, n, SIZE_MAX, &same_rows);
            same_stores(one, list, rows);
            flow_close(list);
        }
        flow_close(one);
        cuts_close(&t);
    }
}

/* A connection by which as many threads send as a pool has. */
static void many_senders(void **state)
{
    enum { SENDERS = 100 };
    struct maker *m = maker_new(1, 0);
    struct cuts_trace t;
    int32_t rows, same_rows;
    uint8_t h[42];
    for (int i = 0; i < 3 * SENDERS; i++) {
        int64_t ts = 1000 + 100 * i;
        size_t n = header(h, false, 1, (uint32_t)(10 * i), 0, 10, 16);
        maker_switch(m, 0, ts, i ? 100 + (i - 1) % SENDERS : 0, 0, 100 + i % SENDERS);
        maker_packet(m, 0, ts + 10, true, 14 + 40 + 10, h, n);
    }
    cuts_open_made(&t, m);
    maker_free(m);
    struct flow_store *one = build(&t, NULL, 0, SIZE_MAX, &rows);
    const int64_t at[] = {1000 + 100 * (SENDERS + SENDERS / 2), 1000 + 100 * 2 * SENDERS};
    struct flow_store *list = build(&t, at, 2, SIZE_MAX, &same_rows);
    same_stores(one, list, rows);
    flow_close(list);
    flow_close(one);
    cuts_close(&t);
}

/* ---- damage ---- */

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

/* Checks that damaged carried state is refused, or does no harm. */
static void damaged(void **state)
{
    int n = 0;
    cuts_each(damage, &n);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(recordings), cmocka_unit_test(numbers_that_jump),
        cmocka_unit_test(many_senders), cmocka_unit_test(damaged)};
    return cmocka_run_group_tests_name("flow: cuts", tests, NULL, NULL);
}
