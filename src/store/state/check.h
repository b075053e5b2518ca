/* SPDX-License-Identifier: MIT */
/* Private to state: validation of a store. Both functions return the defect, or NULL. */
#ifndef WEFT_STATE_CHECK_H
#define WEFT_STATE_CHECK_H

#include "state/reader.h"

/* Checks references between tables, and the small tables completely; fills first[], first_of[] and first_aside[].
 * O(rows + names). Afterwards every function of the public header terminates and stays inside the file. */
const char *state_structure_defect(struct state_chunk *);
/* Checks everything else. */
const char *state_content_defect(const struct state_chunk *);

#endif
