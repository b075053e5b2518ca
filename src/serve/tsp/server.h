/* SPDX-License-Identifier: MIT */
/* Private to tsp: the server's model (what is open, bookmarked, configured), and the current request. */
#ifndef WEFT_TSP_SERVER_H
#define WEFT_TSP_SERVER_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/mem.h"
#include "tsp/entries.h"
#include "tsp/kept_rows.h"
#include "tsp/provider.h"
#include "tsp/request.h"
#include "tsp/tsp.h"

/* ---- model ---- */

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

/* Figures of a trace while it is being opened, set by its readers. */
struct tsp_growing { _Atomic uint64_t events; _Atomic int64_t begin, end; };

/* Derived output that is being computed (or was just now), and the time until which somebody waits for it
 * (monotonic). */
struct tsp_waited { char *output; bool done; int64_t until_ns; };

/* Things that survive a restart, each in a file of its own. */
enum persist_kind { PERSIST_TRACE, PERSIST_EXPERIMENT, PERSIST_CONFIG, PERSIST_KINDS };
struct persist_item { enum persist_kind kind; char uuid[UUID_TEXT]; };

enum tsp_stage { STAGE_OPENING, STAGE_OPEN, STAGE_FAILED };
/* Opening of an experiment's traces: a version, immutable once it is open. `stage` changes once, under the server's
 * lock; all else is written before it becomes STAGE_OPEN. */
struct tsp_opening {
    unsigned refs;                   /* references (server's lock): of the experiment, the opener, and requests */
    enum tsp_stage stage;
    struct err error;
    struct arena arena;
    struct tsp_open_request request;
    struct tsp_growing *growing;     /* figures by path of the request */
    struct tsp_data *data;           /* NULL until it is open */
    VEC(struct tsp_waited) waited;   /* guarded by the server's lock */
    const char *experiment;          /* uuid of the experiment */
    atomic_bool unwanted;            /* asks the readers of its traces to end */
    struct tsp_ids *ids;             /* ids of the experiment */
    struct entry_tables *entries;    /* NULL until it is open */
    struct kept_rows *rows;          /* NULL until it is open */
};

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
struct tsp_trace *model_trace(struct tsp_server *, const char *uuid);
struct tsp_experiment *model_experiment(struct tsp_server *, const char *uuid);
/* Adds a new one; strings are copied. */
struct tsp_trace *model_add_trace(struct tsp_server *, const char *name, const char *path, const char *type);
struct tsp_experiment *model_add_experiment(struct tsp_server *, const char *name, const char *const *traces,
    size_t n);
struct tsp_config *model_config(struct tsp_server *, const char *id);
struct tsp_config *model_add_config(struct tsp_server *, struct tsp_config); /* takes over its contents */
void model_remove_trace(struct tsp_server *, struct tsp_trace *);
void model_remove_experiment(struct tsp_server *, struct tsp_experiment *);
void model_free(struct tsp_server *);
/* Copies its arguments; description NULL: "". Needs no lock. */
struct tsp_config tsp_config_new(const char *type, const char *name, const char *description, json_t *parameters);
void tsp_config_fini(struct tsp_config *);
void tsp_bookmark_fini(struct tsp_bookmark *);
void tsp_derived_fini(struct tsp_derived *);
/* Writes the model as text of the protocol. figures NULL: closed. */
void model_write_trace(struct json *, const struct tsp_trace *, const struct tsp_figures *, const char *state);
void model_write_experiment(struct tsp_server *, struct json *, const struct tsp_experiment *);
void model_write_config(struct json *, const struct tsp_config *);

/* open.c. Finds the experiment, and opens it in the background unless it is open or being opened, or failed a moment
 * ago. NULL: none. With the lock held, which may be released for a moment. */
struct tsp_experiment *open_wanted(struct tsp_server *, const char *uuid);
/* Asks the readers of its traces to end: they are no longer needed. With the lock held. */
void open_abandon(struct tsp_opening *);
/* Returns a reference for a request, or NULL. With the lock held. */
struct tsp_opening *open_ref(struct tsp_experiment *);
/* Returns a reference for queries about an output, which an earlier version may be about to answer. */
struct tsp_opening *open_ref_for(struct tsp_experiment *, const char *output);
void open_unref(struct tsp_server *, struct tsp_opening *); /* called without the lock */
void open_unref_locked(struct tsp_server *, struct tsp_opening *); /* called with the lock; may release it briefly */
/* Checks the files of an opening. ERR_LOST: some were truncated, so what was computed from it must not be sent. The
 * model then drops it, and the next request opens what is left. Without the lock. */
int open_intact(struct tsp_server *, struct tsp_opening *, struct err *);
/* Frees what opened experiments keep only for speed, when memory is short. `server`: a tsp_server. */
void open_give_memory(void *server);
/* Opens the current state of the traces as the next version, in the background. The experiment must be open, and no
 * next version may be under way. With the lock held. */
void open_next(struct tsp_server *, struct tsp_experiment *);
/* Output with that id; NULL: none. The experiment must be open. */
const struct tsp_output *open_output(const struct tsp_opening *, const char *id);
/* Derived output with that id, or of the view with that id; NULL: none. *answers: the provider for operations on it.
 * With the lock held. */
struct tsp_derived *derived_find(const struct tsp_experiment *, const char *id,
    const struct tsp_provider **answers);

/* follow.c: one thread that watches the directories of open experiments, and has the next version opened after a
 * change. */
int follow_start(struct tsp_server *, struct err *);
void follow_stop(struct tsp_server *); /* called once `stopping` is set, without the lock */
/* Begins to watch the traces of an opening that is about to be made, unless they are watched already. Without the
 * lock. */
