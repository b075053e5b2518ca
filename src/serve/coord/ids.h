/* SPDX-License-Identifier: MIT */
/* Private to coord: ids of entries for clients. Each server has its own numbering; an id here is the high 52 bits of a
 * hash of the server's name and the server's own id. On a collision it is the first further hash that is free. A file
 * (docs/formats/coordinator-ids.md) stores them, so that an id means the same entry after a restart and with any set of
 * servers. For a server that renumbers its entries at each start, `server` is a hash of that run, and its ids expire
 * with it. Thread-safe. */
#ifndef WEFT_COORD_IDS_H
#define WEFT_COORD_IDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

struct coord_ids;
struct coord_ids *coord_ids_new(void);
void coord_ids_free(struct coord_ids *);
/* Loads the ids of a file and appends all new ones to it. Damage at the file's end is cut off. */
int coord_ids_keep_in(struct coord_ids *, const char *path, struct err *e);
/* Returns the id, in O(1); 0: there are too many. server: hash of its name. passing: the id is not stored. */
int64_t coord_id_of(struct coord_ids *, uint64_t server, int64_t own, bool passing);
/* Finds the owner of an id; false: unknown. */
bool coord_id_owner(struct coord_ids *, int64_t id, uint64_t *server, int64_t *own);
/* Drops the ids of one run of a server. O(all passing ids) */
void coord_ids_forget(struct coord_ids *, uint64_t server);
/* Writes new ids to the file; call before a client receives them. */
int coord_ids_save(struct coord_ids *, struct err *e);

#endif
