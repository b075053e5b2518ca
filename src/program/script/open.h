/* SPDX-License-Identifier: MIT */
/* Open spans, one file each. So ending one needs its id alone, and a span whose script was killed is not lost. */
#ifndef WEFT_SCRIPT_OPEN_H
#define WEFT_SCRIPT_OPEN_H

#include "script/settings.h"

enum { SCRIPT_OPEN_AFTER_MS = 200 }; /* shorter spans are reported once, at their end */

int script_open_keep(const struct script_settings *, const struct script_span *, struct err *);
/* Reads it. Texts live as long as the settings, which take over its service. ERR_NOTFOUND: no such span is open. */
int script_open_read(struct script_settings *, const struct script_context *, struct script_span *, struct err *);
int script_open_add_event(const struct script_settings *, const struct script_context *, const struct script_event *,
    struct err *);
bool script_is_open(const struct script_settings *, const struct script_context *);
void script_open_remove(const struct script_settings *, const struct script_context *);
/* Returns whether open spans are reported, with these settings at this moment. */
bool script_announces(const struct script_settings *);
/* Reports an open span to the collector. It is not stored if that fails. */
void script_announce(const struct script_settings *, struct script_span *);
/* Moves lost spans to the spool: those without a process left in their script's process group, and those not touched
 * for a week, wherever they began. Returns their number. */
size_t script_open_collect_lost(struct script_settings *);

#endif
