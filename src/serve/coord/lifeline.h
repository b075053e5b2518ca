/* SPDX-License-Identifier: MIT */
/* Private to coord: what shows that a server was started again, however quickly. Connections to it are held open: while
 * one of them has not ended, its process is the one that it was. There are two, so that it may end each in order: one
 * that is taken while another lives is of the same process. Not thread-safe. */
#ifndef WEFT_COORD_LIFELINE_H
#define WEFT_COORD_LIFELINE_H

#include <stdbool.h>
#include <stdint.h>

#include "http/client.h"

enum { LIFELINES = 2 };
/* Begins as zeroes. */
struct lifeline {
    int held[LIFELINES];
    unsigned n;
    unsigned lost;                   /* so often all had ended since one was kept over a rest */
    int64_t rests_since_ns;          /* when the server last answered, or its connections were let go (monotonic) */
};
/* All connections that were held have ended. Without any, nobody knows: false. */
bool lifeline_ended(const struct lifeline *);
/* There is only one left. The next one is to be `anew`, and nothing to be asked by this one meanwhile, which may end it
 * before the next is there. */
bool lifeline_is_thin(const struct lifeline *);
/* Holds the connection of an answer, if the server lets it. Only once it has not `ended` after that answer came. */
void lifeline_hold(struct lifeline *, struct http_fetch *);
/* The server is, or may be, another one from now on. */
void lifeline_let_go(struct lifeline *);

#endif
