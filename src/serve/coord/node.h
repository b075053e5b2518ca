/* SPDX-License-Identifier: MIT */
/* Private to coord: the servers as they are now. A thread asks each second whether they are there; another one makes
 * what the configuration wants of those that (again) are. */
#ifndef WEFT_COORD_NODE_H
#define WEFT_COORD_NODE_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/map.h"
#include "base/mem.h"
#include "coord/coord.h"
#include "coord/ids.h"
#include "coord/lifeline.h"
#include "coord/slice.h"
#include "http/client.h"
#include "tsp/uuid.h"

/* GONE: a server that was found and has left; as if it had never been, until it is found again. */
enum node_stage { NODE_UNKNOWN, NODE_THERE, NODE_AWAY, NODE_GONE };

struct node {
    const struct coord_server *is;
    size_t number;                   /* its place in the configuration, and in answers */
    atomic_bool numbers_anew;        /* a server of another make: entries have other ids once it was started again */
    atomic_bool tells_codes;         /* its answers have codes where their messages say more than their status */
    atomic_uint_fast64_t key;        /* by which its ids are known: a hash of its name, and of when it came if so */
    atomic_int stage;
    atomic_uint epoch;               /* so many times it has come back: who was away may be another */
    atomic_bool in_cluster;          /* its critical paths go on to the others, by itself */
    struct piece_group *group;       /* it has a piece of a session whose others lie elsewhere; or NULL */
    bool found;                      /* not of the configuration; `is` is its own */
    pthread_mutex_t lock;            /* guards all below */
    char *url;                       /* of a server that was found, which may come back elsewhere; else NULL */
    bool unusable;                   /* as the finder says */
    char why[200];                   /* it is away */
    unsigned absences;               /* so many times it was noted to be away */
    struct lifeline lifeline;        /* to a server of another make that is there */
    bool identified;                 /* it said of what make it is since it is there */
    bool set_up;                     /* what the configuration wants of it was made since it is there */
    bool listed;                     /* its experiments are known */
    VEC(char *) experiments;         /* their uuids */
    char *traces; size_t traces_n;   /* its list of traces, as it said last; checked */
};

/* A machine whose session's pieces lie on several servers, or a group of machines. `self` stands for it in answers:
 * nobody asks it. */
struct piece_group { struct node self; struct coord_server is; };

struct coordinator {
    struct coord_options o;
    char id[UUID_TEXT];              /* of this run */
    struct http_server *http;
    struct http_client *client;
    struct turns *turns;             /* of questions with large answers */
    struct http_client *probing;     /* by connections of its own, so that it waits for no place behind questions */
    struct coord_ids *ids;
    struct node *nodes;              /* never move; also those that have gone: see nodes_now */
    atomic_size_t n;                 /* only the prober adds some */
    size_t most;
    struct piece_group *groups; size_t n_groups;
    struct piece_group *machine_groups; size_t n_machine_groups;
    struct sessions *sessions;       /* whose traces servers have; the maker's alone */
    struct piece_keys *piece_keys;   /* which entries of pieces are one */
    char *state_dir;                 /* or NULL */
    int state_lock;
    struct bookmarks *bookmarks;
    struct places *places;           /* where lines of tables are */
    struct memories *memories;         /* where those of servers that are away were */
    struct versions *versions;       /* of experiments */
    struct offers *offers;           /* outputs that servers had last */
    pthread_t prober, maker;
    bool probes, makes;              /* the threads run */
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool stopping;
    bool probe_now;                  /* rather than when it is time */
};

int nodes_start(struct coordinator *, struct err *e);
/* Into the arena: all that have not gone, in the order of answers. Returns how many. */
size_t nodes_now(struct coordinator *, struct arena *, struct node ***out);
void node_init(struct node *, const struct coord_server *, size_t number);
/* Its stage from now on; one that has gone stays so unless it is `found` again. Returns what it was. */
int node_change(struct node *, enum node_stage, bool found);
const char *node_url(struct node *, struct arena *);
/* "server NAME (URL) WHAT" */
void node_tell(struct coordinator *, struct node *, const char *what);
void nodes_stop(struct coordinator *);
bool node_is_away(const struct node *);
/* It does not answer. `why`: for users. */
void node_note_away(struct coordinator *, struct node *, const char *why);
/* False: it may be another one by now, and is away until that is known. Only servers of other makes are watched. */
bool node_lives_on(struct coordinator *, struct node *);
/* Into the arena: why it is away. */
const char *node_why(struct node *, struct arena *);
/* Does it have the experiment? 1: yes, 0: no, -1: it was never there to say. */
int node_has(struct node *, const char *uuid);
void node_note_experiment(struct node *, const char *uuid, bool has);
/* What it said of all its experiments, or of its traces: lists that were checked. */
void node_note_experiments(struct node *, struct slice list);
void node_note_traces(struct node *, struct slice list);
/* A copy of the list of its traces, as it said last; at NULL: it never did. */
struct slice node_traces(struct node *, struct arena *);
/* Fills in what every request to that server has. path: below /tsp/api, begins with a slash. */
void node_address(struct node *, struct arena *, const char *path, struct http_fetch *);
/* The uuid that clients know a server's trace by: paths on two machines may be the same, and with them the uuids. */
void node_trace_uuid(const struct node *, struct slice own, struct arena *, char out[UUID_TEXT]);

/* finder.c: takes in who was found, lets go of who has left. Only before threads start, and by the prober. */
void finder_look(struct coordinator *);

/* sessions.c: takes in the experiments of a server, and tells whose pieces are of one session. One thread at a time. */
struct sessions *sessions_new(void);
void sessions_free(struct sessions *);
void sessions_note(struct coordinator *, const struct node *, struct slice experiments);

/* make.c: opens traces and makes experiments on a server that is there. */
void make_wanted(struct coordinator *, struct node *);

#endif
