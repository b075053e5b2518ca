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
_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "sections are used in place: the machine must be little-endian");

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

struct entry {
    char name[NAME_BYTES];
    uint64_t offset, count;
    uint32_t item_bytes, reserved;
    uint64_t checksum; /* of the section with its padding */
};
_Static_assert(sizeof(struct entry) == 48, "layout of a table entry");

static uint64_t aligned(uint64_t n)
{
    return (n + ALIGN - 1) & ~(uint64_t)(ALIGN - 1);
}

static uint64_t table_end(size_t n_sections)
{
    return aligned(sizeof(struct header) + n_sections * sizeof(struct entry));
}

static uint64_t header_checksum(const void *header_and_table, uint64_t end)
{
    const uint8_t *p = header_and_table;
    size_t own = offsetof(struct header, checksum);
    return XXH3_64bits_withSeed(p + sizeof(struct header), end - sizeof(struct header), XXH3_64bits(p, own));
}

/* ---- writing ---- */

struct planned {
    struct entry entry;
    const void *items;
    const void *const *chunks; /* or these, of chunk_bytes each */
    size_t chunk_bytes;
};

struct store_writer {
    struct header header;
    size_t n, cap;
    struct planned *v;
};

struct store_writer *store_create(const char *kind, uint32_t version, uint64_t key)
{
    struct store_writer *w = mem_zalloc(sizeof *w);
    size_t n = strlen(kind);
    assert(n > 0 && n <= KIND_BYTES);
    memcpy(w->header.signature, signature, sizeof signature);
    memcpy(w->header.kind, kind, n);
    w->header.container_version = CONTAINER_VERSION;
    w->header.content_version = version;
    w->header.key = key;
    return w;
}

static void add(struct store_writer *w, const char *name, struct planned p, size_t item_bytes, uint64_t count)
{
    size_t n = strlen(name);
    assert(n > 0 && n < NAME_BYTES && w->n < MOST_SECTIONS);
    assert(item_bytes > 0 && item_bytes <= UINT32_MAX && count <= SIZE_MAX / 2 / item_bytes);
    for (size_t i = 0; i < w->n; i++)
        assert(strcmp(w->v[i].entry.name, name) != 0);
    memcpy(p.entry.name, name, n);
    p.entry.item_bytes = (uint32_t)item_bytes;
    p.entry.count = count;
    vec_push(w, p);
}

void store_add(struct store_writer *w, const char *name, const void *items, size_t item_bytes, size_t count)
{
    add(w, name, (struct planned){.items = items}, item_bytes, count);
}

void store_add_chunks(
    struct store_writer *w, const char *name, const void *const *chunks, size_t chunk_bytes, size_t item_bytes, uint64_t count)
{
    add(w, name, (struct planned){.chunks = chunks, .chunk_bytes = chunk_bytes}, item_bytes, count);
}

/* The part of a section's data that begins at byte `at`, and its size. */
static const void *part(const struct planned *p, uint64_t at, uint64_t *bytes)
{
    *bytes = p->entry.count * p->entry.item_bytes - at;
    if (!p->chunks)
        return (const uint8_t *)p->items + at;
    if (*bytes > p->chunk_bytes)
        *bytes = p->chunk_bytes;
    return p->chunks[at / p->chunk_bytes];
}

static const uint8_t zeros[ALIGN];

static uint64_t padded_checksum(const struct planned *p, uint64_t bytes)
{
    if (!bytes)
        return XXH3_64bits(zeros, 0);
    XXH3_state_t *state = XXH3_createState();
    XXH3_64bits_reset(state);
    for (uint64_t at = 0, n; at < bytes; at += n) {
        const void *items = part(p, at, &n);
        XXH3_64bits_update(state, items, n);
    }
    XXH3_64bits_update(state, zeros, aligned(bytes) - bytes);
    uint64_t sum = XXH3_64bits_digest(state);
    XXH3_freeState(state);
    return sum;
}

/* Places the sections and fills header and table. Returns them as one block of table_end(w->n) bytes; free() it. */
static uint8_t *plan(struct store_writer *w)
{
    uint64_t at = table_end(w->n);
    uint8_t *front = mem_zalloc(at);
    for (size_t i = 0; i < w->n; i++) {
        struct entry *entry = &w->v[i].entry;
        uint64_t bytes = entry->count * entry->item_bytes;
        entry->offset = at;
        entry->checksum = padded_checksum(&w->v[i], bytes);
        memcpy(front + sizeof w->header + i * sizeof *entry, entry, sizeof *entry);
        at += aligned(bytes);
    }
    w->header.n_sections = (uint32_t)w->n;
    w->header.file_bytes = at;
    memcpy(front, &w->header, sizeof w->header);
    w->header.checksum = header_checksum(front, table_end(w->n));
    memcpy(front, &w->header, sizeof w->header);
    return front;
}

static int write_all(struct store_writer *w, const uint8_t *front, struct replace *r, struct err *e)
{
    int code = replace_write(r, front, table_end(w->n), e);
    for (size_t i = 0; i < w->n && code == ERR_OK; i++) {
        uint64_t bytes = w->v[i].entry.count * w->v[i].entry.item_bytes;
        for (uint64_t at = 0, n; at < bytes && code == ERR_OK; at += n) {
            const void *items = part(&w->v[i], at, &n);
            code = replace_write(r, items, n, e);
        }
        if (code == ERR_OK)
            code = replace_write(r, zeros, aligned(bytes) - bytes, e);
    }
    return code;
}

