/* SPDX-License-Identifier: MIT */
/* Private to coord: roots of trees that are sums over machines, added up over servers. */
#ifndef WEFT_COORD_SUMS_H
#define WEFT_COORD_SUMS_H

#include "base/figures.h"
#include "coord/merge.h"
#include "coord/times.h"

/* Root that several servers have under one key. It is written once, where the first server has it. */
struct root_sum {
    struct slice label, key;         /* key at NULL: some server states none */
    size_t parts;
    struct figures all;
    int64_t self;
    int64_t id;                      /* id for clients: that of the first server */
    size_t first;                    /* first part that has it */
    bool apart;                      /* servers keep their own roots: some state no sum, or no numbers */
    int64_t *root;                   /* own id by part; -1: none */
};
struct sums { VEC(struct root_sum) v; size_t parts; };

/* Takes a root of a part that states a sum, or has the label of another part's root. */
void coord_sums_take(struct sums *, struct coord_call *, const struct node *, size_t part, struct slice entry);
void coord_sums_fini(struct sums *);
/* Returns the sum of a part's entry, which is a root; NULL: none. */
const struct root_sum *coord_sum_of(const struct sums *, size_t part, struct slice id);
/* Adds the numbers in an entry's metadata to the sum; false: there are none, and nothing is added. */
bool coord_sum_add(struct root_sum *, const struct node *, struct slice metadata);
/* Writes a label of the sum; false: the column is not about the sum's figures. */
bool coord_put_sum_label(struct json *, const struct root_sum *, const struct merge_rule *);
void coord_put_sum_metadata(struct json *, const struct root_sum *, struct slice metadata);

#endif
