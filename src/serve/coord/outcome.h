/* SPDX-License-Identifier: MIT */
/* Private to coord: what came back from the servers, and what was missing. */
#ifndef WEFT_COORD_OUTCOME_H
#define WEFT_COORD_OUTCOME_H

#include <jansson.h>

#include "base/json.h"
#include "coord/node.h"
#include "tsp/answer.h"

/* Missing source: a server whose data are missing or partial in the answer. `host`: the server itself, or a host it
 * reports. failed: all of its data are missing. */
struct coord_missing { const char *host, *why; bool failed; const struct node *server; };

/* Status of an answer. The greatest one among the servers' is that of the whole. */
enum coord_status { COORD_FAILED, COORD_CANCELLED, COORD_COMPLETED, COORD_RUNNING };

struct coord_outcome {
    struct arena *arena;
    VEC(struct coord_missing) missing;
    uint64_t complete;               /* hosts without missing data */
    enum coord_status status;        /* status of the analysis, once its answers are there */
    const char *message;             /* message of a server for that status; NULL: none */
    enum tsp_code code;              /* code of the message */
    /* Progress of the servers that still work; stated: each of them reports its progress. */
    struct { uint64_t done, of; bool stated; } progress;
    size_t gathered;                 /* bytes of the analysis' answers */
    uint64_t held;                   /* peak bytes of the answers to one question */
    bool replied;
};

/* Notes that the server's data are missing in the answer; once for each server. */
void coord_note_missing(struct coord_outcome *, struct node *, const char *why);
/* Notes that part of the server's data is missing; once for each server. */
void coord_note_partial(struct coord_outcome *, struct node *, const char *why);
/* Notes the missing sources that the server reports in the member `hosts` of its answer. Returns the number of complete
 * hosts; 1 if not stated. */
uint64_t coord_note_reported(struct coord_outcome *, const struct node *, struct slice answer);
/* Writes the member `hosts` of an answer, with its missing sources. */
void coord_put_hosts(const struct coord_outcome *, struct json *, uint64_t complete);
/* Returns `what` (NULL: nothing) followed by the missing sources: "Completed; without db: no answer in 3.0 s". NULL: no
 * text at all. */
const char *coord_missing_text(const struct coord_outcome *, const char *what);

/* ---- answers ---- */

enum coord_fate {
    COORD_GOOD,                      /* answer to merge */
    COORD_REFUSED,                   /* answer with a status other than 200; `root` is its body, if valid */
    COORD_MISSING                    /* answer missing or invalid */
};
/* Answer of a server, or of a virtual node. */
struct coord_answer {
    struct node *node;
    enum coord_fate fate;
    int http_status;
    struct slice root;               /* whole answer */
    struct slice model;              /* model of an answer in an envelope; at NULL for JSON null */
    struct text *text;               /* text that both borrow; NULL: freed with the arena */
};
/* Answers to one question. They do not move, and live in the request's arena. */
struct coord_answers {
    struct coord_call *call;
    struct coord_answer *v; size_t n, most;
    struct coord_gather *gather;     /* requests on their way; NULL: answers of elsewhere */
};
/* Returns the code of a server's answer; NONE: missing or unknown. */
enum tsp_code coord_code(struct slice answer);
/* Returns whether the server refused because the question fits several of its threads. */
bool coord_answer_is_ambiguous(const struct coord_answer *);
/* Returns whether the server refused because it does not know the output. */
bool coord_answer_is_unknown(const struct coord_answer *);
/* Drops an invalid answer and notes the server as missing. */
void coord_answer_spoil(struct coord_answers *, struct coord_answer *, const char *why);
/* Frees a merged answer: the output needs the memory. */
void coord_answer_release(struct coord_answer *);
/* Returns whether an answer has a model. */
bool coord_answers_some(const struct coord_answers *);
/* Writes the models' members but `array`: those of the first model. */
void coord_put_rest(const struct coord_answers *, struct json *, const char *array);
/* Sorts the answers by their status: sets their models, and the outcome of the call. False: no server has data. */
bool coord_outcome_take(struct coord_answers *);
/* Writes the members of an answer that follow its model. */
void coord_put_outcome(const struct coord_outcome *, struct json *);

#endif
