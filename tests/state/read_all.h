/* SPDX-License-Identifier: MIT */
/* Reads everything that a store of states can tell, and aborts when an answer breaks what state.h promises of any file
 * that opens. */
#ifndef WEFT_TESTS_STATE_READ_ALL_H
#define WEFT_TESTS_STATE_READ_ALL_H

#include "state/state.h"

void read_all_states(const struct state_store *);

#endif
