/* SPDX-License-Identifier: MIT */
/* Whether two stores of states say the same through everything that can be asked of them. Fails the test where they
 * differ. */
#ifndef WEFT_TESTS_STATE_SAME_H
#define WEFT_TESTS_STATE_SAME_H

#include "../base/test.h"
#include "state/state.h"

struct pair {
    const struct state_store *a, *b; /* of one pass, of the list */
    const char *where;
    int64_t begin, end;              /* the span, which both functions find */
    uint64_t *dice;
};
/* Rows of all kinds, counters, files. */
void same_rows_all(struct pair *);
/* Latencies, events, losses. */
void same_tables(struct pair *);

bool same_name(const char *a, const char *b); /* both may be NULL */
/* Numbers in [0, below) */
uint64_t runs_dice(uint64_t *state, uint64_t below);

#endif
