/* SPDX-License-Identifier: MIT */
/* Servers that come and go by themselves. A name keeps its place: a server that comes back has the same ids, even under
 * another address. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "coord/node.h"

/* Returns whether a configured server has this name or address. Its configuration wins then. */
static bool is_configured(struct coordinator *c, const struct coord_found *f)
{
    const struct coord_config *config = c->o.config;
    for (size_t i = 0; i < config->servers.n; i++)
        if (!strcmp(config->servers.v[i].name, f->name) || !strcmp(config->servers.v[i].url, f->url)) {
            atomic_store(&c->nodes[i].in_cluster, true);
            return true;
        }
    return false;
}

static struct node *find(struct coordinator *c, const char *name)
{
    size_t n = atomic_load(&c->n);
    for (size_t i = 0; i < n; i++)
        if (c->nodes[i].found && !strcmp(c->nodes[i].is->name, name))
            return &c->nodes[i];
    return NULL;
}

static struct node *add(struct coordinator *c, const struct coord_found *f)
{
    size_t number = atomic_load(&c->n);
    if (number == c->most)
        return NULL;
    struct coord_server *is = mem_zalloc(sizeof *is);
    *is = c->o.finder->like;
    is->name = mem_strdup(f->name);
    struct node *n = &c->nodes[number];
    coord_node_init(n, is, number);
    n->found = true;
    atomic_store(&n->in_cluster, true);
    n->url = mem_strdup("");
    atomic_store(&n->stage, NODE_GONE);
    atomic_store(&c->n, number + 1);
    return n;
}

/* Takes in a server that is new, or back, perhaps under another address. */
static void take(struct coordinator *c, struct node *n, const struct coord_found *f)
{
    pthread_mutex_lock(&n->lock);
    bool moved = strcmp(n->url, f->url) != 0, back = atomic_load(&n->stage) == NODE_GONE;
    if (moved) {
        free(n->url);
        n->url = mem_strdup(f->url);
    }
    n->unusable = f->unusable != NULL;
    if (moved || back) {
        *n->why = '\0';
        n->set_up = false;
    }
    pthread_mutex_unlock(&n->lock);
    if (moved || back)
        coord_node_change(n, NODE_UNKNOWN, true);
    if (back)
        coord_node_report(c, n, "has joined");
    if (back &&
        (coord_has_group(&c->o.config->groups, c->o.config->groups.n, f->name) ||
            coord_has_group(&c->o.config->rotations, c->o.config->rotations.n, f->name)))
        coord_node_report(c, n, "is called as a group is: give the group another name");
    if (f->unusable)
        coord_node_note_away(c, n, f->unusable);
}

/* Drops a server and all that is known of it: another one may come later under its name. */
static void drop(struct coordinator *c, struct node *n)
{
    coord_node_report(c, n, "has left");
    pthread_mutex_lock(&n->lock);
    snprintf(n->why, sizeof n->why, "it has left");
    while (n->experiments.n)
        free(n->experiments.v[--n->experiments.n]);
    free(n->traces);
    n->traces = NULL;
    n->listed = false;
    pthread_mutex_unlock(&n->lock);
    coord_node_change(n, NODE_GONE, false);
}

static int by_text(const void *key, const void *found)
{
    return strcmp(key, ((const struct coord_found *)found)->name);
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct coord_found *)a)->name, ((const struct coord_found *)b)->name);
}

void coord_finder_look(struct coordinator *c)
{
    struct arena a = {0};
    struct coord_found *found;
    size_t n;
    if (c->o.finder && c->o.finder->list(c->o.finder->arg, &a, &found, &n)) {
        if (n)
            qsort(found, n, sizeof *found, by_name);
        for (size_t i = 0; i < n; i++) {
            struct node *its = is_configured(c, &found[i]) ? NULL : find(c, found[i].name) ?: add(c, &found[i]);
            if (its)
                take(c, its, &found[i]);
        }
        for (size_t i = 0; i < atomic_load(&c->n); i++) {
            struct node *its = &c->nodes[i];
            if (its->found && atomic_load(&its->stage) != NODE_GONE &&
                (!n || !bsearch(its->is->name, found, n, sizeof *found, by_text)))
                drop(c, its);
        }
    }
    arena_fini(&a);
}
