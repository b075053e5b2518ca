/* SPDX-License-Identifier: MIT */
/* Private to state: the tables of a list of chunks. */
#ifndef WEFT_STATE_LIST_TABLES_H
#define WEFT_STATE_LIST_TABLES_H

#include <pthread.h>
#include <stdatomic.h>

#include "state/measure.h"
#include "state/store.h"

/* A latency that began in a chunk before the one in which it stands: it belongs to a segment. */
struct list_guest {
    int64_t begin;
    uint64_t rank;
    uint64_t place;              /* so many of the segment's own come before it */
    uint32_t segment;
    uint32_t part, early;        /* where it stands: it is that latency of that chunk */
};

/* The latencies of a kind, in order: a segment for each chunk, of the chunk's own ones, which began in it, and guests.
 * Segments follow each other. */
struct list_segment {
    uint64_t first;              /* which of all is its first */
    size_t first_guest;
    int64_t begin;               /* of its first; of an empty one: of the next one's */
};
struct list_latencies {
    atomic_bool made;            /* when they are first asked for; until then all below is 0 */
    struct list_segment *segments; /* one more than there are chunks */
    struct list_guest *guests;   /* by segment and place */
    const char **names;          /* in order of first use */
    size_t n_names;
    uint32_t **name_of;          /* by chunk and its name: here */
    _Atomic(struct state_measure *) tree; /* figures of segments together; made when they are first asked for */
};

struct list_tables {
    struct list_latencies latencies[STATE_LATENCY_KINDS];
    struct list_events {
        uint64_t events, checkpoints; /* before the chunk */
    } *events;                   /* one more than there are chunks */
    struct list_checkpoints {
        int64_t begin;           /* of its first one */
        uint32_t part;
    } *checkpoints;              /* of parts that have any */
    size_t n_checkpoints;
    int64_t last_event;
    struct state_disk_loss *losses;
    size_t n_losses;
    pthread_mutex_t lock;        /* for what is made later */
};

/* Of parts that are open, whose codes have the names that the last one knows. */
void list_tables_init(struct state_store *);
void list_tables_fini(struct state_store *);
void list_latencies_fini(struct state_store *);

#endif
