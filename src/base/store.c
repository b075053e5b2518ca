#include "base/store.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/file.h"
#include "base/mem.h"
#include "base/replace.h"

/* docs/formats/container.md describes these bytes. */
_Static_assert(
    __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "sections are used in place: the machine must be little-endian");

enum { CONTAINER_VERSION = 1, ALIGN = 64, MOST_SECTIONS = 1024, NAME_BYTES = 16, KIND_BYTES = 8 };

/* As in PNG: the line ends and the end-of-file character show a copy that was "translated" as text. */
static const uint8_t signature[8] = {0x9d, 'W', 'E', 'F', 'T', '\r', '\n', 0x1a};

struct header {
    uint8_t signature[8];
    uint32_t container_version, content_version;
    char kind[KIND_BYTES];
    uint64_t key;
    uint64_t file_bytes;
    uint32_t n_sections, reserved;
    uint64_t reserved_too;
    uint64_t checksum; /* of all before it and of the table of contents */
};
_Static_assert(sizeof(struct header) == 64, "layout of the header");

struct store_entry {
    char name[NAME_BYTES];
    uint64_t offset, count;
    uint32_t item_bytes, reserved;
    uint64_t checksum; /* of the section with its padding */
};
_Static_assert(sizeof(struct store_entry) == 48, "layout of a table entry");

static uint64_t aligned(uint64_t n)
{
    return (n + ALIGN - 1) & ~(uint64_t)(ALIGN - 1);
}

static uint64_t table_end(size_t n_sections)
{
    return aligned(sizeof(struct header) + n_sections * sizeof(struct store_entry));
}

static uint64_t header_checksum(const void *header_and_table, uint64_t end)
{
    const uint8_t *p = header_and_table;
    size_t own = offsetof(struct header, checksum);
    return XXH3_64bits_withSeed(p + sizeof(struct header), end - sizeof(struct header), XXH3_64bits(p, own));
}

/* ---- writing ---- */

/* Bytes that are summed up at a time, and written while they are still in the nearest caches. */
enum { PIECE = 256 << 10 };

struct store_writer {
    struct replace file;
    char *path;
    struct header header;
    VEC(struct store_entry) entries;
    uint64_t at;         /* bytes so far: where the next go */
    XXH3_state_t *state; /* of the section begun last */
    struct err failed;
};

static const uint8_t zeros[ALIGN];

static void put(struct store_writer *w, const void *data, uint64_t n)
{
    w->at += n;
    if (!w->failed.code)
        replace_write(&w->file, data, n, &w->failed);
}

struct store_writer *store_create(const char *path, const char *kind, uint32_t version, uint64_t key, size_t n_sections)
{
    struct store_writer *w = mem_zalloc(sizeof *w);
    size_t n = strlen(kind);
    assert(n > 0 && n <= KIND_BYTES && n_sections <= MOST_SECTIONS);
    memcpy(w->header.signature, signature, sizeof signature);
    memcpy(w->header.kind, kind, n);
    w->header.container_version = CONTAINER_VERSION;
    w->header.content_version = version;
    w->header.key = key;
    w->header.n_sections = (uint32_t)n_sections;
    w->state = XXH3_createState();
    w->path = mem_strdup(path);
    replace_begin(&w->file, w->path, &w->failed);
    while (w->at < table_end(n_sections)) /* header and table come last */
        put(w, zeros, ALIGN);
    return w;
}

static void end_section(struct store_writer *w)
{
    if (!w->entries.n)
        return;
    struct store_entry *entry = &w->entries.v[w->entries.n - 1];
    uint64_t padding = aligned(w->at) - w->at;
    XXH3_64bits_update(w->state, zeros, padding);
    put(w, zeros, padding);
    entry->checksum = XXH3_64bits_digest(w->state);
}

void store_begin(struct store_writer *w, const char *name, size_t item_bytes)
{
    struct store_entry entry = {.item_bytes = (uint32_t)item_bytes};
    size_t n = strlen(name);
    end_section(w);
    assert(n > 0 && n < NAME_BYTES && w->entries.n < w->header.n_sections);
    assert(item_bytes > 0 && item_bytes <= UINT32_MAX);
    for (size_t i = 0; i < w->entries.n; i++)
        assert(strcmp(w->entries.v[i].name, name) != 0);
    memcpy(entry.name, name, n);
    entry.offset = w->at;
    vec_push(&w->entries, entry);
    XXH3_64bits_reset(w->state);
}

