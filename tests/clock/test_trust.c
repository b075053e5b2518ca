/* SPDX-License-Identifier: MIT */
/* Clocks stated to be equal, in worlds whose clocks are known; and every reference over one fit. */
#include "../base/test.h"
#include "world.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/arena.h"

static const int64_t SECOND = 1000000000;

static void solve(struct clock_net *net)
{
    struct err e = {0};
    if (clock_net_solve(net, &e))
        fail_msg("%s", e.text);
}

static void talk_both(struct world *w, int a, int b, int count, int64_t least)
{
    world_talk(w, a, b, count, 0, w->span, least, least / 2);
    world_talk(w, b, a, count, 0, w->span, least, least / 2);
}

/* Hosts 0 .. trusted - 1 show true time within half of `error`, as PTP keeps them. */
static void steer(struct world *w, int trusted, int64_t error)
{
    for (int i = 0; i < trusted; i++) {
        struct world_clock *c = &w->clock[i];
        c->offset = w->clock[0].offset;
        c->n = 1;
        c->stretch[0].step = (int64_t)world_uniform(w, -0.45L * (long double)error, 0.45L * (long double)error);
        c->stretch[0].drift_ppm = 0;
    }
}

/* Checks two islands, each with one of the trusted hosts: they become one, and no host is off by more than stated. */
static void test_islands_joined(void **state)
{
    struct clock_trust trust = {"h0,h3", 50000};
    struct clock_options o = clock_defaults();
    o.trust = &trust;
    o.n_trust = 1;
    struct world w;
    world_init(&w, 42, 6, 10 * SECOND, 50, &o);
    w.clock[3] = w.clock[0];
    w.clock[3].offset += 40000;
    world_begin(&w);
    talk_both(&w, 0, 1, 100, 100000);
    talk_both(&w, 1, 2, 100, 100000);
    talk_both(&w, 3, 4, 100, 100000);
    solve(w.net);
    assert_int_equal(world_check(&w), 5);
    const struct clock_map *m = clock_net_map(w.net, 4);
    assert_int_equal(m->island, 0);
    assert_int_equal(m->category, CLOCK_TRUSTED);
    assert_int_equal(
        clock_net_map(w.net, 2)->category, clock_net_map(w.net, 2)->predecessor < 0 ? CLOCK_REFERENCE : CLOCK_ACCURATE);
    assert_int_equal(clock_net_map(w.net, 5)->n, 0);
    const struct clock_conflict *c;
    assert_int_equal(clock_net_conflicts(w.net, &c), 0);
    world_fini(&w);
}

/* Checks that two clocks are at most the error apart, not twice it; patterns. */
static void test_error_between_any_two(void **state)
{
    for (size_t reference = 0; reference < 4; reference++) {
        struct clock_trust trust = {"h[0-9]", 1000};
        char name[8];
        struct clock_options o = clock_defaults();
        snprintf(name, sizeof name, "h%zu", reference);
        o.reference = name;
        o.trust = &trust;
        o.n_trust = 1;
        struct world w;
        world_init(&w, 7, 4, SECOND, 0, &o);
        for (int i = 1; i < 4; i++)
            w.clock[i].offset = w.clock[0].offset + i * 333;
        world_begin(&w);
        solve(w.net);
        assert_int_equal(world_check(&w), 4);
        for (size_t h = 0; h < 4; h++)
            assert_int_equal(
                clock_error_at(clock_net_map(w.net, h), world_read(&w, (int)h, w.span / 2)), h == reference ? 0 : 1000);
        world_fini(&w);
    }
}

