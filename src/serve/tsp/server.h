/* SPDX-License-Identifier: MIT */
/* Private to tsp: the server's model (what is open, bookmarked, configured), and the request at hand. */
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

/* number, below: which of its kind it is, in the order in which they were made. */
struct tsp_trace {
    char uuid[UUID_TEXT];
    int64_t number;
    char *name, *path, *type, *host; /* host: NAME of NAME=PATH, or NULL */
};
struct tsp_bookmark { char uuid[UUID_TEXT]; char *name; int64_t start, end; };
/* A configuration: of the server (marker sets), or of a derived output. */
struct tsp_config {
    char id[UUID_TEXT];
    int64_t number;
    char *type, *name, *description;
    json_t *parameters;
    char *text;                      /* of the parameters */
};
struct tsp_derived { char *id; const struct tsp_provider *provider; struct tsp_config config; };

/* Figures of a trace while it is being opened, by those who read it. */
struct tsp_growing { _Atomic uint64_t events; _Atomic int64_t begin, end; };

/* A derived output that is being computed (or was just now), and until when somebody waits for it (monotonic). */
struct tsp_waited { char *output; bool done; int64_t until_ns; };

/* What is kept over a restart, each in a file of its own. */
enum persist_kind { PERSIST_TRACE, PERSIST_EXPERIMENT, PERSIST_CONFIG, PERSIST_KINDS };
struct persist_item { enum persist_kind kind; char uuid[UUID_TEXT]; };

enum tsp_stage { STAGE_OPENING, STAGE_OPEN, STAGE_FAILED };
/* One opening of an experiment's traces: a version, which never changes once it is open. `stage` changes once, under
 * the server's lock; all else is written before it becomes STAGE_OPEN. */
struct tsp_opening {
    unsigned refs;                   /* under the server's lock: the experiment's, the opener's, those of requests */
    enum tsp_stage stage;
    struct err error;
    struct arena arena;
    struct tsp_open_request request;
    struct tsp_growing *growing;     /* by path of the request */
    struct tsp_data *data;           /* NULL until it is open */
    VEC(struct tsp_waited) waited;   /* under the server's lock */
    const char *experiment;          /* its uuid */
    atomic_bool unwanted;            /* what reads the traces for it is to end */
    struct tsp_ids *ids;             /* the experiment's */
    struct entry_tables *entries;    /* NULL until it is open */
    struct kept_rows *rows;          /* likewise */
};

struct tsp_experiment {
    char uuid[UUID_TEXT];
    int64_t number;
    char *name;
    VEC(char *) traces;              /* their uuids; some may be of no trace that is known */
    VEC(struct tsp_bookmark) bookmarks;
    VEC(struct tsp_derived) derived;
    VEC(json_t *) unknown;           /* derived outputs of providers that are not known here, as they were kept */
    char *reference;                 /* whose clock the times above are by; NULL: not known yet */
    struct tsp_opening *open;        /* which answers; NULL: closed */
    struct tsp_opening *next;        /* being opened while `open` answers, to take its place; or NULL */
    struct tsp_opening *earlier;     /* which still computes what somebody waits for (held.c); or NULL */
    uint64_t version;                /* of what is open: counts what was opened */
    struct tsp_follow *follow;       /* NULL: its directories are not watched (yet) */
    struct err problem;              /* why what is newer than `open` cannot be opened; code 0: it can, or is not */
    bool tidying_owed;               /* a piece of tidying was not begun, or stopped, for what is newer (tidy.c) */
    int64_t failed_ns;               /* monotonic; when opening failed */
    uint64_t used;                   /* tsp_server.uses when somebody asked for it last */
    struct tsp_ids *ids;             /* that its entries have had, in all openings since the server's start */
};

struct tsp_server {
    struct tsp_options o;
    struct http_server *http;
    char *root, *upload_dir;         /* real paths; or NULL */
    struct sweeper *sweeper;         /* of upload_dir, or NULL */
    char *state_dir;                 /* or NULL */
    int state_lock;                  /* descriptor, or -1 */
    VEC(char *) given;               /* real paths of the TRACE arguments */
    int follow_wake;                 /* eventfd of the follower; -1: traces are not followed */
    pthread_t follower;
    pthread_mutex_t saving;          /* held while changes are saved; taken before `lock` */
    pthread_mutex_t lock;            /* guards all below */
    pthread_cond_t changed;          /* a stage, or the number of openers */
    unsigned openers;
    bool stopping;
    uint64_t uses;                   /* how often an experiment was asked for */
    VEC(struct tsp_trace *) traces;
    VEC(struct tsp_experiment *) experiments;
    VEC(struct tsp_config) configs;
    int64_t numbered;                /* the greatest number that something got */
    VEC(struct persist_item) changed_things; /* not saved yet */
    struct err unsaved;              /* why a change is not in its file; code 0: all are, or are about to be */
};

