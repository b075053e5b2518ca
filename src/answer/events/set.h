/* SPDX-License-Identifier: MIT */
/* Private to events: a growing set of item numbers with rank and selection: the lines of a filtered table.
 *
 * Numbers lie in blocks of 65536; a block holds 16-bit positions while it has at most 4096, else a bit per number. So a
 * set costs at most one bit per item read and two bytes per number in it, whichever is less. Not thread-safe. */
#ifndef WEFT_EVENTS_SET_H
#define WEFT_EVENTS_SET_H

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/mem.h"

struct event_block {
    uint64_t base;           /* number / 65536 */
    uint64_t before;         /* numbers in the blocks before */
    uint32_t n, cap;         /* cap: positions there is room for; 0: bits */
    union { uint16_t *positions; uint64_t *bits; };
};
/* zero-initialise; only blocks that hold something */
struct event_set { VEC(struct event_block) blocks; uint64_t n; size_t bytes; };

/* Greater than all before. */
void event_set_add(struct event_set *, uint64_t number);
/* How many numbers of the set are less. O(log blocks). */
uint64_t event_set_rank(const struct event_set *, uint64_t number);
/* The numbers of ranks first, first + 1, …: at most `max`. Returns how many. */
size_t event_set_get(const struct event_set *, uint64_t first, uint64_t *out, size_t max);
void event_set_fini(struct event_set *);

#endif
