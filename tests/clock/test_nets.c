/* SPDX-License-Identifier: MIT */
/* Nets: who is the reference, who goes through whom, islands; what is written and kept. */
#include "../base/test.h"
#include "world.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/json.h"

static const int64_t SECOND = 1000000000;

static void talk_both(struct world *w, int a, int b, int count, int64_t least)
{
    world_talk(w, a, b, count, 0, w->span, least, least / 2);
    world_talk(w, b, a, count, 0, w->span, least, least / 2);
}

static void solve(struct world *w)
{
    struct err e = {0};
    if (clock_net_solve(w->net, &e))
        fail_msg("%s", e.text);
}

static void start(struct world *w, int n, const char *reference)
{
    struct clock_options o = clock_defaults();
    o.reference = reference;
    world_init(w, 42, n, 10 * SECOND, 50, &o);
    world_begin(w);
}

static json_t *as_json(const struct clock_net *net)
{
    struct text t = {.fd = -1};
    struct json j = JSON_TO(&t);
    json_error_t error;
    clock_net_write_json(net, &j);
    json_t *root = json_loads(text_cstr(&t), 0, &error);
    if (!root)
        fail_msg("%s in %s", error.text, text_cstr(&t));
    text_fini(&t);
    return root;
}

/* client - web - db: those who never talk go through the third, and the errors add. */
static void test_through_a_third(void **state)
{
    struct world w;
    start(&w, 3, NULL);
    talk_both(&w, 0, 1, 100, 200000);
    talk_both(&w, 1, 2, 100, 300000);
    solve(&w);
    assert_int_equal(world_check(&w), 3);
    assert_int_equal(clock_net_map(w.net, 0)->reference, 1);
    assert_int_equal(clock_net_map(w.net, 1)->category, CLOCK_REFERENCE);
    assert_int_equal(clock_net_map(w.net, 0)->predecessor, 1);
    world_fini(&w);

    start(&w, 3, "h0");
    talk_both(&w, 0, 1, 100, 200000);
    talk_both(&w, 1, 2, 100, 300000);
    solve(&w);
    assert_int_equal(world_check(&w), 3);
    assert_int_equal(clock_net_map(w.net, 0)->category, CLOCK_REFERENCE);
    assert_int_equal(clock_net_map(w.net, 2)->predecessor, 1);
    int64_t middle = world_read(&w, 2, w.span / 2), middle_web = world_read(&w, 1, w.span / 2);
    int64_t sum = clock_error_at(clock_net_map(w.net, 2), middle),
            own = clock_error_at(clock_net_map(w.net, 1), middle_web);
    assert_in_range(sum, own + 290000, own + 450000); /* half the sum of two delays of 300 us and more */
    world_fini(&w);
}

/* A pair whose messages are not at hand is as it was found before, to the last bit. A net that lacks the pair, or that
 * numbers the two the other way round, gives nothing. */
static void test_carried_pair(void **state)
{
    struct world w;
    struct clock_options o = clock_defaults();
    struct err e = {0};
    start(&w, 3, "h0");
    o.reference = "h0";
    talk_both(&w, 0, 1, 100, 200000);
    talk_both(&w, 1, 2, 100, 300000);
    solve(&w);
    struct clock_net *now = clock_net_new(&o);
    for (size_t h = 0; h < 3; h++) {
        const struct clock_map *m = clock_net_map(w.net, h);
        clock_net_host(now, clock_net_name(w.net, h), m->pieces[0].begin, m->pieces[m->n - 1].end);
    }
    clock_net_carry(now, 0, 1, w.net, 1, 0);
    clock_net_carry(now, 0, 2, w.net, 0, 2);
    assert_int_equal(clock_net_solve(now, &e), 0);
    assert_int_equal(clock_net_map(now, 2)->n, 0);
    clock_net_carry(now, 0, 1, w.net, 0, 1);
    clock_net_carry(now, 2, 1, w.net, 2, 1);
    assert_int_equal(clock_net_solve(now, &e), 0);
    for (size_t h = 0; h < 3; h++) {
        const struct clock_map *a = clock_net_map(w.net, h), *b = clock_net_map(now, h);
        assert_int_equal(a->n, b->n);
        assert_memory_equal(a->pieces, b->pieces, a->n * sizeof *a->pieces);
        assert_int_equal(a->predecessor, b->predecessor);
    }
    clock_net_free(now);
    world_fini(&w);
}

