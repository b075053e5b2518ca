/* SPDX-License-Identifier: MIT */
/* Stores of a cut trace, for tests: a file for each chunk. */
#ifndef WEFT_TESTS_STATE_RUNS_H
#define WEFT_TESTS_STATE_RUNS_H

#include "cuts.h"
#include "state/state.h"

enum { RUNS_MOST_CHUNKS = 64 };
struct run {
    struct state_builder *builder;
    struct cuts cuts;            /* chunks, with their paths */
    char paths[RUNS_MOST_CHUNKS][48];
    size_t n;
};
void run_build(struct run *, const struct cuts_trace *, const int64_t *at, size_t n);
/* Opens all chunks but `without`; SIZE_MAX: all. */
struct state_store *run_open(const struct run *, size_t without);
void run_free(struct run *);

#endif
