/* SPDX-License-Identifier: MIT */
/* Private to ctf: finding traces. */
#ifndef WEFT_CTF_DISCOVER_H
#define WEFT_CTF_DISCOVER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/mem.h"
#include "base/text.h"

/* identity.c: returns UUID, host, domain and process from the metadata; free(). NULL if the trace has no UUID: then it
 * is not joined with others. *lacking is set if memory to read them was missing. */
char *ctf_identity(const char *dir, bool *lacking);

/* listing.c: entries of a directory that may be directories, in no order; names that begin with a dot are skipped. */
struct ctf_listed {
    uint32_t name;         /* offset in the names */
    uint32_t hash;         /* hash of the name */
    uint64_t inode;
    uint8_t type;          /* DT_DIR, DT_LNK or DT_UNKNOWN */
    bool taken;            /* mark for callers that take entries one by one */
};
struct ctf_listing {
    struct text names;     /* names, each terminated */
    VEC(struct ctf_listed) entries;
    VEC(uint32_t) by_hash; /* number of the entry + 1; 0: empty slot. The size is a power of two */
};
/* Returns 0 or a negative error: ERR_NOMEM, or ERR_IO if the directory cannot be listed. */
int ctf_listing_read(struct ctf_listing *, const char *dir);
/* Returns the entry of that name; NULL: none. */
struct ctf_listed *ctf_listing_find(struct ctf_listing *, const char *name);
/* Removes taken entries, and sorts the others by name. */
void ctf_listing_sort_rest(struct ctf_listing *);
static inline const char *ctf_listed_name(const struct ctf_listing *l, const struct ctf_listed *e)
{
    return l->names.v + e->name;
}
void ctf_listing_fini(struct ctf_listing *);

/* refuse.c: returns whether the file is a recording that room ftrace reads. */
bool ctf_file_is_recording(const char *path);
/* Error for a path that is no directory: names its kind and a remedy. Returns ERR_NOTFOUND. */
int ctf_refuse_file(const char *path, mode_t mode, struct err *e);
/* The same for a directory without traces. */
int ctf_refuse_directory(const char *path, struct err *e);

#endif