void store_append(struct store_writer *w, const void *items, size_t count)
{
    struct store_entry *entry = &w->entries.v[w->entries.n - 1];
    assert(count <= SIZE_MAX / 2 / entry->item_bytes);
    entry->count += count;
    const uint8_t *p = items;
    for (size_t left = count * entry->item_bytes, n; left; left -= n, p += n) {
        n = left < PIECE ? left : PIECE;
        XXH3_64bits_update(w->state, p, n);
        put(w, p, n);
    }
}

void store_add(struct store_writer *w, const char *name, const void *items, size_t item_bytes, size_t count)
{
    store_begin(w, name, item_bytes);
    store_append(w, items, count);
}

int store_writing(const struct store_writer *w, struct err *e)
{
    if (w->failed.code && e)
        *e = w->failed;
    return w->failed.code;
}

int store_look_back(const struct store_writer *w, struct file_map *out, const void **items, struct err *e)
{
    int code = store_writing(w, e);
    *items = NULL;
    if (!code && !(code = file_map_open(w->file.temporary, out, e)))
        *items = out->data + w->entries.v[w->entries.n - 1].offset;
    return code;
}

/* Header and table as one block of table_end(…) bytes; free() it. */
static uint8_t *make_front(struct store_writer *w)
{
    uint64_t end = table_end(w->entries.n);
    uint8_t *front = mem_zalloc(end);
    w->header.file_bytes = w->at;
    memcpy(front, &w->header, sizeof w->header);
    if (w->entries.n)
        memcpy(front + sizeof w->header, w->entries.v, w->entries.n * sizeof *w->entries.v);
    w->header.checksum = header_checksum(front, end);
    memcpy(front, &w->header, sizeof w->header);
    return front;
}

static void free_writer(struct store_writer *w)
{
    XXH3_freeState(w->state);
    vec_free(&w->entries);
    free(w->path);
    free(w);
}

void store_abort(struct store_writer *w)
{
    if (!w)
        return;
    replace_abort(&w->file);
    free_writer(w);
}

int store_commit(struct store_writer *w, struct err *e)
{
    end_section(w);
    assert(w->entries.n == w->header.n_sections);
    uint8_t *front = make_front(w);
    int code = store_writing(w, e);
    if (!code)
        code = replace_write_front(&w->file, front, table_end(w->entries.n), e);
    free(front);
    if (code) {
        store_abort(w);
        return code;
    }
    code = replace_commit(&w->file, e);
    free_writer(w);
    return code;
}

/* ---- reading ---- */

struct store {
    struct file_map map;
    VEC(void *) copies;    /* of sections */
    struct header *header; /* and the table of contents: in memory, so that it stays as it was checked */
    const struct store_entry *entries;
};

/* Header and table of contents, after checking what must hold before they can be believed. free() it. */
static int read_front(const struct file_map *m, struct header **out, struct err *e)
{
    struct header first, *h;
    if (m->size < sizeof first || memcmp(m->data, signature, sizeof signature) != 0)
        return err_set(e, ERR_FORMAT, "not a weft store, or its first bytes are damaged (byte 0)");
    memcpy(&first, m->data, sizeof first);
    uint64_t end = table_end(first.n_sections);
    if (first.n_sections > MOST_SECTIONS || end > m->size)
        return err_set(e, ERR_FORMAT, "damaged: %u sections do not fit (byte 40)", first.n_sections);
    *out = h = mem_alloc(end);
    memcpy(h, m->data, end);
    if (memcmp(h, &first, sizeof first) != 0 || header_checksum(h, end) != h->checksum)
        return err_set(e, ERR_FORMAT, "damaged: wrong checksum of the table of contents (byte 56)");
    if (h->container_version != CONTAINER_VERSION)
        return err_set(e, ERR_STALE, "written in container version %u, this program reads %d", h->container_version,
            CONTAINER_VERSION);
    if (h->file_bytes != m->size)
        return err_set(e, ERR_FORMAT, "damaged: the file has %zu bytes, its header says %llu (byte 32)", m->size,
            (unsigned long long)h->file_bytes);
    return ERR_OK;
}