/* Checks that the host with a false clock is left out, with the minimum distance that messages prove. */
static void test_liar(void **state)
{
    struct clock_trust trust = {"h0,h1,h2,h3", 20000};
    struct clock_options o = clock_defaults();
    o.trust = &trust;
    o.n_trust = 1;
    o.reference = "h0";
    struct world w;
    world_init(&w, 9, 4, 10 * SECOND, 0, &o);
    for (int i = 1; i < 4; i++)
        w.clock[i].offset = w.clock[0].offset + (i == 2 ? 3000000 : 0);
    world_begin(&w);
    for (int a = 0; a < 4; a++)
        for (int b = a + 1; b < 4; b++)
            talk_both(&w, a, b, 200, 100000);
    solve(w.net);
    assert_int_equal(world_check(&w), 4);
    const struct clock_conflict *c;
    assert_int_equal(clock_net_conflicts(w.net, &c), 1);
    assert_int_equal(c->b, 2);
    assert_true(c->out_of_trust);
    assert_int_equal(c->error_ns, 20000);
    assert_in_range(c->apart_ns, 3000000 - 20000 - 150000, 3000000 - 20000);
    assert_int_equal(clock_error_at(clock_net_map(w.net, 1), world_read(&w, 1, w.span / 2)), 20000);
    assert_in_range(clock_error_at(clock_net_map(w.net, 2), world_read(&w, 2, w.span / 2)), 90000, 130000);
    struct text t = {.fd = -1};
    clock_net_write_table(w.net, &t, false);
    assert_non_null(strstr(text_cstr(&t), "Trusted: h0, h1 and 1 more, at most 20"));
    assert_non_null(strstr(text_cstr(&t), "h2 is left out of --trust: by its messages with h"));
    text_fini(&t);
    world_fini(&w);
}

/* Checks two trusted hosts that never talk, but both with a third, which contradicts them: a report says so. */
static void test_contradicted_by_a_third(void **state)
{
    struct clock_trust trust = {"h0,h2", 20000};
    struct clock_options o = clock_defaults();
    o.trust = &trust;
    o.n_trust = 1;
    o.reference = "h1";
    struct world w;
    world_init(&w, 9, 3, 10 * SECOND, 0, &o);
    w.clock[2].offset = w.clock[0].offset + 3000000;
    world_begin(&w);
    talk_both(&w, 0, 1, 200, 100000);
    talk_both(&w, 1, 2, 200, 100000);
    solve(w.net);
    const struct clock_conflict *c;
    assert_int_equal(clock_net_conflicts(w.net, &c), 1);
    assert_int_equal(c->a + c->b, 2);
    assert_false(c->out_of_trust);
    assert_in_range(c->apart_ns, 3000000 - 20000 - 400000, 3000000 - 20000);
    struct text t = {.fd = -1};
    clock_net_write_table(w.net, &t, false);
    assert_non_null(strstr(text_cstr(&t), "contradict each other by"));
    text_fini(&t);
    world_fini(&w);
}

static void test_words(void **state)
{
    static const struct {
        const char *said, *hosts;
        int64_t error;
    } good[] = {{"a,b", "a,b", 0}, {"a,b=50us", "a,b", 50000}, {"node*=1.5ms", "node*", 1500000},
        {"x=y,z=2s", "x=y,z", 2000000000}};
    static const char *const bad[] = {
        "", "=1ms", "a,b=", "a,b=1", "a,b=-1ms", "a,b=5 parsec", "a,b=99999999999999s", ","};
    struct arena arena = {0};
    struct clock_trust t;
    struct err e = {0};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        assert_int_equal(clock_trust_parse(&arena, good[i].said, &t, &e), 0);
        assert_string_equal(t.hosts, good[i].hosts);
        assert_int_equal(t.error_ns, good[i].error);
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_int_equal(clock_trust_parse(&arena, bad[i], &t, &e), ERR_ARG);
        assert_non_null(strstr(e.text, bad[i]));
    }
    arena_fini(&arena);
}

static void test_unknown_host(void **state)
{
    struct clock_trust trust = {"h0,nobody", 1};
    struct clock_options o = clock_defaults();
    struct err e = {0};
    o.trust = &trust;
    o.n_trust = 1;
    for (int lenient = 0; lenient < 2; lenient++) {
        struct world w;
        o.some_named = lenient;
        world_init(&w, 1, 2, SECOND, 0, &o);
        world_begin(&w);
        assert_int_equal(clock_net_solve(w.net, &e), lenient ? 0 : ERR_ARG);
        if (!lenient)
            assert_non_null(strstr(e.text, "no host is named nobody; the hosts are: h0, h1"));
        world_fini(&w);
    }
}