/* The better of two ways is taken, also when it has more hops. */
static void test_least_error(void **state)
{
    struct world w;
    start(&w, 4, "h3");
    talk_both(&w, 0, 3, 100, 5000000);
    talk_both(&w, 0, 1, 100, 100000);
    talk_both(&w, 1, 2, 100, 100000);
    talk_both(&w, 2, 3, 100, 100000);
    solve(&w);
    assert_int_equal(world_check(&w), 4);
    assert_int_equal(clock_net_map(w.net, 0)->predecessor, 1);
    assert_int_equal(clock_net_map(w.net, 1)->predecessor, 2);
    assert_int_equal(clock_net_map(w.net, 2)->predecessor, 3);
    world_fini(&w);
}

/* A way that is better on the whole does not hide a pair that is better for a while. */
static void test_intersection(void **state)
{
    struct world w;
    struct clock_options o = clock_defaults();
    o.reference = "h0";
    world_init(&w, 42, 3, 60 * SECOND, 50, &o);
    world_begin(&w);
    world_talk(&w, 0, 1, 100, 0, w.span, 500000, 500000);
    world_talk(&w, 1, 0, 100, 0, w.span, 500000, 500000);
    world_talk(&w, 1, 2, 100, 0, w.span, 500000, 500000);
    world_talk(&w, 2, 1, 100, 0, w.span, 500000, 500000);
    world_talk(&w, 0, 2, 100, 5 * SECOND, 5 * SECOND + SECOND / 10, 20000, 20000);
    world_talk(&w, 2, 0, 100, 5 * SECOND, 5 * SECOND + SECOND / 10, 20000, 20000);
    solve(&w);
    assert_int_equal(world_check(&w), 3);
    assert_int_equal(clock_net_map(w.net, 2)->predecessor, 1);
    assert_in_range(clock_error_at(clock_net_map(w.net, 2), world_read(&w, 2, 5 * SECOND + SECOND / 20)), 19000, 60000);
    world_fini(&w);
}

/* Checks that hosts behind a pair without a fitting line are known no better than that pair. */
static void test_category_of_the_way(void **state)
{
    struct world w;
    struct clock_options o = clock_defaults();
    o.reference = "h0";
    o.drift_prior_ppm = -1;
    world_init(&w, 42, 3, 10 * SECOND, 50, &o);
    w.clock[0].n = 2;
    w.clock[0].stretch[1].from = 5 * SECOND;
    w.clock[0].stretch[1].drift_ppm = w.clock[0].stretch[0].drift_ppm + 900;
    world_begin(&w);
    talk_both(&w, 0, 1, 100, 20000);
    talk_both(&w, 1, 2, 100, 20000);
    solve(&w);
    assert_int_equal(clock_net_map(w.net, 1)->category, CLOCK_APPROXIMATE);
    assert_int_equal(clock_net_map(w.net, 2)->predecessor, 1);
    assert_int_equal(clock_net_map(w.net, 2)->category, CLOCK_APPROXIMATE);
    const struct clock_pair *pairs;
    assert_int_equal(clock_net_pairs(w.net, &pairs), 2);
    assert_int_equal(pairs[1].category, CLOCK_ACCURATE);
    world_fini(&w);
}

/* Thousands of messages all bind the corridor (their delays form a bowl): it is kept with fewer points, but over its
 * whole length. Two equal clocks. */
static void test_long_bowl(void **state)
{
    enum { HALF = 2000, STEP = 10000000, LEAST = 1000000 };
    const int64_t middle = 1700000000 * SECOND;
    struct clock_options o = clock_defaults();
    struct clock_net *net = clock_net_new(&o);
    struct err e = {0};
    size_t a = clock_net_host(net, "a", middle - (int64_t)HALF * STEP, middle + (int64_t)HALF * STEP);
    size_t b = clock_net_host(net, "b", middle - (int64_t)HALF * STEP, middle + (int64_t)HALF * STEP);
    for (int64_t i = -HALF; i <= HALF; i++) {
        int64_t delay = LEAST + i * i / 2;
        clock_net_message(net, a, b, middle + i * STEP, middle + i * STEP + delay);
        clock_net_message(net, b, a, middle + i * STEP - delay, middle + i * STEP);
    }
    if (clock_net_solve(net, &e))
        fail_msg("%s", e.text);
    const struct clock_map *map = clock_net_map(net, clock_net_map(net, a)->predecessor < 0 ? b : a);
    for (int64_t i = -1300; i <= 1300; i += 100) {
        int64_t t = middle + i * STEP, least = LEAST + i * i / 2; /* slope 0: no corridor is narrower than the delays */
        int64_t off = clock_to_reference(map, t) - t, error = clock_error_at(map, t);
        assert_true(llabs(off) <= error + 2);
        assert_true(error + llabs(off) >= LEAST - 2 && error <= least + least / 20);
    }
    clock_net_free(net);
}

