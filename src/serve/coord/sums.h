/* SPDX-License-Identifier: MIT */
/* Private to coord: roots of trees that are sums over machines, added up over servers. */
#ifndef WEFT_COORD_SUMS_H
#define WEFT_COORD_SUMS_H

#include "base/figures.h"
#include "coord/merge.h"
#include "coord/times.h"

/* A root that several servers have under one key. It is written once, where the first server has it. */
struct root_sum {
    struct slice label, key;         /* at NULL: some server states no key */
    size_t parts;
    struct figures all;
    int64_t self;
    int64_t id;                      /* for clients: the first one's */
    size_t first;                    /* the part that has it first */
    bool apart;                      /* some server states no sum, or no numbers: each server keeps its own */
    int64_t *root;                   /* by part: its own id there; -1: none */
};
struct sums { VEC(struct root_sum) v; size_t parts; };

/* A root of a part that states that it is a sum, or has the label of another part's root. */
void sums_take(struct sums *, struct coord_call *, const struct node *, size_t part, struct slice entry);
void sums_fini(struct sums *);
/* The sum that an entry is (an entry that stands below) in its part; NULL: none. */
const struct root_sum *root_sum_of(const struct sums *, size_t part, struct slice id);
/* Adds the numbers that an entry's metadata tell to the sum; false: they tell none, and nothing is added. */
bool sum_add(struct root_sum *, const struct node *, struct slice metadata);
/* The text of a label of the sum; false: the column's is none of the figures. */
bool put_sum_label(struct json *, const struct root_sum *, const struct merge_rule *);
void put_sum_metadata(struct json *, const struct root_sum *, struct slice metadata);

#endif
