/* SPDX-License-Identifier: MIT */
/* Private to state: whether a store makes sense. Both return what is wrong, or NULL. */
#ifndef WEFT_STATE_CHECK_H
#define WEFT_STATE_CHECK_H

#include "state/reader.h"

/* What leads from one table to another, and the small tables whole; fills first[], first_of[] and first_aside[]. Costs
 * O(rows + names). Of what it lets through every function of the public header ends, and stays inside the file. */
const char *state_structure_defect(struct state_chunk *);
/* All the rest. */
const char *state_content_defect(const struct state_chunk *);

#endif
