/* SPDX-License-Identifier: MIT */
/* Private to events: a growing set of item numbers with rank and selection: the lines of a filtered table.
 *
 * Numbers are in blocks of 65536. A block holds 16-bit positions while it has at most 4096, else a bit per number. So a
 * set takes at most one bit per item read and at most two bytes per number in it. Not thread-safe. */
#ifndef WEFT_EVENTS_SET_H
#define WEFT_EVENTS_SET_H

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/mem.h"

struct event_block {
    uint64_t base;           /* number / 65536 */
    uint64_t before;         /* count of numbers in the blocks before */
    uint32_t n, cap;         /* cap: room for positions; 0: bits */
    union { uint16_t *positions; uint64_t *bits; };
};
/* zero-initialise; has no empty blocks */
struct event_set { VEC(struct event_block) blocks; uint64_t n; size_t bytes; };

/* Adds a number greater than all before. */
void events_set_add(struct event_set *, uint64_t number);
/* Count of lower numbers in the set. O(log blocks). */
uint64_t events_set_rank(const struct event_set *, uint64_t number);
/* Numbers of ranks first, first + 1, …: at most `max`. Returns their count. */
size_t events_set_get(const struct event_set *, uint64_t first, uint64_t *out, size_t max);
void events_set_fini(struct event_set *);

#endif
