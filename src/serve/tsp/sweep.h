/* SPDX-License-Identifier: MIT */
/* Removes trees of files in the background: uploads that were refused, deleted, or under way when a server was
 * killed. */
#ifndef WEFT_TSP_SWEEP_H
#define WEFT_TSP_SWEEP_H

#include "base/err.h"

struct sweeper;
/* Also removes what an earlier sweeper of the directory has left. */
int sweep_start(const char *directory, struct sweeper **out, struct err *);
/* Frees the name at once. path: a file or directory on the file system of the sweeper's directory. One that cannot be
 * renamed stays where it is. Thread-safe. */
void sweep_away(struct sweeper *, const char *path);
/* Leaves what would take more than a moment to the next sweeper. NULL: does nothing. */
void sweep_stop(struct sweeper *);

#endif
