/* SPDX-License-Identifier: MIT */
/* Private to coord: comparisons of two critical paths whose threads may be of two servers. What is derived of two is
 * kept by the server of a, whose configuration names the other's under "server", with ids and times as that one has
 * them. */
#ifndef WEFT_COORD_COMPARISONS_H
#define WEFT_COORD_COMPARISONS_H

#include "coord/times.h"

#define COMPARISON_OUTPUT "weft.critical-path-comparison"

/* Answers the tree of a comparison. False: it is none that this is needed for, and nothing is sent. */
bool comparison_tree(struct coord_call *);
/* Are two paths of several servers asked for? */
bool comparison_is_asked(const struct coord_call *);
/* Who is to keep what is derived, and what it is told; NULL: that has been refused. */
struct node *comparison_derived(struct coord_call *, const char **body);
/* "a as web, b as db": whose paths an output compares that was derived; NULL: they are of one server. */
const char *comparison_servers(const struct coord_call *, const struct node *keeper, struct slice derived);

/* outputs.c: whose entry a question names; NULL: it names none that is known. */
struct node *question_owner(struct coord_call *, json_t *question, int64_t *own);
/* Does it say whose thread is meant? Else a number may be one of several machines. */
bool question_names_host(json_t *question);

#endif
