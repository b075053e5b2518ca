/* SPDX-License-Identifier: MIT */
/* Private to coord: the request at hand, and asking servers for it. */
#ifndef WEFT_COORD_CALL_H
#define WEFT_COORD_CALL_H

#include <jansson.h>

#include "base/json.h"
#include "coord/node.h"
#include "tsp/request.h"

/* Somebody whose data are not, or not all, in the answer. `host`: the server itself, or whom it names. */
struct lack { const char *host, *why; bool failed; const struct node *server; };

/* Words for what an answer is, in the order in which a later one is what the whole is. */
enum verdict { VERDICT_FAILED, VERDICT_CANCELLED, VERDICT_COMPLETED, VERDICT_RUNNING };

struct coord_call {
    struct coordinator *c;
    struct http_request *q;
    const char *arg[TSP_MAX_STARS];
    json_t *body, *parameters;       /* of requests with a body, else NULL and an empty object; owned */
    struct node **servers; size_t n_servers; /* when it came */
    const uint64_t *keys;            /* of the nodes by number, when it came: no answer mixes two runs of a server */
    bool several;                    /* more than one member, when it came */
    unsigned *epochs;                /* by number of the server, when it came; NULL: not of an experiment */
    struct node **members; size_t n_members; /* of an experiment's operation: who has it, or may have it */
    VEC(struct lack) lacks;
    struct own_times *own_times;     /* by number of the server: times that it was asked for; NULL: none (times.c) */
    /* Made once, when first needed (pieces.c): pieces of sessions, the samples asked for, a hash of the output. */
    struct coord_pieces *pieces; size_t n_pieces; bool pieces_known;
    const int64_t *samples; size_t n_samples; bool samples_known;
    uint64_t output;
    struct group_lines *lines;       /* machines' lines that groups are made of; NULL: none are asked for (groups.c) */
    size_t gathered;                 /* bytes of the analysis' answers */
    uint64_t held;                   /* bytes that the answers of one question took at most */
    uint64_t complete;               /* hosts of which nothing is missing */
    enum verdict verdict;            /* of the analysis, once its answers are there */
    const char *message;             /* that a server gave with it; NULL: none */
    enum tsp_code code;              /* of the message */
    /* Of the servers that still work; stated: all of them say how far they are. */
    struct { uint64_t done, of; bool stated; } progress;
    const char *via;                 /* the header by which coordinators know that they ask each other in a circle */
    bool replied;
};

void coord_reply(struct coord_call *, int status, struct text *);
void coord_error(struct coord_call *, int status, const char *title, const char *detail);
/* The same with another code than the status has; NONE: with that. */
void coord_refuse(struct coord_call *, int status, enum tsp_code, const char *title, const char *detail);
/* The code of a server's answer; NONE: it has none, or one that is not known here. */
enum tsp_code coord_code(struct slice answer);
const char *coord_text(json_t *object, const char *key); /* or NULL */
bool coord_integer(const json_t *, int64_t *out);
/* The server lacks in the answer; said once for each. */
void coord_lacks(struct coord_call *, struct node *, const char *why);
/* The same of a part of what it has. */
void coord_lacks_some(struct coord_call *, struct node *, const char *why);
/* Who the server says is missing of what it has: the member `hosts` of its answer. Returns how many are not. */
uint64_t coord_lacks_there(struct coord_call *, const struct node *, struct slice answer);
/* The members of an answer that say so. */
void put_hosts(struct coord_call *, struct json *, uint64_t complete);
/* "Completed; without db: no answer in 3.0 s": what is missing, behind `what` (NULL: nothing); NULL: nothing is. */
const char *coord_missing(struct coord_call *, const char *what);
/* The header Warning, where an answer has no place for who is missing. */
void coord_warn(struct coord_call *);

/* ---- asking ---- */

enum part_fate {
    PART_GOOD,                       /* an answer to merge */
    PART_REFUSED,                    /* an answer with another status than 200, as `root` says (or not) */
    PART_LACKS                       /* none, or garbage */
};
struct fan_part {
    struct node *node;
    struct http_fetch fetch;
    enum part_fate fate;
    bool settled;
    struct slice root;               /* the whole answer */
    struct slice model;              /* of answers that have one; null is none */
};
/* A question to several servers at once. Parts stay where they are, in the request's arena. */
struct fan {
    struct coord_call *call;
    struct http_gather gather;
    struct fan_part *parts; size_t n, most;
};
void fan_begin(struct fan *, struct coord_call *, size_t most);
/* path: below /tsp/api. json NULL: no body; else text that lives in the arena. A server that is away is not asked. */
struct fan_part *fan_ask(struct fan *, struct node *, const char *method, const char *path, const char *json);
/* Until all have answered or cannot be waited for. False: nobody waits for the answer any more. Those that lack are
 * noted in the call. */
