/* SPDX-License-Identifier: MIT */
/* Private to coord: lines of a view about the whole experiment. A server with all traces has them beside those of its
 * machines. Here they are sums over servers: the Histogram's, and the only line of densities of latencies. */
#ifndef WEFT_COORD_WHOLES_H
#define WEFT_COORD_WHOLES_H

#include "coord/merge.h"
#include "coord/times.h"

enum { MOST_WHOLES = 2 };

/* Line of a server that is part of a sum. */
struct whole_part { size_t member; int64_t own; size_t line; };
struct wholes {
    const struct merge_whole *kind;
    const char *name;                /* name of the experiment; NULL: the output has no such lines */
    size_t n;                        /* lines */
    struct { const char *label; int64_t id; bool shown; } line[MOST_WHOLES];
    int64_t root;                    /* parent entry; -1: none, and the lines are of durations */
    VEC(struct whole_part) parts;
    VEC(struct whole_part) instead;  /* entries they replace, which are not written: the servers' own sums */
};
/* Finds the sums of the request's output. models: the members' trees; at NULL: none. */
void wholes_find(struct coord_call *, const struct slice *models, struct wholes *);
void wholes_fini(struct wholes *);
/* Writes the entries as items of an open array. columns: number of labels of each. */
void put_wholes(struct json *, const struct wholes *, size_t columns);
/* Returns whether a sum replaces this entry of a member. */
bool wholes_replace(const struct wholes *, size_t member, struct slice id);
/* Answers a question for series if some of the requested ones are sums; else returns false and sends nothing. */
bool wholes_answer(struct coord_call *);
/* Returns the members' trees of the output whose series are requested; at NULL: none. Members whose trees are cached
 * are not asked. NULL: the client is gone. */
struct slice *wholes_member_trees(struct coord_call *);

#endif
