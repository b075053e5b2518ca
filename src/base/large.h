/* SPDX-License-Identifier: MIT */
/* Large blocks of short-lived memory, such as texts of large answers. Fresh memory costs a page fault per page, which
 * is several times the cost of writing to it. Blocks therefore use huge pages if the system has them, and a process may
 * keep some freed blocks for a while for reuse. */
#ifndef WEFT_BASE_LARGE_H
#define WEFT_BASE_LARGE_H

#include <stdbool.h>
#include <stddef.h>

/* Unit of block sizes; smaller sizes belong to malloc. */
enum { LARGE_BLOCK = 128 << 10 };

/* Sets the limit of freed bytes that are kept; 0, the initial value: none. */
void large_keep(size_t bytes);
/* Returns a block of at least `bytes` bytes with undefined contents; its size is put into *has. `old` (may be NULL) of
 * *has bytes is moved or grown into it with its first `used` bytes, and must not be used any more. NULL: no memory, or
 * the address space is limited (`ulimit -v`) so that malloc manages all of it; `old` is unchanged. Thread-safe. */
void *large_try(void *old, size_t *has, size_t used, size_t bytes);
/* NULL-safe. bytes: size of the block. */
void large_free(void *, size_t bytes);
/* Returns blocks unused for some seconds to the system. Call it about every half second. */
void large_cool(void);
/* Returns all kept blocks to the system; false: there were none. */
bool large_give_back(void);

#endif
