/* SPDX-License-Identifier: MIT */
/* Private to flow: where threads asked for messages again and again, and were told that there are none. */
#ifndef WEFT_FLOW_ASKS_H
#define WEFT_FLOW_ASKS_H

#include "base/mem.h"
#include "flow/store.h"

struct carry;
struct kernel_record;
struct kernel_tracker;

/* A row's stretch of asking that is not at its end. */
struct asking { int64_t entered, left; struct flow_disk_ask ask; };
struct flow_asks {
    VEC(struct asking) rows;
    VEC(uint8_t) classes;        /* by string number: what a system call of that name asks, + 1; 0 not looked at yet */
    VEC(struct flow_disk_ask) asks;
};
/* For every entry and exit of a system call. */
void flow_asks_add(struct flow_asks *, const struct kernel_record *, const struct kernel_tracker *);
/* The stretches that are not at their end: of `rows`, in this order. */
void flow_asks_carry(
    struct flow_asks *, struct carry *, const struct kernel_tracker *, const int32_t *rows, size_t n_rows);
/* All is in: sorts them by row and time. */
void flow_asks_sort(struct flow_asks *);
void flow_asks_fini(struct flow_asks *);
/* What is wrong with them in an open store, or NULL. */
const char *flow_asks_defect(const struct flow_chunk *);

#endif
