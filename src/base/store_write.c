/* SPDX-License-Identifier: MIT */
/* Writing stores, and stores within stores. */
#include <assert.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/mem.h"
#include "base/replace.h"
#include "base/store.h"
#include "base/store_layout.h"

/* Bytes that are hashed at a time, and written while they are in the nearest caches. */
enum { PIECE = 256 << 10 };

/* Writer of a file, or of a part: a part writes to the file of the store around it. */
struct store_writer {
    struct replace file; /* files only */
    char *path;
    struct store_header header;
    VEC(struct store_entry) entries;
    uint64_t at;         /* bytes so far */
    XXH3_state_t *state; /* checksum of the last section */
    struct err failed;   /* files only */

    struct store_writer *around; /* store around a part; NULL: this is a file, or the part's file was aborted */
    uint64_t base;               /* begin of a part in the file */
    bool is_part;

    /* Lock of parts: one at a time is written; the next one waits. */
    pthread_mutex_t lock;
    pthread_cond_t part_ended;
    struct store_writer *part; /* part being written */
};

static const uint8_t zeros[ALIGN];

static void put(struct store_writer *w, const void *data, uint64_t n)
{
    struct store_writer *file = w->is_part ? w->around : w;
    w->at += n;
    if (!file)
        return;
    if (file != w)
        file->at += n;
    if (!file->failed.code)
        replace_write(&file->file, data, n, &file->failed);
}

static struct store_writer *new_writer(
    const char *path, const char *kind, uint32_t version, uint64_t key, size_t n_sections)
{
    struct store_writer *w = mem_zalloc(sizeof *w);
    size_t n = strlen(kind);
    assert(n > 0 && n <= KIND_BYTES && n_sections <= MOST_SECTIONS);
    memcpy(w->header.signature, store_signature, sizeof store_signature);
    memcpy(w->header.kind, kind, n);
    w->header.container_version = CONTAINER_VERSION;
    w->header.content_version = version;
    w->header.key = key;
    w->header.n_sections = (uint32_t)n_sections;
    w->state = XXH3_createState();
    w->path = mem_strdup(path);
    pthread_mutex_init(&w->lock, NULL);
    pthread_cond_init(&w->part_ended, NULL);
    return w;
}

static void free_writer(struct store_writer *w)
{
    XXH3_freeState(w->state);
    vec_free(&w->entries);
    pthread_cond_destroy(&w->part_ended);
    pthread_mutex_destroy(&w->lock);
    free(w->path);
    free(w);
}

/* Leaves room: header and table come last. */
static void leave_front(struct store_writer *w)
{
    while (w->at < store_table_end(w->header.n_sections))
        put(w, zeros, ALIGN);
}

struct store_writer *store_create(const char *path, const char *kind, uint32_t version, uint64_t key, size_t n_sections)
{
    struct store_writer *w = new_writer(path, kind, version, key, n_sections);
    replace_begin(&w->file, w->path, false, &w->failed);
    leave_front(w);
    return w;
}

/* ---- sections ---- */

static void end_section(struct store_writer *w)
{
    if (!w->entries.n)
        return;
    struct store_entry *entry = &w->entries.v[w->entries.n - 1];
    if (entry->holds == STORE_PART)
        return;
    uint64_t padding = store_aligned(w->at) - w->at;
    XXH3_64bits_update(w->state, zeros, padding);
    put(w, zeros, padding);
    entry->checksum = XXH3_64bits_digest(w->state);
}

static void add_entry(struct store_writer *w, const char *name, size_t item_bytes, uint32_t holds)
{
    struct store_entry entry = {.item_bytes = (uint32_t)item_bytes, .holds = holds};
    size_t n = strlen(name);
    end_section(w);
    assert(n > 0 && n < NAME_BYTES && w->entries.n < w->header.n_sections);
    assert(item_bytes > 0 && item_bytes <= UINT32_MAX);
    for (size_t i = 0; i < w->entries.n; i++)
        assert(strcmp(w->entries.v[i].name, name) != 0);
    memcpy(entry.name, name, n);
    entry.offset = w->at;
    vec_push(&w->entries, entry);
}

