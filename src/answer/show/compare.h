/* SPDX-License-Identifier: MIT */
/* Private to show: what differs between two paths. */
#ifndef WEFT_SHOW_COMPARE_H
#define WEFT_SHOW_COMPARE_H

#include "show/parts.h"
#include "show/show.h"

struct text;

/* What threads of one name on one machine did in one state, or messages between two machines, in both paths. */
struct show_difference {
    struct show_kind kind; /* that of the path in which it took longer */
    int64_t ns[2];         /* in a, in b */
    int32_t tid;           /* of the one thread that did it in both; else -1 */
};
struct show_differences {
    const struct show_difference *v;
    size_t n;
    int64_t length[2];
};

/* Largest difference first; of those without one, the longest. In the arena. */
struct show_differences show_compare(const struct show_side *a, const struct show_side *b, struct arena *);
/* "27.00 ms longer (88.49 → 115.5 ms): db waited for disk vda +24.00 ms · …" */
void show_compare_sentence(const struct show_differences *, struct text *);

#endif
