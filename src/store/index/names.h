/* SPDX-License-Identifier: MIT */
/* Private to index: names from paths. */
#ifndef WEFT_INDEX_NAMES_H
#define WEFT_INDEX_NAMES_H

#include "base/arena.h"
#include "ctf/ctf.h"

/* Names each directory by the last part of its path. If that is the same for all, the name is the part above in which
 * they differ. If it is the same for some, as many parts as needed are used ("run-1/left"). Equal directories get equal
 * names. Memory from the arena. O(n²) comparisons. */
void index_dir_names(struct arena *, const char *const *dirs, size_t n, const char **names);

#endif
