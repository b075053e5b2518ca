/* SPDX-License-Identifier: MIT */
/* Unpacks an archive that somebody sent: hostile input, with limits on everything that it can make. */
#ifndef WEFT_TSP_UNPACK_H
#define WEFT_TSP_UNPACK_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"

/* Limits of an archive: its entries, the directories that it makes (also those on the way to others), and the length
 * and depth of a path. Traces have few parts; each directory costs the file system as much as a file. */
enum { UNPACK_MAX_ENTRIES = 100000, UNPACK_MAX_DIRS = 20000, UNPACK_MAX_PATH = 1024, UNPACK_MAX_DEPTH = 32 };

struct unpack_job {
    const char *archive;        /* file: tar (plain, or packed once with gzip, bzip2, xz or zstd) or zip */
    const char *dir;            /* empty directory, the caller's alone */
    uint64_t most_bytes;        /* limit of the contents of all files */
    bool (*is_gone)(void *arg); /* asked for each name and every few KiB; true: the archive is wanted no more */
    void *arg;
    struct arena *arena;        /* of *why */
};

/* Returns 0, or an HTTP status for the refusal and its reason in *why. What was unpacked until then stays in `dir`,
 * which holds directories and regular files only. */
int unpack_archive(const struct unpack_job *, const char **why);

#endif
