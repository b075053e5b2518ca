/* SPDX-License-Identifier: MIT */
/* Groups of servers with pieces of one session, and equal entries of these pieces. */
#include "coord/rotation.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* FOREIGN: keys that are no content ids are above all content ids. */
enum { MOST_KEYS = 1 << 22 };
#define FOREIGN (INT64_C(1) << 62)

struct piece_keys {
    pthread_mutex_t lock;
    struct map key, own, known; /* keys: (output, server, own id), (output, server, key), (output, server) */
};

/* ---- virtual nodes ---- */

static struct node *node_called(struct coordinator *c, const char *name)
{
    size_t n = atomic_load(&c->n);
    for (size_t i = 0; i < n; i++)
        if (!c->nodes[i].found && !strcmp(c->nodes[i].is->name, name))
            return &c->nodes[i];
    return NULL;
}

static void virtual_node_init(struct coord_virtual_node *g, const char *name)
{
    g->is = (struct coord_server){.name = name, .url = ""};
    coord_node_init(&g->self, &g->is, SIZE_MAX);
}

void coord_rotations_start(struct coordinator *c)
{
    const struct coord_config *config = c->o.config;
    c->piece_keys = mem_zalloc(sizeof *c->piece_keys);
    pthread_mutex_init(&c->piece_keys->lock, NULL);
    c->rotations = mem_zalloc((config->rotations.n + 1) * sizeof *c->rotations);
    c->n_rotations = config->rotations.n;
    for (size_t i = 0; i < c->n_rotations; i++) {
        struct coord_virtual_node *g = &c->rotations[i];
        virtual_node_init(g, config->rotations.v[i].name);
        for (size_t k = 0; k < config->rotations.v[i].members.n; k++) {
            struct node *n = node_called(c, config->rotations.v[i].members.v[k].server);
            if (!n)
                continue;
            n->rotation = g;
            g->is.weight = g->is.weight > 0 ? g->is.weight : n->is->weight;
        }
    }
    c->groups = mem_zalloc((config->groups.n + 1) * sizeof *c->groups);
    c->n_groups = config->groups.n;
    for (size_t i = 0; i < c->n_groups; i++)
        virtual_node_init(&c->groups[i], config->groups.v[i].name);
}

void coord_rotations_stop(struct coordinator *c)
{
    for (size_t i = 0; i < c->n_rotations; i++)
        pthread_mutex_destroy(&c->rotations[i].self.lock);
    for (size_t i = 0; i < c->n_groups; i++)
        pthread_mutex_destroy(&c->groups[i].self.lock);
    free(c->rotations);
    free(c->groups);
    if (!c->piece_keys)
        return;
    map_fini(&c->piece_keys->key);
    map_fini(&c->piece_keys->own);
    map_fini(&c->piece_keys->known);
    pthread_mutex_destroy(&c->piece_keys->lock);
    free(c->piece_keys);
}

/* Returns the rotation. Charts over ranges of durations are not folded, since each server has its own ranges. */
struct coord_virtual_node *coord_rotation_of(const struct coord_call *c, const struct node *n)
{
    return n->rotation && !strstr(c->request.path, "/genericXY/") ? n->rotation : NULL;
}

const char *coord_machine_name(const struct node *n)
{
    return n->rotation ? n->rotation->is.name : n->is->name;
}

bool coord_machines_several(const struct coord_call *c)
{
    bool several = false;
    for (size_t i = 1; i < c->request.n_members && !several; i++)
        several = !c->request.members[i]->rotation ||
            c->request.members[i]->rotation != c->request.members[0]->rotation;
    return several;
}

/* ---- keys ---- */

/* Returns a hash for the maps. Entries that all outputs share have their keys under any output, too. */
static uint64_t hash_of(struct coord_call *c, bool any_output, const struct node *n, int64_t id)
{
    bool known = c->request.output;
    for (int i = 0; i < 2 && !known; i++)
        if (c->request.arg[i])
            c->request.output = map_mix(c->request.output) ^ map_hash(c->request.arg[i], strlen(c->request.arg[i]));
    uint64_t of[3] = {any_output ? 0 : c->request.output, coord_node_key(&c->request, n), (uint64_t)id};
    return map_hash(of, sizeof of);
}

static bool look_up(struct coord_call *c, const struct map *m, const struct node *n, int64_t id, int64_t *out)
{
    struct piece_keys *t = c->c->piece_keys;
    const uint64_t *at = NULL;
    pthread_mutex_lock(&t->lock);
    for (int any = 0; any < 2 && !at; any++)
        at = map_find(m, hash_of(c, any, n, id));
    if (at)
        *out = (int64_t)*at;
    pthread_mutex_unlock(&t->lock);
    return at != NULL;
}

int64_t coord_piece_key(struct coord_call *c, const struct node *n, int64_t own)
{
    int64_t key;
    if (look_up(c, &c->c->piece_keys->key, n, own, &key))
        return key;
    if (own >= PIECE_CONTENT && own < FOREIGN)
        return own;
    uint64_t of[2] = {coord_node_key(&c->request, n), (uint64_t)own};
    return FOREIGN | (int64_t)(map_hash(of, sizeof of) >> 2);
}

bool coord_piece_own(struct coord_call *c, const struct node *n, int64_t key, int64_t *own)
{
    int64_t is;
    if (look_up(c, &c->c->piece_keys->own, n, key, own))
        return true;
    *own = key;
    /* Content ids: each server knows which of them it has. */
    return key >= PIECE_CONTENT && key < FOREIGN && !look_up(c, &c->c->piece_keys->key, n, key, &is);
}

void coord_piece_note_key(struct coord_call *c, const struct node *n, int64_t own, int64_t key)
{
    struct piece_keys *t = c->c->piece_keys;
    int64_t is, has;
    if (coord_piece_key(c, n, own) == key && coord_piece_own(c, n, key, &has) && has == own)
        return;
    bool was = look_up(c, &t->key, n, own, &is);
    pthread_mutex_lock(&t->lock);
    if (t->key.n > MOST_KEYS) {
        map_fini(&t->key);
        map_fini(&t->own);
        map_fini(&t->known);
        t->key = t->own = t->known = (struct map){0};
    }
    for (int any = 0; any < 2; any++) {
        if (was && is != key)
            map_remove(&t->own, hash_of(c, any, n, is));
        *map_put(&t->key, hash_of(c, any, n, own), NULL) = (uint64_t)key;
        *map_put(&t->own, hash_of(c, any, n, key), NULL) = (uint64_t)own;
    }
    pthread_mutex_unlock(&t->lock);
}

bool coord_piece_is_known(struct coord_call *c, const struct node *n)
{
    struct piece_keys *t = c->c->piece_keys;
    pthread_mutex_lock(&t->lock);
    bool known = map_find(&t->known, hash_of(c, false, n, 0)) != NULL;
    pthread_mutex_unlock(&t->lock);
    return known;
}

void coord_piece_note_known(struct coord_call *c, const struct node *n)
{
    struct piece_keys *t = c->c->piece_keys;
    pthread_mutex_lock(&t->lock);
    map_put(&t->known, hash_of(c, false, n, 0), NULL);
    pthread_mutex_unlock(&t->lock);
}
