/* SPDX-License-Identifier: MIT */
/* Private to events: the thread in which an event was recorded, and its priority. */
#ifndef WEFT_EVENTS_THREAD_H
#define WEFT_EVENTS_THREAD_H

#include "events/table.h"

/* Cache of the present thread of each CPU, so that only the first event of an interval requires a search. One owner. */
struct event_threads;
struct event_threads *events_threads_new(const struct event_table *);
void events_threads_free(struct event_threads *);
/* Id of the thread, or of its process; at a switch, of the leaving thread. False: unknown. */
bool events_thread_id(struct event_threads *, const struct ctf_event *, uint32_t source, bool process, int64_t *out);
/* Priority with which the thread came to the CPU, from a context or from the switch. False: unknown. */
bool events_thread_priority(struct event_threads *, const struct ctf_event *, uint32_t source, int64_t *out);

#endif
