/* SPDX-License-Identifier: MIT */
/* Selection of messages to keep: against the plain statement of the rule, and independent of the order of joining. */
#include "../base/test.h"
#include "world.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/json.h"
#include "base/map.h"
#include "base/store.h"
#include "clock/keep.h"

enum { PARTS = 5 };
static const double priors[] = {-1, 0, 5, 300, 20000, 400000};

/* ---- messages ---- */

struct some {
    struct net_message v[512];
    bool by_a[512];
    size_t n;
    uint64_t seed;
};

static int64_t dice(struct some *s, int64_t below)
{
    s->seed = map_mix(s->seed + 0x9e3779b97f4a7c15);
    return (int64_t)(s->seed % (uint64_t)below);
}

/* Dense or sparse, with equal times, equal delays, copies, a step, wrong matches and times at the end of all times. */
static void make(struct some *s, uint64_t seed)
{
    static const int64_t spans[] = {1000, 3000000, 900000000, 20000000000, 86400000000000};
    s->seed = seed;
    s->n = 1 + (size_t)dice(s, 400);
    int64_t span = spans[dice(s, 5)], base = dice(s, 3) ? 1700000000000000000 : -span / 2, ppm = dice(s, 601) - 300,
            round = dice(s, 3) ? 1 : span / 16 + 1, step = dice(s, 3) ? 0 : dice(s, 2000000) - 1000000;
    for (size_t i = 0; i < s->n; i++) {
        int64_t x = dice(s, span) / round * round, delay = dice(s, 4) ? dice(s, 300000) : 1000 * dice(s, 3);
        int64_t y = x + x / 1000000 * ppm + (x > span / 2 ? step : 0);
        s->by_a[i] = dice(s, 2);
        s->v[i] = (struct net_message){base + x, base + y + 5000000 + (s->by_a[i] ? delay : -delay)};
        if (!dice(s, 50))
            s->v[i].y += dice(s, 200000000) - 100000000;
        if (i && !dice(s, 10)) {
            s->v[i] = s->v[i - 1];
            s->by_a[i] = s->by_a[i - 1];
        }
        if (!dice(s, 500))
            s->v[i] = (struct net_message){
                dice(s, 2) ? CLOCK_TIME_LIMIT : -CLOCK_TIME_LIMIT, dice(s, 2) ? CLOCK_TIME_LIMIT : -CLOCK_TIME_LIMIT};
    }
}

static void tell(struct clock_told *t, const struct some *s, size_t i)
{
    clock_tell(t, s->by_a[i], s->by_a[i] ? s->v[i].x : s->v[i].y, s->by_a[i] ? s->v[i].y : s->v[i].x);
}

static bool same_side(const struct keep_side *a, const struct keep_side *b)
{
    return a->v.n == b->v.n && (!a->v.n || !memcmp(a->v.v, b->v.v, a->v.n * sizeof *a->v.v));
}

static bool same_span(const struct net_span *a, const struct net_span *b)
{
    return a->known == b->known && a->begin == b->begin && a->end == b->end;
}

static void assert_same(struct clock_told *a, struct clock_told *b, bool counts)
{
    clock_keep_settle(a);
    clock_keep_settle(b);
    assert_true(same_side(&a->sent, &b->sent));
    assert_true(same_side(&a->received, &b->received));
    if (counts) {
        assert_int_equal(a->sent.all, b->sent.all);
        assert_int_equal(a->received.all, b->received.all);
    }
    assert_true(same_span(&a->span_a, &b->span_a));
    assert_true(same_span(&a->span_b, &b->span_b));
}

/* ---- the rule, plainly ---- */

/* Returns whether m is on the cone of q; upside down for messages received by a. */
static bool on_cone(const struct clock_told *t, struct net_message m, struct net_message q, int up)
{
    i128 rise = ((i128)m.y - m.x - ((i128)q.y - q.x)) * up, run = (i128)m.x - q.x;
    i128 low = up > 0 ? t->low : -t->high, high = up > 0 ? t->high : -t->low;
    if (m.x >> KEEP_CELL_BITS != q.x >> KEEP_CELL_BITS || (m.x == q.x && m.y == q.y))
        return false;
    if (run == 0)
        return rise > 0;
    return run > 0 ? rise * Q62 >= high * run : rise * Q62 > low * run;
}

/* Returns whether m is strictly inside the hull: on or above a line between two others around it, or above one of its
 * instant. Small times only. */
