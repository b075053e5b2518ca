/* SPDX-License-Identifier: MIT */
/* Private to coord: the current request, and its questions to servers. */
#ifndef WEFT_COORD_CALL_H
#define WEFT_COORD_CALL_H

#include <jansson.h>

#include "base/json.h"
#include "coord/node.h"
#include "tsp/request.h"

/* Missing source: a server whose data are missing or partial in the answer. `host`: the server itself, or a host it
 * reports. failed: all of its data are missing. */
struct coord_missing { const char *host, *why; bool failed; const struct node *server; };

/* Status of an answer. The greatest one among the parts is that of the whole. */
enum verdict { COORD_FAILED, COORD_CANCELLED, COORD_COMPLETED, COORD_RUNNING };

struct coord_call {
    struct coordinator *c;
    struct http_request *q;
    const char *arg[TSP_MAX_STARS];
    json_t *body, *parameters;       /* body of the request, owned; without one: NULL and an empty object */
    struct node **servers; size_t n_servers; /* servers when the request came */
    const uint64_t *keys;            /* node keys by number, at the same time: no answer mixes two runs of a server */
    bool several;                    /* experiment had several members when the request came */
    unsigned *epochs;                /* epochs by server number, when the request came; NULL: not of an experiment */
    struct node **members; size_t n_members; /* servers that have, or may have, the operation's experiment */
    VEC(struct coord_missing) missing;
    struct own_times *own_times;     /* times sent to each server, by its number; NULL: none (times.c) */
    /* Made when first needed (rotation.c): pieces of sessions, the requested samples, a hash of the output. */
    struct coord_rotation *rotations; size_t n_rotations; bool rotations_known;
    const int64_t *samples; size_t n_samples; bool samples_known;
    uint64_t output;
    struct group_lines *lines;       /* machines' lines that groups are made of; NULL: none requested (groups.c) */
    size_t gathered;                 /* bytes of the analysis' answers */
    uint64_t held;                   /* peak bytes of the answers to one question */
    uint64_t complete;               /* hosts without missing data */
    enum verdict verdict;            /* status of the analysis, once its answers are there */
    const char *message;             /* message of a server for that status; NULL: none */
    enum tsp_code code;              /* code of the message */
    /* Progress of the servers that still work; stated: each of them reports its progress. */
    struct { uint64_t done, of; bool stated; } progress;
    const char *via;                 /* header by which coordinators detect that they ask each other in a circle */
    bool replied;
};

void coord_reply(struct coord_call *, int status, struct text *);
void coord_error(struct coord_call *, int status, const char *title, const char *detail);
/* Sends an error with this code; NONE: the code of the status. */
void coord_refuse(struct coord_call *, int status, enum tsp_code, const char *title, const char *detail);
/* Returns the code of a server's answer; NONE: missing or unknown. */
enum tsp_code coord_code(struct slice answer);
const char *coord_text(json_t *object, const char *key); /* NULL: no string there */
bool coord_integer(const json_t *, int64_t *out);
/* Notes that the server's data are missing in the answer; once for each server. */
void coord_note_missing(struct coord_call *, struct node *, const char *why);
/* Notes that part of the server's data is missing; once for each server. */
void coord_note_partial(struct coord_call *, struct node *, const char *why);
/* Notes the missing sources that the server reports in the member `hosts` of its answer. Returns the number of complete
 * hosts; 1 if not stated. */
uint64_t coord_note_reported(struct coord_call *, const struct node *, struct slice answer);
/* Writes the member `hosts` of an answer, with its missing sources. */
void coord_put_hosts(struct coord_call *, struct json *, uint64_t complete);
/* Returns `what` (NULL: nothing) followed by the missing sources: "Completed; without db: no answer in 3.0 s". NULL: no
 * text at all. */
const char *coord_missing_text(struct coord_call *, const char *what);
/* Sets the header Warning, for answers that have no place for missing sources. */
void coord_warn(struct coord_call *);

/* ---- scatter and gather ---- */

enum coord_fate {
    COORD_GOOD,                      /* answer to merge */
    COORD_REFUSED,                   /* answer with a status other than 200; `root` is its body, if valid */
    COORD_MISSING                    /* answer missing or invalid */
};
struct coord_answer {
    struct node *node;
    struct http_fetch fetch;
    enum coord_fate fate;
    bool settled;
    struct slice root;               /* whole answer */
    struct slice model;              /* model of an answer in an envelope; at NULL for JSON null */
};
/* Question to several servers at once. Parts do not move; they live in the request's arena. */
struct coord_gather {
    struct coord_call *call;
    struct http_gather gather;
    struct coord_answer *parts; size_t n, most;
};
void coord_gather_begin(struct coord_gather *, struct coord_call *, size_t most);
/* Adds a request. path: below /tsp/api. json: body in the arena; NULL: none. A server that is away is not asked. */
struct coord_answer *coord_gather_ask(struct coord_gather *, struct node *, const char *method, const char *path,
    const char *json);
/* Waits until each server has answered or failed. Notes missing sources in the call. False: the client is gone. */
bool coord_gather_wait(struct coord_gather *);
/* Frees the answers. */
void coord_gather_end(struct coord_gather *);
/* Returns whether the server refused because the question fits several of its threads. */
bool coord_answer_is_ambiguous(const struct coord_answer *);
/* Sends the refusal when there is nothing to merge: the first one unchanged (ambiguous ones first), or the missing
 * sources. */
