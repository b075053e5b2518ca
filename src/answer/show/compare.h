/* SPDX-License-Identifier: MIT */
/* Private to show: comparison of two paths. */
#ifndef WEFT_SHOW_COMPARE_H
#define WEFT_SHOW_COMPARE_H

#include "show/parts.h"
#include "show/show.h"

struct text;

/* Difference of the time of threads of one name on one machine in one state, or of messages between two machines, in
 * two paths. */
struct show_difference {
    struct show_kind kind; /* kind in the path in which it took longer */
    int64_t ns[2];         /* time in a, in b */
    int32_t tid;           /* thread, if it is the only one in both; else -1 */
};
struct show_differences {
    const struct show_difference *v;
    size_t n;
    int64_t length[2];
};

/* Differences, the largest first; without a difference, the longest first. In the arena. */
struct show_differences show_compare(const struct show_side *a, const struct show_side *b, struct arena *);
/* "27.00 ms longer (88.49 → 115.5 ms): db waited for disk vda +24.00 ms · …" */
void show_compare_sentence(const struct show_differences *, struct text *);

#endif
