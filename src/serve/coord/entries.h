/* SPDX-License-Identifier: MIT */
/* Private to coord: entries: their ids for clients, and their owners. */
#ifndef WEFT_COORD_ENTRIES_H
#define WEFT_COORD_ENTRIES_H

#include "coord/call.h"

/* Returns the id for clients; -1 and 0 stay as they are. */
int64_t coord_id(struct coord_call *, const struct node *, int64_t own);
/* Copies an object; translates times, and the members named by `ids`, which are ids. */
void coord_put_with_ids(struct coord_call *, struct json *, const struct node *, struct slice object,
    const char *const *ids);

/* Requested items by owner. Unknown ids are dropped after the output's trees were searched for them. */
struct items { json_t **own; bool given; }; /* own: by index among the members; borrowed from the call */
/* Returns NULL, or the error in the request. */
const char *coord_items_split(struct coord_call *, struct items *);
/* Returns the member with the entry, and the entry's own id; NULL: unknown. Of several pieces, returns the one with the
 * requested time, if it is up. */
struct node *coord_entry_owner(struct coord_call *, int64_t id, int64_t *own);
/* Returns the owner of the entry that a question names; NULL: none known. */
struct node *coord_question_owner(struct coord_call *, json_t *question, int64_t *own);
/* Asks all members for the tree of the request's output; folds pieces. False: the client is gone. */
bool coord_trees_ask(struct coord_answers *, struct coord_call *);

#endif
