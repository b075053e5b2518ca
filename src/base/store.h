/* SPDX-License-Identifier: MIT */
/* The container of all store files (docs/formats/container.md): signature, kind, version, key, table of contents,
 * sections of fixed-width little-endian arrays aligned to 64 bytes, checksums. Written to a temporary name, fsynced,
 * renamed. Validated on open (sizes, order, checksums) before any pointer into it is handed out; a stale or damaged
 * file is an error, never trusted. No link on its path is followed (base/nolinks.h). Sections a reader does not know
 * are skipped. FILE_SPARE_BYTES zero bytes can be read behind the last section (base/file.h). */
#ifndef WEFT_BASE_STORE_H
#define WEFT_BASE_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

struct file_map;

/* What the names of files that are not complete yet have in them. */
#define STORE_TEMPORARY ".tmp."

struct store_writer;
/* Begins the store that store_commit puts at `path`, under a temporary name. kind: 8 characters at most ("graph"). key:
 * what the file is made from (0 when it has none). n_sections: how many will be added. What fails later, such as a full
 * disk, is remembered until it is asked for: nothing more is written then. */
struct store_writer *store_create(const char *path, const char *kind, uint32_t version, uint64_t key,
    size_t n_sections);
/* Writes the next section: `count` items of `item_bytes`. Names: 15 characters at most, unique. */
void store_add(struct store_writer *, const char *name, const void *items, size_t item_bytes, size_t count);
/* The same for items that come bit by bit: the section goes on until the next one begins. */
void store_begin(struct store_writer *, const char *name, size_t item_bytes);
void store_append(struct store_writer *, const void *items, size_t count);
/* Where a store goes: into a file at `path`, or into the file of another store that is being written. */
struct store_place { const char *path; /* for messages where it is a part */ struct store_writer *in; };
static inline struct store_place store_file(const char *path)
{
    return (struct store_place){path, NULL};
}
/* As store_create. A part is a section of the store around it, called by its kind, and looks as it would in a file of
 * its own. One part at a time is written: the call waits until the one before was completed or aborted, which other
 * threads may do; nothing else is added meanwhile. When a part was aborted, the store around it fails, too. When that
 * is aborted first, what the part gets is dropped. */
struct store_writer *store_create_at(struct store_place, const char *kind, uint32_t version, uint64_t key,
    size_t n_sections);
/* 0, or what went wrong. */
int store_writing(const struct store_writer *, struct err *e);
/* Maps what is written so far; *items: those of the section begun last. The map may be closed at any time. */
int store_look_back(struct store_writer *, struct file_map *out, const void **items, struct err *e);
/* Completes the file: fsync, rename over its path, fsync of the directory. On failure nothing is left behind. Frees the
 * writer in any case. */
int store_commit(struct store_writer *, struct err *e);
/* Removes what was written, and frees the writer (which may be NULL). */
void store_abort(struct store_writer *);

struct store;
/* ERR_NOTFOUND: no such file; ERR_FORMAT: damaged (message says where); ERR_STALE: other version, or key differs from
 * *key (key may be NULL). */
int store_open(const char *path, const char *kind, uint32_t version, const uint64_t *key, struct store **out,
    struct err *e);
/* The same, but the sections are not read, so that it takes no longer the larger they are; store_check compares their
 * checksums. For readers that are safe whatever the sections hold. */
int store_open_unread(const char *path, const char *kind, uint32_t version, const uint64_t *key, struct store **out,
    struct err *e);
/* As store_open, but one section is not read, which who needs it checks by store_check_section. */
int store_open_but(const char *path, const char *kind, uint32_t version, const uint64_t *key, const char *section,
    struct store **out, struct err *e);
/* As store_open and store_open_unread, of a part of a store that is open (`around`; path: its file's, for messages), or
 * of the file at `path` when `around` is NULL. A part may stay open longer than the store around it. Opening a store
 * does not read its parts. */
int store_open_from(const struct store *around, const char *path, const char *kind, uint32_t version,
    struct store **out, struct err *e);
int store_open_unread_from(const struct store *around, const char *path, const char *kind, uint32_t version,
    struct store **out, struct err *e);
void store_close(struct store *);
/* The items of a section, aligned to at least 64 bytes from the file's start; NULL and *count = 0 when absent.
 * A section whose item size differs from item_bytes counts as damaged: returns NULL and sets *count = 0. */
const void *store_section(const struct store *, const char *name, size_t item_bytes, size_t *count);
/* The same, but copied to memory, where it stays until the store is closed: what leads from one table to another is
 * checked once by a reader, and must stay as it was checked even if the file is cut off. */
const void *store_section_kept(struct store *, const char *name, size_t item_bytes, size_t *count);
/* What is wrong with a table of names, each terminated and beginning at a byte of `text`; NULL: nothing. There is at
 * least one name. */
const char *store_names_defect(const char *text, size_t n_text, const uint32_t *names, size_t n);
/* Is all that was read of the store what was written? ERR_LOST when the file was cut off meanwhile, or the disk could
 * not read it (base/file.h). */
int store_intact(const struct store *, struct err *e);
void store_populate(const struct store *); /* as file_map_populate */
uint64_t store_key(const struct store *);
/* Reads any store file and checks all of it, parts too; for `verify`. */
int store_check(const char *path, struct err *e);
/* The same of one part of an open store; path: its file's. */
int store_check_part(const struct store *, const char *path, const char *kind, struct err *e);
/* Compares the checksum of one section of an open store; path: its file's. */
int store_check_section(const struct store *, const char *path, const char *name, struct err *e);
/* ERR_STALE when the file was made from something else than `key` says. Reads the header only. */
int store_check_key(const char *path, uint64_t key, struct err *e);

#endif
