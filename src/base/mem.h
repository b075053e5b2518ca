/* SPDX-License-Identifier: MIT */
/* Allocation that does not fail, and growable arrays. Sizes claimed by inputs are checked against limits before they
 * come here. */
#ifndef WEFT_BASE_MEM_H
#define WEFT_BASE_MEM_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

/* malloc/calloc/realloc for callers who could do nothing about a failure. Where the system has no memory, a process
 * without a reserve prints one line and exits with 1; one with a reserve goes on, see below. */
void *mem_alloc(size_t size_bytes);
void *mem_zalloc(size_t size_bytes);
void *mem_resize(void *p, size_t size_bytes);
char *mem_strdup(const char *s);
char *mem_printf(const char *fmt, ...) __attribute__((format(printf, 1, 2), nonnull(1)));
/* Zeroed, or NULL: for what is large because the input or the request is, so that only its user fails. free() it. */
void *mem_try(size_t n, size_t item_bytes);
/* As mem_resize, or NULL, and `p` is as it was. */
void *mem_try_resize(void *p, size_t size_bytes);
/* Zeroed memory for large blocks that live long: whole multiples of 2 MiB, in huge pages where the system has them, so
 * that one fault brings what else 512 would. mem_unmap, with the same size, frees it. */
enum { MEM_HUGE_PAGE = 2 << 20 };
void *mem_map(size_t size_bytes);
void mem_unmap(void *p, size_t size_bytes);

/* ---- a process that shall survive the want of memory ----
 *
 * A server holds a reserve: address space that is of no use but to be given back when an allocation fails, which
 * then is tried again. From then on memory is short, until the reserve could be had again; meanwhile whoever works
 * ends early with ERR_NOMEM (mem_short), at the places where it looks whether its client is still there, and so gives
 * memory back. The reserve is what all of them need until they look; arrays that would double take little of it.
 * An allocation that does not even fit into the reserve waits some seconds for the others to end; only one that waits
 * in vain ends the process: what is as large as a trace asks before (mem_room, mem_try). */

/* Takes a reserve of so many bytes, or half of it, a quarter, …: what the system has. 0 gives it back for good. Before
 * other threads start. */
void mem_reserve(size_t bytes);
/* Takes the reserve again if memory is short; false: it cannot be had yet. Thread-safe; costs nothing otherwise. */
bool mem_recover(void);
/* An allocation that was not made here has failed: gives the reserve back, the next times waits for others. False:
 * trying again does not help. *tried: 0 at first. */
bool mem_again(unsigned *tried);
/* The same of so many bytes, for who cannot go on without them: returns if trying again may help, else ends the process
 * with a line that says why. */
void mem_lack(size_t size_bytes, unsigned *tried);

extern atomic_bool mem_is_short;
extern _Thread_local bool mem_thread_lacks;
/* Work should end: there is no reserve now, or it was this thread that took it. */
static inline bool mem_short(void)
{
    return mem_thread_lacks || atomic_load_explicit(&mem_is_short, memory_order_relaxed);
}
/* This thread begins with other work. */
static inline void mem_begin(void) { mem_thread_lacks = false; }
struct err;
/* ERR_NOMEM, with what to do, and who was to get the memory ("reading the events"); 0 while memory is not short. */
int mem_check(const char *what, struct err *);
/* After much has been freed that will not be needed again: the system gets it back. Some ms. */
void mem_give_back(void);
/* Before `what` takes so many bytes at once, by the size of a trace: ERR_NOMEM if they are not to be had. 0 always
 * where there is no reserve. */
int mem_room(size_t bytes, const char *what, struct err *);

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
