/* SPDX-License-Identifier: MIT */
/* Private to index: names from paths. */
#ifndef WEFT_INDEX_NAMES_H
#define WEFT_INDEX_NAMES_H

#include "base/arena.h"
#include "ctf/ctf.h"

/* For each directory the last part of its path; where that is the same for all, the one above in which they differ;
 * where it is the same for some, as many parts as are needed ("run-1/left"). Equal directories get equal names. Memory
 * from the arena. O(n²) comparisons. */
void index_dir_names(struct arena *, const char *const *dirs, size_t n, const char **names);

#endif
