/* SPDX-License-Identifier: MIT */
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/nolinks.h"
#include "base/replace.h"

static pthread_mutex_t guard_lock = PTHREAD_MUTEX_INITIALIZER;
static struct file_guard *_Atomic all_guards;
static struct file_guard *free_guards;
static struct sigaction previous_action;
static size_t page_bytes;
enum { LEAST_PAGE_BYTES = 4096 };

static struct file_guard *guard_of(uintptr_t address)
{
    for (struct file_guard *g = atomic_load_explicit(&all_guards, memory_order_acquire); g; g = g->next) {
        uintptr_t begin = atomic_load_explicit(&g->begin, memory_order_acquire);
        if (begin && address >= begin && address < atomic_load_explicit(&g->end, memory_order_relaxed))
            return g;
    }
    return NULL;
}

/* Handles the loss of a mapped page: marks it, maps zeros from there to the end of the mapping (one call, however much
 * was cut off), and lets the load run again. The mark comes first, so that a reader of the zeros finds it. */
static bool lose(uintptr_t address)
{
    struct file_guard *g = guard_of(address);
    uintptr_t page = address & ~(uintptr_t)(page_bytes - 1);
    if (!g)
        return false;
    size_t from = page - atomic_load_explicit(&g->begin, memory_order_relaxed), known = atomic_load(&g->lost_from);
    while (from < known && !atomic_compare_exchange_weak(&g->lost_from, &known, from))
        ;
    atomic_store(&g->lost, true);
    /* Direct system call: ThreadSanitizer takes mmap() for a write to the pages. */
    return syscall(SYS_mmap, page, atomic_load_explicit(&g->end, memory_order_relaxed) - page, PROT_READ,
               MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0) != -1;
}

/* SIGBUS handler; other faults go to the handler before it. */
static void on_bus_error(int signal_number, siginfo_t *info, void *context)
{
    int saved = errno;
    if (info->si_code > 0 && lose((uintptr_t)info->si_addr)) {
        errno = saved;
        return;
    }
    if (previous_action.sa_flags & SA_SIGINFO) {
        previous_action.sa_sigaction(signal_number, info, context);
    } else if (previous_action.sa_handler != SIG_DFL && previous_action.sa_handler != SIG_IGN) {
        previous_action.sa_handler(signal_number);
    } else {
        /* Default handler: the fault occurs again and ends the process. */
        signal(signal_number, SIG_DFL);
        if (info->si_code <= 0)
            raise(signal_number);
    }
    errno = saved;
}

static void catch_bus_errors(void)
{
    page_bytes = (size_t)sysconf(_SC_PAGESIZE);
    struct sigaction action = {.sa_sigaction = on_bus_error, .sa_flags = SA_SIGINFO | SA_ONSTACK};
    sigemptyset(&action.sa_mask);
    sigaction(SIGBUS, &action, &previous_action);
}

static struct file_guard *guard_take(const char *path, const uint8_t *data, size_t bytes)
{
    pthread_mutex_lock(&guard_lock);
    struct file_guard *g = free_guards;
    bool fresh = !g;
    if (fresh)
        g = mem_zalloc(sizeof *g);
    else
        free_guards = g->next_free;
    g->path = mem_strdup(path);
    atomic_store_explicit(&g->end, (uintptr_t)data + bytes, memory_order_relaxed);
    g->last_page = data + bytes - page_bytes;
    atomic_store_explicit(&g->lost, false, memory_order_relaxed);
    atomic_store_explicit(&g->lost_from, SIZE_MAX, memory_order_relaxed);
    atomic_store_explicit(&g->begin, (uintptr_t)data, memory_order_release);
    if (fresh) {
        g->next = atomic_load_explicit(&all_guards, memory_order_relaxed);
        atomic_store_explicit(&all_guards, g, memory_order_release);
    }
    pthread_mutex_unlock(&guard_lock);
    return g;
}

