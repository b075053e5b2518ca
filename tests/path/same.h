/* SPDX-License-Identifier: MIT */
/* Comparison of the critical paths of hosts' threads over two sets of stores. */
#ifndef WEFT_TESTS_PATH_SAME_H
#define WEFT_TESTS_PATH_SAME_H

#include "path/path.h"

/* Compares the paths of n hosts, of some hundred threads of each, over their whole lives. Fails the test if they
 * differ. */
void same_paths(const struct path_local_host *one, const struct path_local_host *many, size_t n);

#endif
