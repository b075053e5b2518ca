/* SPDX-License-Identifier: MIT */
/* The twelve point sets of LTTV's own tests with the results that LTTV prints for them, and the sequences of Trace
 * Compass' unit test. */
#include "../base/test.h"
#include "world.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DATA WEFT_SOURCE_ROOT "/../shared/data"

static const double NONE = 1e300;

/* Slopes and offsets (s) of t1 = a1 t0 + a0: flattest and steepest line; then what trace 1 gets with trace 0 as the
 * reference. */
static const struct expected {
    int sent, received, hull_sent, hull_received, category;
    double min, max, a0_max, a0_min, error, drift, offset;
} expected[12] = {
    {2, 2, 2, 2, CLOCK_ACCURATE, 0.850574713, 1.121049493, -1.598741801, 13.739425287, 0, 1.02384, -6.74347},
    {4, 4, 4, 4, CLOCK_ACCURATE, 0.9375, 1.059342422, 1.766062550, 8.818125, 0, 1.00344, -5.418},
    {6, 6, 4, 4, CLOCK_ACCURATE, 0.792151163, 1.219727346, -7.541876504, 17.232369186, 0, 1.01694, -6.25862},
    {4, 4, 4, 4, CLOCK_ONE_SIDED, 0.913486005, NONE, NONE, 10.042213740, 0, NONE, NONE},
    {4, 4, 4, 4, CLOCK_ONE_SIDED, NONE, 1.090909091, 0.05, NONE, 0, NONE, NONE},
    {4, 4, 4, 4, CLOCK_APPROXIMATE, NONE, NONE, NONE, NONE, 11.1078, 1.41292, -30.5545},
    {4, 4, 4, 4, CLOCK_APPROXIMATE, NONE, NONE, NONE, NONE, 26.3389, 1.27781, -22.017},
    {1, 1, 1, 1, CLOCK_ONE_SIDED, -1.793733681, NONE, NONE, 163.598146214, 0, NONE, NONE},
    {1, 2, 1, 2, CLOCK_ACCURATE, -1.389380531, 3.161458333, -114.574010417, 142.593893805, 0, 6.24614, -343.743},
    {1, 2, 1, 2, CLOCK_ONE_SIDED, -0.265889831, NONE, NONE, 74.027256355, 0, NONE, NONE},
    {6, 6, 4, 4, CLOCK_ACCURATE, -1.059342422, -0.9375, 113.874375, 120.475974338, 0, -1.00344, 117.478},
    {6, 4, 4, 3, CLOCK_ACCURATE, 0.745571998, 0.803684196, 171.022612856, 191.171174446, 0, 1.29162, -234.092},
};

/* "47.82" as ns, exactly. */
static int64_t parse_seconds(const char *s)
{
    char *end;
    int64_t ns = strtoll(s, &end, 10) * 1000000000, unit = 100000000;
    if (*end == '.')
        for (end++; *end >= '0' && *end <= '9'; end++, unit /= 10)
            ns += (*end - '0') * unit;
    return ns;
}

static struct clock_net *read_points(int number, const struct clock_options *o)
{
    char path[512], line[256], sent[64], received[64];
    snprintf(
        path, sizeof path, "%s/lttv-sync-points/test%d.txt", getenv("WEFT_DATA") ? getenv("WEFT_DATA") : DATA, number);
    FILE *f = fopen(path, "r");
    if (!f)
        return NULL;
    struct clock_net *net = clock_net_new(o);
    clock_net_host(net, "0", 1, 0);
    clock_net_host(net, "1", 1, 0);
    while (fgets(line, sizeof line, f)) {
        size_t a, b;
        if (sscanf(line, "%zu %zu %63s %63s", &a, &b, sent, received) == 4)
            clock_net_message(net, a, b, parse_seconds(sent), parse_seconds(received));
    }
    fclose(f);
    return net;
}

static void close_to(const char *what, int test, double is, double should, double tolerance)
{
    if (!(fabs(is - should) <= tolerance))
        fail_msg("test %d: %s is %.12g, expected %.12g", test, what, is, should);
}

static void bound(const char *what, int test, double is, double should, double tolerance)
{
    if (should == NONE)
        assert_true(isinf(is));
    else
        close_to(what, test, is, should, tolerance);
}

