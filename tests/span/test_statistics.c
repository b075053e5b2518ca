/* SPDX-License-Identifier: MIT */
/* Statistics against published tables and worked examples, and against their definitions. */
#include <math.h>

#include "../base/test.h"
#include "base/mem.h"
#include "base/order.h"
#include "span/statistics.h"

#define COUNT(v) (sizeof(v) / sizeof *(v))
#define assert_near(is, wanted, within) assert_near_(is, wanted, within, __LINE__)

static void assert_near_(double is, double wanted, double within, int line)
{
    if (!(fabs(is - wanted) <= within))
        fail_msg("line %d: %.12g, and not %.12g", line, is, wanted);
}

static int by_number(const void *a, const void *b)
{
    return order_of(*(const double *)a, *(const double *)b);
}

static double draw(uint64_t *seed)
{
    return (test_random(seed, 1u << 30) + 0.5) / (1u << 30);
}

static double draw_normal(uint64_t *seed)
{
    double sum = -6;
    for (int i = 0; i < 12; i++)
        sum += draw(seed);
    return sum;
}

/* ---- order ---- */

static void test_sort(void **state)
{
    uint64_t seed = test_seed(7);
    double v[3000], w[3000];
    for (int round = 0; round < 50; round++) {
        size_t n = test_random(&seed, COUNT(v)) + 1;
        int exponent = (int)test_random(&seed, 600) - 300;
        for (size_t i = 0; i < n; i++)
            v[i] = w[i] = ldexp((double)test_random(&seed, 1u << 20) - (1u << 19), round % 2 ? exponent : 0);
        stat_sort(v, n);
        qsort(w, n, sizeof *w, by_number);
        assert_memory_equal(v, w, n * sizeof *v);
    }
    stat_sort(v, 0);
}

/* Hyndman & Fan's definition 7 of the numbers 1 to 10, as R's quantile() has it. */
static void test_quantiles(void **state)
{
    const double v[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10};
    assert_near(stat_quantile(v, 10, 0), 1, 0);
    assert_near(stat_quantile(v, 10, 0.25), 3.25, 1e-12);
    assert_near(stat_quantile(v, 10, 0.5), 5.5, 1e-12);
    assert_near(stat_quantile(v, 10, 0.9), 9.1, 1e-12);
    assert_near(stat_quantile(v, 10, 1), 10, 0);
    assert_near(stat_quantile(v, 1, 0.99), 1, 0);
}

static void test_centre(void **state)
{
    const double v[] = {9, 1, 2, 6, 1, 4, 2}; /* median 2, distances 0 0 1 1 2 4 7 */
    struct stat_centre c = stat_centre(v, 7);
    assert_near(c.median, 2, 0);
    assert_near(c.scale, 1.4826, 1e-9);
    const double same[] = {5, 5, 5, 5, 5, 8, 9, 10}; /* the median distance is 0, quartiles 5 and 8.25 */
    assert_near(stat_centre(same, 8).scale, 3.25 / 1.349, 1e-9);
    assert_near(stat_centre(same, 5).scale, 0, 0);
    assert_near(stat_median(v, 7), 2, 0);
}

/* ---- tails ---- */

/* Checks values as printed in textbooks: the two-sided 5 % and 1 % points of Student's t. */
static void test_tails(void **state)
{
    static const struct {
        double degrees, five, one;
    } table[] = {{1, 12.706, 63.657}, {2, 4.303, 9.925}, {5, 2.571, 4.032}, {10, 2.228, 3.169}, {30, 2.042, 2.750},
        {120, 1.980, 2.617}};
    for (size_t i = 0; i < COUNT(table); i++) {
        assert_near(2 * stat_t_tail(table[i].five, table[i].degrees), 0.05, 5e-5);
        assert_near(2 * stat_t_tail(table[i].one, table[i].degrees), 0.01, 5e-5);
        assert_near(stat_t_tail(-table[i].one, table[i].degrees), 0.995, 5e-5);
    }
    assert_near(stat_normal_tail(1.959964), 0.025, 1e-8);
    assert_near(stat_normal_tail(-1.281552), 0.9, 1e-7);
    assert_near(stat_t_tail(0, 3), 0.5, 1e-12);
}

