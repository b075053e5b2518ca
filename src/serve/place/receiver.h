/* SPDX-License-Identifier: MIT */
/* Private to the room: the receiver of traces. One thread fetches them one after the other. */
#ifndef WEFT_PLACE_RECEIVER_H
#define WEFT_PLACE_RECEIVER_H

#include "place/inbox.h"
#include "place/moves.h"

struct bus;

struct place_receiver_options {
    struct bus *bus;
    const char *cluster;
    const struct place_inbox *inbox; /* bus, name and inbox are borrowed */
    void (*received)(void *arg);     /* a trace is complete: traces have to be opened anew */
    void *arg;
};
struct place_receiver;
struct place_receiver *place_receiver_new(const struct place_receiver_options *);
void place_receiver_free(struct place_receiver *); /* NULL-safe. Incomplete traces stay, to be resumed */
/* Begins to receive, if the question asks for it, and writes the progress. ERR_BUSY: too many are waiting. */
int place_receiver_take(struct place_receiver *, const struct move_question *, struct text *out, struct err *e);
/* Returns whether a trace is being received, or waiting. */
bool place_receiver_is_busy(struct place_receiver *);

#endif
