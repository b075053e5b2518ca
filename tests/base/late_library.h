/* SPDX-License-Identifier: MIT */
/* What test_late calls of a library that is loaded when it is called. */
#ifndef WEFT_TEST_LATE_LIBRARY_H
#define WEFT_TEST_LATE_LIBRARY_H

struct late_large {
    long v[9];
};
/* Each argument times its place, from 1: six integers and eight reals in registers, the others on the stack. */
double late_sum(long, long, long, long, long, long, long, long, double, double, double, double, double, double, double,
    double, double);
double late_any(int n, ...);           /* the same of n reals */
struct late_large late_nine(long);     /* returned through memory; each its place times the argument */

/* late_calls.c: the calls, in an archive of their own. */
double call_sum(void), call_any(void);
struct late_large call_nine(long);

#endif