/* Fisher's lady who tastes tea: 3 of 4 right by chance in 17 of 70 cases (The Design of Experiments, 1935). */
static void test_over(void **state)
{
    assert_near(stat_over(3, 4, 4, 8), 17.0 / 70, 1e-12);
    assert_near(stat_over(4, 4, 4, 8), 1.0 / 70, 1e-12);
    assert_near(stat_over(0, 4, 4, 8), 1, 0);
    assert_near(stat_over(5, 4, 4, 8), 0, 0);
    assert_near(stat_over(1, 1000, 5000, 10000), 1, 1e-12);
    /* Subsets of ten items, three of them marked, four drawn. */
    double seen[5] = {0}, all = 0;
    for (unsigned set = 0; set < 1024; set++)
        if (__builtin_popcount(set) == 4) {
            seen[__builtin_popcount(set & 7)]++;
            all++;
        }
    double above = 0;
    for (unsigned hit = 4; hit-- > 0;) {
        above += seen[hit];
        assert_near(stat_over(hit, 4, 3, 10), above / all, 1e-12);
    }
}

/* ---- two samples ---- */

/* Permeability of human chorioamnion at term and between 12 and 26 weeks (Hollander & Wolfe 1973, p. 69 f.): the
 * one-sided p is 0.1272, the shift 0.305. */
static void test_published_ranks(void **state)
{
    const double term[] = {0.80, 0.83, 1.89, 1.04, 1.45, 1.38, 1.91, 1.64, 0.73, 1.46};
    const double weeks[] = {1.15, 0.88, 0.90, 0.74, 1.21};
    struct stat_ranks r = stat_mann_whitney(weeks, 5, term, 10);
    assert_near(r.u, 35, 0);
    assert_true(r.exact);
    assert_near(r.p, 2 * 0.1272, 1e-4);
    assert_near(r.larger, 0.7, 1e-12);
    assert_near(stat_hodges_lehmann(weeks, 5, term, 10).shift, 0.305, 1e-9);
    assert_near(stat_hodges_lehmann(term, 10, weeks, 5).shift, -0.305, 1e-9);
}

/* Checks the exact test: of the 252 ways to deal 5 and 5 ranks, 4 have a U of 2 or less: the table's 5 % point. */
static void test_exact_ranks(void **state)
{
    const double low[] = {1, 2, 3, 4, 7}, high[] = {5, 6, 8, 9, 10}, least[] = {1, 2, 3}, most[] = {4, 5, 6};
    assert_near(stat_mann_whitney(low, 5, high, 5).p, 8.0 / 252, 1e-12);
    assert_near(stat_mann_whitney(least, 3, most, 3).p, 2.0 / 20, 1e-12);
    assert_near(stat_mann_whitney(low, 5, low, 5).p, 1, 0);
    assert_near(stat_mann_whitney(low, 1, high, 1).p, 1, 0);
}

static double count_u(const double *a, size_t n, const double *b, size_t m)
{
    double u = 0;
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < m; j++)
            u += b[j] > a[i] ? 1 : b[j] == a[i] ? 0.5 : 0;
    return u;
}

/* Computes by the definition: all ways to name m of the n + m numbers. */
static double deal_all(const double *v, size_t all, size_t m, double seen)
{
    double low = 0, high = 0, total = 0;
    for (unsigned set = 0; set < 1u << all; set++) {
        double a[12], b[12];
        size_t n_a = 0, n_b = 0;
        if ((size_t)__builtin_popcount(set) != m)
            continue;
        for (size_t i = 0; i < all; i++)
            if (set >> i & 1)
                b[n_b++] = v[i];
            else
                a[n_a++] = v[i];
        double u = count_u(a, n_a, b, n_b);
        total++;
        low += u <= seen;
        high += u >= seen;
    }
    return fmin(1, 2 * fmin(low, high) / total);
}

