/* SPDX-License-Identifier: MIT */
/* Private to coord: the servers and their current state. One thread probes each of them every second. Another thread
 * sets up what the configuration demands on those that are up, or up again. */
#ifndef WEFT_COORD_NODE_H
#define WEFT_COORD_NODE_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/map.h"
#include "base/mem.h"
#include "coord/coord.h"
#include "coord/ids.h"
#include "coord/lifeline.h"
#include "base/slice.h"
#include "http/client.h"
#include "tsp/uuid.h"

/* GONE: a found server that has left; ignored until it is found again. */
enum node_stage { NODE_UNKNOWN, NODE_THERE, NODE_AWAY, NODE_GONE };

struct node {
    const struct coord_server *is;
    size_t number;                   /* place in the configuration, and in answers */
    atomic_bool numbers_anew;        /* server of another make: its entries have other ids after a restart */
    atomic_bool states_codes;         /* answers have codes where their messages say more than their status */
    atomic_uint_fast64_t key;        /* key of its ids: hash of its name; if numbers_anew, also of when it came up */
    atomic_int stage;
    atomic_uint epoch;               /* number of times it came back: after an absence it may be another process */
    atomic_bool in_cluster;          /* continues critical paths on the other nodes by itself */
    struct coord_virtual_node *rotation;       /* rotation group that it has a piece of; NULL: none */
    bool found;                      /* found, not configured; owns `is` */
    pthread_mutex_t lock;            /* guards all below */
    char *url;                       /* address of a found server, which may change; NULL: configured server */
    bool unusable;                   /* unusable according to the finder */
    char why[200];                   /* reason of its absence */
    unsigned absences;               /* number of absences noted */
    struct lifeline lifeline;        /* connections to a server of another make that is up */
    bool identified;                 /* make is known, since it last came up */
    bool set_up;                     /* configured traces and experiments are set up, since it last came up */
    bool listed;                     /* experiments are known */
    VEC(char *) experiments;         /* uuids of its experiments */
    char *traces; size_t traces_n;   /* last list of its traces; validated */
};

/* Group of servers with the pieces of one machine's session, or group of machines. `self` stands for it in answers;
 * requests never go to it. */
struct coord_virtual_node { struct node self; struct coord_server is; };

struct coordinator {
    struct coord_options o;
    char id[UUID_TEXT];              /* id of this run */
    struct http_server *http;
    struct http_client *client;
    struct admission *admission;     /* admission of questions with large answers */
    struct http_client *probing;     /* client with its own connections: probes do not queue behind questions */
    struct coord_ids *ids;
    struct node *nodes;              /* nodes never move; they include those that have gone: see nodes_now */
    atomic_size_t n;                 /* grows by the prober only */
    size_t most;
    struct coord_virtual_node *rotations; size_t n_rotations;
    struct coord_virtual_node *groups; size_t n_groups;
    struct sessions *sessions;       /* sessions of the servers' traces; used by the maker only */
    struct piece_keys *piece_keys;   /* equal entries of pieces */
    char *state_dir;                 /* NULL: none */
    int state_lock;
    struct bookmarks *bookmarks;
    struct positions *positions;           /* cache of positions of lines in tables */
    struct models *models;           /* cache of columns and trees */
    struct line_cache *line_cache;       /* cache of the lines of servers that are away */
    struct versions *versions;       /* versions of experiments */
    struct output_cache *output_cache;           /* outputs last offered by servers */
    pthread_t prober, maker;
    bool probes, makes;              /* the threads run */
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool stopping;
    bool probe_now;                  /* skips the wait for the next probe */
};

int coord_nodes_start(struct coordinator *, struct err *e);
/* Lists in the arena all nodes that have not gone, in the order of answers. Returns their number. */
size_t coord_nodes_now(struct coordinator *, struct arena *, struct node ***out);
void coord_node_init(struct node *, const struct coord_server *, size_t number);
/* Sets the stage; a node that has gone stays so unless it is `found` again. Returns the stage before. */
int coord_node_change(struct node *, enum node_stage, bool found);
const char *coord_node_url(struct node *, struct arena *);
/* Reports "server NAME (URL) WHAT". */
void coord_node_report(struct coordinator *, struct node *, const char *what);
void coord_nodes_stop(struct coordinator *);
bool coord_node_is_away(const struct node *);
/* Marks the node as away. why: reason, for users. */
void coord_node_note_away(struct coordinator *, struct node *, const char *why);
/* Returns whether it is still the same process. False: it may be another one, and is away until that is known. Only
 * servers of other makes are watched. */
bool coord_node_lives_on(struct coordinator *, struct node *);
/* Returns the reason of its absence, in the arena. */
const char *coord_node_why(struct node *, struct arena *);
/* Returns whether it has the experiment: 1: yes; 0: no; -1: it was never up to report it. */
int coord_node_has(struct node *, const char *uuid);
void coord_node_note_experiment(struct node *, const char *uuid, bool has);
/* Note its last lists of experiments and traces; both were validated. */
void coord_node_note_experiments(struct node *, struct slice list);
void coord_node_note_traces(struct node *, struct slice list);
/* Returns a copy of its last list of traces; at NULL: none yet. */
struct slice coord_node_traces(struct node *, struct arena *);
/* Fills in the members common to all requests to that server. path: below /tsp/api, with the leading slash. */
void coord_node_address(struct node *, struct arena *, const char *path, struct http_fetch *);
/* Returns the uuid of a server's trace for clients. Equal paths on two machines have equal uuids on their servers. */
void coord_node_trace_uuid(const struct node *, struct slice own, struct arena *, char out[UUID_TEXT]);

/* finder.c: adds found servers and drops those that have left. Called before threads start, then by the prober only. */
void coord_finder_look(struct coordinator *);

/* sessions.c: notes a server's experiments, and reports servers with pieces of one session. One thread at a time. */
struct sessions *coord_sessions_new(void);
void coord_sessions_free(struct sessions *);
void coord_sessions_note(struct coordinator *, const struct node *, struct slice experiments);

/* make.c: opens traces and creates experiments on a server that is up. */
void coord_set_up(struct coordinator *, struct node *);

#endif
