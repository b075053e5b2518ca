/* SPDX-License-Identifier: MIT */
/* Private to state: the tables of a list of chunks. */
#ifndef WEFT_STATE_LIST_TABLES_H
#define WEFT_STATE_LIST_TABLES_H

#include <pthread.h>
#include <stdatomic.h>

#include "state/measure.h"
#include "state/store.h"

/* Guest: a latency that began in a chunk before the one that stores it, and belongs to the segment of the former. */
struct list_guest {
    int64_t begin;
    uint64_t rank;
    uint64_t place;              /* number of the segment's own ones before it */
    uint32_t segment;
    uint32_t part, early;        /* position in the file: latency `early` of chunk `part` */
};

/* Segment: the latencies of a kind that began in one chunk, in order: the chunk's own ones and guests. Segments follow
 * each other. */
struct list_segment {
    uint64_t first;              /* index of its first latency */
    size_t first_guest;
    int64_t begin;               /* begin of its first latency; if empty, that of the next segment */
};
struct list_latencies {
    atomic_bool made;            /* set when they are first requested; until then all below is 0 */
    struct list_segment *segments; /* segments: number of chunks + 1 */
    struct list_guest *guests;   /* guests by segment and place */
    const char **names;          /* names in order of first use */
    size_t n_names;
    uint32_t **name_of;          /* name here by chunk and its name */
    _Atomic(struct state_measure *) tree; /* joined figures of segments; made at the first request */
};

struct list_tables {
    struct list_latencies latencies[STATE_LATENCY_KINDS];
    struct list_events {
        uint64_t events, checkpoints; /* events and checkpoints before the chunk */
    } *events;                   /* counts; number of chunks + 1 */
    struct list_checkpoints {
        int64_t begin;           /* begin of its first one */
        uint32_t part;
    } *checkpoints;              /* of the parts that have any */
    size_t n_checkpoints;
    int64_t last_event;
    struct state_disk_loss *losses;
    size_t n_losses;
    pthread_mutex_t lock;        /* guards tables made on request */
};

/* Sets up the tables of open parts, whose codes have the names known to the last part. */
void state_list_tables_init(struct state_store *);
void state_list_tables_fini(struct state_store *);
void state_list_latencies_fini(struct state_store *);

#endif