static void test_islands(void **state)
{
    for (int named = 0; named < 2; named++) {
        struct world w;
        start(&w, 7, named ? "h4" : NULL);
        talk_both(&w, 0, 1, 50, 100000);
        talk_both(&w, 1, 2, 50, 100000);
        talk_both(&w, 3, 4, 50, 100000);
        world_talk(&w, 2, 5, 50, 0, w.span, 100000, 50000); /* single direction */
        solve(&w);
        assert_int_equal(world_check(&w), named ? 2 : 3);
        assert_int_equal(clock_net_map(w.net, 1)->n > 0, !named);
        assert_int_equal(clock_net_map(w.net, 4)->n > 0, named);
        assert_int_equal(clock_net_map(w.net, 1)->reference, 1);
        assert_int_equal(clock_net_map(w.net, 0)->reference, 1);
        assert_int_equal(clock_net_map(w.net, 3)->reference, named ? 4 : 3);
        assert_int_equal(clock_net_map(w.net, 5)->category, CLOCK_ONE_WAY);
        assert_int_equal(clock_net_map(w.net, 6)->category, CLOCK_ABSENT);
        assert_int_equal(clock_net_map(w.net, 5)->n, 0);
        assert_int_equal(clock_to_reference(clock_net_map(w.net, 6), 1234), 1234);
        assert_int_equal(clock_from_reference(clock_net_map(w.net, 6), 1234), 1234);
        struct text t = {.fd = -1};
        clock_net_write_table(w.net, &t, false);
        assert_non_null(strstr(text_cstr(&t),
            named ? "h1 and 2 more are an island without a path to h4"
                  : "h3 and 1 more are an island without a path to h1"));
        assert_non_null(strstr(text_cstr(&t), "No path from h5 to"));
        text_fini(&t);
        json_t *root = as_json(w.net);
        assert_int_equal(json_array_size(json_object_get(root, "islands")), 4);
        json_t *h5 = json_array_get(json_object_get(root, "hosts"), 5);
        assert_int_equal(json_array_size(json_object_get(h5, "pieces")), 0);
        assert_string_equal(json_string_value(json_object_get(h5, "category")), "one-way");
        json_decref(root);
        world_fini(&w);
    }
}

/* Checks that one-sided pairs connect only hosts that nothing better connects. */
static void test_one_sided_last(void **state)
{
    struct world w;
    start(&w, 3, "h0");
    world_talk(&w, 0, 2, 20, 0, SECOND, 1000, 1000);
    world_talk(&w, 2, 0, 20, 2 * SECOND, 3 * SECOND, 1000, 1000);
    talk_both(&w, 0, 1, 50, 5000000);
    talk_both(&w, 1, 2, 50, 5000000);
    solve(&w);
    assert_int_equal(world_check(&w), 3);
    assert_int_equal(clock_net_map(w.net, 2)->predecessor, 1);
    assert_int_equal(clock_net_map(w.net, 2)->category, CLOCK_ACCURATE);
    world_fini(&w);
}

static void test_same_machine(void **state)
{
    struct world w;
    struct clock_options o = clock_defaults();
    o.reference = "h0";
    world_init(&w, 43, 3, 10 * SECOND, 50, &o);
    w.clock[2] = w.clock[1];
    world_begin(&w);
    talk_both(&w, 0, 1, 50, 100000);
    clock_net_same(w.net, 2, 1);
    solve(&w);
    assert_int_equal(world_check(&w), 3);
    assert_int_equal(clock_net_map(w.net, 2)->predecessor, 1);
    for (int64_t t = 0; t < w.span; t += SECOND / 3) {
        int64_t at = world_read(&w, 1, t),
                off = clock_to_reference(clock_net_map(w.net, 1), at) - clock_to_reference(clock_net_map(w.net, 2), at);
        assert_in_range(off + 5, 0, 10);
    }
    world_fini(&w);
}

