/* SPDX-License-Identifier: MIT */
/* Removes file trees in the background: uploads that were refused, deleted, or incomplete when a server was killed. */
#ifndef WEFT_TSP_SWEEP_H
#define WEFT_TSP_SWEEP_H

#include "base/err.h"

struct sweeper;
/* Starts a sweeper, which also removes what an earlier one of the directory left. */
int tsp_sweep_start(const char *directory, struct sweeper **out, struct err *);
/* Removes a file or directory; its name is free at once. path: on the file system of the sweeper's directory. If it
 * cannot be renamed, it stays. Thread-safe. */
void tsp_sweep_away(struct sweeper *, const char *path);
/* Stops; leaves what would take more than a moment to the next sweeper. NULL: does nothing. */
void tsp_sweep_stop(struct sweeper *);

#endif
