/* SPDX-License-Identifier: MIT */
/* Private to events: matching of events by regular expressions on cells, and an expression on fields. */
#ifndef WEFT_EVENTS_MATCH_H
#define WEFT_EVENTS_MATCH_H

#include "events/events.h"

/* Matches an event. Conditions that depend only on its type, stream or CPU are evaluated once for each of them; other
 * cells are printed last. False without any condition. With `where`, call it for every item of the merge from its
 * begin, in order. */
bool events_match_fits(struct event_match *, const struct ctf_merge *, const struct ctf_event *);
/* Returns whether no event can match: a term is about an absent column, or there are no conditions. */
bool events_match_impossible(const struct event_match *);

#endif
