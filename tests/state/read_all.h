/* SPDX-License-Identifier: MIT */
/* Reads all contents of a store of states, and aborts if an answer violates the guarantees of state.h for any file that
 * opens. */
#ifndef WEFT_TESTS_STATE_READ_ALL_H
#define WEFT_TESTS_STATE_READ_ALL_H

#include "state/state.h"

void read_all_states(const struct state_store *);

#endif
