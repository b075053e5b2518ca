/* SPDX-License-Identifier: MIT */
/* Private to tsp: the server's model (what is open, bookmarked, configured). */
#ifndef WEFT_TSP_MODEL_H
#define WEFT_TSP_MODEL_H

#include <jansson.h>
#include <pthread.h>

#include "base/mem.h"
#include "tsp/opening.h"
#include "tsp/tsp.h"
#include "tsp/uuid.h"

/* Trace. number, here and below: its number among its kind, in order of creation. */
struct tsp_trace {
    char uuid[UUID_TEXT];
    int64_t number;
    char *name, *path, *type, *host; /* host: NAME of NAME=PATH, or NULL */
};
struct tsp_bookmark { char uuid[UUID_TEXT]; char *name; int64_t start, end; };
/* Configuration: of the server (a marker set), or of a derived output. */
struct tsp_config {
    char id[UUID_TEXT];
    int64_t number;
    char *type, *name, *description;
    json_t *parameters;
    char *text;                      /* text of the parameters */
};
struct tsp_derived { char *id; const struct tsp_provider *provider; struct tsp_config config; };

/* Things that survive a restart, each in a file of its own. */
enum persist_kind { PERSIST_TRACE, PERSIST_EXPERIMENT, PERSIST_CONFIG, PERSIST_KINDS };
struct persist_item { enum persist_kind kind; char uuid[UUID_TEXT]; };

struct tsp_experiment {
    char uuid[UUID_TEXT];
    int64_t number;
    char *name;
    VEC(char *) traces;              /* uuids; some may belong to no known trace */
    VEC(struct tsp_bookmark) bookmarks;
    VEC(struct tsp_derived) derived;
    VEC(json_t *) unknown;           /* derived outputs of unknown providers, as they were stored */
    char *reference;                 /* host whose clock the times above are in; NULL: not known yet */
    struct tsp_opening *open;        /* version that answers; NULL: closed */
    struct tsp_opening *next;        /* version being opened while `open` answers, to replace it; or NULL */
    struct tsp_opening *earlier;     /* version that still computes what somebody waits for (held.c); or NULL */
    uint64_t version;                /* number of openings that succeeded */
    struct tsp_follow *follow;       /* NULL: its directories are not watched (yet) */
    struct err problem;              /* reason why newer traces than those of `open` cannot be opened; code 0: none */
    bool tidying_owed;               /* tidying was not begun, or stopped, for a newer version (tidy.c) */
    int64_t failed_ns;               /* monotonic; time of the last failed opening */
    uint64_t used;                   /* tsp_server.uses at the last request for it */
    struct tsp_ids *ids;             /* ids that its entries have had, in all openings since the server's start */
};

struct tsp_server {
    struct tsp_options o;
    struct http_server *http;
    char *root, *upload_dir;         /* real paths; or NULL */
    struct sweeper *sweeper;         /* sweeper of upload_dir, or NULL */
    char *state_dir;                 /* state directory, or NULL */
    int state_lock;                  /* descriptor, or -1 */
    VEC(char *) given;               /* real paths of the TRACE arguments */
    int follow_wake;                 /* eventfd of the follower; -1: traces are not followed */
    pthread_t follower;
    pthread_mutex_t saving;          /* held while changes are saved; taken before `lock` */
    pthread_mutex_t lock;            /* guards everything below */
    pthread_cond_t changed;          /* signals a stage, or the number of openers */
    unsigned openers;
    bool stopping;
    uint64_t uses;                   /* number of requests for experiments */
    VEC(struct tsp_trace *) traces;
    VEC(struct tsp_experiment *) experiments;
    VEC(struct tsp_config) configs;
    int64_t numbered;                /* greatest number given so far */
    VEC(struct persist_item) changed_things; /* changes to be saved */
    struct err unsaved;              /* reason why a change is not in its file; code 0: all are, or are about to be */
};

/* Access to the model, with the lock held. */
struct tsp_trace *tsp_model_trace(struct tsp_server *, const char *uuid);
struct tsp_experiment *tsp_model_experiment(struct tsp_server *, const char *uuid);
/* Adds a new one; strings are copied. */
struct tsp_trace *tsp_model_add_trace(struct tsp_server *, const char *name, const char *path, const char *type);
struct tsp_experiment *tsp_model_add_experiment(struct tsp_server *, const char *name, const char *const *traces,
    size_t n);
struct tsp_config *tsp_model_config(struct tsp_server *, const char *id);
struct tsp_config *tsp_model_add_config(struct tsp_server *, struct tsp_config); /* takes over its contents */
void tsp_model_remove_trace(struct tsp_server *, struct tsp_trace *);
void tsp_model_remove_experiment(struct tsp_server *, struct tsp_experiment *);
void tsp_model_free(struct tsp_server *);
/* Copies its arguments; description NULL: "". Needs no lock. */
struct tsp_config tsp_config_new(const char *type, const char *name, const char *description, json_t *parameters);
void tsp_config_fini(struct tsp_config *);
void tsp_bookmark_fini(struct tsp_bookmark *);
void tsp_derived_fini(struct tsp_derived *);
/* model_write.c: writes the model as text of the protocol. figures NULL: closed. */
void tsp_model_write_trace(struct json *, const struct tsp_trace *, const struct tsp_figures *, const char *state);
void tsp_model_write_experiment(struct tsp_server *, struct json *, const struct tsp_experiment *);
void tsp_model_write_config(struct json *, const struct tsp_config *);

/* Derived output with that id, or of the view with that id; NULL: none. *answers: the provider for operations on it.
 * The lock must be held. */
struct tsp_derived *tsp_model_derived(const struct tsp_experiment *, const char *id,
    const struct tsp_provider **answers);

#endif
