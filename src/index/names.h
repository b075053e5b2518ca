/* Private to index: names from paths. */
#ifndef WEFT_INDEX_NAMES_H
#define WEFT_INDEX_NAMES_H

#include "base/arena.h"
#include "ctf/ctf.h"

/* The directory that a person named for a trace, without what the tracer adds below it (kernel, ust/uid/1000/64-bit,
 * archives and their pieces): traces of one machine's session have the same. */
const char *index_trace_dir(struct arena *, const struct ctf_group *);
/* For each directory the last part of its path; where that is the same for all, the one above in which they differ;
 * where it is the same for some, as many parts as are needed ("run-1/left"). Equal directories get equal names. Memory
 * from the arena. O(n²) comparisons. */
void index_dir_names(struct arena *, const char *const *dirs, size_t n, const char **names);

#endif
