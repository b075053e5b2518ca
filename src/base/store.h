/* SPDX-License-Identifier: MIT */
/* Container of all store files (docs/formats/container.md): signature, kind, version, key, table of contents, sections
 * of fixed-width little-endian arrays aligned to 64 bytes, checksums. Written under a temporary name, fsynced, renamed.
 * Sizes, order and checksums are validated on open, before any pointer is handed out; a stale or damaged file is an
 * error. No link on its path is followed (base/nolinks.h). Unknown sections are skipped. FILE_SPARE_BYTES zero bytes
 * can be read behind the last section (base/file.h). */
#ifndef WEFT_BASE_STORE_H
#define WEFT_BASE_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

struct file_map;

/* Part of the names of incomplete files. */
#define STORE_TEMPORARY ".tmp."

struct store_writer;
/* Begins a store under a temporary name; store_commit moves it to `path`. kind: at most 8 characters ("graph"). key:
 * identifies the input (0: none). n_sections: number of sections to be added. Later failures, such as a full disk, are
 * kept until store_writing or store_commit reports them; nothing more is written then. */
struct store_writer *store_create(const char *path, const char *kind, uint32_t version, uint64_t key,
    size_t n_sections);
/* Writes the next section: `count` items of `item_bytes`. name: at most 15 characters, unique. */
void store_add(struct store_writer *, const char *name, const void *items, size_t item_bytes, size_t count);
/* Begins a section whose items are appended piece by piece; it ends where the next one begins. */
void store_begin(struct store_writer *, const char *name, size_t item_bytes);
void store_append(struct store_writer *, const void *items, size_t count);
/* Destination of a store: a file at `path`, or the file of another store that is being written. */
struct store_place { const char *path; /* for messages if it is a part */ struct store_writer *in; };
static inline struct store_place store_file(const char *path)
{
    return (struct store_place){path, NULL};
}
/* Begins as store_create. A part is a section of the store around it, named by its kind, with the same bytes as in its
 * own file. One part at a time is written: the call waits until the one before was committed or aborted, possibly by
 * another thread; nothing else may be added meanwhile. Aborting a part makes the store around it fail, too. Aborting
 * that store first drops further output of the part. */
struct store_writer *store_create_at(struct store_place, const char *kind, uint32_t version, uint64_t key,
    size_t n_sections);
/* Returns 0, or the first failure. */
int store_writing(const struct store_writer *, struct err *e);
/* Maps the bytes written so far; *items: those of the last section. The map may be closed at any time. */
int store_look_back(struct store_writer *, struct file_map *out, const void **items, struct err *e);
/* Completes the file: fsync, rename, fsync of the directory. Leaves nothing behind on failure. Frees the writer in any
 * case. */
int store_commit(struct store_writer *, struct err *e);
/* Removes the written file and frees the writer (may be NULL). */
void store_abort(struct store_writer *);

struct store;
/* ERR_NOTFOUND: no such file; ERR_FORMAT: damaged (the message says where); ERR_STALE: other version, or the key
 * differs from *key (key may be NULL). */
int store_open(const char *path, const char *kind, uint32_t version, const uint64_t *key, struct store **out,
    struct err *e);
/* Opens without reading the sections, so the time does not depend on their size; store_check compares their checksums.
 * For readers that are safe for any contents. */
int store_open_unread(const char *path, const char *kind, uint32_t version, const uint64_t *key, struct store **out,
    struct err *e);
/* Opens as store_open, but leaves one section unread; its user checks it by store_check_section. */
int store_open_but(const char *path, const char *kind, uint32_t version, const uint64_t *key, const char *section,
    struct store **out, struct err *e);
/* store_open and store_open_unread for a part of an open store (`around`; path: its file's, for messages), or for the
 * file at `path` if `around` is NULL. A part may stay open longer than the store around it. Opening a store does not
 * read its parts. */
int store_open_from(const struct store *around, const char *path, const char *kind, uint32_t version,
    struct store **out, struct err *e);
int store_open_unread_from(const struct store *around, const char *path, const char *kind, uint32_t version,
    struct store **out, struct err *e);
void store_close(struct store *);
/* Items of a section, aligned to at least 64 bytes from the file's start; NULL and *count = 0 if absent. An item size
 * other than item_bytes counts as damage: NULL and *count = 0. */
const void *store_section(const struct store *, const char *name, size_t item_bytes, size_t *count);
/* Items of a section, copied to memory until the store is closed. For tables that lead to other tables: a reader checks
 * them once, and they must not change even if the file is cut off. */
const void *store_section_kept(struct store *, const char *name, size_t item_bytes, size_t *count);
/* Returns the defect of a table of names, or NULL. Each name is terminated and begins at a byte of `text`. There must
 * be at least one name. */
const char *store_names_defect(const char *text, size_t n_text, const uint32_t *names, size_t n);
/* Returns ERR_LOST if the file was cut off, or the disk could not read it (base/file.h), since the store was opened. */
int store_intact(const struct store *, struct err *e);
void store_populate(const struct store *); /* see file_map_populate */
uint64_t store_key(const struct store *);
/* Checks all of any store file, including its parts; for `verify`. */
int store_check(const char *path, struct err *e);
/* Checks one part of an open store; path: its file's. */
int store_check_part(const struct store *, const char *path, const char *kind, struct err *e);
/* Compares the checksum of one section of an open store; path: its file's. */
int store_check_section(const struct store *, const char *path, const char *name, struct err *e);
/* ERR_STALE if the file was not made from the input that `key` identifies. Reads the header only. */
int store_check_key(const char *path, uint64_t key, struct err *e);

#endif
