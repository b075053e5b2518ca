/* SPDX-License-Identifier: MIT */
/* Private to the room: what a node does about traces that move: it takes them, has them taken, and lets go of them. */
#ifndef WEFT_CLUSTER_MOVER_H
#define WEFT_CLUSTER_MOVER_H

#include "cluster/arrivals.h"
#include "cluster/holding.h"

struct bus;
struct bus_table;

struct mover_options {
    struct bus *bus;
    const char *cluster, *node;      /* borrowed, as all here */
    struct bus_table *nodes;         /* of the cards */
    const char *receive;             /* cluster_node_options */
    uint64_t receive_limit;
    bool give, given;                /* given: it has traces that did not come from other nodes */
    void (*changed)(void *arg);      /* the traces to be opened are others now; called by any thread */
    void *arg;
};
struct mover;
int mover_new(const struct mover_options *, struct mover **out, struct err *e);
void mover_free(struct mover *); /* NULL-safe */
const struct arrivals *mover_arrivals(const struct mover *); /* or NULL */
/* Is it a question about moves? */
bool mover_answers(enum cluster_question);
struct cluster_load mover_load(struct mover *);
/* Somebody asks something else: part of how busy the node is said to be. */
void mover_count(struct mover *);
/* holding: NULL while traces are opened. Any number of threads. */
int mover_answer(struct mover *, const struct holding *, enum cluster_question, const void *bytes, size_t n,
    struct text *out, struct err *e);

#endif
