/* SPDX-License-Identifier: MIT */
#include "base/large.h"

#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include "base/mem.h"

/* Sanitizers observe malloc only. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { FROM_MALLOC = 1 };
#else
enum { FROM_MALLOC = 0 };
#endif

enum { MOST_KEPT = 256, COOLS_AFTER = 10 };

struct spare {
    void *p;
    size_t bytes;
    unsigned since; /* value of `now` when it was freed */
};

static struct {
    pthread_mutex_t lock; /* guards all fields below */
    size_t most, bytes;
    unsigned now; /* number of calls of large_cool */
    size_t n;
    struct spare v[MOST_KEPT]; /* spare blocks, oldest first */
} kept = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* ---- blocks of the system ---- */

static void *map(size_t bytes)
{
    if (FROM_MALLOC)
        return malloc(bytes);
    size_t spare = bytes < MEM_HUGE_PAGE ? 0 : MEM_HUGE_PAGE;
    uint8_t *p = mmap(NULL, bytes + spare, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED && spare) /* use the memory of the spare blocks, and no more */
        p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, spare = 0);
    if (p == MAP_FAILED || !spare)
        return p == MAP_FAILED ? NULL : p;
    size_t before = -(uintptr_t)p % MEM_HUGE_PAGE;
    if (before)
        munmap(p, before);
    munmap(p + before + bytes, spare - before);
    madvise(p + before, bytes, MADV_HUGEPAGE); /* advice, may fail */
    return p + before;
}

static void unmap(void *p, size_t bytes)
{
    if (FROM_MALLOC)
        free(p);
    else
        munmap(p, bytes);
}

/* Grows the block in place or elsewhere without copying, so that even a block that takes almost all memory can grow. */
static void *grow(void *old, size_t has, size_t bytes)
{
    if (FROM_MALLOC)
        return realloc(old, bytes);
    void *p = mremap(old, has, bytes, MREMAP_MAYMOVE);
    if (p == MAP_FAILED)
        return NULL;
    if (bytes >= MEM_HUGE_PAGE)
        madvise(p, bytes, MADV_HUGEPAGE);
    return p;
}

/* ---- spare blocks ---- */

/* Removes a spare block. The lock is held. */
static struct spare take_at(size_t i)
{
    struct spare k = kept.v[i];
    kept.bytes -= k.bytes;
    memmove(&kept.v[i], &kept.v[i + 1], (--kept.n - i) * sizeof *kept.v);
    return k;
}

/* Smallest spare block that is large enough and not much too large; of equal ones the last used. */
static struct spare take_kept(size_t bytes)
{
    size_t best = SIZE_MAX;
    struct spare k = {0};
    pthread_mutex_lock(&kept.lock);
    for (size_t i = 0; i < kept.n; i++)
        if (kept.v[i].bytes >= bytes && kept.v[i].bytes - bytes <= bytes / 4 &&
            (best == SIZE_MAX || kept.v[i].bytes <= kept.v[best].bytes))
            best = i;
    if (best != SIZE_MAX)
        k = take_at(best);
    pthread_mutex_unlock(&kept.lock);
    return k;
}

/* Frees blocks older than `age`, and as many more as exceed `most` bytes. Returns whether there were any. */
static bool shed(size_t most, unsigned age)
{
    bool any = false;
    for (struct spare k;; unmap(k.p, k.bytes), any = true) {
        pthread_mutex_lock(&kept.lock);
        bool due = kept.n && (kept.bytes > most || kept.now - kept.v[0].since >= age);
        if (due)
            k = take_at(0);
        pthread_mutex_unlock(&kept.lock);
        if (!due)
            return any;
    }
}

void large_keep(size_t bytes)
{
    pthread_mutex_lock(&kept.lock);
    kept.most = FROM_MALLOC ? 0 : bytes;
    pthread_mutex_unlock(&kept.lock);
    shed(bytes, UINT32_MAX);
}

/* Limited address space is better left to the heaps, which serve all sizes. */
static bool is_limited(void)
{
    struct rlimit r;
    return !getrlimit(RLIMIT_AS, &r) && r.rlim_cur != RLIM_INFINITY;
}

void *large_try(void *old, size_t *has, size_t used, size_t bytes)
{
    size_t whole = (bytes + LARGE_BLOCK - 1) / LARGE_BLOCK * LARGE_BLOCK;
    if (whole < bytes || whole > PTRDIFF_MAX)
        return NULL;
    if (is_limited()) {
        large_give_back();
        return NULL;
    }
    struct spare k = take_kept(whole);
    if (!k.p && old)
        k = (struct spare){.p = grow(old, *has, whole), .bytes = whole};
    else if (!k.p)
        k = (struct spare){.p = map(whole), .bytes = whole};
    else if (old) {
        memcpy(k.p, old, used);
        large_free(old, *has);
    }
    if (k.p)
        *has = k.bytes;
    return k.p;
}

void large_free(void *p, size_t bytes)
{
    if (!p)
        return;
    pthread_mutex_lock(&kept.lock);
    bool keeps = !mem_short() && kept.n < MOST_KEPT && bytes <= kept.most / 2 && kept.bytes + bytes <= kept.most;
    if (keeps) {
        kept.v[kept.n++] = (struct spare){p, bytes, kept.now};
        kept.bytes += bytes;
    }
    pthread_mutex_unlock(&kept.lock);
    if (!keeps)
        unmap(p, bytes);
}

void large_cool(void)
{
    pthread_mutex_lock(&kept.lock);
    kept.now++;
    pthread_mutex_unlock(&kept.lock);
    shed(SIZE_MAX, COOLS_AFTER);
}

bool large_give_back(void)
{
    return shed(0, 0);
}