static void check_pair(int i, const struct clock_pair *p)
{
    const struct expected *x = &expected[i];
    assert_int_equal(p->category, x->category);
    assert_int_equal(p->messages_ab, x->sent);
    assert_int_equal(p->messages_ba, x->received);
    assert_int_equal(p->hull_ab, x->hull_sent);
    assert_int_equal(p->hull_ba, x->hull_received);
    bound("least slope", i + 1, p->drift_min, x->min, 2e-9);
    bound("greatest slope", i + 1, p->drift_max, x->max, 2e-9);
    bound("offset of the steepest line", i + 1, p->offset_at_max_ns / 1e9, x->a0_max, 2e-9);
    bound("offset of the flattest line", i + 1, p->offset_at_min_ns / 1e9, x->a0_min, 2e-9);
    if (x->error)
        close_to("error", i + 1, p->error_ns / 1e9, x->error, 6e-5);
    if (x->drift == NONE) {
        assert_true(isnan(p->drift) && isnan(p->offset_ns));
    } else { /* opposite direction */
        close_to("drift", i + 1, 1 / p->drift, x->drift, 6e-6);
        close_to("offset", i + 1, -p->offset_ns / p->drift / 1e9, x->offset, 6e-6 * fabs(x->offset) + 1e-5);
    }
}

static void test_point_sets(void **state)
{
    for (int i = 0; i < 12; i++) {
        struct clock_options o = {.drift_prior_ppm = -1, .reference = "0"};
        struct clock_net *net = read_points(i + 1, &o);
        if (!net)
            skip_without("lttv-sync-points");
        assert_int_equal(clock_net_solve(net, NULL), 0);
        const struct clock_pair *p;
        assert_int_equal(clock_net_pairs(net, &p), 1);
        check_pair(i, p);
        const struct clock_map *m = clock_net_map(net, 1);
        bool holds = expected[i].drift > 0.36 &&
            expected[i].drift < 2.8; /* maps hold no clock that runs backwards or six times too fast */
        assert_int_equal(m->n > 0, holds);
        assert_int_equal(m->island, holds ? 0 : 1);
        if (holds) { /* the map is that line */
            assert_int_equal(m->category, expected[i].category);
            for (double t = 0; t < 100; t += 7)
                close_to("map", i + 1, (double)clock_to_reference(m, (int64_t)(t * 1e9)) / 1e9,
                    expected[i].drift * t + expected[i].offset, 1.5e-3);
        }
        clock_net_free(net);
    }
}

/* Slopes outside [0.5, 2] are nonsense clocks: tests 8 to 11. */
static void test_sane_slopes(void **state)
{
    for (int i = 0; i < 12; i++) {
        struct clock_options o = clock_defaults();
        o.drift_prior_ppm = -1;
        o.reference = "0";
        struct clock_net *net = read_points(i + 1, &o);
        if (!net)
            skip_without("lttv-sync-points");
        assert_int_equal(clock_net_solve(net, NULL), 0);
        bool sane = expected[i].drift != NONE && expected[i].drift >= 0.5 && expected[i].drift <= 2;
        assert_int_equal(clock_net_map(net, 1)->n > 0, sane);
        clock_net_free(net);
    }
}

/* LTTV's layout, on which readers of its statistics rely. */
static void test_stats_layout(void **state)
{
    struct clock_options o = {.drift_prior_ppm = -1, .reference = "0"};
    struct clock_net *net = read_points(1, &o);
    if (!net)
        skip_without("lttv-sync-points");
    assert_int_equal(clock_net_solve(net, NULL), 0);
    struct text t = {.fd = -1};
    clock_net_write_stats(net, &t);
    const char *const lines[] = {"TCP matching stats:\n",
        "\ttotal input and output events matched together to form a packet: 4\n", "\tMessage traffic:\n",
        "\t\t  0 - 1  : sent 2          received 2         \n", "Convex hull analysis stats:\n",
        "\tout of order packets dropped from analysis: 0\n", "\tNumber of points in convex hulls:\n",
        "\t\t  0 - 1  : lower half-hull 2     upper half-hull 2    \n", "\tIndividual synchronization factors:\n",
        "\t\t  0 - 1  : Accurate\n", "a0: -1598741800.8", "a1: 1 -0.149425287",
        "Accuracy-based factor reduction stats:\n", "\ttrace 0 is a reference\n",
        "\ttrace 1: reference 0, predecessor 0\n", "Resulting synchronization factors:\n", "\ttrace 1 drift= 1.0238",
        " start time= "};
    const char *at = text_cstr(&t);
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        const char *next = strstr(at, lines[i]);
        if (!next)
            fail_msg("\"%s\" is missing after:\n%s", lines[i], at);
        at = next;
    }
    text_fini(&t);
    clock_net_free(net);
}

