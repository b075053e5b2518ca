/* SPDX-License-Identifier: MIT */
/* Private to events: which events fit a filter, found out in the background, once for all who ask for the same.
 *
 * A scan reads all events from the first and stops when nobody has asked for a while; the next who asks lets it go
 * on. A few scans stay. */
#ifndef WEFT_EVENTS_SCAN_H
#define WEFT_EVENTS_SCAN_H

#include "events/table.h"

struct event_scans;          /* thread-safe */
struct event_scan;
struct event_scans *event_scans_new(const struct event_table *);
void event_scans_free(struct event_scans *); /* stops what runs */

/* The scan for what is wanted, running unless it is done. event_scan_leave it. Errors: those of the expression. */
int event_scan_take(struct event_scans *, const struct event_wanted *, struct event_scan **out, struct err *e);
void event_scan_leave(struct event_scans *, struct event_scan *);

struct event_found { uint64_t items, matches; bool done, running; }; /* read so far, fit so far */
/* Waits until more than `matches` fit, it is done, or the time is over. */
struct event_found event_scan_wait(struct event_scan *, uint64_t matches, int64_t wait_ns);
/* Numbers of the items that fit, from the one of rank `first` on, as far as found: at most `max`. */
size_t event_scan_items(struct event_scan *, uint64_t first, uint64_t *out, size_t max);
/* How many that fit come before item `item`. */
uint64_t event_scan_rank(struct event_scan *, uint64_t item);

#endif
