/* SPDX-License-Identifier: MIT */
/* Private to state: interrupts and softirqs over all CPUs (kinds IRQ_LINE and SOFTIRQ_VECTOR), computed from the rows
 * of single CPUs, which the file has. If several CPUs handle it, a line shows the one that began last; if they began in
 * the same ns, the one with the highest number. If none handles it, the line is unknown as long as it is unknown on one
 * of its CPUs. */
#ifndef WEFT_STATE_LINES_H
#define WEFT_STATE_LINES_H

#include "state/store.h"

static inline bool state_is_line(int kind) { return kind == STATE_IRQ_LINE || kind == STATE_SOFTIRQ_VECTOR; }

void state_lines_init(struct state_store *);
void state_lines_fini(struct state_store *);

/* Functions of state.h for lines; times of `at` and `range` are within the span. The cost grows with the number of
 * CPUs, not with the length of the trace: samples cost as much as those of the rows of all CPUs. */
size_t state_line_rows(const struct state_store *, int kind);
void state_line_row(const struct state_store *, int kind, size_t i, struct state_row *out);
int64_t state_line_find(const struct state_store *, int kind, int32_t number);
void state_line_at(const struct state_store *, int kind, size_t row, int64_t t, struct state_interval *out);
size_t state_line_range(const struct state_store *, int kind, size_t row, int64_t begin, int64_t end,
    struct state_interval *out, size_t max);
size_t state_line_sample(const struct state_store *, int kind, size_t row, const int64_t *times, size_t n,
    struct state_interval *out);

#endif
