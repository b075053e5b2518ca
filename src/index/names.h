/* Private to index: names from paths. */
#ifndef WEFT_INDEX_NAMES_H
#define WEFT_INDEX_NAMES_H

#include "base/arena.h"
#include "ctf/ctf.h"

/* Where a trace lies, without what the tracer adds below the directory that a person named (kernel,
 * ust/uid/1000/64-bit, archives and their pieces): traces of one machine's session have the same place. */
const char *index_trace_place(struct arena *, const struct ctf_group *);
/* For each place its last directory; where that is the same for all, the one above that tells them apart; where it is
 * the same for some, as many as are needed ("run-1/left"). Equal places get equal names. Memory from the arena. O(n²)
 * comparisons. */
void index_place_names(struct arena *, const char *const *places, size_t n, const char **names);

#endif
