/* Private to state: whether a store makes sense. Both return what is wrong, or NULL. */
#ifndef WEFT_STATE_CHECK_H
#define WEFT_STATE_CHECK_H

#include "state/reader.h"

/* What leads from one table to another, and the small tables whole; fills first[], first_of[] and first_aside[]. Costs
 * O(rows + names). What it lets through can be read through the public header without reading outside the file and
 * without end. */
const char *state_structure_defect(struct state_store *);
/* All the rest. */
const char *state_content_defect(const struct state_store *);

#endif
