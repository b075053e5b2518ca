/* SPDX-License-Identifier: MIT */
#include "coord/output_cache.h"

#include <ctype.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* Limit of all texts: above it, all are dropped, to be noted anew. Servers mostly offer the same outputs, so equal
 * texts are stored once. */
enum { MOST_BYTES = 32 << 20, LONGEST = 16 << 10 };

struct cached_outputs {
    VEC(uint32_t) texts;
};
struct output_cache {
    pthread_mutex_t lock;
    struct strings texts;
    uint64_t bytes; /* size of the stored texts */
    struct map of;  /* (server, experiment) -> index in `v` */
    VEC(struct cached_outputs) v;
};

struct output_cache *coord_output_cache_new(void)
{
    struct output_cache *o = mem_zalloc(sizeof *o);
    pthread_mutex_init(&o->lock, NULL);
    return o;
}

static void forget(struct output_cache *o)
{
    for (size_t i = 0; i < o->v.n; i++)
        vec_free(&o->v.v[i].texts);
    vec_free(&o->v);
    map_fini(&o->of);
    strings_fini(&o->texts);
    o->of = (struct map){0};
    o->texts = (struct strings){0};
    o->bytes = 0;
}

void coord_output_cache_free(struct output_cache *o)
{
    if (!o)
        return;
    forget(o);
    pthread_mutex_destroy(&o->lock);
    free(o);
}

static uint64_t key_of(struct coord_call *c, const struct node *n)
{
    char *uuid = arena_strdup(c->arena, c->request.arg[0]);
    for (char *p = uuid; *p; p++)
        *p = (char)tolower((unsigned char)*p);
    return map_mix(n->number) ^ map_hash(uuid, strlen(uuid));
}

/* Finds a server's outputs; NULL: unknown. Call this, and the static functions below, with the lock held. */
static struct cached_outputs *find(struct coord_call *c, const struct node *n)
{
    const uint64_t *at = map_find(&c->c->output_cache->of, key_of(c, n));
    return at ? &c->c->output_cache->v.v[*at] : NULL;
}

static struct cached_outputs *find_or_make(struct coord_call *c, const struct node *n)
{
    struct output_cache *o = c->c->output_cache;
    bool fresh;
    if (o->bytes > MOST_BYTES)
        forget(o);
    uint64_t *at = map_put(&o->of, key_of(c, n), &fresh);
    if (fresh) {
        *at = o->v.n;
        vec_push(&o->v, (struct cached_outputs){0});
        o->bytes += sizeof(struct cached_outputs);
    }
    return &o->v.v[*at];
}

static void add(struct output_cache *o, struct cached_outputs *its, struct slice output)
{
    size_t known = o->texts.n;
    if (output.n > LONGEST)
        return;
    vec_push(&its->texts, strings_intern(&o->texts, output.at, output.n));
    o->bytes += sizeof(uint32_t) + (o->texts.n > known ? output.n : 0);
}

static struct slice text_of(const struct output_cache *o, uint32_t i)
{
    const char *text = strings_get(&o->texts, i);
    return (struct slice){text, strlen(text), NULL};
}

static size_t place_of(const struct output_cache *o, const struct cached_outputs *its, const char *id)
{
    struct arena a = {0};
    size_t i = 0;
    for (; i < its->texts.n; i++) {
        const char *own = slice_string(slice_get(text_of(o, its->texts.v[i]), "id"), &a);
        if (own && !strcmp(own, id))
            break;
    }
    arena_fini(&a);
    return i;
}

void coord_output_cache_note(struct coord_call *c, const struct node *n, struct slice list)
{
    struct slice_walk w = slice_items(list);
    pthread_mutex_lock(&c->c->output_cache->lock);
    struct cached_outputs *its = find_or_make(c, n);
    its->texts.n = 0;
    for (struct slice output; slice_next(&w, &output);)
        if (slice_is(slice_get(output, "id"), '"'))
            add(c->c->output_cache, its, output);
    pthread_mutex_unlock(&c->c->output_cache->lock);
}

void coord_output_cache_add(struct coord_call *c, const struct node *n, struct slice output)
{
    const char *id = slice_string(slice_get(output, "id"), c->arena);
    if (!id)
        return;
    pthread_mutex_lock(&c->c->output_cache->lock);
    struct cached_outputs *its = find_or_make(c, n);
    if (place_of(c->c->output_cache, its, id) == its->texts.n)
        add(c->c->output_cache, its, output);
    pthread_mutex_unlock(&c->c->output_cache->lock);
}

void coord_output_cache_remove(struct coord_call *c, const struct node *n, const char *id)
{
    pthread_mutex_lock(&c->c->output_cache->lock);
    struct cached_outputs *its = find(c, n);
    size_t at = its ? place_of(c->c->output_cache, its, id) : 0;
    if (its && at < its->texts.n) {
        its->texts.n--;
        memmove(&its->texts.v[at], &its->texts.v[at + 1], (its->texts.n - at) * sizeof *its->texts.v);
    }
    pthread_mutex_unlock(&c->c->output_cache->lock);
}

size_t coord_output_cache_get(struct coord_call *c, const struct node *n, struct slice **out)
{
    pthread_mutex_lock(&c->c->output_cache->lock);
    const struct cached_outputs *its = find(c, n);
    size_t count = its ? its->texts.n : 0;
    *out = arena_new(c->arena, struct slice, count + 1);
    for (size_t i = 0; i < count; i++) {
        struct slice text = text_of(c->c->output_cache, its->texts.v[i]);
        (*out)[i] = (struct slice){arena_strndup(c->arena, text.at, text.n), text.n, NULL};
    }
    pthread_mutex_unlock(&c->c->output_cache->lock);
    return count;
}

struct slice coord_output_cache_find(struct coord_call *c, const struct node *n, const char *id)
{
    struct slice found = {0};
    pthread_mutex_lock(&c->c->output_cache->lock);
    const struct cached_outputs *its = find(c, n);
    size_t at = its ? place_of(c->c->output_cache, its, id) : 0;
    if (its && at < its->texts.n) {
        struct slice text = text_of(c->c->output_cache, its->texts.v[at]);
        found = (struct slice){arena_strndup(c->arena, text.at, text.n), text.n, NULL};
    }
    pthread_mutex_unlock(&c->c->output_cache->lock);
    return found;
}
