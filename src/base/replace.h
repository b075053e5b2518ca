/* SPDX-License-Identifier: MIT */
/* Private to base: replaces a file in one step. The new contents go to a file beside it with a temporary name,
 * PATH.tmp.RANDOM, which nobody knows in advance. Readers see the old file or the whole new one, also after a crash or
 * a full disk. The directory is opened once: renaming it, or a link in its place, changes nothing elsewhere. */
#ifndef WEFT_BASE_REPLACE_H
#define WEFT_BASE_REPLACE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/err.h"

struct replace {
    const char *path; /* borrowed until the end */
    char *temporary;  /* name in the directory; NULL when there is no such file (any more) */
    int directory, fd;
    off_t written, started; /* bytes; up to `started` the disk was asked to begin */
    char *held;             /* what was written in small pieces, and is not in the file yet */
    size_t n_held;
};
/* follow: links in the path of the directory are followed (else as base/nolinks.h). */
int replace_begin(struct replace *, const char *path, bool follow, struct err *e);
int replace_write(struct replace *, const void *data, size_t n, struct err *e);
/* All that was written is in the file then. */
int replace_flush(struct replace *, struct err *e);
/* Writes over what was written, from byte `at` of the file on. */
int replace_write_over(struct replace *, off_t at, const void *data, size_t n, struct err *e);
/* fsync, rename, fsync of the directory. Ends the struct in any case. */
int replace_commit(struct replace *, struct err *e);
/* Removes what was written; nothing when replace_begin failed. */
void replace_abort(struct replace *);

#endif