static void test_ranks_by_definition(void **state)
{
    uint64_t seed = test_seed(11);
    for (int round = 0; round < 60; round++) {
        double v[12];
        size_t n = test_random(&seed, 6) + 1, m = test_random(&seed, 6) + 1;
        for (size_t i = 0; i < n + m; i++)
            v[i] = test_random(&seed, round % 3 ? 6 : 1000);
        struct stat_ranks r = stat_mann_whitney(v, n, v + n, m);
        assert_near(r.u, count_u(v, n, v + n, m), 0);
        assert_near(r.p, deal_all(v, n + m, m, r.u), 1e-12);
    }
}

/* Checks that, just above the size of exact counting, the normal tail is close to the count. */
static void test_normal_ranks(void **state)
{
    double a[26], b[25];
    for (size_t i = 0; i < 26; i++)
        a[i] = (double)i;
    for (size_t i = 0; i < 25; i++)
        b[i] = (double)i + 7.5;
    struct stat_ranks normal = stat_mann_whitney(a, 26, b, 25), exact = stat_mann_whitney(a, 25, b, 25);
    assert_false(normal.exact);
    assert_true(exact.exact);
    assert_near(log(normal.p) / log(exact.p), 1, 0.15);
    const double same[60] = {0};
    assert_near(stat_mann_whitney(same, 30, same, 30).p, 1, 0);
}

static void test_shift_by_definition(void **state)
{
    uint64_t seed = test_seed(13);
    for (int round = 0; round < 100; round++) {
        double a[40], b[40], all[1600];
        size_t n = test_random(&seed, 40) + 1, m = test_random(&seed, 40) + 1, pairs = 0;
        for (size_t i = 0; i < n; i++)
            a[i] = test_random(&seed, round % 2 ? 20 : 100000) - 10.0;
        for (size_t j = 0; j < m; j++)
            b[j] = test_random(&seed, round % 2 ? 20 : 100000) - 5.0;
        for (size_t i = 0; i < n; i++)
            for (size_t j = 0; j < m; j++)
                all[pairs++] = b[j] - a[i];
        qsort(all, pairs, sizeof *all, by_number);
        double median = pairs % 2 ? all[pairs / 2] : (all[pairs / 2 - 1] + all[pairs / 2]) / 2;
        struct stat_shift s = stat_hodges_lehmann(a, n, b, m);
        assert_near(s.shift, median, 1e-9);
        assert_true(s.low <= s.shift && s.shift <= s.high);
        assert_true(s.low >= all[0] && s.high <= all[pairs - 1]);
    }
}

/* Checks that intervals contain the true shift in 95 of 100 cases. */
static void test_intervals_hold(void **state)
{
    uint64_t seed = test_seed(17);
    int held_shift = 0, held_median = 0, rounds = 400;
    for (int round = 0; round < rounds; round++) {
        double a[30], b[40];
        for (size_t i = 0; i < 30; i++)
            a[i] = draw_normal(&seed);
        for (size_t i = 0; i < 40; i++)
            b[i] = draw_normal(&seed) + 2;
        struct stat_shift s = stat_hodges_lehmann(a, 30, b, 40);
        held_shift += s.low <= 2 && s.high >= 2;
        struct stat_dice dice = {(uint64_t)round};
        stat_sort(a, 30);
        stat_sort(b, 40);
        s = stat_bootstrap(a, 30, b, 40, 0.5, &dice);
        held_median += s.low <= 2 && s.high >= 2;
    }
    assert_near((double)held_shift / rounds, 0.95, 0.035);
    assert_near((double)held_median / rounds, 0.95, 0.035);
}

