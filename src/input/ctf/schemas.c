/* SPDX-License-Identifier: MIT */
/* Schemas shared by traces with the same declarations. */
#include <pthread.h>
#include <stdlib.h>

#include "base/map.h"
#include "ctf/ctf.h"
#include "ctf/tsdl.h"

enum { UNUSED_MAX = 8 }; /* unused schemas kept for the next trace */

struct shared_schema {
    uint64_t hash[2], bytes;
    struct ctf_schema *schema; /* NULL while a thread makes it */
    uint64_t released;         /* time when it became unused */
};

struct ctf_schemas {
    pthread_mutex_t lock;
    pthread_cond_t made;
    VEC(struct shared_schema) entries;
    uint64_t now;
};

struct ctf_schemas *ctf_schemas_new(void)
{
    struct ctf_schemas *s = mem_zalloc(sizeof *s);
    pthread_mutex_init(&s->lock, NULL);
    pthread_cond_init(&s->made, NULL);
    return s;
}

void ctf_schemas_free(struct ctf_schemas *s)
{
    if (!s)
        return;
    for (size_t i = 0; i < s->entries.n; i++)
        ctf_schema_free(s->entries.v[i].schema);
    vec_free(&s->entries);
    pthread_cond_destroy(&s->made);
    pthread_mutex_destroy(&s->lock);
    free(s);
}

static struct shared_schema hash_shared(const struct tsdl_scan *scan)
{
    struct shared_schema key = {0};
    struct map_piece *pieces = mem_alloc(sizeof *pieces * (scan->shared.n + 1));
    for (size_t i = 0; i < scan->shared.n; i++) {
        pieces[i] = (struct map_piece){
            scan->shared.v[i].begin, (size_t)(scan->shared.v[i].end - scan->shared.v[i].begin)};
        key.bytes += pieces[i].n;
    }
    map_hash_pieces(pieces, scan->shared.n, key.hash);
    free(pieces);
    return key;
}

static struct shared_schema *find(struct ctf_schemas *s, const struct shared_schema *key)
{
    for (size_t i = 0; i < s->entries.n; i++) {
        struct shared_schema *entry = &s->entries.v[i];
        if (entry->hash[0] == key->hash[0] && entry->hash[1] == key->hash[1] && entry->bytes == key->bytes)
            return entry;
    }
    return NULL;
}

static struct ctf_schema *make(
    const struct shared_schema *key, const char *text, const struct tsdl_scan *scan, struct err *e)
{
    struct ctf_schema *schema = tsdl_schema_new(text, scan, e);
    if (schema) {
        schema->hash[0] = key->hash[0];
        schema->hash[1] = key->hash[1];
        schema->hashed_bytes = key->bytes;
        schema->references = 1;
    }
    return schema;
}

struct ctf_schema *ctf_schemas_get(struct ctf_schemas *s, const char *text, const struct tsdl_scan *scan, struct err *e)
{
    struct shared_schema key = hash_shared(scan), *entry;
    if (!s)
        return make(&key, text, scan, e);
    pthread_mutex_lock(&s->lock);
    while ((entry = find(s, &key)) && !entry->schema)
        pthread_cond_wait(&s->made, &s->lock);
    if (entry) {
        struct ctf_schema *schema = entry->schema;
        schema->references++;
        pthread_mutex_unlock(&s->lock);
        return schema;
    }
    vec_push(&s->entries, key);
    pthread_mutex_unlock(&s->lock);
    struct ctf_schema *schema = make(&key, text, scan, e);
    pthread_mutex_lock(&s->lock);
    entry = find(s, &key);
    if (schema)
        entry->schema = schema;
    else
        *entry = s->entries.v[--s->entries.n];
    pthread_cond_broadcast(&s->made);
    pthread_mutex_unlock(&s->lock);
    return schema;
}

/* Frees the schema that is unused for longest if there are too many. */
static void trim(struct ctf_schemas *s)
{
    size_t unused = 0;
    struct shared_schema *oldest = NULL;
    for (size_t i = 0; i < s->entries.n; i++) {
        struct shared_schema *entry = &s->entries.v[i];
        if (!entry->schema || entry->schema->references)
            continue;
        unused++;
        if (!oldest || entry->released < oldest->released)
            oldest = entry;
    }
    if (unused <= UNUSED_MAX)
        return;
    ctf_schema_free(oldest->schema);
    *oldest = s->entries.v[--s->entries.n];
}

void ctf_schemas_put(struct ctf_schemas *s, struct ctf_schema *schema)
{
    if (!schema)
        return;
    if (!s) {
        ctf_schema_free(schema);
        return;
    }
    pthread_mutex_lock(&s->lock);
    if (--schema->references == 0) {
        for (size_t i = 0; i < s->entries.n; i++)
            if (s->entries.v[i].schema == schema)
                s->entries.v[i].released = ++s->now;
        trim(s);
    }
    pthread_mutex_unlock(&s->lock);
}
