/* SPDX-License-Identifier: MIT */
/* Private to coord: numbering of a tree's roots by the count that each stands for, largest first. It covers all
 * servers; each server has its own numbers. A root's metadata have group, count and first (docs/tsp.md). */
#ifndef WEFT_COORD_NUMBERING_H
#define WEFT_COORD_NUMBERING_H

#include "coord/times.h"

/* Numbered root. own: its number on its server. `entry` and the entries `below` it, in the server's order, live as long
 * as the gather. */
struct numbered {
    const struct node *node;
    size_t part;
    int64_t own, count, first;
    struct slice entry;
    struct slice *below;
    size_t n_below;
};
/* Root i has number i + 1. */
struct group_numbers { struct numbered *v; size_t n; };

/* Returns whether an entry of a tree is a root. */
bool coord_entry_is_root(struct slice entry);
/* Numbers the roots of the trees. False: there is no root, some root has no such metadata, or an entry's parent
 * is not before it. */
bool coord_numbering_take(const struct coord_answers *, struct group_numbers *);
/* Asks all members for a data tree and numbers its roots. output: its id, as a JSON string. False: the client is
 * gone. */
bool coord_numbering_ask(struct coord_call *, struct slice output, struct group_numbers *);
/* Returns the number for clients of a server's own number; 0: no such root. */
int64_t coord_number_shown(const struct group_numbers *, const struct node *, int64_t own);
/* Translates an expression for clients' numbers (and empty cells) into one for the server's numbers, in the arena.
 * NULL: nothing fits. */
const char *coord_numbers_asked(const struct group_numbers *, struct arena *, const struct node *, const char *pattern);
void coord_put_number_metadata(struct json *, const struct node *, int64_t number, struct slice metadata);

#endif
