/* SPDX-License-Identifier: MIT */
/* Private to coord: experiments merged from several servers. */
#ifndef WEFT_COORD_EXPERIMENTS_H
#define WEFT_COORD_EXPERIMENTS_H

#include "coord/gather.h"

/* Finds the servers with the experiment. False: there are none, and an error was sent. */
bool coord_members_find(struct coord_call *, const char *uuid);

/* ---- cache of experiments (experiment_cache.c) ---- */

struct versions *coord_versions_new(void);
void coord_versions_free(struct versions *);
/* Returns the version for clients. It grows when `parts`, a hash of the servers' versions, changes. */
uint64_t coord_version_for(struct coord_call *, const char *uuid, uint64_t parts);
/* Keeps what experiments were created of in a file, over restarts. */
int coord_versions_keep_in(struct versions *, const char *path, struct err *e);
/* Hash of the traces that a client last created the experiment of; 0: unknown. */
void coord_experiment_note_traces(struct coord_call *, const char *uuid, uint64_t traces);
uint64_t coord_experiment_traces(struct coord_call *, const char *uuid);
/* The experiment's name on the servers; NULL: unknown. */
void coord_experiment_note_name(struct coord_call *, const char *uuid, const char *name);
const char *coord_experiment_noted_name(struct coord_call *);
/* Range of an experiment, in common times. */
struct time_range { int64_t begin, end; };
/* Returns the range from the earliest begin to the latest end over all servers, as last sent to clients. Both are 0 if
 * no client has asked. */
struct time_range coord_experiment_range(struct coord_call *);
/* Returns the range of the server's part. */
struct time_range coord_member_range(struct coord_call *, const struct node *);
/* Notes the range in a server's answer. False: it has none. */
bool coord_note_range(struct coord_call *, const char *uuid, const struct node *, struct slice experiment,
    struct time_range *out);

/* ---- merging ---- */

/* Experiment with the answers of all servers. */
struct joined_experiment {
    struct slice *of;        /* answers by server; at NULL: none */
    struct node **node;
    size_t n;
};
/* Experiments of all servers, without duplicates, in the order found. */
struct experiments_all { struct arena *a; size_t servers; VEC(struct joined_experiment) v; };

bool coord_experiment_is(struct slice);
void coord_experiments_ask(struct coord_call *, struct coord_answers *); /* asks all servers for their lists */
void coord_experiments_take(struct coord_answers *, struct experiments_all *);
/* Writes the list of all experiments. Missing sources of one experiment are written with it. */
coord_merge coord_merge_experiments;
/* Writes an experiment, and notes its missing sources. */
void coord_merge_experiment(struct coord_call *, struct json *, const struct joined_experiment *);
/* Sends the experiment merged from the servers' answers, or 404. */
void coord_experiment_send(struct coord_call *, struct coord_answers *);
/* Returns the experiment's name on the servers; asks them if it is unknown. NULL: no server knows it. */
const char *coord_experiment_name(struct coord_call *);

/* ---- traces ---- */

/* Writes the traces of all lists, which are the models. */
coord_merge coord_merge_traces;
/* Writes the traces of a server's list as items of an open array. */
void coord_put_traces(struct coord_call *, struct json *, const struct node *, struct slice list);
/* Finds the owners of traces by the uuids known to clients; node NULL: unknown. False: the client is gone. */
struct own_trace { struct node *node; const char *own; };
bool coord_traces_owners(struct coord_call *, const char *const *uuids, size_t n, struct own_trace *);

#endif
