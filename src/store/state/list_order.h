/* SPDX-License-Identifier: MIT */
/* Private to state: rows of chunks on their way to the host's, in the order in which those are joined. */
#ifndef WEFT_STATE_LIST_ORDER_H
#define WEFT_STATE_LIST_ORDER_H

#include "base/mem.h"
#include "state/store.h"

/* A row of a chunk. row: NULL: of a thread that moved bytes through files, and through nothing else in this chunk. */
struct list_item {
    uint32_t part, at;           /* at: which row of its kind in the chunk */
    const struct state_disk_row *row;
    const char *name;
    int32_t number, thread;      /* of the host */
    uint32_t nth;                /* of those of one name and thread in a chunk */
    uint64_t key;                /* set by the functions below */
};
typedef VEC(struct list_item) list_items;

/* Items as they were taken, part by part, are put in order of number. Those of one number stay in order of time. O(n)
 */
void list_order_by_number(list_items *);
/* The same in order of name, thread and nth, which is set. O(n), and the sorting of the names that differ. */
void list_order_by_name(const struct state_store *, list_items *);
/* Are they the same row of the host, by the order that they were put in? */
static inline bool list_same_row(const struct list_item *a, const struct list_item *b)
{
    return a->key == b->key && a->nth == b->nth;
}

#endif
