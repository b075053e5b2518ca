/* Allocation that does not fail, and growable arrays. Sizes claimed by inputs are checked against limits before they
 * come here. */
#ifndef WEFT_BASE_MEM_H
#define WEFT_BASE_MEM_H

#include <stddef.h>

/* malloc/calloc/realloc that print one line and abort when the system has no memory. */
void *mem_alloc(size_t size_bytes);
void *mem_zalloc(size_t size_bytes);
void *mem_resize(void *p, size_t size_bytes);
char *mem_strdup(const char *s);
/* Zeroed memory for large blocks that live long: whole multiples of 2 MiB, in huge pages where the system has them, so
 * that one fault brings what else 512 would. mem_unmap, with the same size, frees it. */
enum { MEM_HUGE_PAGE = 2 << 20 };
void *mem_map(size_t size_bytes);
void mem_unmap(void *p, size_t size_bytes);

/* To be called some time before the memory is changed: brings it into the caches meanwhile. */
static inline void mem_fetch(const void *p, size_t size_bytes)
{
    for (size_t at = 0; at < size_bytes; at += 64)
        __builtin_prefetch((const char *)p + at, 1);
    __builtin_prefetch((const char *)p + size_bytes - 1, 1);
}

/* A growable array: struct { T *v; size_t n, cap; }. Zero-initialise; free(v.v) ends it. */
#define VEC(T) \
    struct { \
        T *v; \
        size_t n, cap; \
    }
/* Room for one more; returns nothing. Amortised O(1). */
#define vec_reserve(a, extra) \
    do { \
        if ((a)->n + (extra) > (a)->cap) \
            (a)->v = mem_grow((a)->v, &(a)->cap, (a)->n + (extra), sizeof *(a)->v); \
    } while (0)
#define vec_push(a, item) \
    do { \
        vec_reserve(a, 1); \
        (a)->v[(a)->n++] = (item); \
    } while (0)
#define vec_free(a) \
    do { \
        free((a)->v); \
        (a)->v = NULL; \
        (a)->n = (a)->cap = 0; \
    } while (0)
void *mem_grow(void *p, size_t *cap, size_t need, size_t item_bytes);

#endif
