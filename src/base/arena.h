/* SPDX-License-Identifier: MIT */
/* Arena: many small allocations freed at once. One per trace, request or query. Not thread-safe. */
#ifndef WEFT_BASE_ARENA_H
#define WEFT_BASE_ARENA_H

#include <stddef.h>

struct arena_block;
/* Zero-initialise; arena_fini frees everything. */
struct arena {
    struct arena_block *head;
    size_t used_bytes, total_bytes; /* bytes used in the head block; bytes allocated from the system over all blocks */
};

/* Zeroed memory aligned to 16 bytes, valid until arena_fini. Never NULL for size > 0, as mem_alloc; inputs
 * that claim sizes are checked against limits before they come here. */
void *arena_alloc(struct arena *a, size_t size_bytes);
char *arena_strndup(struct arena *a, const char *s, size_t n);
char *arena_strdup(struct arena *a, const char *s);
char *arena_printf(struct arena *a, const char *fmt, ...) __attribute__((format(printf, 2, 3), nonnull(2)));
void arena_fini(struct arena *a);

#define arena_new(a, type, n) ((type *)arena_alloc((a), sizeof(type) * (size_t)(n)))

#endif