static void same_maps(const struct world *w, const struct clock_net *a, const struct clock_net *b)
{
    for (size_t h = 0; h < (size_t)w->n; h++) {
        const struct clock_map *p = clock_net_map(a, h), *q = clock_net_map(b, h);
        assert_int_equal(p->reference, q->reference);
        assert_int_equal(p->predecessor, q->predecessor);
        assert_int_equal(p->n, q->n);
        if (p->n)
            assert_memory_equal(p->pieces, q->pieces, p->n * sizeof *p->pieces);
    }
}

/* A random world: pairs with losses, one way only, apart in time; some trusted. In every third world drifts change, and
 * then hosts talk enough for it to show (a straight line is believed as long as one fits). Every host in
 * turn is the reference, over what was found once and stored: the corridor holds the truth for every host, and the maps
 * are those of a net that fits for itself. */
static void random_world(uint64_t seed, const char *path)
{
    struct world w, dice = {.seed = seed * 131};
    bool bends = world_random(&dice) % 3 == 0;
    int n = 3 + (int)world_uniform(&dice, 0, 7), trusted = (int)world_uniform(&dice, 0, (long double)n);
    int64_t span = (int64_t)expl(world_uniform(&dice, logl(1e9L), logl(1e11L))),
            error = (int64_t)expl(world_uniform(&dice, logl(100), logl(1e6L)));
    char members[64] = "";
    for (int i = 0; i < trusted; i++)
        snprintf(members + strlen(members), sizeof members - strlen(members), "%sh%d", i ? "," : "", i);
    struct clock_trust trust = {members, error};
    struct clock_options o = clock_defaults();
    o.trust = &trust;
    o.n_trust = trusted > 1;
    world_init(&w, seed, n, span, bends ? 55 : 90, &o);
    steer(&w, trusted > 1 ? trusted : 0, error);
    for (int i = trusted > 1 ? trusted : 0; i < n; i++)
        if (bends) {
            w.clock[i].n = 2;
            w.clock[i].stretch[1].from = span / 2;
            w.clock[i].stretch[1].drift_ppm = world_uniform(&w, -55, 55);
        }
    world_begin(&w);
    for (int i = 0; i < 2 * n; i++) {
        int a = (int)world_uniform(&w, 0, n), b = (int)world_uniform(&w, 0, n),
            messages = (bends ? 300 : 1) + (int)expl(world_uniform(&w, 0, logl(400)));
        int64_t from = bends ? 0 : (int64_t)world_uniform(&w, 0, span / 2),
                to = bends ? span : (int64_t)world_uniform(&w, span / 2, span);
        if (a == b)
            continue;
        world_talk(&w, a, b, messages, from, to, 20000, 100000);
        if (world_uniform(&w, 0, 4) > 1) /* single direction otherwise */
            world_talk(&w, b, a, messages / 2 + 1, from, to, 20000, 100000);
    }
    solve(w.net);
    world_check(&w);
    struct err e = {0};
    if (clock_net_save(w.net, path, seed, &e))
        fail_msg("%s", e.text);
    struct clock_net *first = w.net;
    for (int r = 0; r < n; r++) {
        char name[16];
        snprintf(name, sizeof name, "h%d", r);
        o.reference = name;
        if (clock_net_load(path, seed, &o, &w.net, &e))
            fail_msg("%s", e.text);
        solve(w.net);
        assert_int_equal(clock_net_map(w.net, (size_t)r)->reference, r);
        world_check(&w);
        if ((size_t)r == clock_net_map(first, clock_net_map(first, 0)->reference)->reference &&
            clock_net_map(first, 0)->island == 0)
            same_maps(&w, first, w.net);
        clock_net_free(w.net);
    }
    w.net = first;
    world_fini(&w);
}

static void test_random_worlds(void **state)
{
    char path[512];
    snprintf(
        path, sizeof path, "%s/weft-test-trust-%ld", getenv("TMPDIR") ? getenv("TMPDIR") : P_tmpdir, (long)getpid());
    for (uint64_t first = test_seed(1), seed = first; seed < first + 80; seed++)
        random_world(seed, path);
    assert_int_equal(unlink(path), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_islands_joined),
        cmocka_unit_test(test_error_between_any_two),
        cmocka_unit_test(test_liar),
        cmocka_unit_test(test_contradicted_by_a_third),
        cmocka_unit_test(test_words),
        cmocka_unit_test(test_unknown_host),
        cmocka_unit_test(test_random_worlds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