/* A name that is trusted means the clocks of all boots of that machine, and no others. */
static void test_trusted_boots(void **state)
{
    static const char *const hosts[] = {"solo", "solo@2", "solo@host", "web", "solo@2x"},
                             *const asked[] = {"solo,web=1ms", "s?lo,web=1ms", "solo@2,web=1ms"};
    static const size_t trusted[] = {3, 3, 2};
    for (size_t k = 0; k < 3; k++) {
        struct arena a = {0};
        struct err e = {0};
        struct clock_trust trust;
        assert_int_equal(clock_trust_parse(&a, asked[k], &trust, &e), 0);
        struct clock_options o = clock_defaults();
        o.trust = &trust;
        o.n_trust = 1;
        struct clock_net *net = clock_net_new(&o);
        for (size_t i = 0; i < 5; i++)
            clock_net_host(net, hosts[i], (int64_t)i * SECOND, (int64_t)(i + 1) * SECOND);
        if (clock_net_solve(net, &e))
            fail_msg("%s", e.text);
        json_t *root = as_json(net);
        json_t *members = json_object_get(json_array_get(json_object_get(root, "trust"), 0), "hosts");
        assert_int_equal(json_array_size(members), trusted[k]);
        assert_int_equal(clock_net_map(net, 1)->island, clock_net_map(net, 3)->island);
        assert_int_not_equal(clock_net_map(net, 2)->island, clock_net_map(net, 3)->island);
        json_decref(root);
        clock_net_free(net);
        arena_fini(&a);
    }
}

static void test_named_reference(void **state)
{
    struct world w;
    struct err e = {0};
    start(&w, 2, "nobody");
    talk_both(&w, 0, 1, 10, 100000);
    assert_int_equal(clock_net_solve(w.net, &e), ERR_ARG);
    assert_non_null(strstr(e.text, "nobody"));
    assert_non_null(strstr(e.text, "h0, h1"));
    world_fini(&w);
}

/* Checks experiments without the reference host, or with one that is not related to the others. */
static void test_reference_that_may_lack(void **state)
{
    static const char *const named[] = {"h2", "h3", "nobody", NULL};
    for (size_t i = 0; i < 4; i++) {
        struct world w;
        struct clock_options o = clock_defaults();
        o.reference = named[i];
        o.some_named = true;
        world_init(&w, 42, 4, 10 * SECOND, 50, &o);
        world_begin(&w);
        talk_both(&w, 0, 1, 100, 200000);
        talk_both(&w, 1, 2, 100, 300000);
        solve(&w);
        assert_int_equal(world_check(&w), 3);
        assert_int_equal(clock_net_map(w.net, 0)->reference, i == 0 ? 2 : 1);
        world_fini(&w);
    }
}

static void test_small_nets(void **state)
{
    struct clock_net *net = clock_net_new(NULL);
    struct text t = {.fd = -1};
    assert_int_equal(clock_net_solve(net, NULL), 0); /* nobody */
    clock_net_write_table(net, &t, false);
    clock_net_write_stats(net, &t);
    json_decref(as_json(net));
    clock_net_host(net, "only", 5, 4);
    assert_int_equal(clock_net_solve(net, NULL), 0);
    assert_int_equal(clock_net_map(net, 0)->category, CLOCK_REFERENCE);
    assert_int_equal(clock_to_reference(clock_net_map(net, 0), INT64_MAX), INT64_MAX);
    assert_int_equal(clock_error_at(clock_net_map(net, 0), INT64_MIN), 0);
    clock_net_write_table(net, &t, true);
    clock_net_write_stats(net, &t);
    json_decref(as_json(net));
    text_fini(&t);
    clock_net_free(net);
    clock_net_free(NULL);
}

/* Checks that the decimals of the JSON equal the map, to the ns. */
static void check_decimals(const struct clock_map *m, json_t *pieces)
{
    assert_int_equal(json_array_size(pieces), m->n);
    for (size_t i = 0; i < m->n; i++) {
        json_t *p = json_array_get(pieces, i);
        const char *drift = json_string_value(json_object_get(p, "drift")),
                   *offset = json_string_value(json_object_get(p, "offset_ns"));
        assert_int_equal(json_integer_value(json_object_get(p, "begin")), m->pieces[i].begin);
        assert_int_equal(json_integer_value(json_object_get(p, "error_ns_end")), m->pieces[i].error_end);
        assert_true(!strncmp(drift, "1", 1) || !strncmp(drift, "0.", 2));
        /* t * drift with 24 decimals in parts: t * (drift - 1) in long double is good to 0.1 ns for ppm, so only the
         * distance from 1 is taken */
        char digits[32] = "0";
        const char *point = strchr(drift, '.');
        long double gain = 0;
        if (point) {
            snprintf(digits, sizeof digits, "0.%s", point + 1);
            gain = drift[0] == '1' ? strtold(digits, NULL) : strtold(digits, NULL) - 1;
        }
        int64_t t = m->pieces[i].end;
        long double by_text = gain * (long double)t + strtold(offset, NULL),
                    by_map = (long double)(clock_to_reference(m, t) - t);
        assert_true(fabsl(by_text - by_map) < 1.6L);
    }
}

