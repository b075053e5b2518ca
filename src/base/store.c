/* SPDX-License-Identifier: MIT */
/* Reading stores. docs/formats/container.md describes the bytes. */
#include "base/store.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/file.h"
#include "base/mem.h"
#include "base/store_layout.h"

/* A mapped file, kept for as long as a store of it is open. */
struct store_file {
    struct file_map map;
    atomic_uint users;
};

struct store {
    struct store_file *file;
    const uint8_t *data; /* bytes of the file, or of a part of it */
    size_t size;
    bool is_part;
    VEC(void *) copies;          /* copied sections */
    struct store_header *header; /* header and table of contents: in memory, so that they stay as checked */
    const struct store_entry *entries;
};

/* Reads header and table of contents, and checks what must hold before they are trusted. */
static int read_front(struct store *s, struct err *e)
{
    struct store_header first, *h;
    if (s->size < sizeof first || memcmp(s->data, store_signature, sizeof store_signature) != 0)
        return err_set(e, ERR_FORMAT, "not a weft store, or its first bytes are damaged (byte 0)");
    memcpy(&first, s->data, sizeof first);
    uint64_t end = store_table_end(first.n_sections);
    if (first.n_sections > MOST_SECTIONS || end > s->size)
        return err_set(e, ERR_FORMAT, "damaged: %u sections do not fit (byte 40)", first.n_sections);
    s->header = h = mem_alloc(end);
    s->entries = (const struct store_entry *)(h + 1);
    memcpy(h, s->data, end);
    if (memcmp(h, &first, sizeof first) != 0 || store_header_checksum(h, end) != h->checksum)
        return err_set(e, ERR_FORMAT, "damaged: wrong checksum of the table of contents (byte 56)");
    if (h->container_version != CONTAINER_VERSION)
        return err_set(e, ERR_STALE, "written in container version %u, this program reads %d", h->container_version,
            CONTAINER_VERSION);
    if (h->bytes != s->size)
        return err_set(e, ERR_FORMAT, "damaged: the %s has %zu bytes, its header says %llu (byte 32)",
            s->is_part ? "part" : "file", s->size, (unsigned long long)h->bytes);
    return ERR_OK;
}

static const struct store_entry *find_part(const struct store *s, const char *kind)
{
    for (uint32_t i = 0; i < s->header->n_sections; i++)
        if (s->entries[i].holds == STORE_PART && !strcmp(s->entries[i].name, kind))
            return &s->entries[i];
    return NULL;
}

/* Checks an entry, given that those before it are valid. */
static bool is_possible(const struct store *s, const struct store_entry *entry, uint64_t at)
{
    uint64_t bytes;
    if (!memchr(entry->name, '\0', NAME_BYTES) || !entry->name[0] || !entry->item_bytes || entry->offset != at ||
        __builtin_mul_overflow(entry->count, (uint64_t)entry->item_bytes, &bytes) || bytes > s->size - at ||
        store_aligned(bytes) > s->size - at)
        return false;
    if (entry->holds == STORE_PART)
        return !s->is_part && entry->item_bytes == 1 && find_part(s, entry->name) == entry;
    return entry->holds == STORE_ITEMS;
}

/* Sections follow each other without gaps and end with the file. */
static int check_table(const struct store *s, struct err *e)
{
    const struct store_entry *entry = s->entries;
    uint64_t at = store_table_end(s->header->n_sections);
    for (uint32_t i = 0; i < s->header->n_sections; i++, entry++) {
        if (!is_possible(s, entry, at))
            return err_set(e, ERR_FORMAT, "damaged: section %u makes no sense (byte %zu)", i,
                sizeof *s->header + i * sizeof *entry);
        at += store_aligned(entry->count * entry->item_bytes);
    }
    if (at != s->size)
        return err_set(e, ERR_FORMAT, "damaged: sections end at byte %llu, the %s at %zu", (unsigned long long)at,
            s->is_part ? "part" : "file", s->size);
    return ERR_OK;
}

static int check_section(const struct store *s, const struct store_entry *entry, struct err *e)
{
    if (XXH3_64bits(s->data + entry->offset, store_aligned(entry->count * entry->item_bytes)) == entry->checksum)
        return ERR_OK;
    return err_set(e, ERR_FORMAT, "damaged: wrong checksum of section \"%s\" (byte %llu)", entry->name,
        (unsigned long long)entry->offset);
}