/* Drawing a quantile at once is what drawing all numbers and looking gives. */
static void test_bootstrap_by_definition(void **state)
{
    enum { N = 25, DRAWS = 4000 };
    uint64_t seed = test_seed(19);
    double v[N], zero[1] = {0}, drawn[DRAWS], again[N];
    for (size_t i = 0; i < N; i++)
        v[i] = exp(draw_normal(&seed));
    stat_sort(v, N);
    for (size_t d = 0; d < DRAWS; d++) {
        for (size_t i = 0; i < N; i++)
            again[i] = v[test_random(&seed, N)];
        stat_sort(again, N);
        drawn[d] = stat_quantile(again, N, 0.9);
    }
    stat_sort(drawn, DRAWS);
    struct stat_dice dice = {5};
    struct stat_shift s = stat_bootstrap(zero, 1, v, N, 0.9, &dice);
    double spread = v[N - 1] - v[0];
    assert_near(s.low, stat_quantile(drawn, DRAWS, 0.025), 0.04 * spread);
    assert_near(s.high, stat_quantile(drawn, DRAWS, 0.975), 0.04 * spread);
    struct stat_dice same = {5};
    struct stat_shift t = stat_bootstrap(zero, 1, v, N, 0.9, &same);
    assert_memory_equal(&s, &t, sizeof s);
}

/* ---- outliers ---- */

/* Checks gaps: for numbers with a Pareto tail, they are exponential with one mean (Rényi 1953), so that p of the
 * largest number, which counts half, is uniform. */
static void test_gaps(void **state)
{
    enum { N = 400, ROUNDS = 2000 };
    uint64_t seed = test_seed(23);
    int below[2] = {0, 0};
    for (int round = 0; round < ROUNDS; round++) {
        double v[N], descending[N];
        for (size_t i = 0; i < N; i++)
            v[i] = pow(draw(&seed), -1 / 3.0);
        stat_sort(v, N);
        for (size_t i = 0; i < N; i++)
            descending[i] = v[N - 1 - i];
        double p = stat_gap_p(descending, N, 1) / 2;
        below[0] += p <= 0.05;
        below[1] += p <= 0.25;
    }
    assert_near(below[0], 0.05 * ROUNDS, 4 * sqrt(ROUNDS * 0.05 * 0.95));
    assert_near(below[1], 0.25 * ROUNDS, 4 * sqrt(ROUNDS * 0.25 * 0.75));
    const double same[] = {1, 1, 1, 1, 1, 1, 1, 1}, one[] = {9, 1, 1, 1, 1, 1, 1, 1};
    assert_near(stat_gap_p(same, 8, 1), 1, 0);
    assert_true(stat_gap_p(one, 8, 1) < 0.05);
    assert_true(stat_gap_p(one, 8, 2) > 0.5);
}

/* ---- changes ---- */

/* The Nile at Aswan, 1871 to 1970, 10^8 m³ a year: it fell from 1899 on (Cobb 1978). */
static const double nile[] = {1120, 1160, 963, 1210, 1160, 1160, 813, 1230, 1370, 1140, 995, 935, 1110, 994, 1020, 960,
    1180, 799, 958, 1140, 1100, 1210, 1150, 1250, 1260, 1220, 1030, 1100, 774, 840, 874, 694, 940, 833, 701, 916, 692,
    1020, 1050, 969, 831, 726, 456, 824, 702, 1120, 1100, 832, 764, 821, 768, 845, 864, 862, 698, 845, 744, 796, 1040,
    759, 781, 865, 845, 944, 984, 897, 822, 1010, 771, 676, 649, 846, 812, 742, 801, 1040, 860, 874, 848, 890, 744, 749,
    838, 1050, 918, 986, 797, 923, 975, 815, 1020, 906, 901, 1170, 912, 746, 919, 718, 714, 740};

static void test_nile(void **state)
{
    double most = 0;
    size_t at = 0, n = COUNT(nile);
    for (size_t t = 1; t < n; t++) { /* the definition: signs of all differences across t */
        double sum = 0;
        for (size_t i = 0; i < t; i++)
            for (size_t j = t; j < n; j++)
                sum += order_of(nile[i], nile[j]);
        if (fabs(sum) > most) {
            most = fabs(sum);
            at = t;
        }
    }
    struct stat_change c = stat_pettitt(nile, n), all[4];
    assert_int_equal(1871 + c.at, 1899);
    assert_int_equal(c.at, at);
    assert_near(c.p, 2 * exp(-6 * most * most / (1e6 + 1e4)), 1e-15);
    assert_int_equal(stat_changes(nile, n, 8, 0.05, all, 4), 1);
    assert_int_equal(all[0].at, 28);
}

