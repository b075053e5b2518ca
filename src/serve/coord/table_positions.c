/* SPDX-License-Identifier: MIT */
/* Cache of positions of lines in merged tables. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "coord/table.h"

enum { KEPT_TABLES = 512, KEPT_POSITIONS = 32 };

struct noted {
    uint64_t *position, *size; /* values by member */
};
struct kept_table {
    uint64_t key;
    size_t n;
    VEC(struct noted) v;
    size_t next; /* index of the position to replace next */
};
struct positions {
    pthread_mutex_t lock;
    VEC(struct kept_table) tables;
};

struct positions *coord_positions_new(void)
{
    struct positions *p = mem_zalloc(sizeof *p);
    pthread_mutex_init(&p->lock, NULL);
    return p;
}

static void forget_positions(struct kept_table *t)
{
    for (size_t i = 0; i < t->v.n; i++)
        free(t->v.v[i].position);
    vec_free(&t->v);
    t->next = 0;
}

static void forget_tables(struct positions *p)
{
    for (size_t i = 0; i < p->tables.n; i++)
        forget_positions(&p->tables.v[i]);
    vec_free(&p->tables);
}

void coord_positions_free(struct positions *p)
{
    if (!p)
        return;
    forget_tables(p);
    pthread_mutex_destroy(&p->lock);
    free(p);
}

/* Finds a table's positions; NULL: none. Call with the lock held. */
static struct kept_table *kept(struct positions *p, const struct merged_table *t)
{
    for (size_t i = 0; i < p->tables.n; i++)
        if (p->tables.v[i].key == t->key && p->tables.v[i].n == t->n)
            return &p->tables.v[i];
    return NULL;
}

void coord_positions_note(struct merged_table *t, const uint64_t *position)
{
    struct positions *p = t->call->c->positions;
    size_t bytes = t->n * sizeof *position;
    for (size_t i = 0; i < t->n; i++)
        if (t->absent[i])
            return;
    struct noted n = {.position = mem_alloc(2 * bytes + 1)};
    n.size = n.position + t->n;
    memcpy(n.position, position, bytes);
    for (size_t i = 0; i < t->n; i++)
        n.size[i] = t->asked[i] ? t->size[i] : UINT64_MAX;
    pthread_mutex_lock(&p->lock);
    struct kept_table *k = kept(p, t);
    if (!k) {
        if (p->tables.n >= KEPT_TABLES)
            forget_tables(p);
        vec_push(&p->tables, ((struct kept_table){.key = t->key, .n = t->n}));
        k = &p->tables.v[p->tables.n - 1];
    }
    if (k->v.n < KEPT_POSITIONS) {
        vec_push(&k->v, n);
    } else {
        free(k->v.v[k->next].position);
        k->v.v[k->next] = n;
        k->next = (k->next + 1) % KEPT_POSITIONS;
    }
    pthread_mutex_unlock(&p->lock);
}

/* Returns whether all members still have the same numbers of lines. */
static bool is_current(const struct merged_table *t, const struct noted *n)
{
    bool same = true;
    for (size_t i = 0; i < t->n && same; i++)
        same = n->size[i] == (t->asked[i] ? t->size[i] : UINT64_MAX);
    return same;
}

static uint64_t distance(uint64_t a, uint64_t b)
{
    return a < b ? b - a : a - b;
}

bool coord_positions_near(struct merged_table *t, uint64_t n, uint64_t *position)
{
    struct positions *p = t->call->c->positions;
    uint64_t least = UINT64_MAX;
    pthread_mutex_lock(&p->lock);
    const struct kept_table *k = kept(p, t);
    for (size_t i = 0; k && i < k->v.n; i++) {
        uint64_t away = distance(coord_position_sum(t, k->v.v[i].position), n);
        if (away >= least || !is_current(t, &k->v.v[i]))
            continue;
        least = away;
        memcpy(position, k->v.v[i].position, t->n * sizeof *position);
    }
    pthread_mutex_unlock(&p->lock);
    return least != UINT64_MAX;
}

bool coord_positions_exactly(struct merged_table *t, uint64_t n, uint64_t *position)
{
    struct positions *p = t->call->c->positions;
    bool found = false;
    pthread_mutex_lock(&p->lock);
    const struct kept_table *k = kept(p, t);
    for (size_t i = k ? k->v.n : 0; i-- && !found;) {
        bool same_members = true;
        for (size_t m = 0; m < t->n; m++)
            same_members &= t->asked[m] == (k->v.v[i].size[m] != UINT64_MAX);
        found = same_members && coord_position_sum(t, k->v.v[i].position) == n;
        if (!found)
            continue;
        memcpy(position, k->v.v[i].position, t->n * sizeof *position);
        for (size_t m = 0; m < t->n; m++)
            t->size[m] = t->asked[m] ? k->v.v[i].size[m] : 0;
    }
    pthread_mutex_unlock(&p->lock);
    return found;
}
