/* SPDX-License-Identifier: MIT */
/* Private to coord: cache of the columns, or trees, that servers report for an output. Thread-safe. */
#ifndef WEFT_COORD_MODEL_CACHE_H
#define WEFT_COORD_MODEL_CACHE_H

#include "coord/call.h"

struct models *coord_models_new(void);
void coord_models_free(struct models *); /* NULL-safe */
/* Return, or note, a member's model of the request's output. The result is a copy in the arena; at NULL: none. */
struct slice coord_model_cached(struct coord_call *, const struct node *);
void coord_model_note(struct coord_call *, const struct node *, struct slice model);

#endif