/* Checks the sections that are no parts, except the one named `but` (NULL: none). */
static int check_sections(const struct store *s, const char *but, struct err *e)
{
    int code = ERR_OK;
    for (uint32_t i = 0; i < s->header->n_sections && !code; i++)
        if (s->entries[i].holds == STORE_ITEMS && (!but || strcmp(s->entries[i].name, but) != 0))
            code = check_section(s, &s->entries[i], e);
    return code;
}

/* Checks kind, version and key. kind NULL: any. */
static int check_identity(
    const struct store_header *h, const char *kind, uint32_t version, const uint64_t *key, struct err *e)
{
    if (!kind)
        return ERR_OK;
    if (strncmp(h->kind, kind, KIND_BYTES) != 0)
        return err_set(e, ERR_FORMAT, "a \"%.8s\" store where \"%s\" is expected (byte 16)", h->kind, kind);
    if (h->content_version != version)
        return err_set(
            e, ERR_STALE, "written in version %u of \"%s\", this program reads %u", h->content_version, kind, version);
    if (key && h->key != *key)
        return err_set(e, ERR_STALE, "made from other data than those beside it");
    return ERR_OK;
}

static int check_front(
    struct store *s, const char *kind, uint32_t version, const uint64_t *key, bool sections, struct err *e)
{
    int code = read_front(s, e);
    code = code ?: check_identity(s->header, kind, version, key, e);
    code = code ?: check_table(s, e);
    return code || !sections ? code : check_sections(s, NULL, e);
}

static int map_store(const char *path, struct store **out, struct err *e)
{
    struct store_file *f = mem_zalloc(sizeof *f);
    int code = file_map_open_nolinks(path, &f->map, e);
    if (code) {
        free(f);
        return code;
    }
    madvise((void *)f->map.data, f->map.size, MADV_HUGEPAGE); /* advice: the disk is read in huge pages */
    atomic_init(&f->users, 1);
    *out = mem_zalloc(sizeof **out);
    **out = (struct store){.file = f, .data = f->map.data, .size = f->map.size};
    return ERR_OK;
}

static int open_file(const char *path, const char *kind, uint32_t version, const uint64_t *key, bool sections,
    struct store **out, struct err *e)
{
    struct store *s;
    *out = NULL;
    int code = map_store(path, &s, e);
    if (code)
        return code;
    if ((code = check_front(s, kind, version, key, sections, e))) {
        store_close(s);
        err_wrap(e, "%s", path);
        return code;
    }
    *out = s;
    return ERR_OK;
}

int store_open(
    const char *path, const char *kind, uint32_t version, const uint64_t *key, struct store **out, struct err *e)
{
    return open_file(path, kind, version, key, true, out, e);
}

int store_open_unread(
    const char *path, const char *kind, uint32_t version, const uint64_t *key, struct store **out, struct err *e)
{
    return open_file(path, kind, version, key, false, out, e);
}

int store_open_but(const char *path, const char *kind, uint32_t version, const uint64_t *key, const char *section,
    struct store **out, struct err *e)
{
    int code = open_file(path, kind, version, key, false, out, e);
    if (code || !(code = check_sections(*out, section, e)))
        return code;
    store_close(*out);
    *out = NULL;
    err_wrap(e, "%s", path);
    return code;
}

/* ---- parts ---- */

static struct store *part_of(const struct store *around, const struct store_entry *entry)
{
    struct store *s = mem_zalloc(sizeof *s);
    *s = (struct store){
        .file = around->file, .data = around->data + entry->offset, .size = (size_t)entry->count, .is_part = true};
    atomic_fetch_add(&s->file->users, 1);
    return s;
}

static int open_part(const struct store *around, const char *path, const char *kind, uint32_t version, bool sections,
    struct store **out, struct err *e)
{
    const struct store_entry *entry = find_part(around, kind);
    *out = NULL;
    if (!entry)
        return err_set(e, ERR_FORMAT, "%s: has no part \"%s\"", path, kind);
    struct store *s = part_of(around, entry);
    int code = check_front(s, kind, version, NULL, sections, e);
    if (!code && s->header->checksum != entry->checksum)
        code = err_set(e, ERR_FORMAT, "damaged: not the part that was written");
    if (code) {
        store_close(s);
        err_wrap(e, "%s: %s", path, kind);
        return code;
    }
    *out = s;
    return ERR_OK;
}

