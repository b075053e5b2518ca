/* SPDX-License-Identifier: MIT */
/* Private to events: the thread in whose context an event was recorded, and its priority. */
#ifndef WEFT_EVENTS_THREAD_H
#define WEFT_EVENTS_THREAD_H

#include "events/table.h"

/* Remembers which thread has each CPU since when, so that only the first event of an interval costs a search. One
 * owner. */
struct event_threads;
struct event_threads *event_threads_new(const struct event_table *);
void event_threads_free(struct event_threads *);
/* The thread's id, or that of its process; at a switch, of the thread that leaves. False: not known. */
bool event_thread_id(struct event_threads *, const struct ctf_event *, uint32_t source, bool process, int64_t *out);
/* The priority with which it came to the CPU, from a context or from the switch. False: not known. */
bool event_thread_priority(struct event_threads *, const struct ctf_event *, uint32_t source, int64_t *out);

#endif
