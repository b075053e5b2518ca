/* SPDX-License-Identifier: MIT */
/* Private to events: background search of the events that match a filter, once for all clients with the same filter.
 *
 * A scan reads all events from the first, and stops if there are no requests for a while; the next request continues
 * it. A few scans are kept. */
#ifndef WEFT_EVENTS_SCAN_H
#define WEFT_EVENTS_SCAN_H

#include "events/table.h"

struct event_scans;          /* thread-safe */
struct event_scan;
struct event_scans *events_scans_new(const struct event_table *);
void events_scans_free(struct event_scans *); /* stops running scans */

/* Takes the scan for these conditions, running unless it is done. Ended by events_scan_leave. Errors: those of the
 * expression. */
int events_scan_take(struct event_scans *, const struct event_wanted *, struct event_scan **out, struct err *e);
void events_scan_leave(struct event_scans *, struct event_scan *);

struct event_found { uint64_t items, matches; bool done, running; }; /* items read and matches, so far */
/* Waits until there are more than `matches`, it is done, or the timeout. */
struct event_found events_scan_wait(struct event_scan *, uint64_t matches, int64_t wait_ns);
/* Numbers of the matching items, from rank `first` on, as far as found: at most `max`. */
size_t events_scan_items(struct event_scan *, uint64_t first, uint64_t *out, size_t max);
/* Number of matches before item `item`. */
uint64_t events_scan_rank(struct event_scan *, uint64_t item);

#endif
