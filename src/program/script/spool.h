/* SPDX-License-Identifier: MIT */
/* Spool: spans that wait while the collector is away, in files of OTLP JSON lines (docs/verbs/span.md). Any number of
 * processes add to a spool at the same time. */
#ifndef WEFT_SCRIPT_SPOOL_H
#define WEFT_SCRIPT_SPOOL_H

#include "script/settings.h"

/* Adds a whole line, with its newline. After a failure the spool is unchanged. */
int script_spool_add(const struct script_settings *, const char *line, size_t n, struct err *);
/* Creates the directory, or its part `below` (NULL: itself). */
int script_spool_make(const struct script_settings *, const char *below, struct err *);

/* Removes files that are useless after a day: unfinished files, and ends that pfeil noted. */
void script_spool_tidy(const struct script_settings *);

/* Pause of a collector that did not answer, so that a script is delayed once and not at each stage. */
bool script_collector_rests(const struct script_settings *);
void script_let_collector_rest(const struct script_settings *, int64_t ns);
void script_wake_collector(const struct script_settings *);
/* A collector that takes a span, but what waits not within the time for that: it gets none of it for a while, but by
 * `flush`. */
bool script_collector_is_slow(const struct script_settings *);
void script_note_slow_collector(const struct script_settings *);

struct script_flushed { uint64_t sent, refused, damaged; bool busy; };
/* Sends the waiting spans, and removes those acknowledged, refused or damaged. Ends at the first batch that the
 * collector does not take: ERR_IO, and the rest stays. `busy`: another process is flushing, and nothing was done. */
int script_spool_flush(const struct script_settings *, struct script_flushed *, struct err *);

/* Sends a few of the spans that wait for this endpoint, within half a second, once the collector has taken one. */
void script_spool_send_some(const struct script_settings *);

/* Sends the span, or spools it on failure. Never fails: losses are noted. Returns whether it was taken now. */
bool script_deliver(const struct script_settings *, const struct script_span *);

#endif
