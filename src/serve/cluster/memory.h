/* SPDX-License-Identifier: MIT */
/* Private to the room: what is kept between the questions of one who asks again and again (cluster_memory): what was
 * read from tables, under the version that these had, and what nodes told (recall.h). */
#ifndef WEFT_CLUSTER_MEMORY_H
#define WEFT_CLUSTER_MEMORY_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>

#include "cluster/cluster.h"

/* Something that does not change any more, and goes with the last that holds it. */
struct kept {
    atomic_uint refs;
    uint64_t version, used;
    void *is;
    void (*drop)(void *is);
};
/* Held by the caller. */
struct kept *kept_new(void *is, void (*drop)(void *is), uint64_t version);
void kept_unref(struct kept *); /* or NULL */

enum kept_kind { KEPT_ENTRIES, KEPT_CLOCKS_HEAD, KEPT_CLOCKS, KEPT_ROUTES, KEPT_KINDS };
enum { MOST_KEPT = 4 }; /* of a kind; of clocks, by other references, there are several */

struct cluster_memory {
    struct bus *bus;
    char *cluster;
    struct bus_table *nodes, *clocks, *routes;
    struct recall *recall;
    pthread_mutex_t lock; /* of all below */
    struct kept *kept[KEPT_KINDS][MOST_KEPT];
    uint64_t tick;
};
/* Held by the caller; NULL: there is none of that version. The memory may be NULL. */
struct kept *memory_find(struct cluster_memory *, enum kept_kind, uint64_t version);
void memory_keep(struct cluster_memory *, enum kept_kind, struct kept *);

#endif
