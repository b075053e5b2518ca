/* Answers for qsort and bsearch. */
#ifndef WEFT_BASE_ORDER_H
#define WEFT_BASE_ORDER_H

#include <stdint.h>
#include <string.h>

/* < 0, 0 or > 0; of numbers of one type. */
#define order_of(a, b) (((a) > (b)) - ((a) < (b)))
/* Of an array of uint64_t. */
static inline int order_u64(const void *a, const void *b)
{
    return order_of(*(const uint64_t *)a, *(const uint64_t *)b);
}
/* Of an array of strings. */
static inline int order_strings(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }

#endif
