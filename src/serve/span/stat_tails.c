/* SPDX-License-Identifier: MIT */
/* Tails of distributions. */
#include <math.h>

#include "span/statistics.h"

double stat_normal_tail(double z)
{
    return 0.5 * erfc(z / sqrt(2));
}

/* Wraps lgamma without the global variable that it sets. */
static double log_gamma(double x)
{
    int sign;
    return lgamma_r(x, &sign);
}

/* The continued fraction of the incomplete beta function (Abramowitz & Stegun 26.5.8), by Lentz' method. */
static double beta_fraction(double a, double b, double x)
{
    const double tiny = 1e-300;
    double c = 1, d = 1 - (a + b) * x / (a + 1);
    d = 1 / (fabs(d) < tiny ? tiny : d);
    double value = d;
    for (int i = 1; i <= 300; i++) {
        double even = i * (b - i) * x / ((a + 2 * i - 1) * (a + 2 * i));
        double odd = -(a + i) * (a + b + i) * x / ((a + 2 * i) * (a + 2 * i + 1));
        for (int half = 0; half < 2; half++) {
            double step = half ? odd : even;
            d = 1 + step * d;
            d = 1 / (fabs(d) < tiny ? tiny : d);
            c = 1 + step / c;
            c = fabs(c) < tiny ? tiny : c;
            value *= c * d;
        }
        if (fabs(c * d - 1) < 1e-14)
            break;
    }
    return value;
}

/* The regularised incomplete beta function. */
static double beta_part(double a, double b, double x)
{
    if (x <= 0 || x >= 1)
        return x >= 1;
    double front = exp(log_gamma(a + b) - log_gamma(a) - log_gamma(b) + a * log(x) + b * log1p(-x));
    return x < (a + 1) / (a + b + 2) ? front * beta_fraction(a, b, x) / a : 1 - front * beta_fraction(b, a, 1 - x) / b;
}

double stat_t_tail(double t, double degrees)
{
    double half = 0.5 * beta_part(degrees / 2, 0.5, degrees / (degrees + t * t));
    return t >= 0 ? half : 1 - half;
}

/* Limits of the gaps used: those among the largest sixteenth. For Student's t with 3 degrees, the mean gap is a third.
 * LEAN_MEAN is a little larger, since the median and distances of few numbers are inexact. If fewer than LEAN gaps were
 * seen, gaps of that mean fill up the rest. */
enum { GAPS_MOST = 20, GAPS_LEAST = 2, SHARE = 16, LEAN = 12 };
#define LEAN_MEAN 0.36
#define LEAST_MEAN 0.125

double stat_gap_p(const double *v, size_t n, size_t j)
{
    size_t k = (n - j) / SHARE, seen = 0;
    k = k < GAPS_LEAST ? GAPS_LEAST : k > GAPS_MOST ? GAPS_MOST : k;
    double sum = 0;
    for (size_t i = j + 1; i <= j + k && i < n; i++, seen++)
        sum += (double)i * log(v[i - 1] / v[i]);
    double lean = seen < LEAN ? (double)(LEAN - seen) : 0, all = (double)seen + lean;
    double mean = fmax((sum + lean * LEAN_MEAN) / all, LEAST_MEAN);
    double far = (double)j * log(v[j - 1] / v[j]) / mean;
    double p = pow(1 + far / all, -all) * (double)j * (double)(j + 1); /* corrected for j: 1/2, 1/6, 1/12 … of alpha */
    return p < 1 ? p : 1;
}

/* Returns the hypergeometric probability of x. */
static double over_at(double x, double drawn, double marked, double all)
{
    return exp(log_gamma(marked + 1) - log_gamma(x + 1) - log_gamma(marked - x + 1) + log_gamma(all - marked + 1) -
        log_gamma(drawn - x + 1) - log_gamma(all - marked - drawn + x + 1) - log_gamma(all + 1) + log_gamma(drawn + 1) +
        log_gamma(all - drawn + 1));
}

double stat_over(uint64_t hit, uint64_t drawn, uint64_t marked, uint64_t all)
{
    uint64_t most = drawn < marked ? drawn : marked;
    uint64_t least = drawn + marked > all ? drawn + marked - all : 0;
    if (hit <= least || hit > most)
        return hit <= least;
    double n = (double)all, m = (double)marked, d = (double)drawn;
    /* Direction away from the middle, in which terms decrease. */
    bool upwards = (double)hit > d * m / n;
    double x = upwards ? (double)hit : (double)hit - 1, term = over_at(x, d, m, n), sum = 0;
    while (term > 1e-17 * sum) {
        sum += term;
        term *= upwards ? (m - x) * (d - x) / ((x + 1) * (n - m - d + x + 1))
                        : x * (n - m - d + x) / ((m - x + 1) * (d - x + 1));
        x += upwards ? 1 : -1;
    }
    double p = upwards ? sum : 1 - sum;
    return p < 0 ? 0 : p < 1 ? p : 1;
}
