/* SPDX-License-Identifier: MIT */
/* Private to coord: one clock over all servers. Those with a clock of their own are asked by it, and what they answer
 * is by everybody's. */
#ifndef WEFT_COORD_TIMES_H
#define WEFT_COORD_TIMES_H

#include "coord/call.h"

/* A server's own time as clients see it. */
int64_t time_shown(const struct node *, int64_t own);
/* The same of a sample, which is where it was asked for though no time of the server's clock may be exactly that. */
int64_t sample_shown(const struct coord_call *, const struct node *, int64_t own);
/* The first time of its own that is not before t. */
int64_t time_asked_from(const struct node *, int64_t t);
/* Puts times of its own for all times in parameters (a copy that nobody else has; what it holds is replaced). */
void times_ask(struct coord_call *, const struct node *, json_t *parameters);

/* Writes the value of a member that is a time, or holds times: start, end, time, its duration, states, values of an
 * axis of time. False: it is none, and nothing is written. */
bool put_times(struct coord_call *, struct json *, const struct node *, struct slice object, struct slice key,
    struct slice value);
/* A number, or a list of numbers, that are times. */
void put_time_numbers(struct json *, const struct node *, struct slice value);
/* Such a text: "1795225075376113629", "[1795225075376113629,1795225075376113630]", "2026-11-21 01:37:53.184 022 483",
 * and of times without a date those near `own` (NULL: none of these). What is none of this is written as it stands. */
void put_time_text(struct json *, const struct node *, struct slice text, const int64_t *own);
/* What a client looks for in such texts, where it is a whole time of these forms; else, and of servers without a clock
 * of their own, as it stands. */
const char *time_text_asked(struct arena *, const struct node *, const char *pattern);

#endif
