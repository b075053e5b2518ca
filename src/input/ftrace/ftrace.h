/* SPDX-License-Identifier: MIT */
/* Recordings of trace-cmd (trace.dat, versions 6 and 7), offered as CTF traces (docs/formats/tracedat.md). */
#ifndef WEFT_FTRACE_FTRACE_H
#define WEFT_FTRACE_FTRACE_H

#include "ctf/ctf.h"

/* Opens a file of a group whose `is_file` is set (ctf_discover). Reads all events once, to find their packets' sizes
 * and times. What is damaged is a problem of the trace. ERR_FORMAT, ERR_UNSUPPORTED: nothing of it can be read. */
int ftrace_trace_open(const char *path, struct ctf_schemas *, struct ctf_trace **out, struct err *e);

#endif
