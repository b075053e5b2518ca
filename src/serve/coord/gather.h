/* SPDX-License-Identifier: MIT */
/* Private to coord: scatter and gather: one question to several servers at once. */
#ifndef WEFT_COORD_GATHER_H
#define WEFT_COORD_GATHER_H

#include "coord/call.h"

void coord_gather_begin(struct coord_answers *, struct coord_call *, size_t most);
/* Adds a request. path: below /tsp/api. json: body in the arena; NULL: none. A server that is away is not asked. */
struct coord_answer *coord_gather_ask(struct coord_answers *, struct node *, const char *method, const char *path,
    const char *json);
/* Waits until each server has answered or failed. Notes missing sources in the call. False: the client is gone. */
bool coord_gather_wait(struct coord_answers *);
/* Frees the answers. */
void coord_gather_end(struct coord_answers *);
/* Begins, asks all members, and waits. Call coord_gather_end in any case. */
bool coord_gather_members(struct coord_answers *, struct coord_call *, const char *method, const char *path,
    const char *json);
/* Asks all members for a tree, and sets the models. Call coord_gather_end in any case. False: the client is gone. */
bool coord_gather_trees(struct coord_answers *, struct coord_call *, const char *path);
/* Sends the refusal when there is nothing to merge: the first one unchanged (ambiguous ones first), or the missing
 * sources. */
void coord_gather_refuse(struct coord_answers *);
/* Sends the refusal; servers that are away may be its cause. away: addition to its detail; NULL: none. */
void coord_gather_refuse_while(struct coord_answers *, const char *away);

/* ---- analyses: answers in an envelope ---- */

/* Calls coord_outcome_take. False: there is nothing to merge, and an answer was sent. */
bool coord_envelopes_open(struct coord_answers *);
/* Begins an answer up to its model, which the caller writes next. The text counts towards the memory limit. */
struct json coord_envelope_begin(struct coord_call *, struct text *);
/* Writes the remaining members and sends the answer. */
void coord_envelope_send(struct coord_call *, struct text *);
void coord_envelope_send_null(struct coord_call *, enum coord_status, const char *message);
/* Sends what a merge writes as model. */
typedef void coord_merge(struct coord_answers *, struct json *);
void coord_envelope_merge(struct coord_answers *, coord_merge *);

#endif
