/* SPDX-License-Identifier: MIT */
/* Marks of a span's begin and end: in the kernel's trace, if one is recorded, else in a user-space trace. They give the
 * trace's own clock and thread ids, independent of the wall clock. Their form: docs/verbs/span.md. */
#ifndef WEFT_SCRIPT_MARK_H
#define WEFT_SCRIPT_MARK_H

#include <sys/types.h>

#include "script/settings.h"

/* `process`: which has the span: it and what it forks until the end. Never fails: without a tracer there is no file. */
void script_mark_begin(const struct script_settings *, const struct script_span *, pid_t process);
void script_mark_end(const struct script_settings *, const struct script_span *);

#endif
