/* SPDX-License-Identifier: MIT */
/* Preloaded library: makes the program's allocations fail as the file $FAIL_MEMORY says, which the test maps as well.
 * Only for glibc, whose own names of the functions are called. */
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Little-endian 64-bit words of the file. */
struct orders {
    _Atomic int64_t left;     /* allocations until one fails; negative: failing goes on; INT64_MAX: none fails */
    _Atomic int64_t in_a_row; /* number of failures then */
    _Atomic int64_t smallest; /* minimum size in bytes; smaller ones neither fail nor count */
    _Atomic int64_t failed;   /* number of failures so far */
};

static struct orders *orders;

void *__libc_malloc(size_t);
void *__libc_calloc(size_t, size_t);
void *__libc_realloc(void *, size_t);

__attribute__((constructor)) static void take_orders(void)
{
    const char *path = getenv("FAIL_MEMORY");
    int fd = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
    if (fd < 0)
        return;
    void *p = (void *)syscall(SYS_mmap, NULL, sizeof *orders, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    if (p != MAP_FAILED)
        orders = p;
}

static int fails(size_t size)
{
    if (!orders || (int64_t)size < atomic_load(&orders->smallest) || atomic_load(&orders->left) == INT64_MAX)
        return 0;
    int64_t left = atomic_fetch_sub(&orders->left, 1);
    if (left > 0 || -left >= atomic_load(&orders->in_a_row))
        return 0;
    atomic_fetch_add(&orders->failed, 1);
    errno = ENOMEM;
    return 1;
}

#pragma GCC visibility push(default)

void *malloc(size_t size)
{
    return fails(size) ? NULL : __libc_malloc(size);
}

void *calloc(size_t n, size_t size)
{
    return n < SIZE_MAX / (size + 1) && fails(n * size) ? NULL : __libc_calloc(n, size);
}

void *realloc(void *p, size_t size)
{
    return size && fails(size) ? NULL : __libc_realloc(p, size);
}

/* mmap as called by programs made for large files (_FILE_OFFSET_BITS=64). */
void *mmap(void *at, size_t size, int protection, int flags, int fd, off_t offset)
{
    return fails(size) ? MAP_FAILED : (void *)syscall(SYS_mmap, at, size, protection, flags, fd, offset);
}
