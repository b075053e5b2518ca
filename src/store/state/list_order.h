/* SPDX-License-Identifier: MIT */
/* Private to state: rows of chunks, in the order in which they are joined into the host's. */
#ifndef WEFT_STATE_LIST_ORDER_H
#define WEFT_STATE_LIST_ORDER_H

#include "base/mem.h"
#include "state/store.h"

/* Row of a chunk. row: NULL for a thread that moved bytes through files only in this chunk. */
struct list_item {
    uint32_t part, at;           /* at: index among its kind in the chunk */
    const struct state_disk_row *row;
    const char *name;
    int32_t number, thread;      /* numbers of the host */
    uint32_t nth;                /* index among those of the same name and thread in a chunk */
    uint64_t key;                /* set by the functions below */
};
typedef VEC(struct list_item) list_items;

/* Sorts items by number. Items are given part by part; those of the same number stay in order of time. O(n) */
void state_list_order_by_number(list_items *);
/* Sorts items by name, thread and nth, which it sets. O(n), plus sorting the distinct names. */
void state_list_order_by_name(const struct state_store *, list_items *);
/* Returns whether both are the same row of the host, by the order they are sorted in. */
static inline bool list_same_row(const struct list_item *a, const struct list_item *b)
{
    return a->key == b->key && a->nth == b->nth;
}

#endif