void coord_gather_refuse(struct coord_gather *);
/* Sends the refusal; servers that are away may be its cause. away: addition to its detail; NULL: none. */
void coord_gather_refuse_while(struct coord_gather *, const char *away);
/* Drops an invalid answer and notes the server as missing. */
void coord_answer_spoil(struct coord_gather *, struct coord_answer *, const char *why);

/* Returns a body as text in the arena; releases the object. */
const char *coord_body_text(struct arena *, json_t *);
/* Returns one escaped segment of a path. */
const char *coord_path_part(struct arena *, const char *);
/* Returns the operation's path as requested, for the members. */
const char *coord_path_asked(struct coord_call *);

/* ---- analyses: answers in an envelope ---- */

/* Sorts the parts of coord_gather_wait by their status: sets their models, the call's verdict and missing sources.
 * False: there is nothing to merge, and an answer was sent. */
bool coord_envelopes_open(struct coord_gather *);
/* Begins an answer up to its model, which the caller writes next. The text counts towards the memory limit. */
struct json coord_envelope_begin(struct coord_call *, struct text *);
/* Writes the remaining members and sends the answer. */
void coord_envelope_send(struct coord_call *, struct text *);
void coord_envelope_send_null(struct coord_call *, enum verdict, const char *message);
/* tree.c: merges and sends trees, after coord_envelopes_open. */
void coord_tree_send(struct coord_gather *);

/* ---- entries ---- */

/* Returns whether the server is still the same process as when the request came, as far as is known. */
bool coord_node_is_same(const struct coord_call *, const struct node *);
/* Returns the key of the server's entries in this answer. */
uint64_t coord_node_key(const struct coord_call *, const struct node *);
/* Returns the id for clients; -1 and 0 stay as they are. */
int64_t coord_id(struct coord_call *, const struct node *, int64_t own);
/* Copies an object; translates times, and the members named by `ids`, which are ids. */
void coord_put_with_ids(struct coord_call *, struct json *, const struct node *, struct slice object,
    const char *const *ids);

/* Requested items by owner. Unknown ids are dropped after the output's trees were searched for them. */
struct items { json_t **own; bool given; }; /* own: by index among the members; borrowed from the call */
/* Returns NULL, or the error in the request. */
const char *coord_items_split(struct coord_call *, struct items *);
/* Returns the member with the entry, and the entry's own id; NULL: unknown. Of several pieces, returns the one with the
 * requested time, if it is up. */
struct node *coord_entry_owner(struct coord_call *, int64_t id, int64_t *own);

/* Return a body for the server, in the arena: parameters with times by its clock. body_with replaces values under up to
 * two keys, which may be NULL. */
const char *coord_body_of(struct coord_call *, const struct node *, json_t *parameters); /* parameters: any; modified */
const char *coord_body_with(struct coord_call *, const struct node *, const char *key, json_t *value,
    const char *key2, json_t *value2);

/* ---- operations ---- */

typedef void coord_run(struct coord_call *);
coord_run coord_traces_list, coord_traces_get, coord_traces_post, coord_traces_delete;
coord_run coord_experiments_list, coord_experiments_get, coord_experiments_post, coord_experiments_delete;
coord_run coord_outputs_list, coord_outputs_derive, coord_outputs_pass;
coord_run coord_analysis_tree, coord_analysis_states, coord_analysis_arrows, coord_analysis_tooltip;
coord_run coord_analysis_xy, coord_analysis_style;
coord_run coord_analysis_categories, coord_analysis_annotations, coord_marker_sets;
coord_run coord_table_columns, coord_table_lines;
coord_run coord_bookmarks_list, coord_bookmarks_get, coord_bookmarks_post, coord_bookmarks_put, coord_bookmarks_delete;

/* Finds the servers with the experiment. False: there are none, and an error was sent. */
bool coord_members_find(struct coord_call *, const char *uuid);

/* Writes the traces of a server's list as items of an open array. */
void coord_put_traces(struct coord_call *, struct json *, const struct node *, struct slice list);
/* Finds the owners of traces by the uuids known to clients; node NULL: unknown. False: the client is gone. */
struct own_trace { struct node *node; const char *own; };
bool coord_traces_owners(struct coord_call *, const char *const *uuids, size_t n, struct own_trace *);

/* Versions of experiments as sent to clients. */
struct versions *coord_versions_new(void);
void coord_versions_free(struct versions *);
/* Range of the experiment from the earliest begin to the latest end over all servers, as last sent to clients. Both are
 * 0 if no client has asked. */
struct time_range { int64_t begin, end; };
struct time_range coord_experiment_range(struct coord_call *);
/* Returns the experiment's name on the servers; asks them if it is unknown. NULL: no server knows it. */
const char *coord_experiment_name(struct coord_call *);
/* Returns the range of the server's part. */
struct time_range coord_member_range(struct coord_call *, const struct node *);
/* Notes the range in a server's answer. */
void coord_note_range(struct coord_call *, const struct node *, struct slice experiment);

/* Bookmarks of the coordinator itself. path NULL: they are not stored. */
int coord_bookmarks_open(const char *path, struct bookmarks **out, struct err *e);
void coord_bookmarks_close(struct bookmarks *);

#endif
