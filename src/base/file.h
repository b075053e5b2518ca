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
/* A file mapped for reading. At least FILE_SPARE_BYTES zero bytes can be read behind its end, so that wide loads and
 * small arrays that a damaged file puts at its very end are safe.
 * If the file becomes shorter while it is mapped, or the disk cannot give a page, what is missing reads as zeros
 * instead of killing the process (SIGBUS is caught, once per process), and file_map_intact says so from then on.
 * Whoever computed something from a map calls that before showing it. */
struct file_map {
    const uint8_t *data;
    size_t size;
    size_t mapped_bytes;
    struct file_guard *guard; /* private, and NULL where nothing can be lost: files of a page are read */
    void *copy;               /* private: memory that holds what was read instead of mapped */
};
/* Empty files: size 0, data non-NULL. ERR_NOTFOUND: no such file; ERR_IO: not a regular file, or not readable. */
int file_map_open(const char *path, struct file_map *out, struct err *e);
/* The same of a path on which no link is followed (base/nolinks.h). */
int file_map_open_nolinks(const char *path, struct file_map *out, struct err *e);
/* The first `size` bytes of an open file; path: for messages. The descriptor may be closed then. */
int file_map_descriptor(int fd, const char *path, size_t size, struct file_map *out, struct err *e);
void file_map_close(struct file_map *); /* also of a zeroed struct */
/* `size` bytes from `offset` on, read into memory, with FILE_COPY_SPARE_BYTES behind; nothing of the file stays open:
 * for files that are too many to be mapped at once. ERR_LOST: the file is shorter. ERR_NOMEM: no such memory. */
int file_map_copy(const char *path, uint64_t offset, size_t size, struct file_map *out, struct err *e);
/* May more files be kept mapped? The system limits the mappings of a process (vm.max_map_count); half of them are left
 * for all else. */
bool file_map_room(void);
/* Readies what is in memory of `size` bytes of the file from `offset` on: reading them then needs no fault for each few
 * pages, which is most of what the first look at a large file costs. Takes some 80 ms per GB, so it is for a thread
 * that nobody waits for. What is not in memory stays on disk; without MADV_POPULATE_READ (Linux 5.14) nothing happens.
 */
void file_map_populate(const struct file_map *, size_t offset, size_t size);
/* Is all that was read of the map the file's? ERR_LOST for ever once it is not; the message says what happened to the
 * file. Two loads while it is. A file that is overwritten in place without becoming shorter is not noticed. */
static inline int file_map_intact(const struct file_map *, struct err *e);
/* Reads a whole file of at most `limit` bytes (ERR_LIMIT beyond); terminated with NUL (not counted). free() it.
 * ERR_NOTFOUND as above. */
int file_read(const char *path, size_t limit, char **data, size_t *n, struct err *e);
/* From now on a file whose path begins with that directory (a real path) must lie in it after links were followed; else
 * ERR_IO. For servers whose clients name directories. NULL: files may lie anywhere. Call it before threads are
 * started. */
void file_confine(const char *directory);
/* Names what stands there in place of a file: "a FIFO (named pipe)", "a directory"; NULL: a file, or nothing. */
const char *file_odd_kind(const char *path);
/* Changes whenever the file is written to or replaced, so that an equal stamp means equal contents (but for a disk that
 * fails silently). */
struct file_stamp {
    uint64_t inode, size_bytes;
    int64_t modified_ns, changed_ns;
};
int file_stamp(const char *path, struct file_stamp *out, struct err *e); /* follows no links (base/nolinks.h) */
/* The part of a path behind its last slash; the whole of one without. Borrowed. */
static inline const char *file_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}
/* mkdir -p */
int file_make_dirs(const char *path, struct err *e);
/* realpath(3), which has more patience where memory is short. free() it; NULL with errno. */
char *file_real_path(const char *path);
/* What was made, renamed or removed in the directory is on disk. */
int file_sync_dir(const char *path, struct err *e);
/* Is it the directory, or below it, going by the names alone? Below "" and NULL nothing is. */
bool file_is_below(const char *path, const char *directory);
/* An empty file of its own for what is written only to be read again: "weft-KIND-…" in $TMPDIR, else in /tmp. free()
 * the path, and unlink() the file. */
int file_temporary(const char *kind, char **path, struct err *e);
/* Writes a small file through a temporary name: after a failure the old file is as it was and nothing else is left.
 * What is no regular file (/dev/stdout, a pipe) is written to as it is. */
int file_write(const char *path, const void *data, size_t n, struct err *e);

/* ---- private ---- */

/* One per mapping, reused, never freed: the signal handler walks the list without a lock. */
struct file_guard {
    _Atomic uintptr_t begin, end; /* begin 0: unused */
    const volatile uint8_t *last_page; /* of the file, mapped once more: gone as soon as any of it is cut off */
    atomic_bool lost;
    _Atomic size_t lost_from;     /* bytes */
    char *path;
    struct file_guard *next;      /* all guards; written before the guard is reachable */
    struct file_guard *next_free; /* under a lock */
};
int file_map_describe_loss(const struct file_map *, struct err *e);
/* Cutting a file zeroes the rest of the page without a fault: only touching a page behind the cut shows it. */
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