static void test_changes(void **state)
{
    uint64_t seed = test_seed(29);
    double v[300];
    struct stat_change found[8];
    int claimed = 0, more = 0;
    for (int round = 0; round < 200; round++) {
        for (size_t i = 0; i < 300; i++)
            v[i] = draw_normal(&seed);
        claimed += stat_changes(v, 300, 8, 0.05, found, 8) > 0;
        for (size_t i = 0; i < 300; i++)
            v[i] += i >= 100 && i < 200 ? 5 : 0;
        size_t n = stat_changes(v, 300, 8, 0.05, found, 8), exact = 0;
        assert_true(n >= 2);
        more += n > 2;
        for (size_t i = 0; i < n; i++)
            exact += (found[i].at >= 98 && found[i].at <= 102) || (found[i].at >= 198 && found[i].at <= 202);
        assert_int_equal(exact, 2);
    }
    print_message("changes where there are none: %d, more than there are: %d, of 200\n", claimed, more);
    assert_true(claimed <= 16 && more <= 16);
    for (size_t i = 0; i < 300; i++)
        v[i] = 3;
    assert_int_equal(stat_changes(v, 300, 8, 0.05, found, 8), 0);
    assert_int_equal(stat_changes(v, 15, 8, 0.05, found, 8), 0);
    assert_int_equal(stat_changes(v, 0, 8, 0.05, found, 8), 0);
}

/* ---- multiple tests ---- */

/* The worked example of Benjamini & Hochberg 1995: of 15 p-values they claim four at 0.05, Bonferroni three. */
static void test_many(void **state)
{
    const double p[] = {
        .0001, .0004, .0019, .0095, .0201, .0278, .0298, .0344, .0459, .3240, .4262, .5719, .6528, .7590, 1.000};
    double bh[15], holm[15];
    memcpy(bh, p, sizeof p);
    memcpy(holm, p, sizeof p);
    stat_benjamini_hochberg(bh, 15);
    stat_holm(holm, 15);
    for (size_t i = 0; i < 15; i++) {
        assert_int_equal(bh[i] <= 0.05, i < 4);
        assert_int_equal(holm[i] <= 0.05, i < 3);
        assert_true(bh[i] >= p[i] && holm[i] >= bh[i] && holm[i] <= 1);
    }
    assert_near(bh[3], .0095 * 15 / 4, 1e-12);
    assert_near(holm[2], .0019 * 13, 1e-12);
    double shuffled[] = {.04, .01, .03}; /* 0.03 for the first, then 0.06, and never less than the one before */
    stat_holm(shuffled, 3);
    assert_near(shuffled[1], .03, 1e-12);
    assert_near(shuffled[2], .06, 1e-12);
    assert_near(shuffled[0], .06, 1e-12);
    stat_holm(NULL, 0);
    stat_benjamini_hochberg(NULL, 0);
}

/* ---- clusters ---- */

static float *measure(const double *x, const double *y, size_t n)
{
    float *d = mem_alloc(n * n * sizeof *d);
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < n; j++)
            d[i * n + j] = (float)hypot(x[i] - x[j], y[i] - y[j]);
    return d;
}

