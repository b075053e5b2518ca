/* SPDX-License-Identifier: MIT */
/* Private to coord: one clock over all servers. Requests to a server with a clock of its own are translated to that
 * clock, and its answers to common times. */
#ifndef WEFT_COORD_TIMES_H
#define WEFT_COORD_TIMES_H

#include "coord/question.h"

/* Returns the common time of a server's own time. */
int64_t coord_time_shown(const struct node *, int64_t own);
/* Returns the common time of a sample: the requested one, even if no time of the server's clock is exactly equal to
 * it. */
int64_t coord_sample_shown(const struct coord_call *, const struct node *, int64_t own);
/* Returns the own time with the state at t, for servers with a clock of their own. */
int64_t coord_time_asked(const struct node *, int64_t t);
/* Returns the first own time that is not before t. */
int64_t coord_time_asked_from(const struct node *, int64_t t);

/* Writes the value of a member that is a time, or holds times: start, end, time, its duration, states, values of an
 * axis of time. False: it is none, and nothing is written. */
bool coord_put_times(struct coord_call *, struct json *, const struct node *, struct slice object, struct slice key,
    struct slice value);
/* Writes times: a number, or a list of numbers. */
void coord_put_time_numbers(struct json *, const struct node *, struct slice value);
/* Writes a text with times: "1795225075376113629", "[1795225075376113629,1795225075376113630]", "2026-11-21
 * 01:37:53.184 022 483", or a time without date near `own` (NULL: none of these). Other texts are written verbatim. */
void coord_put_time_text(struct json *, const struct node *, struct slice text, const int64_t *own);
/* Returns a search expression for such texts by the server's clock, if it is a whole time in one of these forms. Other
 * expressions, and those for servers without a clock of their own, are unchanged. */
const char *coord_time_text_asked(struct arena *, const struct node *, const char *pattern);

#endif