void follow_begin(struct tsp_server *, struct tsp_opening *);
/* Ends watching: the experiment is removed or closed. With the lock held. */
void follow_end(struct tsp_server *, struct tsp_experiment *);
/* Reports that an opening of the experiment has ended, successfully or not, and its duration. With the lock held. */
void follow_opened(struct tsp_server *, struct tsp_experiment *, bool well, int64_t took_ns);
/* True: there are changes for which no opening has begun. With the lock held. */
bool follow_waits(const struct tsp_experiment *);

/* retime.c. Converts stored times to the opening's clock. With the lock held. */
void retime(struct tsp_server *, struct tsp_experiment *, struct tsp_data *);

/* tidy.c. Has the backend tidy its files after an opening, as long as no newer version waits. Without the lock. */
void tidy_run(struct tsp_server *, struct tsp_opening *);

/* held.c. All functions but held_note: with the lock held.
 * Returns the earlier version that computes the derived output; NULL: the newest one answers. */
struct tsp_opening *held_for(struct tsp_experiment *, const char *output);
/* Keeps `old`, which was replaced, while somebody waits for what it computes; otherwise returns it, to be released. */
struct tsp_opening *held_instead(struct tsp_experiment *, struct tsp_opening *old);
/* Returns the version to be released, since nobody waits for it any more, or at once; NULL: none. */
struct tsp_opening *held_release(struct tsp_experiment *, bool at_once);
/* Notes a request for a derived output. running: it is still being computed. */
void held_note(struct tsp_server *, struct tsp_opening *, const char *output, bool running);
void held_fini(struct tsp_opening *);

/* persist.c. Notes that the thing is new, has changed, or was removed. With the lock held. */
void persist_note(struct tsp_server *, enum persist_kind, const char *uuid);
/* Saves noted changes. What cannot be written is reported in s->unsaved, and written with the next change or at the
 * end. Without the lock. */
void persist_save(struct tsp_server *);
int persist_load(struct tsp_server *, struct err *); /* called before others use the server */

/* traces.c: opens the trace at `uri`, as a client would. status: HTTP; title, detail: the error; uuid: of the trace, or
 * of the one in conflict (409). trusted: given by the operator of the server. Takes the lock. */
struct tsp_trace_result { int status; const char *title, *detail; char uuid[UUID_TEXT]; };
struct tsp_trace_result trace_open(struct tsp_server *, struct arena *, const char *uri, const char *name,
    const char *type, bool trusted);
/* True: the path may be opened, judged by its name. It must be a real path. */
bool trace_is_allowed(const struct tsp_server *, const char *real);
/* upload.c: removes what a killed server left of its uploads. Their names are free at once; the sweeper removes the
 * files. */
void uploads_remove_unfinished(struct tsp_server *);
/* Removes the upload at `path` in the same way, once its trace is removed. Ignores other paths. With the lock held. */
void upload_remove(const struct tsp_server *, const char *path);

/* ---- the current request ---- */

struct call {
    struct tsp_server *s;
    struct http_request *q;
    const char *arg[TSP_MAX_STARS];  /* path parts that match the route's stars */
    json_t *body;                    /* object; NULL for requests without */
    json_t *parameters;              /* member of the body; never NULL if the route needs a body; owned */
    json_t *configuration;           /* copy of a derived output's; owned */
    struct tsp_opening *open;        /* referenced while the call runs, or NULL */
    bool reads;                      /* the answer is made from the open traces */
    bool changes;                    /* the request may change stored things */
    enum tsp_operation operation;    /* operation of the route */
};
/* Sends an error with the code of the status; call_refuse: with a more exact code. */
void call_error(struct call *, int status, const char *title, const char *detail);
void call_refuse(struct call *, int status, enum tsp_code, const char *title, const char *detail);
void call_errorf(struct call *, int status, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
/* Sends the text as JSON, and empties it. */
void call_json(struct call *, int status, struct text *);
/* String member `key` of an object, or NULL. */
const char *call_string(json_t *object, const char *key);
bool call_integer(const json_t *, int64_t *out);
typedef void call_handler(struct call *);
call_handler traces_list, traces_below, traces_post, traces_get, traces_delete;
call_handler experiments_list, experiments_post, experiments_get, experiments_delete;
call_handler bookmarks_list, bookmarks_post, bookmarks_get, bookmarks_put, bookmarks_delete;
call_handler config_types, config_type, configs_list, configs_post, configs_get, configs_put, configs_delete;
call_handler outputs_list, outputs_get, outputs_config_types, outputs_config_type, outputs_post, outputs_delete;
call_handler marker_sets, upload_post, analysis_run;
/* Marker configurations of the server (configurations.c): writes the annotations of a marker set, by category. */
void markers_write(struct tsp_server *, const char *set, const struct tsp_query *, struct tsp_answer *);
bool markers_write_category(struct tsp_server *, const char *set, struct json *open_array);
/* server.c: answers `health` and `identifier`. */
void server_tell(struct call *, const char *what);
void routes_handle(void *server, struct http_request *);
/* True: the request needs little work. */
bool routes_small(struct http_request *);

/* query.c: parses what q->operation needs from q->parameters. Returns NULL, or the title of a 400. */
const char *query_parse(struct tsp_query *);
/* NULL: nothing to filter by. To be freed with filter_fini, which accepts NULL. */
struct tsp_filter *filter_compile(json_t *map, struct arena *);
void filter_fini(const struct tsp_filter *);

#endif
