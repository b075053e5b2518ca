/* SPDX-License-Identifier: MIT */
/* Private to the room: the sender of traces: which files a trace has, and what is in them. Any number of threads. */
#ifndef WEFT_PLACE_SENDER_H
#define WEFT_PLACE_SENDER_H

#include "place/inbox.h"

struct place_sender;
/* all: traces that did not come from another node, too; else those in `inbox` (or NULL), which is borrowed. */
struct place_sender *place_sender_new(bool all, const struct place_inbox *);
void place_sender_free(struct place_sender *);
/* FILES, READ, SUM. ERR_ARG: it may not be taken; ERR_STALE: files have changed; ERR_BUSY: they are being written. */
int place_sender_answer(struct place_sender *, const struct cluster_node_traces *, enum cluster_question,
    const void *bytes, size_t n, struct text *out, struct err *e);

#endif