static void guard_give(struct file_guard *g)
{
    pthread_mutex_lock(&guard_lock);
    atomic_store_explicit(&g->begin, 0, memory_order_release);
    free(g->path);
    g->next_free = free_guards;
    free_guards = g;
    pthread_mutex_unlock(&guard_lock);
}

/* Real path of file_confine; NULL: no restriction. Written once, before threads are started. */
static char *confined;

void file_confine(const char *directory)
{
    free(confined);
    confined = directory ? mem_strdup(directory) : NULL;
}

/* Returns whether the open file respects file_confine. */
static bool is_confined(int fd, const char *path)
{
    char link[64], real[PATH_MAX];
    if (!file_is_below(path, confined))
        return true;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t n = readlink(link, real, sizeof real - 1);
    real[n > 0 ? n : 0] = '\0';
    return n > 0 && file_is_below(real, confined);
}

static const char *kind_of(mode_t mode)
{
    switch (mode & S_IFMT) {
    case S_IFDIR: return "a directory";
    case S_IFIFO: return "a FIFO (named pipe)";
    case S_IFSOCK: return "a socket";
    case S_IFCHR:
    case S_IFBLK: return "a device";
    case S_IFLNK: return "a symbolic link";
    default: return S_ISREG(mode) ? NULL : "something else";
    }
}

const char *file_odd_kind(const char *path)
{
    struct stat st;
    return stat(path, &st) ? NULL : kind_of(st.st_mode);
}

static int cannot_open(const char *path, struct err *e)
{
    int reason = errno, code = nolinks_err(e, path, "cannot open");
    if (reason != ENOENT && reason != ENOTDIR)
        return code;
    if (e)
        e->code = ERR_NOTFOUND;
    return ERR_NOTFOUND;
}

/* O_NONBLOCK keeps a FIFO by that name from hanging the program. */
static int open_regular(const char *path, bool follow, struct stat *st, struct err *e)
{
    int fd = follow ? open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK) : nolinks_open(path, O_RDONLY | O_NONBLOCK, 0);
    if (fd < 0)
        return errno == ENXIO ? err_set(e, ERR_IO, "%s: is a socket or a device, not a file", path)
                              : cannot_open(path, e);
    int code = ERR_OK;
    if (fstat(fd, st) != 0)
        code = err_sys(e, "%s: cannot look at", path);
    else if (!S_ISREG(st->st_mode))
        code = err_set(e, ERR_IO, "%s: is %s, not a file", path, kind_of(st->st_mode));
    else if (!is_confined(fd, path))
        code = err_set(e, ERR_IO, "%s: is a link out of %s, which is not followed", path, confined);
    if (code) {
        close(fd);
        return code;
    }
    return fd;
}

/* Zero pages that begin at a multiple of a huge page, so that a file's huge pages can be mapped there. NULL: no address
 * space. */
static uint8_t *reserve(size_t size)
{
    size_t whole = size + MEM_HUGE_PAGE - page_bytes;
    uint8_t *p = mmap(NULL, whole, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p == MAP_FAILED)
        return NULL;
    size_t before = -(uintptr_t)p % MEM_HUGE_PAGE, behind = whole - before - size;
    if (before)
        munmap(p, before);
    if (behind)
        munmap(p + before + size, behind);
    return p + before;
}

static int read_at(int fd, const char *path, uint8_t *to, size_t n, size_t offset, struct err *e)
{
    for (size_t got = 0; got < n;) {
        ssize_t r = pread(fd, to + got, n - got, (off_t)(offset + got));
        if (r > 0)
            got += (size_t)r;
        else if (r == 0)
            return err_set(e, ERR_LOST, "%s: became shorter while it was opened; try again", path);
        else if (errno != EINTR)
            return err_sys(e, "%s: cannot read at byte %zu", path, offset + got);
    }
    return ERR_OK;
}

static atomic_size_t mapped_files;
static size_t most_mapped_files;

