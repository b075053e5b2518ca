/* SPDX-License-Identifier: MIT */
/* Private to the room: a node's side that traces come to. One thread fetches them one after the other. */
#ifndef WEFT_PLACE_TAKER_H
#define WEFT_PLACE_TAKER_H

#include "place/arrivals.h"
#include "place/moves.h"

struct bus;

struct taker_options {
    struct bus *bus;
    const char *cluster;
    const struct arrivals *arrivals; /* all borrowed */
    void (*arrived)(void *arg);      /* something has: traces have to be opened anew */
    void *arg;
};
struct taker;
struct taker *taker_new(const struct taker_options *);
void taker_free(struct taker *); /* NULL-safe. What is on its way stays, to be gone on with */
/* Begins, if it is asked to, and says how far it is. ERR_BUSY: too many are waiting. */
int taker_take(struct taker *, const struct move_question *, struct text *out, struct err *e);
/* Is a trace on its way, or waiting to come? */
bool taker_takes(struct taker *);

#endif