/* Ruspini's 75 points (1970): four clusters of 20, 23, 17 and 15, with a mean silhouette of 0.738 (Rousseeuw 1987). */
static void test_ruspini(void **state)
{
    const double x[] = {4, 5, 10, 9, 13, 13, 12, 15, 18, 19, 22, 27, 28, 24, 27, 28, 30, 31, 32, 36, 28, 32, 35, 33, 38,
        41, 38, 38, 32, 34, 44, 44, 44, 46, 47, 49, 50, 53, 52, 55, 54, 60, 63, 86, 85, 85, 78, 74, 97, 98, 98, 99, 99,
        101, 108, 110, 108, 111, 115, 117, 70, 77, 83, 61, 69, 78, 66, 58, 64, 69, 66, 61, 76, 72, 64};
    const double y[] = {53, 63, 59, 77, 49, 69, 88, 75, 61, 65, 74, 72, 76, 58, 55, 60, 52, 60, 61, 72, 147, 149, 153,
        154, 151, 150, 145, 143, 143, 141, 156, 149, 143, 142, 149, 152, 142, 144, 152, 155, 124, 136, 139, 132, 115,
        96, 94, 96, 122, 116, 124, 119, 128, 115, 111, 111, 116, 126, 117, 115, 4, 12, 21, 15, 15, 16, 18, 13, 20, 21,
        23, 25, 27, 31, 30};
    static const size_t sizes[] = {20, 23, 17, 15};
    uint8_t of[75];
    struct stat_clusters c;
    float *d = measure(x, y, 75);
    stat_medoids(d, 75, 8, 3, &c, of);
    assert_int_equal(c.k, 4);
    assert_near(c.silhouette, 0.7377, 5e-4);
    for (size_t begin = 0, k = 0; k < 4; begin += sizes[k++])
        for (size_t i = begin; i < begin + sizes[k]; i++)
            assert_int_equal(of[i], of[begin]);
    stat_medoids_k(d, 75, 4, &c, of);
    assert_near(c.silhouette, 0.7377, 5e-4);
    free(d);
}

/* Checks that no choice of two members has a smaller sum of distances than the one found by swapping; few points, so
 * all can be tried. */
static void test_medoids_are_best(void **state)
{
    uint64_t seed = test_seed(31);
    int best_found = 0;
    for (int round = 0; round < 50; round++) {
        double x[14], y[14], least = INFINITY, found = 0;
        uint8_t of[14];
        struct stat_clusters c;
        for (size_t i = 0; i < 14; i++) {
            x[i] = draw_normal(&seed) + (i % 2 ? 6 : 0);
            y[i] = draw_normal(&seed);
        }
        float *d = measure(x, y, 14);
        stat_medoids_k(d, 14, 2, &c, of);
        for (size_t i = 0; i < 14; i++)
            found += fmin(d[c.medoid[0] * 14 + i], d[c.medoid[1] * 14 + i]);
        for (size_t a = 0; a < 14; a++)
            for (size_t b = 0; b < a; b++) {
                double sum = 0;
                for (size_t i = 0; i < 14; i++)
                    sum += fmin(d[a * 14 + i], d[b * 14 + i]);
                least = fmin(least, sum);
            }
        best_found += found <= least + 1e-4;
        free(d);
    }
    assert_int_equal(best_found, 50);
}

static void test_few_things(void **state)
{
    const float none[1] = {0}, two[4] = {0, 1, 1, 0};
    uint8_t of[2] = {9, 9};
    struct stat_clusters c;
    stat_medoids(none, 0, 8, 1, &c, of);
    assert_int_equal(c.k, 0);
    stat_medoids(none, 1, 8, 1, &c, of);
    assert_int_equal(c.k, 0);
    stat_medoids(two, 2, 8, 2, &c, of);
    assert_int_equal(c.k, 0);
    assert_int_equal(of[1], 0);
    const float same[9] = {0};
    uint8_t of_same[3];
    stat_medoids(same, 3, 8, 1, &c, of_same);
    assert_near(c.silhouette, 0, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sort),
        cmocka_unit_test(test_quantiles),
        cmocka_unit_test(test_centre),
        cmocka_unit_test(test_tails),
        cmocka_unit_test(test_over),
        cmocka_unit_test(test_published_ranks),
        cmocka_unit_test(test_exact_ranks),
        cmocka_unit_test(test_ranks_by_definition),
        cmocka_unit_test(test_normal_ranks),
        cmocka_unit_test(test_shift_by_definition),
        cmocka_unit_test(test_intervals_hold),
        cmocka_unit_test(test_bootstrap_by_definition),
        cmocka_unit_test(test_gaps),
        cmocka_unit_test(test_nile),
        cmocka_unit_test(test_changes),
        cmocka_unit_test(test_many),
        cmocka_unit_test(test_ruspini),
        cmocka_unit_test(test_medoids_are_best),
        cmocka_unit_test(test_few_things),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