int store_open_from(
    const struct store *around, const char *path, const char *kind, uint32_t version, struct store **out, struct err *e)
{
    return around ? open_part(around, path, kind, version, true, out, e)
                  : open_file(path, kind, version, NULL, true, out, e);
}

int store_open_unread_from(
    const struct store *around, const char *path, const char *kind, uint32_t version, struct store **out, struct err *e)
{
    return around ? open_part(around, path, kind, version, false, out, e)
                  : open_file(path, kind, version, NULL, false, out, e);
}

void store_close(struct store *s)
{
    if (!s)
        return;
    for (size_t i = 0; i < s->copies.n; i++)
        free(s->copies.v[i]);
    vec_free(&s->copies);
    free(s->header);
    if (atomic_fetch_sub(&s->file->users, 1) == 1) {
        file_map_close(&s->file->map);
        free(s->file);
    }
    free(s);
}

/* ---- sections ---- */

const void *store_section(const struct store *s, const char *name, size_t item_bytes, size_t *count)
{
    *count = 0;
    for (uint32_t i = 0; i < s->header->n_sections; i++) {
        const struct store_entry *entry = &s->entries[i];
        if (*entry->name != *name || strcmp(entry->name, name) != 0)
            continue;
        if (entry->item_bytes != item_bytes)
            return NULL;
        *count = (size_t)entry->count;
        return s->data + entry->offset;
    }
    return NULL;
}

const void *store_section_kept(struct store *s, const char *name, size_t item_bytes, size_t *count)
{
    const void *items = store_section(s, name, item_bytes, count);
    if (!items)
        return NULL;
    size_t bytes = *count * item_bytes;
    void *copy = mem_alloc(bytes + 64);
    memcpy(copy, items, bytes);
    memset((char *)copy + bytes, 0, 64);
    vec_push(&s->copies, copy);
    return copy;
}

const char *store_names_defect(const char *text, size_t n_text, const uint32_t *names, size_t n)
{
    if (!n_text || text[n_text - 1] || !n)
        return "the names are cut off";
    for (size_t i = 0; i < n; i++)
        if (names[i] >= n_text)
            return "a name lies outside the text";
    return NULL;
}

int store_intact(const struct store *s, struct err *e)
{
    return file_map_intact(&s->file->map, e);
}

void store_populate(const struct store *s)
{
    file_map_populate(&s->file->map, (size_t)(s->data - s->file->map.data), s->size);
}

uint64_t store_key(const struct store *s)
{
    return s->header->key;
}

static int check_part(const struct store *s, const struct store_entry *entry, struct err *e)
{
    struct store *part = part_of(s, entry);
    int code = check_front(part, NULL, 0, NULL, true, e);
    if (!code && part->header->checksum != entry->checksum)
        code = err_set(e, ERR_FORMAT, "damaged: not the part that was written");
    store_close(part);
    if (code)
        err_wrap(e, "%s", entry->name);
    return code;
}

int store_check_part(const struct store *s, const char *path, const char *kind, struct err *e)
{
    const struct store_entry *entry = find_part(s, kind);
    if (!entry)
        return err_set(e, ERR_FORMAT, "%s: has no part \"%s\"", path, kind);
    int code = check_part(s, entry, e);
    if (code)
        err_wrap(e, "%s", path);
    return code;
}

int store_check_section(const struct store *s, const char *path, const char *name, struct err *e)
{
    int code = err_set(e, ERR_FORMAT, "has no section \"%s\"", name);
    for (uint32_t i = 0; i < s->header->n_sections; i++)
        if (s->entries[i].holds == STORE_ITEMS && !strcmp(s->entries[i].name, name))
            code = check_section(s, &s->entries[i], e);
    if (code)
        err_wrap(e, "%s", path);
    return code;
}

int store_check(const char *path, struct err *e)
{
    struct store *s;
    int code = open_file(path, NULL, 0, NULL, true, &s, e);
    for (uint32_t i = 0; !code && i < s->header->n_sections; i++)
        if (s->entries[i].holds == STORE_PART && (code = check_part(s, &s->entries[i], e)))
            err_wrap(e, "%s", path);
    store_close(s);
    return code;
}

int store_check_key(const char *path, uint64_t key, struct err *e)
{
    struct store *s;
    int code = map_store(path, &s, e);
    if (code)
        return code;
    code = read_front(s, e);
    if (!code && s->header->key != key)
        code = err_set(e, ERR_STALE, "made from other data than those beside it");
    store_close(s);
    if (code)
        err_wrap(e, "%s", path);
    return code;
}
