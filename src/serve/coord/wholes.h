/* SPDX-License-Identifier: MIT */
/* Private to coord: the lines of a view that are of the whole experiment, which one server with all traces has beside
 * those of its machines. Here they are sums over servers, each of which counts its own: the Histogram's, and the only
 * one of densities of latencies. */
#ifndef WEFT_COORD_WHOLES_H
#define WEFT_COORD_WHOLES_H

#include "coord/merge.h"
#include "coord/times.h"

enum { MOST_WHOLES = 2 };

/* A server's line that is added to one of them. */
struct whole_part { size_t member; int64_t own; size_t line; };
struct wholes {
    const struct merge_whole *kind;
    const char *name;                /* of the experiment; NULL: the output has no such lines */
    size_t n;                        /* lines */
    struct { const char *label; int64_t id; bool shown; } line[MOST_WHOLES];
    int64_t root;                    /* the entry above them; -1: there is none, and they are of durations */
    VEC(struct whole_part) parts;
    VEC(struct whole_part) instead;  /* entries that they stand for, which are not written: the servers' own sums */
};
/* Of the output at hand. models: what the members told as its tree, at NULL: nothing. */
void wholes_find(struct coord_call *, const struct slice *models, struct wholes *);
void wholes_fini(struct wholes *);
/* Their entries, as items of an open array; columns: how many labels each has. */
void put_wholes(struct json *, const struct wholes *, size_t columns);
/* They stand for this entry of a member. */
bool wholes_replace(const struct wholes *, size_t member, struct slice id);
/* Answers a question for series if some of those asked for are sums; else nothing is done. */
bool wholes_answer(struct coord_call *);
/* The members' trees of the output at hand, of a question for its series; at NULL: they have none. Those that told it
 * before are not asked again. NULL: nobody waits any more. */
struct slice *wholes_member_trees(struct coord_call *);

#endif
