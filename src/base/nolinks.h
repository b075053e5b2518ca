/* SPDX-License-Identifier: MIT */
/* Files in a directory whose owner may be somebody else, and may change it at any time: no symbolic link in any part of
 * a path is followed, the last one included. A path of such a file is a real path (file_real_path) with names below.
 * Where a link stands there, calls fail with ELOOP; whatever the owner does meanwhile, nothing outside of the path that
 * was named is read, written or removed. */
#ifndef WEFT_BASE_NOLINKS_H
#define WEFT_BASE_NOLINKS_H

#include <dirent.h>
#include <stdbool.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "base/err.h"

/* Works as open(2): a descriptor, or -1 with errno. O_CLOEXEC is added. */
int nolinks_open(const char *path, int flags, mode_t mode);
/* The directory that holds the file; *name, which borrows the path: what the file is called there. -1 with errno. */
int nolinks_open_parent(const char *path, const char **name);
/* Works as stat(2), and refuses a link. */
int nolinks_stat(const char *path, struct stat *);
DIR *nolinks_opendir(const char *path);
/* Works as unlink(2); a link by that name is removed itself. */
int nolinks_remove(const char *path);
/* mkdir -p */
int nolinks_make_dirs(const char *path, struct err *e);
/* err_sys, which says of ELOOP that links are not followed, and what to do. */
int nolinks_err(struct err *e, const char *path, const char *what);

/* ---- private ---- */

/* nolinks_open where the kernel has no openat2 (before Linux 5.6, or forbidden by a container): part by part. */
int nolinks_walk(const char *path, int flags, mode_t mode);

#endif
