/* SPDX-License-Identifier: MIT */
/* Nets of simulated clocks: the stated corridor holds the truth. */
#include "../base/test.h"
#include "world.h"

#include <math.h>

static void solve(struct world *w)
{
    struct err e = {0};
    if (clock_net_solve(w->net, &e))
        fail_msg("%s", e.text);
}

/* Hosts in a random connected net; spans from 10 ms to an hour, few and many messages. */
static void random_net(uint64_t seed, const struct clock_options *o, long double drift_ppm)
{
    struct world w, dice = {.seed = seed * 77};
    int n = 2 + (int)world_uniform(&dice, 0, 7);
    int64_t span = (int64_t)expl(world_uniform(&dice, logl(1e7L), logl(3.6e12L)));
    world_init(&w, seed, n, span, drift_ppm, o);
    world_begin(&w);
    for (int i = 1; i < n; i++) {
        int to = (int)world_uniform(&w, 0, i), messages = 1 + (int)expl(world_uniform(&w, 0, logl(300)));
        int64_t least = (int64_t)world_uniform(&w, 1000, 300000), from = (int64_t)world_uniform(&w, 0, span / 2),
                until = (int64_t)world_uniform(&w, span / 2, span);
        world_talk(&w, i, to, messages, from, until, least, 3 * least);
        world_talk(&w, to, i, messages, from, until, (int64_t)world_uniform(&w, 1000, 300000), least);
    }
    for (int i = 0; i < n; i++) /* random additional pairs */
        world_talk(&w, (int)world_uniform(&w, 0, n), (int)world_uniform(&w, 0, n), (int)world_uniform(&w, 0, 30), 0,
            span, 50000, 200000);
    solve(&w);
    int mapped = world_check(&w);
    if (o->drift_prior_ppm >= 0)
        assert_int_equal(mapped, n);
    world_fini(&w);
}

static void test_random_nets(void **state)
{
    struct clock_options o = clock_defaults();
    for (uint64_t first = test_seed(1), seed = first; seed < first + 1000; seed++)
        random_net(seed, &o, 99);
}

static void test_random_nets_other_priors(void **state)
{
    struct clock_options o = clock_defaults();
    o.drift_prior_ppm = -1;
    for (uint64_t first = test_seed(2001), seed = first; seed < first + 150; seed++)
        random_net(seed, &o, 20000);
    o.drift_prior_ppm = 20;
    for (uint64_t first = test_seed(3001), seed = first; seed < first + 150; seed++)
        random_net(seed, &o, 9.9L);
    o.drift_prior_ppm = 0;
    for (uint64_t first = test_seed(4001), seed = first; seed < first + 50; seed++)
        random_net(seed, &o, 0);
}

/* Steered clocks: the drift changes now and then; some bends hide nearly in the delays. */
static void test_bends(void **state)
{
    struct clock_options o = clock_defaults();
    for (uint64_t first = test_seed(5001), seed = first; seed < first + 200; seed++) {
        struct world w;
        int64_t span = (int64_t)1e9 << seed % 9;
        world_init(&w, seed, 3, span, 40, &o);
        for (int h = 1; h < 3; h++) {
            w.clock[h].n = 2 + (int)world_uniform(&w, 0, 6);
            for (int i = 1; i < w.clock[h].n; i++) {
                w.clock[h].stretch[i].from = span * i / w.clock[h].n;
                w.clock[h].stretch[i].drift_ppm = world_uniform(&w, -55, 55);
            }
        }
        world_begin(&w);
        int messages = 200 + (int)world_uniform(&w, 0, 800);
        for (int a = 0; a < 3; a++)
            for (int b = 0; b < 3; b++)
                if (a != b && a + b != 2)
                    world_talk(&w, a, b, messages, 0, span, 50000, 100000);
        solve(&w);
        assert_int_equal(world_check(&w), 3);
        world_fini(&w);
    }
}

/* A bend of 100 ppm in the middle: the map follows it, and stays about as good as the traffic is dense. */
static void test_one_bend(void **state)
{
    struct clock_options o = clock_defaults();
    struct world w;
    int64_t span = 100000000000;
    world_init(&w, 6001, 2, span, 0, &o);
    w.clock[1].n = 2;
    w.clock[1].stretch[0].drift_ppm = 50;
    w.clock[1].stretch[1].from = span / 2;
    w.clock[1].stretch[1].drift_ppm = -50;
    world_begin(&w);
    world_talk(&w, 0, 1, 2000, 0, span, 100000, 50000);
    world_talk(&w, 1, 0, 2000, 0, span, 100000, 50000);
    solve(&w);
    assert_int_equal(world_check(&w), 2);
    const struct clock_pair *p;
    clock_net_pairs(w.net, &p);
    assert_int_equal(p->category, CLOCK_APPROXIMATE);
    const struct clock_map *m = clock_net_map(w.net, 1);
    int64_t begin = m->pieces[0].begin, end = m->pieces[m->n - 1].end;
    for (int i = 5; i <= 95; i++) {
        int64_t error = clock_error_at(m, begin + (end - begin) / 100 * i);
        assert_in_range(error, 90000, 170000); /* the least delays are 100 us, a message comes every 25 ms */
    }
    world_fini(&w);
}