void store_begin(struct store_writer *w, const char *name, size_t item_bytes)
{
    assert(!w->part);
    add_entry(w, name, item_bytes, STORE_ITEMS);
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
    if (w->is_part && !w->around)
        return err_set(e, ERR_CANCELLED, "%s: was given up", w->path);
    const struct err *failed = w->is_part ? &w->around->failed : &w->failed;
    if (failed->code && e)
        *e = *failed;
    return failed->code;
}

int store_look_back(struct store_writer *w, struct file_map *out, const void **items, struct err *e)
{
    int code = store_writing(w, e);
    struct store_writer *file = w->is_part ? w->around : w;
    *items = NULL;
    code = code ?: replace_flush(&file->file, e);
    if (!code && !(code = file_map_descriptor(file->file.fd, w->path, (size_t)file->file.written, out, e)))
        *items = out->data + w->base + w->entries.v[w->entries.n - 1].offset;
    return code;
}

/* ---- parts ---- */

struct store_writer *store_create_at(
    struct store_place place, const char *kind, uint32_t version, uint64_t key, size_t n_sections)
{
    struct store_writer *around = place.in;
    if (!around)
        return store_create(place.path, kind, version, key, n_sections);
    assert(!around->is_part);
    struct store_writer *w = new_writer(place.path, kind, version, key, n_sections);
    pthread_mutex_lock(&around->lock);
    while (around->part)
        pthread_cond_wait(&around->part_ended, &around->lock);
    around->part = w;
    pthread_mutex_unlock(&around->lock);
    w->is_part = true;
    w->around = around;
    add_entry(around, kind, 1, STORE_PART);
    w->base = around->at;
    leave_front(w);
    return w;
}

static void end_part(struct store_writer *w)
{
    struct store_writer *around = w->around;
    if (around) {
        pthread_mutex_lock(&around->lock);
        around->part = NULL;
        pthread_cond_signal(&around->part_ended);
        pthread_mutex_unlock(&around->lock);
    }
    free_writer(w);
}

/* ---- the end ---- */

void store_abort(struct store_writer *w)
{
    if (!w)
        return;
    if (w->is_part) {
        if (w->around && !w->around->failed.code)
            err_set(&w->around->failed, ERR_CANCELLED, "%s: a part of it was given up", w->path);
        end_part(w);
        return;
    }
    if (w->part)
        w->part->around = NULL;
    replace_abort(&w->file);
    free_writer(w);
}

/* Header and table as one block of store_table_end(…) bytes; free() it. */
static uint8_t *make_front(struct store_writer *w)
{
    uint64_t end = store_table_end(w->entries.n);
    uint8_t *front = mem_zalloc(end);
    w->header.bytes = w->at;
    memcpy(front, &w->header, sizeof w->header);
    if (w->entries.n)
        memcpy(front + sizeof w->header, w->entries.v, w->entries.n * sizeof *w->entries.v);
    w->header.checksum = store_header_checksum(front, end);
    memcpy(front, &w->header, sizeof w->header);
    return front;
}

int store_commit(struct store_writer *w, struct err *e)
{
    end_section(w);
    assert(w->entries.n == w->header.n_sections && !w->part);
    uint8_t *front = make_front(w);
    struct store_writer *file = w->is_part ? w->around : w;
    int code = store_writing(w, e);
    if (!code)
        code = replace_write_over(&file->file, (off_t)w->base, front, store_table_end(w->entries.n), e);
    free(front);
    if (code) {
        store_abort(w);
        return code;
    }
    if (w->is_part) {
        struct store_entry *entry = &file->entries.v[file->entries.n - 1];
        entry->count = w->at;
        entry->checksum = w->header.checksum;
        end_part(w);
        return ERR_OK;
    }
    code = replace_commit(&w->file, e);
    free_writer(w);
    return code;
}
