/* SPDX-License-Identifier: MIT */
/* Running a command as a span. */
#ifndef WEFT_SCRIPT_RUN_H
#define WEFT_SCRIPT_RUN_H

#include "script/settings.h"

/* Sets signal actions that this program needs, and remembers the caller's: a command must not inherit the change. */
void script_quiet_signals(void);
/* Gives up a standard stream, so that its reader does not wait for this process to end. */
void script_let_go(int fd);
/* Begins the span now. */
void script_begin_clock(struct script_span *);
/* Ends the span now. The end is the start plus the monotonic time since, so that setting the clock has no effect. */
void script_end_clock(struct script_span *);
/* Exports the context to children of the span: TRACEPARENT, UBER_TRACE_ID, TRACE_ID, B3. */
void script_export_context(const struct script_span *);
/* Runs the command with the standard streams unchanged, reports the span, and returns the exit status: 128 + N for
 * signal N, 127 if there is no such command, 126 if it cannot be run. `pfeil`: stdout stays open for later output, and
 * the attribute with the exit status is called exit_code. */
int script_run(struct script_settings *, struct script_span *, char **command, bool pfeil);

#endif
