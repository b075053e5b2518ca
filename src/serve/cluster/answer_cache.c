/* SPDX-License-Identifier: MIT */
#include "cluster/answer_cache.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/mem.h"
#include "base/order.h"

enum { MOST_BYTES = 64 << 20 };

/* A window of a question. Hosts are places in the list of the node's hosts: who asks may number them anew. */
struct answer_window {
    struct cached_answer *of;
    struct answer_window *next; /* older window with the same words: another walk went less far, or from a later time */
    uint64_t words[2];          /* hash that identifies the window */
    uint64_t receiver;          /* key of the host that received its message */
    struct path_window is;
};

struct cached_answer {
    atomic_uint refs;
    uint64_t serial;
    struct cached_answer *newer, *older;
    struct answer_window *windows;
    size_t n;
    void *bytes;
    size_t size;
};

struct cluster_answer_cache {
    pthread_mutex_t lock; /* guards all below */
    size_t bytes, most_bytes;
    uint64_t serial;
    struct map by_words; /* first half -> struct answer_window * */
    struct cached_answer *newest, *oldest;
};

struct cluster_answer_cache *cluster_answer_cache_new(size_t most_bytes)
{
    struct cluster_answer_cache *r = mem_zalloc(sizeof *r);
    r->most_bytes = most_bytes ? most_bytes : MOST_BYTES;
    pthread_mutex_init(&r->lock, NULL);
    return r;
}

static void answer_unref(struct cached_answer *t)
{
    if (!t || atomic_fetch_sub(&t->refs, 1) > 1)
        return;
    free(t->windows);
    free(t->bytes);
    free(t);
}

void cluster_answer_cache_free(struct cluster_answer_cache *r)
{
    if (!r)
        return;
    for (struct cached_answer *t = r->newest, *older; t; t = older) {
        older = t->older;
        answer_unref(t);
    }
    map_fini(&r->by_words);
    pthread_mutex_destroy(&r->lock);
    free(r);
}

/* ---- eviction of the least recently used, with the lock held ---- */

static size_t bytes_of(const struct cached_answer *t)
{
    return sizeof *t + t->n * (sizeof *t->windows + sizeof(uint64_t[2])) + t->size;
}

static void unlink_answer(struct cluster_answer_cache *r, struct cached_answer *t)
{
    *(t->newer ? &t->newer->older : &r->newest) = t->older;
    *(t->older ? &t->older->newer : &r->oldest) = t->newer;
    t->newer = t->older = NULL;
}

static void link_newest(struct cluster_answer_cache *r, struct cached_answer *t)
{
    t->older = r->newest;
    *(t->older ? &t->older->newer : &r->oldest) = t;
    r->newest = t;
}

static struct answer_window *first_with(const struct cluster_answer_cache *r, const uint64_t words[2])
{
    const uint64_t *at = map_find(&r->by_words, words[0]);
    return at ? (struct answer_window *)(uintptr_t)*at : NULL;
}

static void list_first(struct cluster_answer_cache *r, struct answer_window *w)
{
    *map_put(&r->by_words, w->words[0], NULL) = (uint64_t)(uintptr_t)w;
}

static void unlist(struct cluster_answer_cache *r, struct answer_window *w)
{
    struct answer_window *before = first_with(r, w->words);
    if (before == w && w->next) {
        list_first(r, w->next);
    } else if (before == w) {
        map_remove(&r->by_words, w->words[0]);
    } else {
        while (before->next != w)
            before = before->next;
        before->next = w->next;
    }
}

static void forget(struct cluster_answer_cache *r, struct cached_answer *t)
{
    unlink_answer(r, t);
    r->bytes -= bytes_of(t);
    for (size_t i = 0; i < t->n; i++)
        unlist(r, &t->windows[i]);
    answer_unref(t);
}

/* Returns whether the answer covers the whole walk wanted. A shorter one would cost one more round. */
static bool goes_as_far(const struct path_window *answered, const struct path_window *wanted)
{
    return answered->bound <= wanted->bound && (wanted->kind == PATH_WINDOW_ROW || answered->t >= wanted->t);
}

/* Held by the caller, as the last used. */
static const struct answer_window *find(struct cluster_answer_cache *r, const struct answer_window *wanted)
{
    const struct answer_window *w = first_with(r, wanted->words);
    while (w && (w->words[1] != wanted->words[1] || !goes_as_far(&w->is, &wanted->is)))
        w = w->next;
    if (!w)
        return NULL;
    unlink_answer(r, w->of);
    link_newest(r, w->of);
    atomic_fetch_add(&w->of->refs, 1);
    return w;
}

/* ---- words ---- */

struct cluster_answer_scope cluster_answer_scope_of(const struct cluster_membership *membership,
    const struct cluster_node_hosts *node_hosts, const struct path_known *k)
{
    struct path_ask nothing = {.hosts = node_hosts->hosts, .n_hosts = node_hosts->n};
    struct text t = {.fd = -1};
    path_known_request(k, &nothing, &t);
    uint64_t words = map_hash(t.v, t.n);
    text_fini(&t);
    return (struct cluster_answer_scope){membership, node_hosts, words};
}

static int32_t place_of(const struct cluster_answer_scope *s, int32_t host)
{
    size_t i = 0;
    while (i < s->node_hosts->n && s->node_hosts->hosts[i] != host)
        i++;
    return i < s->node_hosts->n ? (int32_t)i : -1;
}

