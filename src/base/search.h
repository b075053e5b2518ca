/* SPDX-License-Identifier: MIT */
/* Bisection, written once: rows may be an array, columns, or whatever an expression can ask by number. */
#ifndef WEFT_BASE_SEARCH_H
#define WEFT_BASE_SEARCH_H

#include <stddef.h>

/* The first number i of [from, to) that the condition holds for; `to` when it holds for none (`from` when from > to).
 * The condition is an expression of i; where it holds for a number it holds for all later ones. Asked O(log n) times:
 *
 *     at = search_first(i, 0, n, rows[i].begin >= time);      the first that begins at or after `time`
 *     after = search_first(i, 0, n, rows[i].begin > time);    after - 1 is the last that begins by `time`, if after > 0
 */
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
