/* SPDX-License-Identifier: MIT */
/* Private to coord: experiments merged from several servers. */
#ifndef WEFT_COORD_EXPERIMENTS_H
#define WEFT_COORD_EXPERIMENTS_H

#include "coord/call.h"

/* Experiment with the answers of all servers. */
struct joined_experiment {
    struct slice *of;        /* answers by server; at NULL: none */
    struct node **node;
    size_t n;
};
/* Experiments of all servers, without duplicates, in the order found. */
struct experiments_all { struct arena *a; size_t servers; VEC(struct joined_experiment) v; };

bool coord_experiment_is(struct slice);
void coord_experiments_ask(struct coord_call *, struct coord_gather *); /* asks all servers for their lists */
void coord_experiments_take(struct coord_gather *, struct experiments_all *);
void coord_experiment_put(struct coord_call *, struct json *, const struct joined_experiment *);
/* Sends the experiment merged from the servers' answers, or 404. */
void coord_experiment_send(struct coord_call *, struct coord_gather *);

/* Hash of the traces that a client last created the experiment of, kept until the coordinator stops; 0: unknown. */
void coord_experiment_note_traces(struct coord_call *, const char *uuid, uint64_t traces);
uint64_t coord_experiment_traces(struct coord_call *, const char *uuid);

#endif