static struct answer_window answer_window_of(
    const struct cluster_answer_scope *s, uint64_t state, const struct path_window *w, struct cached_answer *of)
{
    struct answer_window t = {.of = of, .is = *w};
    t.is.host = place_of(s, w->host);
    if (w->kind == PATH_WINDOW_MESSAGE) {
        t.is.message.host = place_of(s, w->message.host);
        t.receiver = s->membership->hosts[w->message.host].entry->key;
    }
    const uint64_t around[] = {s->words, state, t.receiver};
    path_window_hash(&t.is, around, sizeof around, t.words);
    return t;
}

/* ---- answering ---- */

/* Returns the number of the host with that key; -1: none. */
static int32_t host_with_key(const struct cluster_membership *r, uint64_t key)
{
    size_t i = 0;
    while (i < r->n_hosts && r->hosts[i].entry->key != key)
        i++;
    return i < r->n_hosts ? (int32_t)i : -1;
}

/* Numbers the hosts as the client does now. Returns false if the message's receiver is gone. */
static bool number_hosts(const struct cluster_answer_scope *s, const struct answer_window *t, struct path_window *out)
{
    *out = t->is;
    out->host = s->node_hosts->hosts[t->is.host];
    if (t->is.kind == PATH_WINDOW_MESSAGE)
        out->message.host = t->is.message.host >= 0 ? s->node_hosts->hosts[t->is.message.host]
                                                    : host_with_key(s->membership, t->receiver);
    return out->message.host >= 0;
}

/* Cached window that was found, and its answer. */
struct hit {
    const struct answer_window *found;
    struct path_window wanted;
};

static int by_answer(const void *pa, const void *pb)
{
    const struct hit *a = pa, *b = pb;
    return order_of(a->found->of->serial, b->found->of->serial);
}

/* Adds the contents of one answer, and replaces its windows by those wanted now. */
static int add(const struct cluster_answer_scope *s, struct path_known *k, const struct hit *hits, size_t n)
{
    const struct cached_answer *t = hits->found->of;
    struct path_window *windows = mem_alloc((t->n + 1) * sizeof *windows);
    struct path_ask ask = {
        .hosts = s->node_hosts->hosts, .n_hosts = s->node_hosts->n, .windows = windows, .n_windows = t->n};
    int rc = 0;
    for (size_t i = 0; i < t->n; i++)
        if (!number_hosts(s, &t->windows[i], &windows[i]))
            rc = ERR_STALE;
    for (size_t i = 0; i < n; i++)
        windows[hits[i].found - t->windows] = hits[i].wanted;
    if (!rc)
        rc = path_known_recall(k, &ask, t->bytes, t->size, NULL);
    free(windows);
    return rc;
}

size_t cluster_answer_cache_find(struct cluster_answer_cache *r, const struct cluster_answer_scope *s,
    struct path_known *k, struct path_window *windows, size_t n)
{
    VEC(struct hit) hits = {0};
    size_t open = 0;
    if (!r)
        return n;
    uint64_t state = cluster_state(s->node_hosts->hashes, s->node_hosts->n);
    pthread_mutex_lock(&r->lock);
    for (size_t i = 0; i < n; i++) {
        struct answer_window w = answer_window_of(s, state, &windows[i], NULL);
        const struct answer_window *found = find(r, &w);
        if (found)
            vec_push(&hits, ((struct hit){found, windows[i]}));
        else
            windows[open++] = windows[i];
    }
    pthread_mutex_unlock(&r->lock);
    if (hits.n)
        qsort(hits.v, hits.n, sizeof *hits.v, by_answer);
    for (size_t i = 0, end; i < hits.n; i = end) {
        for (end = i; end < hits.n && hits.v[end].found->of == hits.v[i].found->of;)
            end++;
        bool known = !add(s, k, hits.v + i, end - i);
        for (size_t j = i; j < end; j++) {
            if (!known)
                windows[open++] = hits.v[j].wanted;
            answer_unref(hits.v[j].found->of);
        }
    }
    vec_free(&hits);
    return open;
}

/* ---- keeping ---- */

void cluster_answer_cache_add(struct cluster_answer_cache *r, const struct cluster_answer_scope *s,
    const struct path_window *windows, size_t n, uint64_t state, const void *fragment, size_t size)
{
    if (!r)
        return;
    struct cached_answer *t = mem_zalloc(sizeof *t);
    t->refs = 1;
    t->windows = mem_alloc((n + 1) * sizeof *t->windows);
    t->n = n;
    t->bytes = mem_alloc(size + 1);
    t->size = size;
    memcpy(t->bytes, fragment, size);
    for (size_t i = 0; i < n; i++)
        t->windows[i] = answer_window_of(s, state, &windows[i], t);
    if (bytes_of(t) > r->most_bytes) {
        answer_unref(t);
        return;
    }
    pthread_mutex_lock(&r->lock);
    while (r->bytes + bytes_of(t) > r->most_bytes)
        forget(r, r->oldest);
    t->serial = ++r->serial;
    link_newest(r, t);
    r->bytes += bytes_of(t);
    for (size_t i = 0; i < n; i++) {
        t->windows[i].next = first_with(r, t->windows[i].words);
        list_first(r, &t->windows[i]);
    }
    pthread_mutex_unlock(&r->lock);
}
