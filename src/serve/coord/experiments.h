/* SPDX-License-Identifier: MIT */
/* Private to coord: experiments as several servers tell them. */
#ifndef WEFT_COORD_EXPERIMENTS_H
#define WEFT_COORD_EXPERIMENTS_H

#include "coord/call.h"

/* What servers say of one experiment. */
struct joined_experiment {
    struct slice *of;        /* by server; at NULL: nothing */
    struct node **node;
    size_t n;
};
/* The experiments of all servers, each once, in the order in which they are met. */
struct experiments_all { struct arena *a; size_t servers; VEC(struct joined_experiment) v; };

bool experiment_is(struct slice);
void experiments_ask(struct coord_call *, struct fan *); /* all servers for their lists */
void experiments_take(struct fan *, struct experiments_all *);
void experiment_put(struct coord_call *, struct json *, const struct joined_experiment *);
/* Sends what the servers asked say of an experiment, or that there is none. */
void experiment_send_joined(struct coord_call *, struct fan *);

/* A hash of the traces that the experiment was last made of, as long as this coordinator runs; 0: not known. */
void experiment_mean(struct coord_call *, const char *uuid, uint64_t traces);
uint64_t experiment_meant(struct coord_call *, const char *uuid);

#endif