static bool off_hull(const struct some *s, size_t i, int up)
{
    struct net_message m = s->v[i];
    i128 d = ((i128)m.y - m.x) * up;
    for (size_t k = 0; k < s->n; k++) {
        i128 dk = ((i128)s->v[k].y - s->v[k].x) * up;
        if (s->by_a[k] != s->by_a[i])
            continue;
        if (s->v[k].x == m.x && dk < d)
            return true;
        for (size_t j = 0; j < s->n && s->v[k].x < m.x; j++) {
            i128 dj = ((i128)s->v[j].y - s->v[j].x) * up;
            if (s->by_a[j] == s->by_a[i] && s->v[j].x > m.x &&
                (d - dk) * ((i128)s->v[j].x - s->v[k].x) >= (dj - dk) * ((i128)m.x - s->v[k].x))
                return true;
        }
    }
    return false;
}

static bool is_kept(const struct keep_side *side, struct net_message m)
{
    for (size_t i = 0; i < side->v.n; i++)
        if (side->v.v[i].x == m.x && side->v.v[i].y == m.y)
            return true;
    return false;
}

static void test_rule(void **state)
{
    struct some *s = mem_zalloc(sizeof *s);
    for (uint64_t first = test_seed(1), seed = first; seed < first + 40; seed++)
        for (size_t p = 0; p < sizeof priors / sizeof *priors; p++) {
            struct clock_told t;
            size_t distinct[2] = {0, 0};
            make(s, seed);
            s->n = s->n < 120 ? s->n : 120;
            for (size_t i = 0; i < s->n; i++)
                if (s->v[i].x == CLOCK_TIME_LIMIT || s->v[i].x == -CLOCK_TIME_LIMIT)
                    s->v[i] = s->v[0], s->by_a[i] = s->by_a[0];
            clock_keep_init(&t, priors[p]);
            for (size_t i = 0; i < s->n; i++)
                tell(&t, s, i);
            clock_keep_settle(&t);
            for (size_t i = 0; i < s->n; i++) {
                int up = s->by_a[i] ? 1 : -1;
                size_t cones = 0;
                bool again = false;
                for (size_t k = 0; k < s->n; k++) {
                    bool copy = false; /* copy of an earlier one */
                    for (size_t j = 0; j < k && !copy; j++)
                        copy = s->by_a[j] == s->by_a[k] && s->v[j].x == s->v[k].x && s->v[j].y == s->v[k].y;
                    cones += !copy && s->by_a[k] == s->by_a[i] && on_cone(&t, s->v[i], s->v[k], up);
                    again = again || (k == i && copy);
                }
                bool expected = (priors[p] >= 0 && cones < KEEP_LAYERS) || !off_hull(s, i, up);
                if (is_kept(s->by_a[i] ? &t.sent : &t.received, s->v[i]) != expected)
                    fail_msg("seed %llu, prior %g: message %zu is%s to be kept", (unsigned long long)seed, priors[p], i,
                        expected ? "" : " not");
                distinct[s->by_a[i]] += expected && !again;
            }
            assert_int_equal(t.sent.v.n, distinct[1]);
            assert_int_equal(t.received.v.n, distinct[0]);
            clock_keep_fini(&t);
        }
    free(s);
}

/* ---- independence of the order of joining ---- */

