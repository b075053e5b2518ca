/* SPDX-License-Identifier: MIT */
/* Running a command as a span. */
#ifndef WEFT_SCRIPT_RUN_H
#define WEFT_SCRIPT_RUN_H

#include "script/settings.h"

/* The signals of this program that a command must not inherit changed. */
void script_quiet_signals(void);
/* A standard stream is none of this process's business from now on: whoever reads from it does not wait for its end. */
void script_let_go(int fd);
/* The span begins now. */
void script_begin_clock(struct script_span *);
/* It ends now: at its start and what the monotonic clock says since, so that setting the clock makes no time. */
void script_end_clock(struct script_span *);
/* For children of the span: TRACEPARENT, UBER_TRACE_ID, TRACE_ID, B3. */
void script_export_context(const struct script_span *);
/* Runs the command with the standard streams as they are, tells the span, returns the exit status: 128 + N of signal N,
 * 127 if there is no such command, 126 if it cannot be run. `pfeil`: stdout is kept for what is printed later, and the
 * attribute with the exit status is called exit_code. */
int script_run(struct script_settings *, struct script_span *, char **command, bool pfeil);

#endif
