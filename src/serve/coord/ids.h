/* SPDX-License-Identifier: MIT */
/* Private to coord: the ids by which clients know entries. Each server numbers its entries as it likes; here one is the
 * high 52 bits of a hash of the server's name and the server's own id, or, where another has them already, of the first
 * further hash that nobody has. Kept in a file (docs/formats/coordinator-ids.md), so that an id means the same entry
 * after a restart and whatever servers there are. Where a server numbers its entries anew whenever it is started,
 * `server` is of this run of it, and its ids pass with it. Thread-safe. */
#ifndef WEFT_COORD_IDS_H
#define WEFT_COORD_IDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

struct coord_ids;
struct coord_ids *coord_ids_new(void);
void coord_ids_free(struct coord_ids *);
/* They are kept in that file from now on: what it holds was given before. What is damaged at its end is cut off. */
int coord_ids_keep_in(struct coord_ids *, const char *path, struct err *e);
/* server: a hash of its name. passing: such ids are in no file. 0: there are too many. O(1) */
int64_t coord_id_of(struct coord_ids *, uint64_t server, int64_t own, bool passing);
/* Whose entry that is; false: nobody's. */
bool coord_id_owner(struct coord_ids *, int64_t id, uint64_t *server, int64_t *own);
/* Ids of that run of a server are nobody's from now on. O(all passing ids) */
void coord_ids_forget(struct coord_ids *, uint64_t server);
/* Writes what was given since, before anybody hears of it. */
int coord_ids_save(struct coord_ids *, struct err *e);

#endif
