/* SPDX-License-Identifier: MIT */
/* Private to coord: roots of trees that are numbered by how many each stands for, the most first: over all servers,
 * where each has numbers of its own. What a root tells of that is in its metadata (docs/tsp.md): group, count,
 * first. */
#ifndef WEFT_COORD_NUMBERING_H
#define WEFT_COORD_NUMBERING_H

#include "coord/times.h"

/* own: its number on its server, the part's. `entry`, and what is `below` it, in the server's order, live as long as
 * the fan. */
struct numbered {
    const struct node *node;
    size_t part;
    int64_t own, count, first;
    struct slice entry;
    struct slice *below;
    size_t n_below;
};
/* The i-th is number i + 1. */
struct group_numbers { struct numbered *v; size_t n; };

/* Of a tree. */
bool entry_is_root(struct slice entry);
/* Of the trees that the fan brought; false: some root is none of that kind, or there is none, or an entry is not below
 * one before it. */
bool numbering_take(const struct fan *, struct group_numbers *);
/* Of the data tree called so (a string as it stands), as all members tell it now. False: nobody waits any more. */
bool numbering_ask(struct coord_call *, struct slice output, struct group_numbers *);
/* What the server's own number is for clients; 0: no entry has it. */
int64_t number_shown(const struct group_numbers *, const struct node *, int64_t own);
/* Of what fits numbers (and an empty cell) for clients, what fits those of the server; in the arena. NULL: nothing. */
const char *numbers_asked(const struct group_numbers *, struct arena *, const struct node *, const char *pattern);
void put_number_metadata(struct json *, const struct node *, int64_t number, struct slice metadata);

#endif
