/* SPDX-License-Identifier: MIT */
/* Private to base: replaces a file in one step. The new contents go to PATH.tmp.RANDOM, whose name nobody can predict.
 * Readers see the old file or the whole new one, also after a crash or a full disk. The directory is opened once, so
 * renaming it, or putting a link in its place, has no effect elsewhere. */
#ifndef WEFT_BASE_REPLACE_H
#define WEFT_BASE_REPLACE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/err.h"

struct replace {
    const char *path; /* borrowed until the end */
    char *temporary;  /* name in the directory; NULL: no such file (any more) */
    int directory, fd;
    off_t written, started; /* bytes written; bytes whose write-out was started */
    char *held;             /* buffer of small writes, not in the file yet */
    size_t n_held;
};
/* follow: follow links in the path of the directory (otherwise as base/nolinks.h). */
int replace_begin(struct replace *, const char *path, bool follow, struct err *e);
int replace_write(struct replace *, const void *data, size_t n, struct err *e);
/* Writes the buffer to the file. */
int replace_flush(struct replace *, struct err *e);
/* Overwrites written bytes from byte `at` of the file on. */
int replace_write_over(struct replace *, off_t at, const void *data, size_t n, struct err *e);
/* Does fsync, rename, fsync of the directory. Ends the struct in any case. */
int replace_commit(struct replace *, struct err *e);
/* Removes the temporary file; does nothing if replace_begin failed. */
void replace_abort(struct replace *);

#endif
