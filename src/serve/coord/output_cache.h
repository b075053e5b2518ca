/* SPDX-License-Identifier: MIT */
/* Private to coord: outputs last offered by servers. Outputs of a server that is away stay in lists, also derived
 * ones that only it has. Thread-safe. */
#ifndef WEFT_COORD_OUTPUT_CACHE_H
#define WEFT_COORD_OUTPUT_CACHE_H

#include "coord/call.h"

struct output_cache *coord_output_cache_new(void);
void coord_output_cache_free(struct output_cache *);
/* Notes all outputs that the server offers of the request's experiment. */
void coord_output_cache_note(struct coord_call *, const struct node *, struct slice list);
/* Add one offered output, or remove one by its id. */
void coord_output_cache_add(struct coord_call *, const struct node *, struct slice output);
void coord_output_cache_remove(struct coord_call *, const struct node *, const char *id);
/* Lists the last offered outputs in the arena. Returns their number. */
size_t coord_output_cache_get(struct coord_call *, const struct node *, struct slice **out);
/* Returns the output with that id; at NULL: none. */
struct slice coord_output_cache_find(struct coord_call *, const struct node *, const char *id);

#endif
