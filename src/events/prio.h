/* Private to events: the thread in whose context an event was recorded, and its priority. */
#ifndef WEFT_EVENTS_PRIO_H
#define WEFT_EVENTS_PRIO_H

#include "views/view.h"

struct event_cells;
/* Remembers which thread has each CPU since when, so that only the first event of an interval costs a search. One
 * owner. */
struct event_prios;
struct event_prios *event_prios_new(const struct event_cells *);
void event_prios_free(struct event_prios *);
/* The row of the thread that has the event's CPU, or -1: not known. At a switch, the one that comes. */
int32_t event_thread(struct event_prios *, const struct ctf_event *, uint32_t source);
/* As the context tells, or the switch to the thread; false: not known. */
bool event_prio(struct event_prios *, const struct ctf_event *, uint32_t source, int64_t *out);
/* Do these traces tell priorities? */
bool event_prios_told(const struct views *);

#endif
