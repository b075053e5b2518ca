/* SPDX-License-Identifier: MIT */
/* Private to flow: threads that asked for messages again and again without success. */
#ifndef WEFT_FLOW_ASKS_H
#define WEFT_FLOW_ASKS_H

#include "base/mem.h"
#include "flow/store.h"

struct carry;
struct kernel_record;
struct kernel_tracker;

/* Unfinished stretch of a row's asking. */
struct asking { int64_t entered, left; struct flow_disk_ask ask; };
struct flow_asks {
    VEC(struct asking) rows;
    VEC(uint8_t) classes;        /* class + 1 of the system call with that name, by string number; 0: none yet */
    VEC(struct flow_disk_ask) asks;
};
/* Call it for every entry and exit of a system call. */
void flow_asks_add(struct flow_asks *, const struct kernel_record *, const struct kernel_tracker *);
/* Visits the unfinished stretches of `rows`, in this order. */
void flow_asks_carry(
    struct flow_asks *, struct carry *, const struct kernel_tracker *, const int32_t *rows, size_t n_rows);
/* Sorts all of them by row and time, at the end. */
void flow_asks_sort(struct flow_asks *);
void flow_asks_fini(struct flow_asks *);
/* Returns the defect of the asks in an open store, or NULL. */
const char *flow_asks_defect(const struct flow_chunk *);

#endif
