/* SPDX-License-Identifier: MIT */
/* Private to the room: cache of a client with many queries (cluster_cache). It holds contents of tables under the
 * version of each table, and nodes' answers (answer_cache.h). */
#ifndef WEFT_CLUSTER_CACHE_H
#define WEFT_CLUSTER_CACHE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>

#include "cluster/cluster.h"

/* Immutable object, freed with its last reference. */
struct cluster_cached {
    atomic_uint refs;
    uint64_t version, used;
    void *is;
    void (*drop)(void *is);
};
/* Returns the object with a reference for the caller. */
struct cluster_cached *cluster_cached_new(void *is, void (*drop)(void *is), uint64_t version);
void cluster_cached_unref(struct cluster_cached *); /* NULL-safe */

enum cluster_cached_kind { CACHED_ENTRIES, CACHED_CLOCKS_HEAD, CACHED_CLOCKS, CACHED_ROUTES, CACHED_KINDS };
enum { MOST_CACHED = 4 }; /* entries per kind; several references need several clocks */

struct cluster_cache {
    struct bus *bus;
    char *cluster;
    struct bus_table *nodes, *clocks, *routes;
    struct cluster_answer_cache *answers;
    pthread_mutex_t lock; /* guards all below */
    struct cluster_cached *cached[CACHED_KINDS][MOST_CACHED];
    uint64_t tick;
};
/* Returns the object of that version, with a reference for the caller; NULL: none. A NULL cache is empty. */
struct cluster_cached *cluster_cache_find(struct cluster_cache *, enum cluster_cached_kind, uint64_t version);
void cluster_cache_add(struct cluster_cache *, enum cluster_cached_kind, struct cluster_cached *);

#endif