/* Sections follow each other without gaps and end with the file. */
static int check_table(const struct file_map *m, const struct header *h, struct err *e)
{
    const struct store_entry *entry = (const struct store_entry *)(h + 1);
    uint64_t at = table_end(h->n_sections);
    for (uint32_t i = 0; i < h->n_sections; i++, entry++) {
        uint64_t bytes;
        if (!memchr(entry->name, '\0', NAME_BYTES) || !entry->name[0] || !entry->item_bytes || entry->offset != at ||
            __builtin_mul_overflow(entry->count, (uint64_t)entry->item_bytes, &bytes) || bytes > m->size - at ||
            aligned(bytes) > m->size - at)
            return err_set(
                e, ERR_FORMAT, "damaged: section %u makes no sense (byte %zu)", i, sizeof *h + i * sizeof *entry);
        at += aligned(bytes);
    }
    if (at != m->size)
        return err_set(
            e, ERR_FORMAT, "damaged: sections end at byte %llu, the file at %zu", (unsigned long long)at, m->size);
    return ERR_OK;
}

static int check_sections(const struct file_map *m, const struct header *h, struct err *e)
{
    const struct store_entry *entry = (const struct store_entry *)(h + 1);
    for (uint32_t i = 0; i < h->n_sections; i++, entry++) {
        if (XXH3_64bits(m->data + entry->offset, aligned(entry->count * entry->item_bytes)) != entry->checksum)
            return err_set(e, ERR_FORMAT, "damaged: wrong checksum of section \"%s\" (byte %llu)", entry->name,
                (unsigned long long)entry->offset);
    }
    return ERR_OK;
}

/* Is it what the caller asked for? kind NULL: anything is. */
static int check_identity(
    const struct header *h, const char *kind, uint32_t version, const uint64_t *key, struct err *e)
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

static int open_checked(const char *path, const char *kind, uint32_t version, const uint64_t *key, bool sections,
    struct store **out, struct err *e)
{
    *out = NULL;
    struct store *s = mem_zalloc(sizeof *s);
    int code = file_map_open(path, &s->map, e);
    if (code) {
        free(s);
        return code;
    }
    madvise((void *)s->map.data, s->map.size,
        MADV_HUGEPAGE); /* only advice: what has to be read from the disk is read in huge pages */
    (void)((code = read_front(&s->map, &s->header, e)) || (code = check_identity(s->header, kind, version, key, e)) ||
        (code = check_table(&s->map, s->header, e)) || (sections && (code = check_sections(&s->map, s->header, e))));
    if (code) {
        store_close(s);
        err_wrap(e, "%s", path);
        return code;
    }
    s->entries = (const struct store_entry *)(s->header + 1);
    *out = s;
    return ERR_OK;
}

int store_open(
    const char *path, const char *kind, uint32_t version, const uint64_t *key, struct store **out, struct err *e)
{
    return open_checked(path, kind, version, key, true, out, e);
}

int store_open_unread(
    const char *path, const char *kind, uint32_t version, const uint64_t *key, struct store **out, struct err *e)
{
    return open_checked(path, kind, version, key, false, out, e);
}

void store_close(struct store *s)
{
    if (!s)
        return;
    for (size_t i = 0; i < s->copies.n; i++)
        free(s->copies.v[i]);
    vec_free(&s->copies);
    file_map_close(&s->map);
    free(s->header);
    free(s);
}

const void *store_section(const struct store *s, const char *name, size_t item_bytes, size_t *count)
{
    *count = 0;
    for (uint32_t i = 0; i < s->header->n_sections; i++) {
        const struct store_entry *entry = &s->entries[i];
        if (strcmp(entry->name, name) != 0)
            continue;
        if (entry->item_bytes != item_bytes)
            return NULL;
        *count = (size_t)entry->count;
        return s->map.data + entry->offset;
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
    return file_map_intact(&s->map, e);
}

void store_populate(const struct store *s)
{
    file_map_populate(&s->map);
}

uint64_t store_key(const struct store *s)
{
    return s->header->key;
}

int store_check(const char *path, struct err *e)
{
    struct store *s;
    int code = open_checked(path, NULL, 0, NULL, true, &s, e);
    store_close(s);
    return code;
}

int store_check_key(const char *path, uint64_t key, struct err *e)
{
    struct file_map map;
    struct header *h = NULL;
    int code = file_map_open(path, &map, e);
    if (code)
        return code;
    code = read_front(&map, &h, e);
    if (!code && h->key != key)
        code = err_set(e, ERR_STALE, "made from other data than those beside it");
    free(h);
    file_map_close(&map);
    return code ? (err_wrap(e, "%s", path), code) : ERR_OK;
}
