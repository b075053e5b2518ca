#include "base/mem.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

static void *checked(void *p, size_t size)
{
    if (p || !size)
        return p;
    fprintf(stderr, "weft: out of memory (%zu bytes)\n", size);
    abort();
}

void *mem_alloc(size_t size)
{
    return checked(malloc(size), size);
}

void *mem_zalloc(size_t size)
{
    return checked(calloc(1, size), size);
}

void *mem_resize(void *p, size_t size)
{
    return checked(realloc(p, size), size);
}

char *mem_strdup(const char *s)
{
    size_t n = strlen(s) + 1;
    return memcpy(mem_alloc(n), s, n);
}

void *mem_map(size_t size)
{
    size_t whole = size + MEM_HUGE_PAGE;
    uint8_t *p = mmap(NULL, whole, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED)
        return checked(NULL, size);
    size_t before = -(uintptr_t)p % MEM_HUGE_PAGE, behind = whole - before - size;
    if (before)
        munmap(p, before);
    if (behind)
        munmap(p + before + size, behind);
    madvise(p + before, size, MADV_HUGEPAGE); /* only advice */
    return p + before;
}

void mem_unmap(void *p, size_t size)
{
    if (p)
        munmap(p, size);
}

void *mem_grow(void *p, size_t *cap, size_t need, size_t item)
{
    size_t c = *cap ? *cap * 2 : 16;
    if (c < need)
        c = need;
    if (c > SIZE_MAX / item)
        checked(NULL, SIZE_MAX);
    *cap = c;
    return mem_resize(p, c * item);
}
