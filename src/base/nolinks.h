/* SPDX-License-Identifier: MIT */
/* Files in a directory that somebody else may own and change at any time. No symbolic link is followed in any part of a
 * path, the last one included. Such a path is a real path (file_real_path) followed by names. Calls fail with ELOOP if
 * a part is a link. Whatever the owner does meanwhile, nothing outside of the given path is read, written or
 * removed. */
#ifndef WEFT_BASE_NOLINKS_H
#define WEFT_BASE_NOLINKS_H

#include <dirent.h>
#include <stdbool.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "base/err.h"

/* Works as open(2): a descriptor, or -1 with errno. O_CLOEXEC is added. */
int nolinks_open(const char *path, int flags, mode_t mode);
/* Opens the directory that holds the file; *name: the file's name there, which borrows the path. -1 with errno. */
int nolinks_open_parent(const char *path, const char **name);
/* Works as stat(2), but refuses a link. */
int nolinks_stat(const char *path, struct stat *);
DIR *nolinks_opendir(const char *path);
/* Works as unlink(2); removes a link itself. */
int nolinks_remove(const char *path);
/* mkdir -p */
int nolinks_make_dirs(const char *path, struct err *e);
/* Calls err_sys; for ELOOP it adds that links are not followed, and what to do. */
int nolinks_err(struct err *e, const char *path, const char *what);

/* ---- private ---- */

/* nolinks_open, part by part, if the kernel has no openat2 (before Linux 5.6, or forbidden by a container). */
int nolinks_walk(const char *path, int flags, mode_t mode);

#endif