static void test_json(void **state)
{
    struct world w;
    start(&w, 3, "h1");
    talk_both(&w, 0, 1, 60, 200000);
    talk_both(&w, 1, 2, 50, 300000);
    solve(&w);
    json_t *root = as_json(w.net), *hosts = json_object_get(root, "hosts"), *pairs = json_object_get(root, "pairs");
    assert_string_equal(json_string_value(json_object_get(root, "reference")), "h1");
    assert_int_equal(json_array_size(hosts), 3);
    for (size_t i = 0; i < 3; i++) {
        json_t *h = json_array_get(hosts, i);
        assert_string_equal(json_string_value(json_object_get(h, "category")), i == 1 ? "reference" : "accurate");
        if (i != 1)
            assert_string_equal(json_string_value(json_object_get(h, "predecessor")), "h1");
        check_decimals(clock_net_map(w.net, i), json_object_get(h, "pieces"));
    }
    assert_int_equal(json_array_size(pairs), 2);
    json_t *p = json_array_get(pairs, 0), *messages = json_object_get(p, "messages");
    assert_string_equal(json_string_value(json_object_get(p, "a")), "h0");
    assert_string_equal(json_string_value(json_object_get(p, "b")), "h1");
    assert_int_equal(json_integer_value(json_array_get(messages, 0)), 60);
    assert_int_equal(json_integer_value(json_array_get(messages, 1)), 60);
    double true_drift = (1 + (double)w.clock[1].stretch[0].drift_ppm * 1e-6) /
        (1 + (double)w.clock[0].stretch[0].drift_ppm * 1e-6);
    assert_true(json_real_value(json_object_get(p, "drift_min")) <= true_drift &&
        true_drift <= json_real_value(json_object_get(p, "drift_max")));
    json_decref(root);
    world_fini(&w);
}

static void write_all(const struct clock_net *net, struct text *t)
{
    struct json j = JSON_TO(t);
    clock_net_write_json(net, &j);
    clock_net_write_table(net, t, false);
    clock_net_write_stats(net, t);
}

static void test_keep(void **state)
{
    char path[512];
    snprintf(path, sizeof path, "%s/weft-test-clocks-XXXXXX", getenv("TMPDIR") ? getenv("TMPDIR") : P_tmpdir);
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    close(fd);
    struct world w;
    struct err e = {0};
    start(&w, 6, NULL);
    talk_both(&w, 0, 1, 60, 200000);
    talk_both(&w, 1, 2, 50, 300000);
    world_talk(&w, 3, 2, 50, 0, w.span, 1000, 1000);
    talk_both(&w, 4, 5, 50, 300000);
    solve(&w);
    assert_int_equal(clock_net_save(w.net, path, 99, &e), 0);
    struct clock_net *again = NULL;
    struct clock_options o = clock_defaults();
    assert_int_equal(clock_net_load(path, 98, &o, &again, &e), ERR_STALE);
    assert_int_equal(clock_net_load(path, 99, &o, &again, &e), 0);
    assert_int_equal(clock_net_solve(again, &e), 0);
    struct text before = {.fd = -1}, after = {.fd = -1};
    write_all(w.net, &before);
    write_all(again, &after);
    assert_string_equal(text_cstr(&before), text_cstr(&after));
    const struct clock_pair *p, *q;
    assert_int_equal(clock_net_pairs(w.net, &p), clock_net_pairs(again, &q));
    for (int64_t t = -w.span; t < 2 * w.span; t += w.span / 13)
        for (size_t h = 0; h < 6; h++) {
            int64_t at = world_read(&w, (int)h, t);
            assert_int_equal(
                clock_to_reference(clock_net_map(w.net, h), at), clock_to_reference(clock_net_map(again, h), at));
            assert_int_equal(clock_error_at(clock_net_map(w.net, h), at), clock_error_at(clock_net_map(again, h), at));
        }
    text_fini(&before);
    text_fini(&after);
    clock_net_free(again);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(clock_net_load(path, 99, &o, &again, &e), ERR_NOTFOUND);
    world_fini(&w);
}

