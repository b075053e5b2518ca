/* SPDX-License-Identifier: MIT */
/* Spans that have begun and not ended: a file each, so that whoever ends one needs its id alone, and a span whose
 * script was killed is not lost. */
#ifndef WEFT_SCRIPT_OPEN_H
#define WEFT_SCRIPT_OPEN_H

#include "script/settings.h"

enum { SCRIPT_OPEN_AFTER_MS = 200 }; /* shorter spans are told once, when they have ended */

int script_open_keep(const struct script_settings *, const struct script_span *, struct err *);
/* Reads it; texts live as long as the settings, and its service becomes theirs. ERR_NOTFOUND: no such span is open. */
int script_open_read(struct script_settings *, const struct script_context *, struct script_span *, struct err *);
int script_open_add_event(const struct script_settings *, const struct script_context *, const struct script_event *,
    struct err *);
bool script_is_open(const struct script_settings *, const struct script_context *);
void script_open_remove(const struct script_settings *, const struct script_context *);
/* Is anybody told of open spans, as things are? */
bool script_announces(const struct script_settings *);
/* Tells the collector of a span that is open. Not kept when that does not work. */
void script_announce(const struct script_settings *, struct script_span *);
/* Spans of whose script no process is left in its process group go to the spool as lost; so do those that nobody
 * touched for a week, wherever they began. Returns how many. */
size_t script_open_collect_lost(struct script_settings *);

#endif
