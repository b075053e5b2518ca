/* SPDX-License-Identifier: MIT */
/* Private to events: does an event fit regular expressions on its cells, and an expression on its fields? */
#ifndef WEFT_EVENTS_MATCH_H
#define WEFT_EVENTS_MATCH_H

#include "events/events.h"

/* What depends on the event's type, stream or CPU alone is found out once for each of them; other cells are printed
 * last. False without any expression. With `where` it must be asked for every item of the merge from its begin, in
 * order. */
bool event_match_fits(struct event_match *, const struct ctf_merge *, const struct ctf_event *);
/* No event fits: a term is about a column that is not there, or there is nothing to fit. */
bool event_match_impossible(const struct event_match *);

#endif
