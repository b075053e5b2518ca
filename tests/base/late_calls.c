/* SPDX-License-Identifier: MIT */
#include "late_library.h"

double call_sum(void)
{
    return late_sum(1, 2, 3, 4, 5, 6, 7, 8, 9.5, 10.5, 11.5, 12.5, 13.5, 14.5, 15.5, 16.5, 17.5);
}

double call_any(void)
{
    return late_any(10, 1.5, 2.5, 3.5, 4.5, 5.5, 6.5, 7.5, 8.5, 9.5, 10.5);
}

struct late_large call_nine(long x)
{
    return late_nine(x);
}