static void find_most_mapped_files(void)
{
    enum { MAPPINGS_PER_FILE = 3, LEAST = 64, USUAL = 65530 };
    unsigned long mappings = USUAL;
    FILE *f = fopen("/proc/sys/vm/max_map_count", "re");
    if (f) {
        if (fscanf(f, "%lu", &mappings) != 1)
            mappings = USUAL;
        fclose(f);
    }
    size_t most = mappings / 2 / MAPPINGS_PER_FILE;
    most_mapped_files = most > LEAST ? most : LEAST;
}

bool file_map_room(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, find_most_mapped_files);
    return atomic_load_explicit(&mapped_files, memory_order_relaxed) < most_mapped_files;
}

/* Maps zero pages, and the file over all but its last page. The last page, full or not, is read, so that a cut within
 * it loses nothing. Behind the spare bytes it is mapped once more, for file_map_lost. */
static int map_file(int fd, const char *path, size_t size, struct file_map *out, struct err *e)
{
    size_t whole = size ? (size - 1) & ~(page_bytes - 1) : 0,
           last = whole + page_bytes + ((FILE_SPARE_BYTES + page_bytes - 1) & ~(page_bytes - 1)),
           total = whole ? last + page_bytes : last;
    uint8_t *p = reserve(total);
    if (!p)
        return err_sys(e, "%s: cannot map %zu bytes", path, size);
    int code = ERR_OK;
    if (whole &&
        (mmap(p, whole, PROT_READ, MAP_PRIVATE | MAP_FIXED, fd, 0) == MAP_FAILED ||
            mmap(p + last, page_bytes, PROT_READ, MAP_PRIVATE | MAP_FIXED, fd, (off_t)whole) == MAP_FAILED))
        code = err_sys(e, "%s: cannot map %zu bytes", path, size);
    else if (!(code = read_at(fd, path, p + whole, size - whole, whole, e)) &&
        mprotect(p + whole, last - whole, PROT_READ))
        code = err_sys(e, "%s: cannot map %zu bytes", path, size);
    if (code) {
        munmap(p, total);
        return code;
    }
    atomic_fetch_add_explicit(&mapped_files, 1, memory_order_relaxed);
    *out = (struct file_map){
        .data = p, .size = size, .mapped_bytes = total, .guard = whole ? guard_take(path, p, total) : NULL};
    return ERR_OK;
}

static int map_path(const char *path, bool follow, struct file_map *out, struct err *e)
{
    *out = (struct file_map){0};
    struct stat st;
    int fd = open_regular(path, follow, &st, e);
    if (fd < 0)
        return fd;
    int code = file_map_descriptor(fd, path, (size_t)st.st_size, out, e);
    close(fd);
    return code;
}

int file_map_descriptor(int fd, const char *path, size_t size, struct file_map *out, struct err *e)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, catch_bus_errors);
    *out = (struct file_map){0};
    return map_file(fd, path, size, out, e);
}

int file_map_open(const char *path, struct file_map *out, struct err *e)
{
    return map_path(path, true, out, e);
}

int file_map_open_nolinks(const char *path, struct file_map *out, struct err *e)
{
    return map_path(path, false, out, e);
}

int file_map_copy(const char *path, uint64_t offset, size_t size, struct file_map *out, struct err *e)
{
    *out = (struct file_map){0};
    struct stat st;
    int fd = open_regular(path, true, &st, e);
    if (fd < 0)
        return fd;
    uint8_t *p = size < SIZE_MAX - FILE_COPY_SPARE_BYTES ? malloc(size + FILE_COPY_SPARE_BYTES) : NULL;
    int code = p ? read_at(fd, path, p, size, (size_t)offset, e)
                 : err_set(e, ERR_NOMEM,
                       "%s: no memory for %zu bytes of it; close other programs, raise `ulimit -v`, or ask for fewer "
                       "streams at once",
                       path, size);
    close(fd);
    if (code) {
        free(p);
        return code;
    }
    memset(p + size, 0, FILE_COPY_SPARE_BYTES);
    *out = (struct file_map){.data = p, .size = size, .copy = p};
    return ERR_OK;
}

