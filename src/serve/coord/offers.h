/* SPDX-License-Identifier: MIT */
/* Private to coord: which outputs servers offered last, so that those of one that is away stay in lists, as derived
 * ones do that only it has. Thread-safe. */
#ifndef WEFT_COORD_OFFERS_H
#define WEFT_COORD_OFFERS_H

#include "coord/call.h"

struct offers *offers_new(void);
void offers_free(struct offers *);
/* All that the server offers of the experiment at hand. */
void offers_note(struct coord_call *, const struct node *, struct slice list);
/* One that it offers from now on, or, by its id, no more. */
void offers_add(struct coord_call *, const struct node *, struct slice output);
void offers_remove(struct coord_call *, const struct node *, const char *id);
/* What it offered last: into the arena. Returns how many. */
size_t offers_get(struct coord_call *, const struct node *, struct slice **out);
/* The one with that id; at NULL: none. */
struct slice offers_find(struct coord_call *, const struct node *, const char *id);

#endif
