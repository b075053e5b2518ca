/* SPDX-License-Identifier: MIT */
/* Private to events: a few positioned readers over all events, so that a viewer that pages through them continues where
 * it stopped. */
#ifndef WEFT_EVENTS_READER_H
#define WEFT_EVENTS_READER_H

#include "events/thread.h"

enum { EVENT_BATCH = 256 };

struct event_readers;        /* thread-safe */
struct event_reader;         /* held by one owner between take and leave */
struct event_readers *events_readers_new(const struct event_table *);
void events_readers_free(struct event_readers *);
/* Takes the free reader nearest to item `index`: it has it in its batch, or is just before it. Waits while all are
 * taken. */
struct event_reader *events_reader_take(struct event_readers *, uint64_t index);
void events_reader_leave(struct event_readers *, struct event_reader *);

/* Merge over all sources; NULL with the error if it cannot be made. */
struct ctf_merge *events_merge_new(const struct event_table *, struct err *);
const struct ctf_merge *events_reader_merge(const struct event_reader *);
/* Threads known at its position. */
struct event_threads *events_reader_threads(struct event_reader *);
/* Item `index`, reading on to `last` at most; fast if indices ascend. NULL: none. Valid until the next call. */
const struct ctf_event *events_reader_at(struct event_reader *, uint64_t index, uint64_t last);

#endif
