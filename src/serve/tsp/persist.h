/* SPDX-License-Identifier: MIT */
/* Private to tsp: state that survives a restart (docs/formats/server-state.md). */
#ifndef WEFT_TSP_PERSIST_H
#define WEFT_TSP_PERSIST_H

#include "tsp/model.h"

/* persist.c. Notes that the thing is new, has changed, or was removed. With the lock held. */
void tsp_persist_note(struct tsp_server *, enum persist_kind, const char *uuid);
/* Saves noted changes. What cannot be written is reported in s->unsaved, and written with the next change or at the
 * end. Without the lock. */
void tsp_persist_save(struct tsp_server *);
/* Removes a file that may be absent, durably. */
int tsp_persist_remove_file(const char *path, const char *directory, struct err *);
/* Name of the kind's directory in the state directory. */
const char *tsp_persist_directory(enum persist_kind);

/* tsp_persist_load.c. Called before others use the server. */
int tsp_persist_load(struct tsp_server *, struct err *);

#endif