/* Trace Compass' sequence: after each message the mean of the extreme lines from t1 to t2. from: 1 or 2. */
static void test_sequence(void **state)
{
    static const struct {
        int from, sent, received, category;
        double slope, offset;
    } steps[] = {
        {2, 1, 1, CLOCK_ONE_WAY, NONE, NONE},
        {1, 1, 3, CLOCK_ONE_SIDED, NONE, NONE},
        {2, 2, 3, CLOCK_ONE_SIDED, NONE, NONE},
        {1, 3, 5, CLOCK_ACCURATE, 0.75, 1.25},
        {1, 4, 8, CLOCK_ACCURATE, 0.75, 1.25},
        {2, 4, 5, CLOCK_ACCURATE, 1.125, 0.875},
        {2, 4, 6, CLOCK_ACCURATE, 1.125, 0.875},
        {1, 6, 7, CLOCK_ACCURATE, 0.725, 1.275},
        /* Trace Compass' incremental hulls notice one message later that no line fits: 4 -> 5 lies above the line from
           1 -> 3 to 7 -> 4. */
        {1, 7, 4, CLOCK_APPROXIMATE, NONE, NONE},
        {2, 7, 3, CLOCK_APPROXIMATE, NONE, NONE},
    };
    struct clock_options o = {.drift_prior_ppm = -1};
    struct clock_net *net = clock_net_new(&o);
    clock_net_host(net, "t1", 1, 0);
    clock_net_host(net, "t2", 1, 0);
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        size_t from = steps[i].from == 1 ? 0 : 1;
        const struct clock_pair *p;
        clock_net_message(net, from, 1 - from, steps[i].sent * 1000000000LL, steps[i].received * 1000000000LL);
        assert_int_equal(clock_net_solve(net, NULL), 0);
        assert_int_equal(clock_net_pairs(net, &p), 1);
        assert_int_equal(p->category, steps[i].category);
        if (steps[i].slope != NONE) {
            close_to("mean slope", (int)i, (p->drift_min + p->drift_max) / 2, steps[i].slope, 1e-12);
            close_to("mean offset", (int)i, (p->offset_at_min_ns + p->offset_at_max_ns) / 2e9, steps[i].offset, 1e-9);
        }
    }
    clock_net_free(net);
}

static void test_all_before(void **state)
{
    static const int there[][2] = {{1, 3}, {2, 5}, {3, 5}, {4, 7}}, back[][2] = {{7, 6}, {8, 6}, {10, 8}};
    struct clock_options o = {.drift_prior_ppm = -1};
    struct clock_net *net = clock_net_new(&o);
    clock_net_host(net, "t1", 1, 0);
    clock_net_host(net, "t2", 1, 0);
    for (size_t i = 0; i < 4; i++)
        clock_net_message(net, 0, 1, there[i][0] * 1000000000LL, there[i][1] * 1000000000LL);
    const struct clock_pair *p;
    assert_int_equal(clock_net_solve(net, NULL), 0);
    clock_net_pairs(net, &p);
    assert_int_equal(p->category, CLOCK_ONE_WAY);
    for (size_t i = 0; i < 3; i++)
        clock_net_message(net, 1, 0, back[i][0] * 1000000000LL, back[i][1] * 1000000000LL);
    assert_int_equal(clock_net_solve(net, NULL), 0);
    clock_net_pairs(net, &p);
    assert_int_equal(p->category, CLOCK_ONE_SIDED);
    assert_true(isinf(p->drift_max) && !isinf(p->drift_min));
    clock_net_free(net);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_point_sets),
        cmocka_unit_test(test_sane_slopes),
        cmocka_unit_test(test_stats_layout),
        cmocka_unit_test(test_sequence),
        cmocka_unit_test(test_all_before),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