/* All with the lock held. */
struct tsp_trace *model_trace(struct tsp_server *, const char *uuid);
struct tsp_experiment *model_experiment(struct tsp_server *, const char *uuid);
/* New ones; strings are copied. */
struct tsp_trace *model_add_trace(struct tsp_server *, const char *name, const char *path, const char *type);
struct tsp_experiment *model_add_experiment(struct tsp_server *, const char *name, const char *const *traces,
    size_t n);
struct tsp_config *model_config(struct tsp_server *, const char *id);
struct tsp_config *model_add_config(struct tsp_server *, struct tsp_config); /* takes over what it holds */
void model_remove_trace(struct tsp_server *, struct tsp_trace *);
void model_remove_experiment(struct tsp_server *, struct tsp_experiment *);
void model_free(struct tsp_server *);
/* Copies all; description NULL: "". Needs no lock. */
struct tsp_config tsp_config_new(const char *type, const char *name, const char *description, json_t *parameters);
void tsp_config_fini(struct tsp_config *);
void tsp_bookmark_fini(struct tsp_bookmark *);
void tsp_derived_fini(struct tsp_derived *);
/* The model as text of the protocol. figures NULL: closed. */
void model_write_trace(struct json *, const struct tsp_trace *, const struct tsp_figures *, const char *state);
void model_write_experiment(struct tsp_server *, struct json *, const struct tsp_experiment *);
void model_write_config(struct json *, const struct tsp_config *);

/* open.c. With the lock held (which may be let go for a moment): finds the experiment, and opens it in the background
 * unless it is open or being opened (or failed a moment ago). NULL when there is none. */
struct tsp_experiment *open_wanted(struct tsp_server *, const char *uuid);
/* What is still being read for it is of no use any more. With the lock held. */
void open_abandon(struct tsp_opening *);
/* A reference for a request, or NULL; with the lock held. */
struct tsp_opening *open_ref(struct tsp_experiment *);
/* The same for questions about an output, which an earlier version may be about to answer. */
struct tsp_opening *open_ref_for(struct tsp_experiment *, const char *output);
void open_unref(struct tsp_server *, struct tsp_opening *); /* without the lock */
void open_unref_locked(struct tsp_server *, struct tsp_opening *); /* may let the lock go for a moment */
/* ERR_LOST when files of the open experiment were cut off: what was computed from it must not be sent. The model lets
 * it go then, so that it is opened anew, from what is left, when it is wanted next. Without the lock. */
int open_intact(struct tsp_server *, struct tsp_opening *, struct err *);
/* Memory is short: what opened experiments keep only to be fast is given back. `server`: a tsp_server. */
void open_give_memory(void *server);
/* With the lock held: opens what the traces are now as the next version, in the background. It must be open, and no
 * next one under way. */
void open_next(struct tsp_server *, struct tsp_experiment *);
/* The output with that id; NULL: none. It must be open. */
const struct tsp_output *open_output(const struct tsp_opening *, const char *id);
/* The derived output with that id, or that it is shown by; NULL: none. *answers: the provider for operations on it.
 * With the lock held. */
struct tsp_derived *derived_find(const struct tsp_experiment *, const char *id,
    const struct tsp_provider **answers);

/* follow.c: one thread that watches the directories of open experiments and has the next version opened when something
 * in them has changed. */
int follow_start(struct tsp_server *, struct err *);
void follow_stop(struct tsp_server *); /* once `stopping` is set, without the lock */
/* Begins to watch the traces of an opening that is about to be made, unless that has begun. Without the lock. */
void follow_begin(struct tsp_server *, struct tsp_opening *);
/* With the lock held: the experiment is no more. */
void follow_end(struct tsp_server *, struct tsp_experiment *);
/* With the lock held: an opening of the experiment has ended, well or not, after so long. */
void follow_opened(struct tsp_server *, struct tsp_experiment *, bool well, int64_t took_ns);
/* With the lock held: are there changes that no opening has been begun for? */
bool follow_waits(const struct tsp_experiment *);

/* retime.c. With the lock held: times that are kept become those of the opening's clock. */
void retime(struct tsp_server *, struct tsp_experiment *, struct tsp_data *);

/* tidy.c: once it is open, has the backend put its files in order as long as nothing newer waits. Without the lock. */
void tidy_run(struct tsp_server *, struct tsp_opening *);

