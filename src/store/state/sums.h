/* SPDX-License-Identifier: MIT */
/* Private to state: sums over a row's entries, from its begin up to given times. (sums.c) */
#ifndef WEFT_STATE_SUMS_H
#define WEFT_STATE_SUMS_H

#include "state/row.h"

/* TIME: ns that entries last in which a thread runs or a CPU is busy. READ, WRITTEN: bytes that uses of a file moved,
 * when they end. */
enum sum_of { SUM_TIME = -1, SUM_READ = STATE_WAY_READ, SUM_WRITTEN = STATE_WAY_WRITTEN };
/* Where the store has the sum before a block of the row. */
static inline const int64_t *sum_of_block(const struct state_chunk *s, const struct state_disk_row *r, enum sum_of of,
    uint32_t block)
{
    uint64_t at = r->first_block - s->first_of[r->kind].block + block;
    return &s->sums[s->first_of[r->kind].sum + at * state_block_sums(r->kind) + (of == SUM_WRITTEN)];
}
/* At n (ascending) times, all from the row's first entry on, those of TIME before its end. TIME: sets the sums. READ,
 * WRITTEN: adds to each value how much the sum grew since the time before, so that files that were not used between two
 * times cost nothing there. O(n) at most, whatever the length of the row. */
void sum_values(const struct state_chunk *, const struct state_disk_row *, enum sum_of, const int64_t *times, size_t n,
    int64_t *values);
/* Rows of threads and CPUs: the sums of TIME at any (ascending) times. */
void sum_cpu_time(const struct state_chunk *, const struct state_disk_row *, const int64_t *times, size_t n,
    int64_t *values);
/* The number in force at t; 0 before the row's first entry. */
int64_t row_value(const struct state_chunk *, const struct state_disk_row *, int64_t t);

#endif
