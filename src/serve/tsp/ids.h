/* SPDX-License-Identifier: MIT */
/* Private to tsp: ids by which clients know entries, one table per experiment. An id is the high 52 bits of its entry's
 * key, a hash of the entry's identity. If another key has that id, it is the first free one of the key's further
 * hashes. Given ids are stored in a file (docs/formats/ids.md), so that no order of openings, growth or restarts gives
 * one to another entry. Thread-safe. */
#ifndef WEFT_TSP_IDS_H
#define WEFT_TSP_IDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

enum { IDS_BITS = 52 };              /* exact in every client's numbers */

struct tsp_ids;
/* Creates an empty table, with one reference. bits: of an id, at most 63; IDS_BITS, or fewer so that keys collide
 * (tests). */
struct tsp_ids *tsp_ids_new(unsigned bits);
struct tsp_ids *tsp_ids_ref(struct tsp_ids *);
/* Drops a reference; the last one saves unsaved ids, if possible. */
void tsp_ids_unref(struct tsp_ids *);

/* Sets the file of the table, and loads the ids in it. The same path is not read again. ERR_FORMAT, ERR_STALE: the file
 * is damaged or has another version, and will be replaced; other errors: it cannot be read. Ids given since stay as
 * they are in any case. */
int tsp_ids_keep_in(struct tsp_ids *, const char *path, struct err *e);
/* Id of the key, never 0; a new one if the key has none. O(log ids) */
uint64_t tsp_ids_of(struct tsp_ids *, uint64_t key);
/* Writes new ids if it is worth while. At once if some are not their key's own bits, since these depend on the order of
 * requests. Else when they are a share of all, so that an id costs O(1) amortised. `now`: in any case. tsp_ids_unref
 * reports no error, so callers that want it call this before. */
int tsp_ids_save(struct tsp_ids *, bool now, struct err *e);

#endif