void file_map_close(struct file_map *m)
{
    free(m->copy);
    if (m->mapped_bytes)
        atomic_fetch_sub_explicit(&mapped_files, 1, memory_order_relaxed);
    if (m->guard)
        guard_give(m->guard);
    if (m->mapped_bytes)
        munmap((void *)m->data, m->mapped_bytes);
    *m = (struct file_map){0};
}

static bool all_in_memory(const unsigned char *pages, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!(pages[i] & 1))
            return false;
    return true;
}

void file_map_populate(const struct file_map *m, size_t offset, size_t size)
{
    unsigned char pages[MEM_HUGE_PAGE / LEAST_PAGE_BYTES];
    const size_t whole = m->guard ? (m->size - 1) & ~(page_bytes - 1) : 0;
    const size_t end = whole < offset + size ? whole : offset + size;
    for (size_t at = offset & ~(page_bytes - 1), n; at < end; at += n) {
        uint8_t *p = (uint8_t *)(uintptr_t)m->data + at;
        n = end - at < MEM_HUGE_PAGE ? end - at : MEM_HUGE_PAGE;
        if (!mincore(p, n, pages) && all_in_memory(pages, (n + page_bytes - 1) / page_bytes))
            madvise(p, n, MADV_POPULATE_READ);
    }
}

/* Finds out why the kernel did not deliver the page. */
int file_map_describe_loss(const struct file_map *m, struct err *e)
{
    const struct file_guard *g = m->guard;
    size_t at = atomic_load(&g->lost_from);
    struct stat st;
    uint8_t byte;
    int fd = open_regular(g->path, true, &st, NULL);
    if (fd < 0)
        return err_set(e, ERR_LOST, "%s: was cut off and removed while it was read", g->path);
    ssize_t got = pread(fd, &byte, 1, (off_t)(at < m->size ? at : m->size - 1));
    int reason = errno;
    close(fd);
    if ((size_t)st.st_size < m->size)
        return err_set(e, ERR_LOST,
            "%s: became shorter while it was read: %zu of %zu bytes are left; ask again for what is left", g->path,
            (size_t)st.st_size, m->size);
    if (got < 0)
        return err_set(e, ERR_LOST, "%s: cannot be read at byte %zu: %s; copy what can be read of it, and ask again",
            g->path, at, strerror(reason));
    return err_set(e, ERR_LOST, "%s: was written anew while it was read; ask again", g->path);
}

int file_stamp(const char *path, struct file_stamp *out, struct err *e)
{
    struct stat st;
    *out = (struct file_stamp){0};
    if (nolinks_stat(path, &st) != 0)
        return nolinks_err(e, path, "cannot look at");
    *out = (struct file_stamp){.inode = st.st_ino,
        .size_bytes = (uint64_t)st.st_size,
        .modified_ns = st.st_mtim.tv_sec * INT64_C(1000000000) + st.st_mtim.tv_nsec,
        .changed_ns = st.st_ctim.tv_sec * INT64_C(1000000000) + st.st_ctim.tv_nsec};
    return ERR_OK;
}

int file_read(const char *path, size_t limit, char **data, size_t *n, struct err *e)
{
    *data = NULL;
    *n = 0;
    struct stat st;
    int fd = open_regular(path, true, &st, e);
    if (fd < 0)
        return fd;
    /* The size is only a hint: files below /proc have size 0, and a file may grow. */
    size_t cap = 4096, got = 0;
    if ((uint64_t)st.st_size > limit)
        goto too_large;
    if ((size_t)st.st_size >= cap)
        cap = (size_t)st.st_size + 1;
    char *p = mem_alloc(cap + 1);
    *data = p;
    for (;;) {
        if (got > limit)
            goto too_large;
        if (got == cap)
            *data = p = mem_resize(p, (cap *= 2) + 1);
        ssize_t r = read(fd, p + got, cap - got);
        if (r < 0 && errno == EINTR)
            continue;
        if (r < 0) {
            int code = err_sys(e, "%s: cannot read", path);
            close(fd);
            free(*data);
            *data = NULL;
            return code;
        }
        if (r == 0)
            break;
        got += (size_t)r;
    }
    close(fd);
    p[got] = '\0';
    *n = got;
    return ERR_OK;
too_large:
    close(fd);
    free(*data);
    *data = NULL;
    return err_set(e, ERR_LIMIT, "%s: larger than the %zu bytes that are read of such a file", path, limit);
}

