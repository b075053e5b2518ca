/* SPDX-License-Identifier: MIT */
/* Private to tsp: the ids by which clients know entries, one table for each experiment. An id is the high 52 bits of
 * its entry's key, a hash of who the entry is; where another key has them already it is the first of the key's further
 * hashes that nobody has. What was once given is kept in a file (docs/formats/ids.md), so that no order of openings,
 * growth or restarts gives it to another. Thread-safe. */
#ifndef WEFT_TSP_IDS_H
#define WEFT_TSP_IDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

enum { IDS_BITS = 52 };              /* whole in every client's numbers */

struct tsp_ids;
/* None are given yet. bits: of an id, at most 63; IDS_BITS, or fewer so that keys meet (tests). One reference. */
struct tsp_ids *ids_new(unsigned bits);
struct tsp_ids *ids_ref(struct tsp_ids *);
/* The last one keeps what is not kept yet, if it can be. */
void ids_unref(struct tsp_ids *);

/* They are kept in that file from now on: what it holds was given before. A path that was said before is not read
 * again. ERR_FORMAT, ERR_STALE: it is damaged or another version's, and will be replaced; other errors: it cannot be
 * read. What was given since keeps its ids in any case. */
int ids_keep_in(struct tsp_ids *, const char *path, struct err *e);
/* The key's id, never 0; given now, if it was not before. O(log ids) */
uint64_t ids_of(struct tsp_ids *, uint64_t key);
/* Writes what was given since, when that is worth while: at once where the ids are not the keys' own, which another
 * order of asking would give otherwise; else when it is a share of all, so that an id costs O(1) in all. `now`: in any
 * case. ids_unref reports nothing, so who wants to know why it failed asks here before. */
int ids_save(struct tsp_ids *, bool now, struct err *e);

#endif