static void test_parts(void **state)
{
    struct some *s = mem_zalloc(sizeof *s);
    for (uint64_t first = test_seed(1001), seed = first; seed < first + 300; seed++)
        for (size_t p = 0; p < sizeof priors / sizeof *priors; p++) {
            struct clock_told whole, part[PARTS], left, right, wide;
            make(s, seed);
            double wider = priors[p] < 0 ? 300 : priors[p] * 1.5 < 400000 ? priors[p] * 1.5 : 400000;
            clock_keep_init(&whole, priors[p]);
            clock_keep_init(&left, priors[p]);
            clock_keep_init(&right, priors[p]);
            clock_keep_init(&wide, wider);
            for (int k = 0; k < PARTS; k++)
                clock_keep_init(&part[k], dice(s, 2) ? priors[p] : wider);
            for (size_t i = 0; i < s->n; i++) {
                tell(&whole, s, i);
                tell(&wide, s, s->n - 1 - i);
                struct clock_told *to = &part[dice(s, PARTS)];
                tell(to, s, i);
                if (!dice(s, 20))
                    clock_keep_settle(to);
            }
            for (int k = 0; k < PARTS; k++) {
                clock_keep_settle(&part[k]);
                clock_keep_join(&left, &part[k]); /* ((1 2) 3) … and (1 (2 (3 …))) backwards */
                clock_keep_settle(&left);
                clock_keep_join(&right, &part[PARTS - 1 - k]);
            }
            assert_same(&whole, &left, true);
            assert_same(&whole, &right, true);
            clock_keep_join(&left, &right); /* joined with itself: no change */
            clock_keep_join(&left, &part[0]);
            assert_same(&whole, &left, false);
            clock_keep_fini(&left);
            clock_keep_init(&left, priors[p]);
            clock_keep_settle(&wide);
            clock_keep_join(&left, &wide); /* joined with those kept by a wider prior */
            assert_same(&whole, &left, true);
            for (int k = 0; k < PARTS; k++)
                clock_keep_fini(&part[k]);
            clock_keep_fini(&whole);
            clock_keep_fini(&left);
            clock_keep_fini(&right);
            clock_keep_fini(&wide);
        }
    free(s);
}

/* A day of steady traffic: memory holds what is kept, and each minute adds about the same. */
static void test_flat(void **state)
{
    enum { MINUTES = 1440, PER_MINUTE = 500 };
    struct some s = {.seed = 7};
    struct clock_told t;
    size_t first_hour = 0, most = 0;
    clock_keep_init(&t, 300);
    for (int64_t m = 0; m < MINUTES; m++) {
        for (int i = 0; i < PER_MINUTE; i++) {
            int64_t x = m * 60000000000 + dice(&s, 60000000000), u = dice(&s, 1 << 20);
            clock_tell(&t, true, x, x + 50000 + u * u / (1 << 18) * 5); /* up to 20 ms, mostly less */
        }
        most = t.sent.v.cap > most ? t.sent.v.cap : most;
        if (m == 59) {
            clock_keep_settle(&t);
            first_hour = t.sent.v.n;
        }
    }
    clock_keep_settle(&t);
    assert_int_equal(t.sent.all, MINUTES * PER_MINUTE);
    assert_in_range(t.sent.v.n, 22 * first_hour, 26 * first_hour);
    assert_in_range(t.sent.v.n / MINUTES, 60, PER_MINUTE / 2);
    assert_true(most < 5 * t.sent.v.n + 2048);
    clock_keep_fini(&t);
}

/* ---- stores ---- */

struct sent_on {
    int64_t v[2][400][2]; /* values by direction: sent, received */
    size_t n[2];
};

static void tell_some(void *arg, struct clock_told *to)
{
    const struct sent_on *s = arg;
    for (int d = 0; d < 2; d++)
        for (size_t i = 0; i < s->n[d]; i++)
            clock_tell(to, d == 0, s->v[d][i][0], s->v[d][i][1]);
}

static void make_path(char *path, size_t n)
{
    snprintf(path, n, "%s/weft-test-keep-XXXXXX", getenv("TMPDIR") ? getenv("TMPDIR") : P_tmpdir);
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    close(fd);
}

static struct clock_net *three_hosts(void)
{
    struct clock_net *net = clock_net_new(NULL);
    for (int h = 0; h < 3; h++)
        clock_net_host(net, h == 0 ? "a" : h == 1 ? "b" : "c", 1000, 20000000000);
    return net;
}

static void fill(struct sent_on *s)
{
    struct some dices = {.seed = 11};
    for (int d = 0; d < 2; d++)
        for (s->n[d] = 0; s->n[d] < 400; s->n[d]++) {
            int64_t x = 1000 + dice(&dices, 19000000000);
            s->v[d][s->n[d]][0] = x;
            s->v[d][s->n[d]][1] = x + 50000 + dice(&dices, 100000) + (d ? -7000000 : 7000000);
        }
}

static void text_of(struct clock_net *net, struct text *out)
{
    struct json j = JSON_TO(out);
    assert_int_equal(clock_net_solve(net, NULL), 0);
    clock_net_write_json(net, &j);
    clock_net_write_table(net, out, false);
    clock_net_write_stats(net, out);
}

static const struct clock_source sources[3] = {{1, INT64_MAX, 5}, {2, 7, 6}, {3, INT64_MIN, 7}};

static void tell_stored(void *arg, struct clock_told *to)
{
    clock_kept_tell(arg, 0, to);
}

