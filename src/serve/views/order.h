/* SPDX-License-Identifier: MIT */
/* Private to views: items of several rows in one order: by time, at equal times row by row. */
#ifndef WEFT_VIEWS_ORDER_H
#define WEFT_VIEWS_ORDER_H

#include <stddef.h>
#include <stdint.h>

struct order_row {
    size_t n;                            /* number of items, set by the caller */
    size_t next;                         /* first item at or after the current position */
    int64_t time;                        /* time of that item; INT64_MAX: none */
};
/* The caller sets all members except the last two. */
struct row_order {
    void *arg;
    int64_t (*time)(void *arg, size_t row, size_t item); /* ascending in each row */
    size_t (*before)(void *arg, size_t row, int64_t t); /* number of items of the row with time < t */
    struct order_row *rows; size_t n_rows;
    size_t row;                          /* row of the current item: item rows[row].next */
    size_t position;                     /* position of that item in the order, plus 1; 0: no current item */
};
/* Number of items. */
size_t order_size(const struct row_order *);
/* Goes to the item at a valid position and returns its row; `item`: its number there. O(rows) for a position next to
 * the current one; else O(log time · rows · cost of before()). */
size_t order_at(struct row_order *, size_t position, size_t *item);

#endif
