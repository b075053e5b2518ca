/* SPDX-License-Identifier: MIT */
/* Whether the critical paths of the threads of hosts are the same over two sets of stores. */
#ifndef WEFT_TESTS_PATH_SAME_H
#define WEFT_TESTS_PATH_SAME_H

#include "path/path.h"

/* Of n hosts, of some hundred threads of each, over their whole lives. Fails the test where they differ. */
void same_paths(const struct path_local_host *one, const struct path_local_host *many, size_t n);

#endif
