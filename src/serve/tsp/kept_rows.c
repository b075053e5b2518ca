/* SPDX-License-Identifier: MIT */
#include "tsp/kept_rows.h"

#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

enum { MOST_LISTS = 8, MOST_BYTES = 64 << 20 };

struct kept_filter {
    struct kept_list list; /* first member: lists are cast to it */
    char *output, *filter;
    size_t of;
    unsigned refs;
    uint64_t used;
};
struct kept_rows {
    pthread_mutex_t lock;
    VEC(struct kept_filter *) v;
    size_t bytes;
    uint64_t uses;
};

struct kept_rows *tsp_kept_rows_new(void)
{
    struct kept_rows *all = mem_zalloc(sizeof *all);
    pthread_mutex_init(&all->lock, NULL);
    return all;
}

static size_t bytes_of(const struct kept_filter *k)
{
    return k->list.n * sizeof *k->list.rows;
}

static void drop(struct kept_rows *all, size_t i)
{
    struct kept_filter *k = all->v.v[i];
    all->bytes -= bytes_of(k);
    all->v.v[i] = all->v.v[--all->v.n];
    free((void *)(uintptr_t)k->list.rows);
    free(k->output);
    free(k->filter);
    free(k);
}

void tsp_kept_rows_free(struct kept_rows *all)
{
    if (!all)
        return;
    while (all->v.n)
        drop(all, all->v.n - 1);
    vec_free(&all->v);
    pthread_mutex_destroy(&all->lock);
    free(all);
}

/* Drops the least recently used lists, down to these limits. */
static void let_go(struct kept_rows *all, size_t lists, size_t bytes)
{
    while (all->v.n > lists || all->bytes > bytes) {
        size_t oldest = SIZE_MAX;
        for (size_t i = 0; i < all->v.n; i++)
            if (!all->v.v[i]->refs && (oldest == SIZE_MAX || all->v.v[i]->used < all->v.v[oldest]->used))
                oldest = i;
        if (oldest == SIZE_MAX)
            return;
        drop(all, oldest);
    }
}

void tsp_kept_rows_give_memory(struct kept_rows *all)
{
    pthread_mutex_lock(&all->lock);
    let_go(all, 0, 0);
    pthread_mutex_unlock(&all->lock);
}

/* Called with the lock held. */
static struct kept_filter *find(struct kept_rows *all, const char *output, const char *filter, size_t of)
{
    for (size_t i = 0; i < all->v.n; i++) {
        struct kept_filter *k = all->v.v[i];
        if (k->of == of && !strcmp(k->output, output) && !strcmp(k->filter, filter))
            return k;
    }
    return NULL;
}

static const struct kept_list *use(struct kept_rows *all, struct kept_filter *k)
{
    k->refs++;
    k->used = ++all->uses;
    return &k->list;
}

const struct kept_list *tsp_kept_rows_find(struct kept_rows *all, const char *output, const char *filter, size_t of)
{
    pthread_mutex_lock(&all->lock);
    struct kept_filter *k = find(all, output, filter, of);
    const struct kept_list *list = k ? use(all, k) : NULL;
    pthread_mutex_unlock(&all->lock);
    return list;
}

const struct kept_list *tsp_kept_rows_put(
    struct kept_rows *all, const char *output, const char *filter, size_t of, size_t *rows, size_t n)
{
    pthread_mutex_lock(&all->lock);
    struct kept_filter *k = find(all, output, filter, of); /* added meanwhile by another request, maybe */
    if (k) {
        free(rows);
    } else {
        let_go(all, MOST_LISTS - 1, MOST_BYTES);
        k = mem_zalloc(sizeof *k);
        k->list = (struct kept_list){rows, n};
        k->output = mem_strdup(output);
        k->filter = mem_strdup(filter);
        k->of = of;
        all->bytes += bytes_of(k);
        vec_push(&all->v, k);
    }
    const struct kept_list *list = use(all, k);
    pthread_mutex_unlock(&all->lock);
    return list;
}

void tsp_kept_rows_give_back(struct kept_rows *all, const struct kept_list *list)
{
    pthread_mutex_lock(&all->lock);
    ((struct kept_filter *)(uintptr_t)list)->refs--;
    pthread_mutex_unlock(&all->lock);
}
