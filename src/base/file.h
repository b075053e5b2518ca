/* Whole files, mapped or read. */
#ifndef WEFT_BASE_FILE_H
#define WEFT_BASE_FILE_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

struct file_guard;
enum { FILE_SPARE_BYTES = 8192 };
/* A file mapped for reading. At least FILE_SPARE_BYTES zero bytes can be read behind its end, so that wide loads and small arrays that a damaged file
 * puts at its very end are safe (they stay zero unless the file grows meanwhile). If the file shrinks while mapped, the lost part reads as zeros instead of killing the process (SIGBUS is caught once
 * per process). */
struct file_map {
    const uint8_t *data;
    size_t size;
    size_t mapped_bytes;
    struct file_guard *guard; /* private */
};
/* Empty files: size 0, data non-NULL. ERR_NOTFOUND: no such file; ERR_IO: not a regular file, or not readable. */
int file_map_open(const char *path, struct file_map *out, struct err *e);
void file_map_close(struct file_map *); /* also of a zeroed struct */
/* Reads a whole file of at most `limit` bytes (ERR_LIMIT beyond); terminated with NUL (not counted). free() it. ERR_NOTFOUND as above. */
int file_read(const char *path, size_t limit, char **data, size_t *n, struct err *e);
/* Changes whenever the file is written to or replaced, so that an equal stamp means equal contents (but for a disk that fails silently). */
struct file_stamp {
    uint64_t inode, size_bytes;
    int64_t modified_ns, changed_ns;
};
int file_stamp(const char *path, struct file_stamp *out, struct err *e);
/* mkdir -p */
int file_make_dirs(const char *path, struct err *e);
/* Writes a small file through a temporary name: after a failure the old file is as it was and nothing else is left. What is no regular file
 * (/dev/stdout, a pipe) is written to as it is. */
int file_write(const char *path, const void *data, size_t n, struct err *e);

#endif
