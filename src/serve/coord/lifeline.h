/* SPDX-License-Identifier: MIT */
/* Private to coord: detects the restart of a server, however quick. Connections to it are held open: while one of them
 * lives, the server's process is the same. There are two, so that the server may close each in turn: one that is opened
 * while another lives leads to the same process. Not thread-safe. */
#ifndef WEFT_COORD_LIFELINE_H
#define WEFT_COORD_LIFELINE_H

#include <stdbool.h>
#include <stdint.h>

#include "http/client.h"

enum { LIFELINES = 2 };
/* Zeroed at first. */
struct lifeline {
    int held[LIFELINES];
    unsigned n;
    unsigned lost;                   /* times that all connections ended, since one outlived an idle time */
    int64_t rests_since_ns;          /* time (monotonic) of the last answer, or of the connections' release */
};
/* Returns whether all held connections have ended. False if none is held: nothing is known then. */
bool coord_lifeline_ended(const struct lifeline *);
/* Returns whether only one connection is left. The next request must use a new connection (`anew`), and no other
 * request may use the old one meanwhile: it might close it too early. */
bool coord_lifeline_is_thin(const struct lifeline *);
/* Holds the connection of an answer, if the server allows it. Call it only if the lifeline has not `ended` after that
 * answer arrived. */
void coord_lifeline_hold(struct lifeline *, struct http_fetch *);
/* Releases the connections: the server is, or may be, another process from now on. */
void coord_lifeline_release(struct lifeline *);

#endif
