/* SPDX-License-Identifier: MIT */
/* Steps of the clock of a pair's b. */
#ifndef WEFT_CLOCK_STEPS_H
#define WEFT_CLOCK_STEPS_H

#include "clock/hull.h"

struct stretch { int64_t begin, end; };
struct steps_part { struct point *sent, *received; size_t ns, nr; };
struct steps_parts { struct steps_part *v; struct stretch *steps; size_t n; uint64_t outliers; };
/* Divides the messages into stretches that a curve with slopes in [low, high] can pass. Drops single messages that
 * contradict the rest; few, but more if the points represent more messages (`all`). False: more than 64 stretches, so
 * it is no clock. O(n) */
bool clock_steps_split(const struct point *sent, size_t ns, const struct point *received, size_t nr, int64_t low,
    int64_t high, double all, struct steps_parts *out);
void clock_steps_free(struct steps_parts *);

#endif
