/* Private to views: all calls of user space whose entry and exit were seen, in order of their begins on the reference
 * clock. */
#ifndef WEFT_VIEWS_CALL_ORDER_H
#define WEFT_VIEWS_CALL_ORDER_H

#include "views/stacks.h"

/* A row of some trace, and how many of its calls come before the place at hand. */
struct call_row {
    const struct stacks_trace *p; size_t row, whole, next;
    int64_t begin;           /* of call `next`; INT64_MAX: there is none */
};
/* A place in that order; at equal times row by row. */
struct call_order {
    const struct views *x;
    struct call_row *rows; size_t n_rows;
    size_t n;                            /* calls */
    size_t place;                        /* SIZE_MAX: none yet */
    size_t at;                           /* the row of the call at the place */
};
void call_order_init(struct call_order *, struct views *, struct arena *);
/* Goes to the call at a place that there is, with its times by its host's clock. O(rows) next to the one before; else
 * O(log time · rows · log calls). */
const struct call_row *call_order_at(struct call_order *, size_t place, struct stack_call *out);

#endif
