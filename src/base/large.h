/* SPDX-License-Identifier: MIT */
/* Large blocks of memory that come and go, as the texts of large answers do. Memory that is new to a process costs a
 * fault for each page, which is several times what it costs to write into it. So blocks lie in huge pages
 * where the system has them, and a process that says so keeps some for a while for who comes next. */
#ifndef WEFT_BASE_LARGE_H
#define WEFT_BASE_LARGE_H

#include <stdbool.h>
#include <stddef.h>

/* Blocks are whole multiples of it; what is smaller belongs to malloc. */
enum { LARGE_BLOCK = 128 << 10 };

/* So many bytes are kept at most, from now on; 0, as it is at first: none. */
void large_keep(size_t bytes);
/* A block of at least so many bytes, *has of them, with whatever was in it. `old` (may be NULL) of *has bytes goes on
 * in it with its first `used` bytes, and is no more. NULL: it is not to be had, or the address space is limited
 * (`ulimit -v`) and malloc has all of it; `old` is as it was. Thread-safe. */
void *large_try(void *old, size_t *has, size_t used, size_t bytes);
/* NULL-safe. bytes: all that it has. */
void large_free(void *, size_t bytes);
/* To be called about each half second: what nobody has needed for some seconds goes back to the system. */
void large_cool(void);
/* All that is kept goes back to the system; false: nothing was. */
bool large_give_back(void);

#endif
