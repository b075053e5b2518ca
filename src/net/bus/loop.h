/* SPDX-License-Identifier: MIT */
/* Private to bus: a thread that takes a turn when it is kicked, or at the time that the last turn returned. */
#ifndef WEFT_BUS_LOOP_H
#define WEFT_BUS_LOOP_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

struct loop;
/* Returns the latest time of the next turn (monotonic ns); INT64_MAX: only when kicked. */
typedef int64_t loop_turn(void *arg);
/* Starts the thread; the first turn follows at once. *out is set before it begins. ERR_IO: no thread. */
int bus_loop_start(loop_turn *, void (*ended)(void *arg), void *arg, struct loop **out, struct err *e);
void bus_loop_kick(struct loop *);
/* Returns whether a long turn should end; to be polled by it. */
bool bus_loop_stops(struct loop *);
/* Stops the thread: no turn runs any more, and ended(arg) was called. If a turn calls it, ended(arg) is called after
 * that turn. */
void bus_loop_stop(struct loop *);

#endif
