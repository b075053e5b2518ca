/* SPDX-License-Identifier: MIT */
/* Private to ctf: finding traces. */
#ifndef WEFT_CTF_DISCOVER_H
#define WEFT_CTF_DISCOVER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/mem.h"
#include "base/text.h"

/* identity.c: UUID, host, domain and process as the metadata tell them; NULL when the trace has no UUID: then nothing
 * says that two are one. free() it. *lacking is set when there was no memory to read them. */
char *ctf_identity(const char *dir, bool *lacking);

/* listing.c: the entries of a directory that may be directories, in no order; names that begin with a dot are none. */
struct ctf_listed {
    uint32_t name;         /* where in the names */
    uint32_t hash;         /* of the name */
    uint64_t inode;
    uint8_t type;          /* DT_DIR, DT_LNK or DT_UNKNOWN */
    bool taken;            /* for who takes them one by one */
};
struct ctf_listing {
    struct text names;     /* each terminated */
    VEC(struct ctf_listed) entries;
    VEC(uint32_t) by_hash; /* number of the entry + 1; 0: none. A power of two */
};
/* 0, or a negative error: ERR_NOMEM, or ERR_IO when the directory cannot be listed. */
int ctf_listing_read(struct ctf_listing *, const char *dir);
/* The entry of that name; NULL: there is none. */
struct ctf_listed *ctf_listing_find(struct ctf_listing *, const char *name);
/* Lets go those that were taken, and sorts the others by name. */
void ctf_listing_sort_rest(struct ctf_listing *);
static inline const char *ctf_listed_name(const struct ctf_listing *l, const struct ctf_listed *e)
{
    return l->names.v + e->name;
}
void ctf_listing_fini(struct ctf_listing *);

/* refuse.c: the error for a path that is no directory: what it is, and what to do. Returns ERR_NOTFOUND. */
int ctf_refuse_file(const char *path, mode_t mode, struct err *e);

#endif
