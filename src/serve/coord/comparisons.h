/* SPDX-License-Identifier: MIT */
/* Private to coord: comparisons of two critical paths whose threads may be on two servers. The server of path a keeps a
 * derived comparison. Its configuration names the other server under "server", with that server's own ids and times. */
#ifndef WEFT_COORD_COMPARISONS_H
#define WEFT_COORD_COMPARISONS_H

#include "coord/times.h"

#define COMPARISON_OUTPUT "weft.critical-path-comparison"

/* Answers the tree of a comparison over several servers. False: it is none, and nothing was sent. */
bool coord_comparison_tree(struct coord_call *);
/* Returns whether the request compares paths of several servers. */
bool coord_comparison_is_asked(const struct coord_call *);
/* Returns the server that keeps the derived output, and the body for it. NULL: an error was sent. */
struct node *coord_comparison_derived(struct coord_call *, const char **body);
/* Returns the servers of a derived comparison's paths, "a as web, b as db"; NULL: one server. */
const char *coord_comparison_servers(const struct coord_call *, const struct node *keeper, struct slice derived);

#endif
