/* SPDX-License-Identifier: MIT */
#include "base/arena.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

struct arena_block {
    struct arena_block *next;
    size_t size;
    _Alignas(16) unsigned char data[];
};

enum { FIRST_BLOCK = 4096, SMALL_BLOCK = 1 << 20 };

/* Maps blocks beyond SMALL_BLOCK: zeroed by the system, in huge pages. */
static struct arena_block *block_new(size_t step)
{
    size_t size = sizeof(struct arena_block) + step;
    struct arena_block *b = step <= SMALL_BLOCK ? mem_zalloc(size) : mem_map(size);
    b->size = step;
    return b;
}

static void block_free(struct arena_block *b)
{
    if (b->size <= SMALL_BLOCK)
        free(b);
    else
        mem_unmap(b, sizeof *b + b->size);
}

/* Size of a block for at least `size` more: blocks double, up to 2 MiB each. */
static size_t next_step(const struct arena *a, size_t size)
{
    size_t step = a->head ? a->head->size * 2 : FIRST_BLOCK;
    if (step < size)
        step = size;
    if (step <= SMALL_BLOCK)
        return step;
    size_t whole = sizeof(struct arena_block) + size + MEM_HUGE_PAGE - 1;
    return whole - whole % MEM_HUGE_PAGE - sizeof(struct arena_block);
}

void *arena_alloc(struct arena *a, size_t size)
{
    size = (size + 15) & ~(size_t)15;
    if (!a->head || a->head->size - a->used_bytes < size) {
        struct arena_block *b = block_new(next_step(a, size));
        b->next = a->head;
        a->head = b;
        a->used_bytes = 0;
        a->total_bytes += sizeof *b + b->size;
    }
    void *p = a->head->data + a->used_bytes;
    a->used_bytes += size;
    return p;
}

char *arena_strndup(struct arena *a, const char *s, size_t n)
{
    char *p = arena_alloc(a, n + 1);
    memcpy(p, s, n);
    p[n] = '\0';
    return p;
}

char *arena_strdup(struct arena *a, const char *s)
{
    return arena_strndup(a, s, strlen(s));
}

char *arena_printf(struct arena *a, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(NULL, 0, fmt, ap);
    va_end(ap);
    char *p = arena_alloc(a, (size_t)n + 1);
    va_start(ap, fmt);
    vsnprintf(p, (size_t)n + 1, fmt, ap);
    va_end(ap);
    return p;
}

void arena_fini(struct arena *a)
{
    for (struct arena_block *b = a->head, *next; b; b = next) {
        next = b->next;
        block_free(b);
    }
    *a = (struct arena){0};
}
