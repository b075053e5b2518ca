/* SPDX-License-Identifier: MIT */
#include "late_library.h"

#include <stdarg.h>

#define SHOWN __attribute__((visibility("default")))

SHOWN double late_sum(long a, long b, long c, long d, long e, long f, long g, long h, double i, double j, double k,
    double l, double m, double n, double o, double p, double q)
{
    const double v[] = {(double)a, (double)b, (double)c, (double)d, (double)e, (double)f, (double)g, (double)h, i, j, k,
        l, m, n, o, p, q};
    double sum = 0;
    for (int at = 0; at < 17; at++)
        sum += v[at] * (at + 1);
    return sum;
}

SHOWN double late_any(int n, ...)
{
    double sum = 0;
    va_list all;
    va_start(all, n);
    for (int at = 0; at < n; at++)
        sum += va_arg(all, double) * (at + 1);
    va_end(all);
    return sum;
}

SHOWN struct late_large late_nine(long x)
{
    struct late_large out;
    for (int at = 0; at < 9; at++)
        out.v[at] = x * (at + 1);
    return out;
}
