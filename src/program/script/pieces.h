/* SPDX-License-Identifier: MIT */
/* Between spool.c and flush.c: the files that a spool consists of. */
#ifndef WEFT_SCRIPT_PIECES_H
#define WEFT_SCRIPT_PIECES_H

#include "script/settings.h"

struct script_pieces { VEC(char *) list; }; /* names in the spool's directory, the oldest first */
void script_list_pieces(const struct script_settings *, struct script_pieces *);
void script_pieces_fini(struct script_pieces *);
/* What has grown becomes a piece, if the lock can be had in time. */
int script_spool_cut(const struct script_settings *, int wait_ms, struct err *);

#endif
