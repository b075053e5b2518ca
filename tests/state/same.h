/* SPDX-License-Identifier: MIT */
/* Comparison of two stores of states through all their queries. Fails the test if they differ. */
#ifndef WEFT_TESTS_STATE_SAME_H
#define WEFT_TESTS_STATE_SAME_H

#include "../base/test.h"
#include "state/state.h"

struct pair {
    const struct state_store *a, *b; /* store of one pass, store of the list */
    const char *where;
    int64_t begin, end;              /* span, set by both functions */
    uint64_t *dice;
};
/* Compares rows of all kinds, counters, files. */
void same_rows_all(struct pair *);
/* Compares latencies, events, losses. */
void same_tables(struct pair *);

bool same_name(const char *a, const char *b); /* accepts NULL for both */
/* returns a number in [0, below) */
uint64_t runs_dice(uint64_t *state, uint64_t below);

#endif
