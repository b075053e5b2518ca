/* SPDX-License-Identifier: MIT */
/* Comparisons for qsort and bsearch. */
#ifndef WEFT_BASE_ORDER_H
#define WEFT_BASE_ORDER_H

#include <stdint.h>
#include <string.h>

/* < 0, 0 or > 0, for numbers of one type. */
#define order_of(a, b) (((a) > (b)) - ((a) < (b)))
/* Compares items of an array of uint64_t. */
static inline int order_u64(const void *a, const void *b)
{
    return order_of(*(const uint64_t *)a, *(const uint64_t *)b);
}
/* Compares items of an array of strings. */
static inline int order_strings(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }

/* Sorts at most ORDER_FEW items of `size` bytes: place[i] is the position of the i-th. Stable. Insertion sort, which is
 * faster than qsort for so few. */
enum { ORDER_FEW = 32 };
static inline void order_few(
    uint8_t *place, const void *v, size_t n, size_t size, int (*by)(const void *, const void *))
{
    const char *items = v;
    for (size_t i = 0; i < n; i++) {
        size_t at = i;
        for (; at > 0 && by(items + place[at - 1] * size, items + i * size) > 0; at--)
            place[at] = place[at - 1];
        place[at] = (uint8_t)i;
    }
}

#endif