static void test_store(void **state)
{
    char path[512];
    struct err e = {0};
    struct sent_on *s = mem_zalloc(sizeof *s);
    struct text before = {.fd = -1}, after = {.fd = -1};
    make_path(path, sizeof path);
    fill(s);
    struct clock_net *net = three_hosts(), *again = three_hosts();
    clock_net_messages(net, 0, 1, tell_some, s);
    text_of(net, &before);
    struct clock_part part = {.a = 0, .b = 1, .sure = 3, .missing = 4, .missed = 5, .far = true}, read;
    part.told = clock_told_new(500);
    tell_some(s, part.told);
    assert_int_equal(clock_kept_save(path, 9, 500, sources, 3, &part, 1, &e), 0);
    clock_told_free(part.told);
    struct clock_kept *kept;
    const struct clock_source *v;
    assert_int_equal(clock_kept_open(path, 8, &kept, &e), ERR_STALE);
    assert_int_equal(clock_kept_open(path, 9, &kept, &e), 0);
    assert_true(clock_kept_prior(kept) == 500);
    assert_int_equal(clock_kept_sources(kept, &v), 3);
    assert_memory_equal(v, sources, sizeof sources);
    assert_int_equal(clock_kept_parts(kept), 1);
    clock_kept_part(kept, 0, &read);
    assert_int_equal(read.a, 0);
    assert_int_equal(read.b, 1);
    assert_int_equal(read.sure, 3);
    assert_int_equal(read.missing, 4);
    assert_int_equal(read.missed, 5);
    assert_true(read.far);
    clock_net_messages(again, 0, 1, tell_stored, kept);
    text_of(again, &after);
    assert_string_equal(text_cstr(&before), text_cstr(&after));
    clock_kept_close(kept);
    clock_net_free(net);
    clock_net_free(again);
    text_fini(&before);
    text_fini(&after);
    unlink(path);
    assert_int_equal(clock_kept_open(path, 9, &kept, &e), ERR_NOTFOUND);
    free(s);
}

/* A store whose checksums are right, with pairs that make no sense. */
static void test_senseless_stores(void **state)
{
    static const struct {
        int word;
        uint64_t value;
    } wrong[] = {{0, 3}, {1, 0}, {1, 3}, {1, UINT64_MAX}, {2, 0}, {2, UINT64_MAX}, {3, 0}, {4, UINT64_MAX},
        {5, INT64_MAX}, {6, (uint64_t)INT64_MIN}, {8, INT64_MAX}, {9, 3}, {9, UINT64_MAX}, {10, 3}, {10, UINT64_MAX},
        {11, UINT64_MAX}, {11, 2}, {12, UINT64_MAX}, {13, UINT64_MAX}, {14, UINT64_MAX}, {15, 2}};
    const uint64_t good[16] = {0, 1, 2, 1, 0, 1000, 5000, 1000, 5000, 0, 1, 1, 1, 0, 2, 1};
    const int64_t messages[2][2] = {{1000, 2000}, {5000, 4000}};
    char path[512];
    make_path(path, sizeof path);
    for (size_t i = 0; i <= sizeof wrong / sizeof *wrong; i++) {
        struct clock_kept *kept;
        struct err e = {0};
        uint64_t pair[16];
        double prior = 300;
        memcpy(pair, good, sizeof pair);
        if (i)
            pair[wrong[i - 1].word] = wrong[i - 1].value;
        struct store_writer *w = store_create(path, "messages", 2, 9, 4);
        store_add(w, "prior", &prior, sizeof prior, 1);
        store_add(w, "sources", sources, sizeof *sources, 3);
        store_add(w, "pairs", pair, sizeof pair, 1);
        store_add(w, "messages", messages, 16, 2);
        assert_int_equal(store_commit(w, &e), 0);
        int rc = clock_kept_open(path, 9, &kept, &e);
        if (rc != (i ? ERR_FORMAT : 0))
            fail_msg(
                "word %d = %llx: %d", i ? wrong[i - 1].word : -1, i ? (unsigned long long)wrong[i - 1].value : 0, rc);
        if (!rc)
            clock_kept_close(kept);
    }
    unlink(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rule),
        cmocka_unit_test(test_parts),
        cmocka_unit_test(test_flat),
        cmocka_unit_test(test_store),
        cmocka_unit_test(test_senseless_stores),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
