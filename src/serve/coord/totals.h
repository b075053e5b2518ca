/* SPDX-License-Identifier: MIT */
/* Private to coord: lines of a view about the whole experiment. A server with all traces has them beside those of its
 * machines. Here they are sums over servers: the Histogram's, and the only line of densities of latencies. */
#ifndef WEFT_COORD_TOTALS_H
#define WEFT_COORD_TOTALS_H

#include "coord/gather.h"
#include "coord/merge.h"

enum { MOST_TOTALS = 2 };

/* Line of a server that is part of a sum. */
struct total_part { size_t member; int64_t own; size_t line; };
struct coord_totals {
    const struct merge_total *kind;
    const char *name;                /* name of the experiment; NULL: the output has no such lines */
    size_t n;                        /* lines */
    struct { const char *label; int64_t id; bool shown; } line[MOST_TOTALS];
    int64_t root;                    /* parent entry; -1: none, and the lines are of durations */
    VEC(struct total_part) parts;
    VEC(struct total_part) instead;  /* entries they replace, which are not written: the servers' own sums */
};
/* Returns whether the request's output has such lines: of several servers. */
bool coord_totals_exist(const struct coord_request *);
/* Finds the sums of the request's output. models: the members' trees; at NULL: none. */
void coord_totals_find(struct coord_call *, const struct slice *models, struct coord_totals *);
void coord_totals_fini(struct coord_totals *);
/* Writes the entries as items of an open array. columns: number of labels of each. */
void coord_put_totals(struct json *, const struct coord_totals *, size_t columns);
/* Returns whether a sum replaces this entry of a member. */
bool coord_totals_replace(const struct coord_totals *, size_t member, struct slice id);
/* Writes the requested series, and the wanted sums. Pieces are folded. Answers of another form, or with other times or
 * ranges, are dropped and noted. */
void coord_merge_totals(struct coord_answers *, const struct coord_totals *, const bool wanted[MOST_TOTALS],
    struct json *);
/* Returns the width of the widest ranges of durations, to ask again for; 0: all have the same. */
int64_t coord_totals_width(const struct coord_answers *);

/* ---- asking (totals_ask.c) ---- */

/* Answers a question for series if some of the requested ones are sums; else returns false and sends nothing. */
bool coord_totals_answer(struct coord_call *);
/* Returns the members' trees of the output whose series are requested; at NULL: none. Members whose trees are cached
 * are not asked. NULL: the client is gone. */
struct slice *coord_member_trees(struct coord_call *);

#endif
