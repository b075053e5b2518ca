/* SPDX-License-Identifier: MIT */
/* Private to the room: the cache of a client that asks again and again (cluster_cache): what was read from tables,
 * under the version that these had, and what nodes answered (answer_cache.h). */
#ifndef WEFT_CLUSTER_CACHE_H
#define WEFT_CLUSTER_CACHE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>

#include "cluster/cluster.h"

/* Something immutable, freed with its last reference. */
struct cluster_cached {
    atomic_uint refs;
    uint64_t version, used;
    void *is;
    void (*drop)(void *is);
};
/* With a reference for the caller. */
struct cluster_cached *cluster_cached_new(void *is, void (*drop)(void *is), uint64_t version);
void cluster_cached_unref(struct cluster_cached *); /* or NULL */

enum cluster_cached_kind { CACHED_ENTRIES, CACHED_CLOCKS_HEAD, CACHED_CLOCKS, CACHED_ROUTES, CACHED_KINDS };
enum { MOST_CACHED = 4 }; /* of a kind; of clocks there are several, by other references */

struct cluster_cache {
    struct bus *bus;
    char *cluster;
    struct bus_table *nodes, *clocks, *routes;
    struct cluster_answer_cache *answers;
    pthread_mutex_t lock; /* of all below */
    struct cluster_cached *cached[CACHED_KINDS][MOST_CACHED];
    uint64_t tick;
};
/* With a reference for the caller; NULL: there is none of that version. The cache may be NULL: it is empty. */
struct cluster_cached *cluster_cache_find(struct cluster_cache *, enum cluster_cached_kind, uint64_t version);
void cluster_cache_add(struct cluster_cache *, enum cluster_cached_kind, struct cluster_cached *);

#endif
