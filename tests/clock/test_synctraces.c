/* SPDX-License-Identifier: MIT */
/* The 46 packets of the public trace pair `synctraces`, and what Trace Compass makes of them. */
#include "../base/test.h"
#include "world.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DATA WEFT_SOURCE_ROOT "/../shared/data"

static struct clock_net *read_matches(const struct clock_options *o)
{
    char path[512], line[256], from[16], to[16];
    long long sent, received;
    snprintf(path, sizeof path, "%s/traces-public/synctraces/derived-matches.csv",
        getenv("WEFT_DATA") ? getenv("WEFT_DATA") : DATA);
    FILE *f = fopen(path, "r");
    if (!f)
        return NULL;
    struct clock_net *net = clock_net_new(o);
    clock_net_host(net, "VM3", 1361214078963711320, 1361214096385469974); /* first and last event, by babeltrace 1 */
    clock_net_host(net, "VM1", 1361214076525090092, 1361214099530082855);
    while (fgets(line, sizeof line, f)) /* send_host,send_ns,recv_host,recv_ns */
        if (sscanf(line, "%15[^,],%lld,%15[^,],%lld", from, &sent, to, &received) == 4)
            clock_net_message(net, strcmp(from, "VM1") == 0, strcmp(to, "VM1") == 0, sent, received);
    fclose(f);
    return net;
}

static const struct clock_pair *solved(struct clock_net *net)
{
    const struct clock_pair *p;
    assert_int_equal(clock_net_solve(net, NULL), 0);
    assert_int_equal(clock_net_pairs(net, &p), 1);
    assert_int_equal(p->messages_ab, 22);
    assert_int_equal(p->messages_ba, 24);
    assert_int_equal(p->category, CLOCK_ACCURATE);
    return p;
}

/* Trace Compass takes the mean of the extreme lines from VM3 to VM1; for VM1 it is then
 * 0.9999413783703139011056845831168394 t + 79796507913179.33347660124688298171. The bisector, LTTV's middle line, has
 * slope 1.00005501. */
static void test_extreme_lines(void **state)
{
    struct clock_options o = {.drift_prior_ppm = -1};
    struct clock_net *net = read_matches(&o);
    if (!net)
        skip_without("traces-public/synctraces");
    const struct clock_pair *p = solved(net);
    double slope = (p->drift_min + p->drift_max) / 2, offset = (p->offset_at_min_ns + p->offset_at_max_ns) / 2;
    assert_true(fabs(1 / slope - 0.9999413783703139) < 4e-16);
    assert_true(fabs(-offset / slope - 79796507913179.33) < 1);
    assert_true(fabs(p->drift - 1.00005501) < 6e-9);
    clock_net_free(net);
}

/* Checks VM1 - VM3 in mid-traffic: between 80 420 657 and 80 706 290 ns, by the tightest packets in each direction. A
 * prior cannot move that. */
static void test_mid_traffic(void **state)
{
    static const double priors[] = {-1, 100, 200, 500};
    for (int i = 0; i < 4; i++) {
        struct clock_options o = {.drift_prior_ppm = priors[i], .reference = "VM1"};
        struct clock_net *net = read_matches(&o);
        if (!net)
            skip_without("traces-public/synctraces");
        solved(net);
        const struct clock_map *m = clock_net_map(net, 0);
        int64_t least = INT64_MAX, at = 0;
        for (size_t k = 0; k < m->n; k++)
            if (m->pieces[k].error_begin < least) {
                least = m->pieces[k].error_begin;
                at = m->pieces[k].begin;
            }
        int64_t offset = clock_to_reference(m, at) - at;
        assert_in_range(offset - least, 80420657 - 25000, 80706290);
        assert_in_range(offset + least, 80420657, 80706290 + 25000);
        clock_net_free(net);
    }
}

/* 17 s after the start of VM3's trace, 3 s after the traffic, the corridor is 16.8 ms wide; with a prior of 100 ppm
 * 0.89 ms, of 500 ppm 3.3 ms. The stated error is half of that, the map being in the middle. */
static void test_prior(void **state)
{
    static const int64_t at = 1361214078963711320 + 17000000000;
    static const struct {
        double prior, width_ms, rounding;
    } cases[] = {{-1, 16.8, 0.05}, {100, 0.89, 0.005}, {500, 3.3, 0.05}};
    for (int i = 0; i < 3; i++) {
        struct clock_options o = {.drift_prior_ppm = cases[i].prior, .reference = "VM1"};
        struct clock_net *net = read_matches(&o);
        if (!net)
            skip_without("traces-public/synctraces");
        const struct clock_pair *p = solved(net);
        double width = 2e-6 * (double)clock_error_at(clock_net_map(net, 0), at);
        if (cases[i].prior < 0) /* the bisector of lines this steep is not in the middle: the lines themselves */
            width = (double)((long double)p->offset_at_max_ns - p->offset_at_min_ns +
                        ((long double)p->drift_max - p->drift_min) * at) /
                1e6;
        if (fabs(width - cases[i].width_ms) > cases[i].rounding)
            fail_msg("prior %g: width %g ms, expected %g", cases[i].prior, width, cases[i].width_ms);
        clock_net_free(net);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_extreme_lines), cmocka_unit_test(test_mid_traffic), cmocka_unit_test(test_prior)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
