/* SPDX-License-Identifier: MIT */
/* Private to coord: questions whose answers are large take turns, so that those that are being merged find memory. How
 * large an answer will be nobody says before; questions of one kind are taken to be like those of it lately. */
#ifndef WEFT_COORD_TURNS_H
#define WEFT_COORD_TURNS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "http/http.h"

struct turns;
/* answers_bytes: that answers of servers may hold together. Half of it is given out by turns; the other half is for
 * answers that turn out larger, and for small questions, which wait for nobody. */
struct turns *turns_new(uint64_t answers_bytes);
void turns_free(struct turns *);

struct coord_turn { uint64_t bytes; size_t kind; };
/* Waits, in the order of coming, until there is room for an answer like those of its kind (a hash) lately, or nobody
 * else has any; half a minute at most, since others may be held up by a server that hangs: what does not fit is refused
 * later. False: nobody waits for the answer any more. */
bool turn_begin(struct turns *, const struct http_request *, uint64_t kind, struct coord_turn *);
/* To be called once for each begun. held: bytes that the servers' answers took at most; whole: there was no more. */
void turn_end(struct turns *, const struct coord_turn *, uint64_t held, bool whole);

#endif
