/* SPDX-License-Identifier: MIT */
/* Unpacks an uploaded archive: hostile input, with limits on everything that it can create. */
#ifndef WEFT_TSP_UNPACK_H
#define WEFT_TSP_UNPACK_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"

/* Limits of an archive: its entries, the directories that it creates (also parents of others), and the length and depth
 * of a path. Traces have few parts; each directory costs the file system as much as a file. */
enum { UNPACK_MAX_ENTRIES = 100000, UNPACK_MAX_DIRS = 20000, UNPACK_MAX_PATH = 1024, UNPACK_MAX_DEPTH = 32 };

struct unpack_job {
    const char *archive;        /* file: tar (plain, or packed once with gzip, bzip2, xz or zstd) or zip */
    const char *dir;            /* empty directory, used by the caller only */
    uint64_t most_bytes;        /* limit of the total size of all files */
    bool (*is_gone)(void *arg); /* called for each name and every few KiB; true: the archive is no longer wanted */
    void *arg;
    struct arena *arena;        /* arena of *why */
};

/* Returns 0, or an HTTP status for the refusal, with its reason in *why. Unpacked parts stay in `dir`, which holds
 * directories and regular files only. */
int tsp_unpack_archive(const struct unpack_job *, const char **why);

#endif
