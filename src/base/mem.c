/* SPDX-License-Identifier: MIT */
#include "base/mem.h"

#include <malloc.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "base/err.h"
#include "base/large.h"

/* ---- the reserve ---- */

enum { SMALLEST_RESERVE = 4 << 20, LARGE = 32 << 20, TRIES = 2000, TRY_EVERY_NS = 5000000 };

atomic_bool mem_is_short;
_Thread_local bool mem_thread_lacks;

static struct {
    pthread_mutex_t lock;
    atomic_size_t wanted; /* 0: no reserve */
    void *p;
    size_t size;
} reserve = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* Takes as much of the reserve as the system has. The lock is held. */
static bool take_reserve(void)
{
    size_t wanted = atomic_load_explicit(&reserve.wanted, memory_order_relaxed);
    for (size_t size = wanted; !reserve.p && size >= SMALLEST_RESERVE; size /= 2) {
        void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (p == MAP_FAILED)
            continue;
        reserve.p = p;
        reserve.size = size;
    }
    return reserve.p != NULL;
}

/* Gives the reserve back. The lock is held. */
static bool give_reserve(void)
{
    if (!reserve.p)
        return false;
    munmap(reserve.p, reserve.size);
    reserve.p = NULL;
    return true;
}

void mem_reserve(size_t bytes)
{
    pthread_mutex_lock(&reserve.lock);
    give_reserve();
    atomic_store(&reserve.wanted, bytes);
    atomic_store(&mem_is_short, bytes && !take_reserve());
    pthread_mutex_unlock(&reserve.lock);
}

static bool has_reserve(void)
{
    return atomic_load_explicit(&reserve.wanted, memory_order_relaxed) > 0;
}

void mem_give_back(void)
{
    large_give_back();
    malloc_trim(0); /* freed memory still belongs to the heap */
}

bool mem_recover(void)
{
    if (!atomic_load_explicit(&mem_is_short, memory_order_relaxed))
        return true;
    mem_give_back();
    pthread_mutex_lock(&reserve.lock);
    bool taken = take_reserve();
    if (taken)
        atomic_store(&mem_is_short, false);
    pthread_mutex_unlock(&reserve.lock);
    return taken;
}

bool mem_again(unsigned *tried)
{
    if (large_give_back())
        return true;
    if (!has_reserve())
        return false;
    mem_thread_lacks = true;
    pthread_mutex_lock(&reserve.lock);
    atomic_store(&mem_is_short, true);
    bool given = give_reserve();
    pthread_mutex_unlock(&reserve.lock);
    if (!given && (*tried)++)
        nanosleep(&(struct timespec){.tv_nsec = TRY_EVERY_NS}, NULL);
    return given || *tried < TRIES;
}

int mem_check(const char *what, struct err *e)
{
    if (!mem_short())
        return 0;
    return err_set(e, ERR_NOMEM, "out of memory: %s; ask for less at once, or give the server more", what);
}

int mem_room(size_t bytes, const char *what, struct err *e)
{
    if (!has_reserve() || bytes < LARGE)
        return 0;
    do {
        void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (p != MAP_FAILED) {
            munmap(p, bytes);
            return 0;
        }
    } while (large_give_back());
    return err_set(e, ERR_NOMEM, "out of memory: %s needs %zu MB at once; give the server more", what, bytes >> 20);
}

/* ---- allocation ---- */

void mem_lack(size_t size, unsigned *tried)
{
    if (mem_again(tried))
        return;
    char line[128];
    int n = snprintf(line, sizeof line,
        "weft: out of memory: %zu bytes more are needed; ask for less, free memory, or raise `ulimit -v`\n", size);
    ssize_t ignored = write(STDERR_FILENO, line, (size_t)n);
    (void)ignored;
    _exit(1); /* no cleanup: other threads are still running */
}

void *mem_alloc(size_t size)
{
    void *p = malloc(size);
    for (unsigned tried = 0; !p && size; p = malloc(size))
        mem_lack(size, &tried);
    return p;
}

void *mem_zalloc(size_t size)
{
    void *p = calloc(1, size);
    for (unsigned tried = 0; !p && size; p = calloc(1, size))
        mem_lack(size, &tried);
    return p;
}

void *mem_resize(void *old, size_t size)
{
    void *p = realloc(old, size);
    for (unsigned tried = 0; !p && size; p = realloc(old, size))
        mem_lack(size, &tried);
    return p;
}

void *mem_try(size_t n, size_t item_bytes)
{
    return calloc(n ? n : 1, item_bytes);
}

void *mem_try_resize(void *p, size_t size)
{
    return realloc(p, size);
}

char *mem_strdup(const char *s)
{
    size_t n = strlen(s) + 1;
    return memcpy(mem_alloc(n), s, n);
}

char *mem_printf(const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(NULL, 0, fmt, ap);
    va_end(ap);
    char *s = mem_alloc((size_t)n + 1);
    va_start(ap, fmt);
    vsnprintf(s, (size_t)n + 1, fmt, ap);
    va_end(ap);
    return s;
}

void *mem_map(size_t size)
{
    size_t whole = size + MEM_HUGE_PAGE;
    uint8_t *p = MAP_FAILED;
    for (unsigned tried = 0;;) {
        p = mmap(NULL, whole, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (p != MAP_FAILED)
            break;
        mem_lack(size, &tried);
    }
    size_t before = -(uintptr_t)p % MEM_HUGE_PAGE, behind = whole - before - size;
    if (before)
        munmap(p, before);
    if (behind)
        munmap(p + before + size, behind);
    madvise(p + before, size, MADV_HUGEPAGE); /* advice, may fail */
    return p + before;
}

void mem_unmap(void *p, size_t size)
{
    if (p)
        munmap(p, size);
}

/* Doubles the array. If there is no memory, grows as little as the reserve can cover: large blocks grow in place, so
 * only the added bytes count. */
void *mem_grow(void *p, size_t *cap, size_t need, size_t item)
{
    enum { STEP = 1 << 20 };
    size_t c = *cap ? *cap * 2 : 16, bytes;
    if (c < need)
        c = need;
    if (__builtin_mul_overflow(c, item, &bytes))
        bytes = SIZE_MAX; /* size that cannot be had */
    if (bytes >= LARGE && bytes < SIZE_MAX - STEP && has_reserve()) {
        void *larger = realloc(p, bytes);
        if (larger) {
            *cap = c;
            return larger;
        }
        c = need + STEP / item;
        bytes = c * item;
    }
    *cap = c;
    return mem_resize(p, bytes);
}