/* Times at the ends of what 64 bits hold: no overflow (run with the undefined behaviour sanitizer), nothing lost that
 * was good. */
static void test_extreme_times(void **state)
{
    static const int64_t odd[] = {INT64_MIN, INT64_MIN + 1, -((int64_t)1 << 62), -1, 0, 1, (int64_t)1 << 58,
        (int64_t)1 << 62, INT64_MAX - 1, INT64_MAX};
    enum { N = sizeof odd / sizeof *odd };
    struct clock_options any = {.drift_prior_ppm = -1};
    for (int mode = 0; mode < 3; mode++) {
        struct clock_options defaults = clock_defaults();
        struct clock_net *net = clock_net_new(mode == 2 ? &any : &defaults);
        for (size_t h = 0; h < 4; h++)
            clock_net_host(net, "h", odd[(h * 3) % N], odd[N - 1 - h]);
        for (size_t i = 0; i < N; i++)
            for (size_t k = 0; k < N; k++)
                clock_net_message(net, (i + k) % 4, (i + 2 * k + (size_t)mode) % 4, odd[i], odd[k]);
        assert_int_equal(clock_net_solve(net, NULL), 0);
        for (size_t h = 0; h < 4; h++)
            for (size_t i = 0; i < N; i++) {
                const struct clock_map *m = clock_net_map(net, h);
                int64_t ts = odd[i];
                clock_map_times((void *)(uintptr_t)m, &ts, 1);
                assert_int_equal(ts, clock_to_reference(m, odd[i]));
                clock_from_reference(m, odd[i]);
                assert_true(clock_error_at(m, odd[i]) >= 0);
            }
        struct text t = {.fd = -1};
        write_all(net, &t);
        text_fini(&t);
        clock_net_free(net);
    }
}

/* Checks that random garbage gives no clock, and does no harm to others. */
static void test_garbage(void **state)
{
    struct world dice = {.seed = test_seed(4711)};
    for (int round = 0; round < 300; round++) {
        struct clock_options o = clock_defaults();
        if (round % 3 == 1)
            o.drift_prior_ppm = -1;
        if (round % 3 == 2)
            o.min_drift = o.max_drift = 0;
        struct clock_net *net = clock_net_new(&o);
        size_t n = 2 + world_random(&dice) % 4;
        int bits = 4 + (int)(world_random(&dice) % 60);
        for (size_t h = 0; h < n; h++)
            clock_net_host(
                net, "h", (int64_t)(world_random(&dice) >> (64 - bits)), (int64_t)(world_random(&dice) >> (64 - bits)));
        for (uint64_t i = world_random(&dice) % 400; i; i--)
            clock_net_message(net, world_random(&dice) % n, world_random(&dice) % n,
                (int64_t)(world_random(&dice) >> (64 - bits)), (int64_t)(world_random(&dice) >> (64 - bits)));
        assert_int_equal(clock_net_solve(net, NULL), 0);
        for (size_t h = 0; h < n; h++) {
            const struct clock_map *m = clock_net_map(net, h);
            int64_t last = INT64_MIN;
            for (int i = 0; i < 64 && m->n; i++) {
                int64_t t = (int64_t)((__int128)INT64_MIN + ((__int128)i << 58)), there = clock_to_reference(m, t);
                assert_true(there >= last);
                last = there;
            }
            for (size_t i = 1; i < m->n; i++)
                assert_true(m->pieces[i].begin == m->pieces[i - 1].end &&
                    clock_to_reference(m, m->pieces[i].begin) >= clock_to_reference(m, m->pieces[i].begin - 1));
        }
        struct text t = {.fd = -1};
        write_all(net, &t);
        text_fini(&t);
        clock_net_free(net);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_through_a_third),
        cmocka_unit_test(test_carried_pair),
        cmocka_unit_test(test_least_error),
        cmocka_unit_test(test_intersection),
        cmocka_unit_test(test_category_of_the_way),
        cmocka_unit_test(test_long_bowl),
        cmocka_unit_test(test_islands),
        cmocka_unit_test(test_one_sided_last),
        cmocka_unit_test(test_same_machine),
        cmocka_unit_test(test_trusted_boots),
        cmocka_unit_test(test_named_reference),
        cmocka_unit_test(test_reference_that_may_lack),
        cmocka_unit_test(test_small_nets),
        cmocka_unit_test(test_json),
        cmocka_unit_test(test_keep),
        cmocka_unit_test(test_extreme_times),
        cmocka_unit_test(test_garbage),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
