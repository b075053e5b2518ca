/* SPDX-License-Identifier: MIT */
/* Where spans wait while the collector is away: files of OTLP JSON lines (docs/verbs/span.md). Any number of processes
 * add to a spool at the same time. */
#ifndef WEFT_SCRIPT_SPOOL_H
#define WEFT_SCRIPT_SPOOL_H

#include "script/settings.h"

/* A whole line, with its end. After a failure the spool is as it was. */
int script_spool_add(const struct script_settings *, const char *line, size_t n, struct err *);
/* The directory is there then, or its part `below` (NULL: itself). */
int script_spool_make(const struct script_settings *, const char *below, struct err *);

/* Removes what is of no use any more after a day: files that were not finished, ends that pfeil noted. */
void script_spool_tidy(const struct script_settings *);

/* A collector that did not answer is left alone for a while, so that a script is held up once and not at each stage. */
bool script_collector_rests(const struct script_settings *);
void script_let_collector_rest(const struct script_settings *, int64_t ns);
void script_wake_collector(const struct script_settings *);

struct script_flushed { uint64_t sent, refused, damaged; bool busy; };
/* Sends what waits, and removes what was acknowledged, refused or damaged. Ends at the first batch that the collector
 * does not take: ERR_IO, and the rest waits on. `busy`: another process is at it, nothing was done. */
int script_spool_flush(const struct script_settings *, struct script_flushed *, struct err *);

/* Sends a few of the spans that wait, within half a second, once the collector has taken one. */
void script_spool_send_some(const struct script_settings *);

/* Sends the span; keeps it when that does not work. Never fails: what is lost is noted. True: it was taken now. */
bool script_deliver(const struct script_settings *, const struct script_span *);

#endif
