/* SPDX-License-Identifier: MIT */
/* Subdirectories of a directory. A week of archives has thousands, most of them known: these are looked up by name, and
 * only new ones are sorted. */
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/map.h"
#include "ctf/discover.h"

static void add(struct ctf_listing *l, const struct dirent *e)
{
    size_t n = strlen(e->d_name);
    struct ctf_listed one = {
        (uint32_t)l->names.n, (uint32_t)map_hash(e->d_name, n), (uint64_t)e->d_ino, e->d_type, false};
    text_put(&l->names, e->d_name, n + 1);
    vec_push(&l->entries, one);
}

static void number(struct ctf_listing *l)
{
    size_t size = 16;
    while (size < 2 * l->entries.n)
        size *= 2;
    vec_reserve(&l->by_hash, size);
    memset(l->by_hash.v, 0, size * sizeof *l->by_hash.v);
    l->by_hash.n = size;
    for (size_t i = 0; i < l->entries.n; i++) {
        size_t at = l->entries.v[i].hash & (size - 1);
        while (l->by_hash.v[at])
            at = (at + 1) & (size - 1);
        l->by_hash.v[at] = (uint32_t)i + 1;
    }
}

int ctf_listing_read(struct ctf_listing *l, const char *dir)
{
    *l = (struct ctf_listing){.names = {.fd = -1}};
    DIR *d = opendir(dir);
    for (unsigned tried = 0; !d && errno == ENOMEM && mem_again(&tried);)
        d = opendir(dir);
    if (!d)
        return errno == ENOMEM ? ERR_NOMEM : ERR_IO;
    errno = 0;
    for (const struct dirent *e; (e = readdir(d)); errno = 0)
        if (e->d_name[0] != '.' && (e->d_type == DT_DIR || e->d_type == DT_LNK || e->d_type == DT_UNKNOWN))
            add(l, e);
    int why = errno;
    closedir(d);
    if (why) {
        ctf_listing_fini(l);
        return why == ENOMEM ? ERR_NOMEM : ERR_IO;
    }
    number(l);
    return 0;
}

struct ctf_listed *ctf_listing_find(struct ctf_listing *l, const char *name)
{
    uint32_t hash = (uint32_t)map_hash(name, strlen(name));
    size_t mask = l->by_hash.n - 1;
    for (size_t at = hash & mask; l->by_hash.v[at]; at = (at + 1) & mask) {
        struct ctf_listed *e = &l->entries.v[l->by_hash.v[at] - 1];
        if (e->hash == hash && !strcmp(ctf_listed_name(l, e), name))
            return e;
    }
    return NULL;
}

static int by_name(const void *a, const void *b, void *listing)
{
    return strcmp(ctf_listed_name(listing, a), ctf_listed_name(listing, b));
}

void ctf_listing_sort_rest(struct ctf_listing *l)
{
    size_t n = 0;
    for (size_t i = 0; i < l->entries.n; i++)
        if (!l->entries.v[i].taken)
            l->entries.v[n++] = l->entries.v[i];
    l->entries.n = n;
    l->by_hash.n = 0;
    if (n)
        qsort_r(l->entries.v, n, sizeof *l->entries.v, by_name, l);
}

void ctf_listing_fini(struct ctf_listing *l)
{
    text_fini(&l->names);
    vec_free(&l->entries);
    vec_free(&l->by_hash);
}