bool fan_wait(struct fan *);
/* What they answered is gone then. */
void fan_end(struct fan *);
/* Refused, because several threads of the server are meant. */
bool part_is_ambiguous(const struct fan_part *);
/* Sends what the servers say when there is nothing to merge: the first refusal as it is (an ambiguous one before
 * others), or who is away. */
void fan_refuse(struct fan *);
/* The same, where it may be refused only because of who is away: says so, too. NULL: nobody is. */
void fan_refuse_while(struct fan *, const char *away);
/* An answer that makes no sense is none. */
void part_spoil(struct fan *, struct fan_part *, const char *why);

/* A body as text, in the arena; the object is given up. */
const char *body_text(struct arena *, json_t *);
/* A part of a path, escaped. */
const char *path_part(struct arena *, const char *);
/* The members' path of the operation at hand, as it came. */
const char *path_asked(struct coord_call *);

/* ---- analyses: answers in an envelope ---- */

/* Sorts the parts that fan_wait has brought by what they say of themselves: sets their models, the call's verdict, and
 * who lacks. False: there is nothing to merge, and that has been sent. */
bool envelopes_open(struct fan *);
/* Begins an answer whose model is written next; the text counts as held. */
struct json envelope_begin(struct coord_call *, struct text *);
/* The remaining members; sends it. */
void envelope_send(struct coord_call *, struct text *);
void envelope_send_null(struct coord_call *, enum verdict, const char *message);
/* tree.c: merges and sends what envelopes_open has left of answers about trees. */
void tree_send(struct fan *);

/* ---- entries ---- */

/* The server was (as far as is known) not started again since the request came. */
bool node_is_same(const struct coord_call *, const struct node *);
/* By which its entries are known in the answer at hand. */
uint64_t node_key(const struct coord_call *, const struct node *);
/* The id for clients; -1, 0 for what is none. */
int64_t coord_id(struct coord_call *, const struct node *, int64_t own);
/* A key as it stands, for the value that is written next. */
void put_slice_key(struct json *, struct slice key);
static inline void put_slice(struct json *j, struct slice s) { json_raw(j, s.at, s.n); }
/* Copies an object, but for the members with these names, which are ids, and times. */
void put_with_ids(struct coord_call *, struct json *, const struct node *, struct slice object, const char *const *ids);

/* The requested items by their owners. Ids that nobody has are left out, after the trees of the output at hand were
 * looked through for them. */
struct items { json_t **own; bool given; }; /* own: by place among the members; borrowed from the call */
/* NULL, or what is wrong with them. */
const char *items_split(struct coord_call *, struct items *);
/* The member with the entry, and its own id; NULL: nobody. Of several pieces that of the time asked for, if it is
 * there. */
struct node *entry_owner(struct coord_call *, int64_t id, int64_t *own);

/* The parameters at hand as the server knows times, with another value under one key, as a body; both keys may be NULL.
 * Lives in the arena. */
const char *body_of(struct coord_call *, const struct node *, json_t *parameters); /* any; they are changed */
const char *body_with(struct coord_call *, const struct node *, const char *key, json_t *value,
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

/* Which servers have the experiment; false: none, and that has been sent. */
bool members_find(struct coord_call *, const char *uuid);

/* The traces of a server's list, as items of an open array. */
void put_traces(struct coord_call *, struct json *, const struct node *, struct slice list);
/* Whose traces these are, by the uuids that clients know them by; node NULL: nobody's. False: nobody waits any more. */
struct own_trace { struct node *node; const char *own; };
bool traces_owners(struct coord_call *, const char *const *uuids, size_t n, struct own_trace *);

/* Versions of experiments, as clients see them. */
struct versions *versions_new(void);
void versions_free(struct versions *);
/* From the first server's begin to the last one's end of the experiment at hand, as clients were told last; both 0:
 * nobody has asked. */
struct time_range { int64_t begin, end; };
struct time_range experiment_range(struct coord_call *);
/* As the servers call it; asks them if nobody has. NULL: nobody tells. */
const char *experiment_name(struct coord_call *);
/* The server's part of it. */
struct time_range member_range(struct coord_call *, const struct node *);
/* And what it tells now. */
void server_note_range(struct coord_call *, const struct node *, struct slice experiment);

/* Bookmarks are the coordinator's own; path NULL: they are not kept. */
int bookmarks_open(const char *path, struct bookmarks **out, struct err *e);
void bookmarks_close(struct bookmarks *);

#endif