/* held.c. All but held_note with the lock held.
 * The version before that is computing the derived output; NULL: the newest one answers. */
struct tsp_opening *held_for(struct tsp_experiment *, const char *output);
/* `old` was replaced: it is kept while somebody waits for what it computes, or returned, to be let go. */
struct tsp_opening *held_instead(struct tsp_experiment *, struct tsp_opening *old);
/* What is to be let go, as nobody waits for it any more, or at once; NULL: nothing. */
struct tsp_opening *held_release(struct tsp_experiment *, bool at_once);
/* A derived output was asked for: is it being computed still? */
void held_note(struct tsp_server *, struct tsp_opening *, const char *output, bool running);
void held_fini(struct tsp_opening *);

/* persist.c. With the lock held: it is new, has changed, or is no more. */
void persist_note(struct tsp_server *, enum persist_kind, const char *uuid);
/* Saves what was noted before. What cannot be written is in s->unsaved, and written with the next change or at the end.
 * Without the lock. */
void persist_save(struct tsp_server *);
int persist_load(struct tsp_server *, struct err *); /* before others use the server */

/* traces.c: the trace at `uri`, opened as a client would. status: HTTP's; title, detail: what went wrong; uuid: of the
 * trace, or of the one in conflict (409). trusted: given by who started the server. Takes the lock. */
struct tsp_trace_result { int status; const char *title, *detail; char uuid[UUID_TEXT]; };
struct tsp_trace_result trace_open(struct tsp_server *, struct arena *, const char *uri, const char *name,
    const char *type, bool trusted);
/* May it be opened, going by its name? A real path. */
bool trace_is_allowed(const struct tsp_server *, const char *real);
/* upload.c: frees the names of what a server that was killed has left of its uploads; the sweeper removes it. */
void uploads_remove_unfinished(struct tsp_server *);
/* With the lock held: the same for an upload at `path`, whose trace is no more. Other paths are left alone. */
void upload_remove(const struct tsp_server *, const char *path);

/* ---- the request at hand ---- */

struct call {
    struct tsp_server *s;
    struct http_request *q;
    const char *arg[TSP_MAX_STARS];  /* what the route's stars stand for */
    json_t *body;                    /* object; NULL for requests without */
    json_t *parameters;              /* of the body: never NULL when the route needs a body; owned */
    json_t *configuration;           /* copy of a derived output's; owned */
    struct tsp_opening *open;        /* referenced while the call runs, or NULL */
    bool reads;                      /* the answer is made of what is open */
    bool changes;                    /* it may change what is kept */
    enum tsp_operation operation;    /* of the route */
};
/* With the code of the status, or a more exact one. */
void call_error(struct call *, int status, const char *title, const char *detail);
void call_refuse(struct call *, int status, enum tsp_code, const char *title, const char *detail);
void call_errorf(struct call *, int status, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
/* Sends the text, which becomes empty, as JSON. */
void call_json(struct call *, int status, struct text *);
/* The string `key` of an object, or NULL. */
const char *call_string(json_t *object, const char *key);
bool call_integer(const json_t *, int64_t *out);
typedef void call_handler(struct call *);
call_handler traces_list, traces_below, traces_post, traces_get, traces_delete;
call_handler experiments_list, experiments_post, experiments_get, experiments_delete;
call_handler bookmarks_list, bookmarks_post, bookmarks_get, bookmarks_put, bookmarks_delete;
call_handler config_types, config_type, configs_list, configs_post, configs_get, configs_put, configs_delete;
call_handler outputs_list, outputs_get, outputs_config_types, outputs_config_type, outputs_post, outputs_delete;
call_handler marker_sets, upload_post, analysis_run;
/* Server-wide configurations of markers (configurations.c): the annotations that a marker set stands for, by
 * category. */
void markers_write(struct tsp_server *, const char *set, const struct tsp_query *, struct tsp_answer *);
bool markers_write_category(struct tsp_server *, const char *set, struct json *open_array);
/* server.c: answers `health` and `identifier`. */
void server_tell(struct call *, const char *what);
void routes_handle(void *server, struct http_request *);
/* Is little to be done for it? */
bool routes_small(struct http_request *);

/* query.c: what q->operation needs, from q->parameters. NULL, or the title of a 400. */
const char *query_parse(struct tsp_query *);
/* NULL: nothing to filter by. filter_fini it (NULL too). */
struct tsp_filter *filter_compile(json_t *map, struct arena *);
void filter_fini(const struct tsp_filter *);

#endif
