/* SPDX-License-Identifier: MIT */
/* Whole files, mapped or read. */
#ifndef WEFT_BASE_FILE_H
#define WEFT_BASE_FILE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/err.h"

struct file_guard;
enum { FILE_SPARE_BYTES = 8192, FILE_COPY_SPARE_BYTES = 512 };
/* A file mapped for reading. At least FILE_SPARE_BYTES zero bytes can be read behind its end, so wide loads and small
 * arrays at the very end of a damaged file are safe. If the file shrinks while it is mapped, or the disk cannot read a
 * page, the missing part reads as zeros. The process is not killed: SIGBUS is caught, once per process. file_map_intact
 * reports the loss from then on. Callers must check that before they show anything computed from a map. */
struct file_map {
    const uint8_t *data;
    size_t size;
    size_t mapped_bytes;
    struct file_guard *guard; /* private; NULL if nothing can be lost: files of one page are read */
    void *copy;               /* private: memory of a file that was read instead of mapped */
};
/* Empty files give size 0 and data non-NULL. ERR_NOTFOUND: no such file; ERR_IO: not a regular file, or not
 * readable. */
int file_map_open(const char *path, struct file_map *out, struct err *e);
/* Maps a file without following links on its path (base/nolinks.h). */
int file_map_open_nolinks(const char *path, struct file_map *out, struct err *e);
/* Maps the first `size` bytes of an open file; path: for messages. The descriptor may be closed afterwards. */
int file_map_descriptor(int fd, const char *path, size_t size, struct file_map *out, struct err *e);
void file_map_close(struct file_map *); /* accepts a zeroed struct */
/* Reads `size` bytes from `offset` on into memory, with FILE_COPY_SPARE_BYTES behind, and keeps no file open: for files
 * too many to be mapped at once. ERR_LOST: the file is shorter. ERR_NOMEM: not enough memory. */
int file_map_copy(const char *path, uint64_t offset, size_t size, struct file_map *out, struct err *e);
/* Returns whether more files may be kept mapped. The system limits the mappings of a process (vm.max_map_count); half
 * of them are left for everything else. */
bool file_map_room(void);
/* Prefaults the cached part of `size` bytes of the file from `offset` on. Page faults are most of the cost of the first
 * look at a large file. Takes some 80 ms per GB, so it is for a background thread. Uncached parts stay on disk. Does
 * nothing without MADV_POPULATE_READ (Linux 5.14). */
void file_map_populate(const struct file_map *, size_t offset, size_t size);
/* Returns 0 while all that was read from the map was the file's. Afterwards always ERR_LOST, with a message about what
 * happened to the file. Costs two loads while it is intact. A file overwritten in place without becoming shorter is not
 * noticed. */
static inline int file_map_intact(const struct file_map *, struct err *e);
/* Reads a whole file of at most `limit` bytes (ERR_LIMIT beyond), with a NUL behind that is not counted. free() it.
 * ERR_NOTFOUND as above. */
int file_read(const char *path, size_t limit, char **data, size_t *n, struct err *e);
/* Confines files: one whose path begins with that directory (a real path) must lie in it after links are followed;
 * otherwise ERR_IO. For servers whose clients name directories. NULL: no restriction. Call it before threads are
 * started. */
void file_confine(const char *directory);
/* Returns the kind of a path that is no regular file: "a FIFO (named pipe)", "a directory"; NULL: a regular file, or
 * nothing. */
const char *file_odd_kind(const char *path);
/* Stamp of a file: changes whenever the file is written to or replaced, so equal stamps mean equal contents (except
 * after silent disk errors). */
struct file_stamp {
    uint64_t inode, size_bytes;
    int64_t modified_ns, changed_ns;
};
int file_stamp(const char *path, struct file_stamp *out, struct err *e); /* follows no links (base/nolinks.h) */
/* Part of a path behind its last slash, or all of it. Borrowed. */
static inline const char *file_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}
/* mkdir -p */
int file_make_dirs(const char *path, struct err *e);
/* realpath(3) that retries when memory is short. free() it; NULL with errno. */
char *file_real_path(const char *path);
/* Makes creations, renames and removals in the directory durable. */
int file_sync_dir(const char *path, struct err *e);
/* Returns whether the path is the directory or below it, by name alone. Nothing is below "" and NULL. */
bool file_is_below(const char *path, const char *directory);
/* Creates an empty temporary file "weft-KIND-…" in $TMPDIR, else in /tmp. free() the path, and unlink() the file. */
int file_temporary(const char *kind, char **path, struct err *e);
/* Writes a small file through a temporary name: after a failure the old file is unchanged and nothing else is left. A
 * target that is no regular file (/dev/stdout, a pipe) is written to directly. */
int file_write(const char *path, const void *data, size_t n, struct err *e);

/* ---- private ---- */

/* Guard, one per mapping. It is reused and never freed: the signal handler walks the list without a lock. */
struct file_guard {
    _Atomic uintptr_t begin, end; /* begin 0: unused */
    const volatile uint8_t *last_page; /* last page, mapped again: faults once any of it is cut off */
    atomic_bool lost;
    _Atomic size_t lost_from;     /* bytes */
    char *path;
    struct file_guard *next;      /* next of all guards; written before the guard is reachable */
    struct file_guard *next_free; /* next free guard; under a lock */
};
int file_map_describe_loss(const struct file_map *, struct err *e);
/* Returns whether part of the file is lost. Cutting a file zeroes the rest of the page without a fault; only touching a
 * page behind the cut shows it. */
static inline bool file_map_lost(const struct file_map *m)
{
    if (!m->guard)
        return false;
    (void)*m->guard->last_page;
    return __builtin_expect(atomic_load_explicit(&m->guard->lost, memory_order_acquire), 0);
}
static inline int file_map_intact(const struct file_map *m, struct err *e)
{
    return file_map_lost(m) ? file_map_describe_loss(m, e) : ERR_OK;
}

#endif
