/* SPDX-License-Identifier: MIT */
/* Private to coord: counts by ranges of durations that are the same on every server, added up. */
#ifndef WEFT_COORD_BARS_H
#define WEFT_COORD_BARS_H

#include "coord/call.h"

/* Is the output at hand of that kind? Its tree is one entry, which all servers have. */
bool bars_are_added(const struct coord_call *);
/* Answers with the one series. */
void bars_send(struct coord_call *);

#endif