static int make_dir(const char *path, struct err *e)
{
    if (mkdir(path, 0777) == 0)
        return ERR_OK;
    int reason = errno;
    struct stat st;
    if (reason == EEXIST || reason == EROFS || reason == EACCES) {
        if (stat(path, &st) == 0 && S_ISDIR(st.st_mode))
            return ERR_OK;
    }
    errno = reason;
    return err_sys(e, "%s: cannot make the directory", path);
}

int file_make_dirs(const char *path, struct err *e)
{
    if (!*path)
        return err_set(e, ERR_ARG, "an empty name for a directory");
    char *part = mem_strdup(path);
    int code = ERR_OK;
    for (char *p = part + 1; code == ERR_OK; p++) {
        char c = *p;
        if (c != '/' && c != '\0')
            continue;
        *p = '\0';
        if (p[-1] != '/')
            code = make_dir(part, e);
        *p = c;
        if (!c)
            break;
    }
    free(part);
    return code;
}

/* Writes to devices, pipes and links to them directly; only files are replaced. */
static int write_through(const char *path, const void *data, size_t n, struct err *e)
{
    int fd = open(path, O_WRONLY | O_CLOEXEC), code = 0;
    if (fd < 0)
        return err_sys(e, "%s: cannot open", path);
    for (size_t done = 0; done < n && !code;) {
        ssize_t w = write(fd, (const char *)data + done, n - done);
        if (w > 0)
            done += (size_t)w;
        else if (w == 0 || errno != EINTR)
            code = err_sys(e, "%s: cannot write", path);
    }
    if (close(fd) && !code)
        code = err_sys(e, "%s: cannot write", path);
    return code;
}

static int write_replacing(const char *path, const void *data, size_t n, struct err *e)
{
    struct replace r;
    int code = replace_begin(&r, path, true, e);
    if (code)
        return code;
    code = replace_write(&r, data, n, e);
    if (code) {
        replace_abort(&r);
        return code;
    }
    return replace_commit(&r, e);
}

char *file_real_path(const char *path)
{
    char *real = realpath(path, NULL);
    for (unsigned tried = 0; !real && errno == ENOMEM && mem_again(&tried);)
        real = realpath(path, NULL);
    return real;
}

int file_write(const char *path, const void *data, size_t n, struct err *e)
{
    struct stat st;
    if (!stat(path, &st) && !S_ISREG(st.st_mode))
        return write_through(path, data, n, e);
    char *behind = file_real_path(path); /* a link stays; its target is replaced */
    if (!behind && errno == ENOMEM)
        return err_sys(e, "%s", path);
    int code = write_replacing(behind ? behind : path, data, n, e);
    free(behind);
    return code;
}

int file_sync_dir(const char *path, struct err *e)
{
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int rc = fd < 0 || fsync(fd) ? err_sys(e, "%s", path) : 0;
    if (fd >= 0)
        close(fd);
    return rc;
}

bool file_is_below(const char *path, const char *directory)
{
    size_t n = directory ? strlen(directory) : 0;
    return n && !strncmp(path, directory, n) && (!path[n] || path[n] == '/' || directory[n - 1] == '/');
}

int file_temporary(const char *kind, char **path, struct err *e)
{
    const char *below = getenv("TMPDIR");
    char *real = file_real_path(below && *below ? below : "/tmp"); /* a real path: see base/nolinks.h */
    *path = mem_printf("%s/weft-%s-XXXXXX", real ? real : "/tmp", kind);
    free(real);
    int fd = mkstemp(*path);
    if (fd >= 0) {
        close(fd);
        return 0;
    }
    int rc = err_sys(e, "%s", *path);
    free(*path);
    *path = NULL;
    return rc;
}
