/* SPDX-License-Identifier: MIT */
/* Allocation that does not fail, and growable arrays. Callers check sizes claimed by inputs against limits first. */
#ifndef WEFT_BASE_MEM_H
#define WEFT_BASE_MEM_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

/* malloc/calloc/realloc for callers that cannot handle a failure. Without memory, a process without a reserve prints
 * one line and exits with 1; one with a reserve goes on, see below. */
void *mem_alloc(size_t size_bytes);
void *mem_zalloc(size_t size_bytes);
void *mem_resize(void *p, size_t size_bytes);
char *mem_strdup(const char *s);
char *mem_printf(const char *fmt, ...) __attribute__((format(printf, 1, 2), nonnull(1)));
/* Zeroed memory, or NULL: for blocks whose size depends on the input or request, so that only that user fails. free()
 * it. */
void *mem_try(size_t n, size_t item_bytes);
/* Resizes as mem_resize. On failure returns NULL, and `p` is unchanged. */
void *mem_try_resize(void *p, size_t size_bytes);
/* Zeroed memory for large long-lived blocks: multiples of 2 MiB, in huge pages if the system has them, so one fault
 * replaces 512. Freed by mem_unmap with the same size. */
enum { MEM_HUGE_PAGE = 2 << 20 };
void *mem_map(size_t size_bytes);
void mem_unmap(void *p, size_t size_bytes);

/* ---- survival without memory ----
 *
 * A server holds a reserve: address space that is given back when an allocation fails, which is then retried. From then
 * on memory is short, until the reserve can be taken again. Meanwhile workers end early with ERR_NOMEM (mem_short) at
 * the places where they check whether their client is still connected, which frees memory. The reserve covers all
 * workers until they check; arrays that would double take little of it. An allocation that does not fit even into the
 * reserve waits some seconds for the others to end. Only if it waits in vain does the process exit; so allocations as
 * large as a trace ask first (mem_room, mem_try). */

/* Takes a reserve of so many bytes, or half of it, a quarter, …, as the system allows. 0 gives it back for good. Call
 * it before other threads start. */
void mem_reserve(size_t bytes);
/* Takes the reserve again if memory is short; false: not possible yet. Thread-safe; costs nothing otherwise. */
bool mem_recover(void);
/* Handles an allocation that failed elsewhere: gives the reserve back; on further calls waits for other threads. False:
 * a retry does not help. *tried: 0 at first. */
bool mem_again(unsigned *tried);
/* Returns if a retry may help, otherwise exits with a message: mem_again for callers that cannot go on without the
 * bytes. */
void mem_lack(size_t size_bytes, unsigned *tried);

extern atomic_bool mem_is_short;
extern _Thread_local bool mem_thread_lacks;
/* Returns whether work should end: there is no reserve now, or this thread used it. */
static inline bool mem_short(void)
{
    return mem_thread_lacks || atomic_load_explicit(&mem_is_short, memory_order_relaxed);
}
/* Marks that this thread begins other work. */
static inline void mem_begin(void) { mem_thread_lacks = false; }
struct err;
/* Returns ERR_NOMEM while memory is short, with advice and what the memory was for ("reading the events"); otherwise
 * 0. */
int mem_check(const char *what, struct err *);
/* Returns freed memory to the system. Call it after freeing much that is not needed again. Takes some ms. */
void mem_give_back(void);
/* Checks whether so many bytes, proportional to a trace, can be had for `what`: ERR_NOMEM if not. Always 0 without a
 * reserve. */
int mem_room(size_t bytes, const char *what, struct err *);

/* Brings memory into the caches. Call it some time before the memory is changed. */
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
/* Reserves room for `extra` more items. Amortised O(1). */
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
