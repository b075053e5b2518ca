/* SPDX-License-Identifier: MIT */
/* Private to state: sums over a row's entries, from its begin to given times. (sums.c) */
#ifndef WEFT_STATE_SUMS_H
#define WEFT_STATE_SUMS_H

#include "state/row.h"

/* TIME: ns of entries in which a thread runs or a CPU is busy. READ, WRITTEN: bytes moved by uses of a file, counted
 * when they end. */
enum sum_of { SUM_TIME = -1, SUM_READ = STATE_WAY_READ, SUM_WRITTEN = STATE_WAY_WRITTEN };
/* Stored sum before a block of the row. */
static inline const int64_t *sum_of_block(const struct state_chunk *s, const struct state_disk_row *r, enum sum_of of,
    uint32_t block)
{
    uint64_t at = r->first_block - s->first_of[r->kind].block + block;
    return &s->sums[s->first_of[r->kind].sum + at * state_block_sums(r->kind) + (of == SUM_WRITTEN)];
}
/* Sums at n (ascending) times, all from the row's first entry on, for TIME before its end. TIME: sets the sums. READ,
 * WRITTEN: adds to each value the increase since the time before, so files that were not used between two times cost
 * nothing there. At most O(n), whatever the length of the row. */
void state_sum_values(const struct state_chunk *, const struct state_disk_row *, enum sum_of, const int64_t *times,
    size_t n, int64_t *values);
/* Number in force at t; 0 before the row's first entry. */
int64_t state_row_value(const struct state_chunk *, const struct state_disk_row *, int64_t t);

#endif