/* Steps forwards and backwards (NTP, suspended machines). */
static void test_steps(void **state)
{
    struct clock_options o = clock_defaults();
    for (uint64_t first = test_seed(7001), seed = first; seed < first + 100; seed++) {
        struct world w;
        int64_t span = 20000000000, at = 0;
        world_init(&w, seed, 2, span, 50, &o);
        struct world_clock *c = &w.clock[1];
        c->n = 2 + (int)(seed % 3);
        for (int i = 1; i < c->n; i++) {
            at += span / 5 + (int64_t)world_uniform(&w, 0, (long double)span / 10);
            c->stretch[i].from = at;
            c->stretch[i].drift_ppm = c->stretch[0].drift_ppm;
            c->stretch[i].step = (int64_t)expl(world_uniform(&w, logl(2e6L), logl(2e9L)));
        }
        world_begin(&w);
        world_talk(&w, 0, 1, 800, 0, span, 100000, 200000);
        world_talk(&w, 1, 0, 800, 0, span, 100000, 200000);
        o.reference = "h0";
        solve(&w);
        assert_int_equal(world_check(&w), 2);
        world_fini(&w);
    }
}

/* Checks that a few wrong matches among many good ones are left out. */
static void test_outliers(void **state)
{
    struct clock_options o = clock_defaults();
    for (uint64_t first = test_seed(8001), seed = first; seed < first + 100; seed++) {
        struct world w;
        int64_t span = 10000000000;
        world_init(&w, seed, 2, span, 50, &o);
        world_begin(&w);
        world_talk(&w, 0, 1, 200, 0, span, 100000, 200000);
        world_talk(&w, 1, 0, 200, 0, span, 100000, 200000);
        int wrong = 1 + (int)(seed % 3);
        for (int i = 0; i < wrong; i++) { /* received before they were sent */
            int64_t sent = (int64_t)world_uniform(&w, 0, (long double)span),
                    early = sent - (int64_t)world_uniform(&w, 5e6L, 5e9L);
            int a = (int)(world_random(&w) % 2);
            clock_net_message(w.net, (size_t)a, (size_t)(1 - a), world_read(&w, a, sent), world_read(&w, 1 - a, early));
        }
        solve(&w);
        assert_int_equal(world_check(&w), 2);
        const struct clock_map *m = clock_net_map(w.net, clock_net_map(w.net, 0)->predecessor < 0 ? 1 : 0);
        int64_t middle = (m->pieces[0].begin + m->pieces[m->n - 1].end) / 2;
        assert_in_range(clock_error_at(m, middle), 90000, 200000);
        world_fini(&w);
    }
}

/* A pair with traffic one way after the other: only the prior closes the corridor. */
static void test_one_sided(void **state)
{
    struct clock_options o = clock_defaults();
    for (int prior = 0; prior < 2; prior++) {
        struct world w;
        int64_t span = 10000000000;
        o.drift_prior_ppm = prior ? 200 : -1;
        world_init(&w, 9001, 2, span, 50, &o);
        world_begin(&w);
        world_talk(&w, 0, 1, 50, 0, span / 3, 100000, 200000);
        world_talk(&w, 1, 0, 50, span / 2, span, 100000, 200000);
        solve(&w);
        assert_int_equal(world_check(&w), prior ? 2 : 1);
        assert_int_equal(clock_net_map(w.net, 1)->category, CLOCK_ONE_SIDED);
        world_fini(&w);
    }
}

/* Drifts beyond the prior: the messages win. */
static void test_against_prior(void **state)
{
    struct clock_options o = clock_defaults();
    struct world w;
    int64_t span = 10000000000;
    world_init(&w, 9101, 2, span, 0, &o);
    w.clock[1].stretch[0].drift_ppm = 3000;
    world_begin(&w);
    world_talk(&w, 0, 1, 200, 0, span, 100000, 200000);
    world_talk(&w, 1, 0, 200, 0, span, 100000, 200000);
    solve(&w);
    assert_int_equal(world_check(&w), 2);
    assert_int_equal(clock_net_map(w.net, 1)->category, CLOCK_ACCURATE);
    world_fini(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random_nets),
        cmocka_unit_test(test_random_nets_other_priors),
        cmocka_unit_test(test_bends),
        cmocka_unit_test(test_one_bend),
        cmocka_unit_test(test_steps),
        cmocka_unit_test(test_outliers),
        cmocka_unit_test(test_one_sided),
        cmocka_unit_test(test_against_prior),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
