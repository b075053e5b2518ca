/* SPDX-License-Identifier: MIT */
/* Private to coord: what the request becomes for each server. */
#ifndef WEFT_COORD_QUESTION_H
#define WEFT_COORD_QUESTION_H

#include "coord/call.h"

/* Times sent to a server, by its clock, and the requested ones; both ascending. */
struct coord_sent_times { const int64_t *own, *asked; size_t n; };

/* Translates all times in parameters to the server's. The parameters are a copy not shared with anyone; nested values
 * are replaced. */
void coord_times_ask(struct coord_call *, const struct node *, json_t *parameters);
/* Return a body for the server, in the arena: parameters with times by its clock. body_with replaces values under up to
 * two keys, which may be NULL. */
const char *coord_body_of(struct coord_call *, const struct node *, json_t *parameters); /* parameters: any; modified */
const char *coord_body_with(struct coord_call *, const struct node *, const char *key, json_t *value,
    const char *key2, json_t *value2);
/* Returns whether the question names the thread's host. Without it, a number may fit threads of several machines. */
bool coord_question_names_host(json_t *question);

#endif
