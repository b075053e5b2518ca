/* SPDX-License-Identifier: MIT */
/* Private to views: items of several rows in one order: by time, at equal times row by row. */
#ifndef WEFT_VIEWS_ORDER_H
#define WEFT_VIEWS_ORDER_H

#include <stddef.h>
#include <stdint.h>

struct order_row {
    size_t n;                            /* items, given by who makes the order */
    size_t next;                         /* the first that does not come before the position at hand */
    int64_t time;                        /* its time; INT64_MAX: there is none */
};
/* All but the last two members are given by who makes it. */
struct row_order {
    void *arg;
    int64_t (*time)(void *arg, size_t row, size_t item); /* ascending in each row */
    size_t (*before)(void *arg, size_t row, int64_t t); /* how many items of the row have a time below t */
    struct order_row *rows; size_t n_rows;
    size_t row;                          /* the row of the item at hand: item rows[row].next */
    size_t position;                     /* of that item in the order, plus 1; 0: none is at hand yet */
};
/* Number of items. */
size_t order_size(const struct row_order *);
/* Goes to the item at a position that there is and returns its row; `item`: its number there. O(rows) next to the one
 * before; else O(log time · rows · what before() takes). */
size_t order_at(struct row_order *, size_t position, size_t *item);

#endif
