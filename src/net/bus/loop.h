/* SPDX-License-Identifier: MIT */
/* Private to bus: a thread that takes a turn whenever it is kicked, or the time that the last turn named has come. */
#ifndef WEFT_BUS_LOOP_H
#define WEFT_BUS_LOOP_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

struct loop;
/* Returns when the next turn is due at the latest (monotonic ns); INT64_MAX: when kicked. */
typedef int64_t loop_turn(void *arg);
/* The first turn follows at once. *out is set before it begins. ERR_IO: no thread. */
int bus_loop_start(loop_turn *, void (*ended)(void *arg), void *arg, struct loop **out, struct err *e);
void bus_loop_kick(struct loop *);
/* A turn that does several things looks between them. */
bool bus_loop_stops(struct loop *);
/* No turn runs any more, and ended(arg) was called. Where a turn calls it: ended(arg) is called once the turn is over.
 */
void bus_loop_stop(struct loop *);

#endif
