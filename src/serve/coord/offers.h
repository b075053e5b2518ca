/* SPDX-License-Identifier: MIT */
/* Private to coord: outputs last offered by servers. Those of a server that is away stay in lists, including derived
 * ones that only it has. Thread-safe. */
#ifndef WEFT_COORD_OFFERS_H
#define WEFT_COORD_OFFERS_H

#include "coord/call.h"

struct offers *offers_new(void);
void offers_free(struct offers *);
/* Notes all outputs that the server offers of the request's experiment. */
void offers_note(struct coord_call *, const struct node *, struct slice list);
/* Add one offered output, or remove one by its id. */
void offers_add(struct coord_call *, const struct node *, struct slice output);
void offers_remove(struct coord_call *, const struct node *, const char *id);
/* Lists the last offered outputs in the arena. Returns their number. */
size_t offers_get(struct coord_call *, const struct node *, struct slice **out);
/* Returns the output with that id; at NULL: none. */
struct slice offers_find(struct coord_call *, const struct node *, const char *id);

#endif
