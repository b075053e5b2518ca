/* SPDX-License-Identifier: MIT */
/* Files of a spool; shared by spool.c and flush.c. */
#ifndef WEFT_SCRIPT_PIECES_H
#define WEFT_SCRIPT_PIECES_H

#include "script/settings.h"

struct script_pieces { VEC(char *) list; }; /* file names in the spool's directory, the oldest first */
/* Lists pieces. all: of all endpoints; else those meant for this one. */
void script_list_pieces(const struct script_settings *, bool all, struct script_pieces *);
void script_pieces_fini(struct script_pieces *);
/* Makes a piece of the file that grows, if the lock can be had in time. */
int script_spool_cut(const struct script_settings *, bool all, int wait_ms, struct err *);

/* Returns whether a file grows for this endpoint. */
bool script_spool_grows(const struct script_settings *);

#endif
