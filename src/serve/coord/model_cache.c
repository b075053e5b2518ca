/* SPDX-License-Identifier: MIT */
/* Cache of the models that servers report: columns of tables, and trees. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "coord/model_cache.h"

enum { MOST_MODELS = 4096 };

struct kept_model {
    uint64_t key;
    unsigned epoch;
    char *text;
    size_t n;
};
struct models {
    pthread_mutex_t lock;
    VEC(struct kept_model) v;
};

struct models *coord_models_new(void)
{
    struct models *m = mem_zalloc(sizeof *m);
    pthread_mutex_init(&m->lock, NULL);
    return m;
}

static void forget(struct models *m)
{
    for (size_t i = 0; i < m->v.n; i++)
        free(m->v.v[i].text);
    vec_free(&m->v);
}

void coord_models_free(struct models *m)
{
    if (!m)
        return;
    forget(m);
    pthread_mutex_destroy(&m->lock);
    free(m);
}

static uint64_t key_of(struct coord_call *c, const struct node *n)
{
    uint64_t key[3] = {c->request.keys[n->number], map_hash(c->request.arg[0], strlen(c->request.arg[0])),
        map_hash(c->request.arg[1], strlen(c->request.arg[1]))};
    return map_hash(key, sizeof key);
}

/* Finds a server's model; NULL: none. Call with the lock held. */
static struct kept_model *find(struct models *m, uint64_t key)
{
    for (size_t i = 0; i < m->v.n; i++)
        if (m->v.v[i].key == key)
            return &m->v.v[i];
    return NULL;
}

struct slice coord_model_cached(struct coord_call *c, const struct node *n)
{
    struct models *m = c->c->models;
    struct slice s = {0};
    uint64_t key = key_of(c, n);
    pthread_mutex_lock(&m->lock);
    const struct kept_model *k = find(m, key);
    /* Columns may have changed if the server was away since: it may have been restarted. */
    if (k && (k->epoch == atomic_load(&n->epoch) || coord_node_is_away(n)))
        s = (struct slice){arena_strndup(c->arena, k->text, k->n), k->n};
    pthread_mutex_unlock(&m->lock);
    return s;
}

void coord_model_note(struct coord_call *c, const struct node *n, struct slice model)
{
    struct models *m = c->c->models;
    struct kept_model k = {key_of(c, n), atomic_load(&n->epoch), mem_alloc(model.n + 1), model.n};
    memcpy(k.text, model.at, model.n);
    pthread_mutex_lock(&m->lock);
    struct kept_model *old = find(m, k.key);
    if (!old && m->v.n >= MOST_MODELS)
        forget(m);
    if (old) {
        free(old->text);
        *old = k;
    } else {
        vec_push(&m->v, k);
    }
    pthread_mutex_unlock(&m->lock);
}
