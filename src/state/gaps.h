/* Private to state: what threads did while events were missing. */
#ifndef WEFT_STATE_GAPS_H
#define WEFT_STATE_GAPS_H

#include "state/series.h"

struct state_builder;

/* Made at the end of traces with losses: threads that did not run were seen by nobody while events were missing, so
 * that part of their waits becomes unknown. */
struct builder_gap { int64_t begin, end; };
struct builder_gaps {
    VEC(struct builder_gap) gaps;        /* of all threads, by row */
    VEC(size_t) first;                   /* by row; one more than rows */
};
/* Rows and columns must be complete but for the last entries of rows. */
int builder_gaps_make(struct state_builder *, int64_t end, struct builder_gaps *, struct err *e);
void builder_gaps_fini(struct builder_gaps *);

#endif
