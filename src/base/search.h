/* SPDX-License-Identifier: MIT */
/* Binary search, written once: over an array, columns, or any expression of an index. */
#ifndef WEFT_BASE_SEARCH_H
#define WEFT_BASE_SEARCH_H

#include <stddef.h>

/* First i in [from, to) for which the condition holds; `to` if there is none (`from` if from > to). The condition is an
 * expression of i, and monotonic: once true, it stays true. Evaluated O(log n) times:
 *
 *
 *     at = search_first(i, 0, n, rows[i].begin >= time);      the first that begins at or after `time`
 *     after = search_first(i, 0, n, rows[i].begin > time);    after - 1 is the last that begins by `time`, if after > 0
 *
 * */
#define search_first(i, from, to, condition) \
    ({ \
        size_t low_ = (from), high_ = (to); \
        while (low_ < high_) { \
            size_t i = low_ + (high_ - low_) / 2; \
            if (condition) \
                high_ = i; \
            else \
                low_ = i + 1; \
        } \
        low_; \
    })

#endif
