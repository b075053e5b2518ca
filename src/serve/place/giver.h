/* SPDX-License-Identifier: MIT */
/* Private to the room: a node's side from which a trace is taken: which files it has, and what is in them. Any number
 * of threads. */
#ifndef WEFT_PLACE_GIVER_H
#define WEFT_PLACE_GIVER_H

#include "place/arrivals.h"

struct giver;
/* all: traces that did not come from another node, too; else those in `arrivals` (or NULL), which is borrowed. */
struct giver *giver_new(bool all, const struct arrivals *);
void giver_free(struct giver *);
/* FILES, READ, SUM. ERR_ARG: it may not be taken; ERR_STALE: files have changed; ERR_BUSY: they are being written. */
int giver_answer(struct giver *, const struct cluster_node_traces *, enum cluster_question, const void *bytes,
    size_t n, struct text *out, struct err *e);

#endif
