/* SPDX-License-Identifier: MIT */
/* Private to the room: the sender of traces, which lists their files and reads them. Thread-safe. */
#ifndef WEFT_PLACE_SENDER_H
#define WEFT_PLACE_SENDER_H

#include "place/inbox.h"

struct place_sender;
/* all: sends also traces that were not received from other nodes; otherwise only those in `inbox` (or NULL), which is
 * borrowed. */
struct place_sender *place_sender_new(bool all, const struct place_inbox *);
void place_sender_free(struct place_sender *);
/* Answers FILES, READ, SUM. ERR_ARG: the trace may not be copied; ERR_STALE: files have changed; ERR_BUSY: files are
 * being written. */
int place_sender_answer(struct place_sender *, const struct cluster_node_traces *, enum cluster_question,
    const void *bytes, size_t n, struct text *out, struct err *e);

#endif