int store_commit(struct store_writer *w, const char *path, struct err *e)
{
    struct replace r;
    uint8_t *front = plan(w);
    int code = replace_begin(&r, path, e);
    if (code == ERR_OK) {
        code = write_all(w, front, &r, e);
        if (code == ERR_OK)
            code = replace_commit(&r, e);
        else
            replace_abort(&r);
    }
    free(front);
    free(w->v);
    free(w);
    return code;
}

/* ---- reading ---- */

struct store {
    struct file_map map;
    VEC(void *) kept;      /* sections */
    struct header *header; /* and the table of contents: in memory, so that it stays as it was checked */
    const struct entry *entries;
};

/* Header and table of contents, once what must hold before they can be believed was checked. free() it. */
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
        return err_set(e, ERR_STALE, "written in container version %u, this program reads %d", h->container_version, CONTAINER_VERSION);
    if (h->file_bytes != m->size)
        return err_set(
            e, ERR_FORMAT, "damaged: the file has %zu bytes, its header says %llu (byte 32)", m->size, (unsigned long long)h->file_bytes);
    return ERR_OK;
}

/* Sections follow each other without gaps and end with the file. */
static int check_table(const struct file_map *m, const struct header *h, struct err *e)
{
    const struct entry *entry = (const struct entry *)(h + 1);
    uint64_t at = table_end(h->n_sections);
    for (uint32_t i = 0; i < h->n_sections; i++, entry++) {
        uint64_t bytes;
        if (!memchr(entry->name, '\0', NAME_BYTES) || !entry->name[0] || !entry->item_bytes || entry->offset != at ||
            __builtin_mul_overflow(entry->count, (uint64_t)entry->item_bytes, &bytes) || bytes > m->size - at ||
            aligned(bytes) > m->size - at)
            return err_set(e, ERR_FORMAT, "damaged: section %u makes no sense (byte %zu)", i, sizeof *h + i * sizeof *entry);
        at += aligned(bytes);
    }
    if (at != m->size)
        return err_set(e, ERR_FORMAT, "damaged: sections end at byte %llu, the file at %zu", (unsigned long long)at, m->size);
    return ERR_OK;
}

static int check_sections(const struct file_map *m, const struct header *h, struct err *e)
{
    const struct entry *entry = (const struct entry *)(h + 1);
    for (uint32_t i = 0; i < h->n_sections; i++, entry++) {
        if (XXH3_64bits(m->data + entry->offset, aligned(entry->count * entry->item_bytes)) != entry->checksum)
            return err_set(
                e, ERR_FORMAT, "damaged: wrong checksum of section \"%s\" (byte %llu)", entry->name, (unsigned long long)entry->offset);
    }
    return ERR_OK;
}

/* Is it what the caller asked for? kind NULL: anything is. */
static int check_identity(const struct header *h, const char *kind, uint32_t version, const uint64_t *key, struct err *e)
{
    if (!kind)
        return ERR_OK;
    if (strncmp(h->kind, kind, KIND_BYTES) != 0)
        return err_set(e, ERR_FORMAT, "a \"%.8s\" store where \"%s\" is expected (byte 16)", h->kind, kind);
    if (h->content_version != version)
        return err_set(e, ERR_STALE, "written in version %u of \"%s\", this program reads %u", h->content_version, kind, version);
    if (key && h->key != *key)
        return err_set(e, ERR_STALE, "made from other data than those beside it");
    return ERR_OK;
}

static int open_checked(
    const char *path, const char *kind, uint32_t version, const uint64_t *key, bool sections, struct store **out, struct err *e)
{
    *out = NULL;
    struct store *s = mem_zalloc(sizeof *s);
    int code = file_map_open(path, &s->map, e);
    if (code) {
        free(s);
        return code;
    }
    madvise((void *)s->map.data, s->map.size, MADV_HUGEPAGE); /* only advice: what has to be read from the disk is read in huge pages */
    (void)((code = read_front(&s->map, &s->header, e)) || (code = check_identity(s->header, kind, version, key, e)) ||
        (code = check_table(&s->map, s->header, e)) || (sections && (code = check_sections(&s->map, s->header, e))));
    if (code) {
        store_close(s);
        err_wrap(e, "%s", path);
        return code;
    }
    s->entries = (const struct entry *)(s->header + 1);
    *out = s;
    return ERR_OK;
}

int store_open(const char *path, const char *kind, uint32_t version, const uint64_t *key, struct store **out, struct err *e)
{
    return open_checked(path, kind, version, key, true, out, e);
}

int store_open_unread(const char *path, const char *kind, uint32_t version, const uint64_t *key, struct store **out, struct err *e)
{
    return open_checked(path, kind, version, key, false, out, e);
}

void store_close(struct store *s)
{
    if (!s)
        return;
    for (size_t i = 0; i < s->kept.n; i++)
        free(s->kept.v[i]);
    vec_free(&s->kept);
    file_map_close(&s->map);
    free(s->header);
    free(s);
}

const void *store_section(const struct store *s, const char *name, size_t item_bytes, size_t *count)
{
    *count = 0;
    for (uint32_t i = 0; i < s->header->n_sections; i++) {
        const struct entry *entry = &s->entries[i];
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
    vec_push(&s->kept, copy);
    return copy;
}

int store_intact(const struct store *s, struct err *e)
{
    return file_map_intact(&s->map, e);
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
