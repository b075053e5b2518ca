/* SPDX-License-Identifier: MIT */
/* Private to the room: hosts that can have sent a message, judged by the addresses that each reports to have had and to
 * have sent to. Reads no flow. */
#ifndef WEFT_PATH_CANDIDATES_H
#define WEFT_PATH_CANDIDATES_H

#include "base/mem.h"
#include "flow/flow.h"

/* Hosts, the most likely first. The first `sure` own the address, or sent on that very flow; those up to `likely` sent
 * to the destination. */
struct candidates { VEC(int32_t) hosts; size_t sure, likely; };

struct candidate_book;
struct candidate_book *path_candidate_book_new(void);
void path_candidate_book_free(struct candidate_book *);
/* Adds the next host: its own addresses, and those that it sent to; both are copied. */
void path_candidate_book_add(struct candidate_book *, const struct flow_address *own, size_t n_own,
    const struct flow_address *peers, size_t n_peers);
/* A host without packets: never a candidate. */
void path_candidate_book_skip(struct candidate_book *);
/* Finds candidates for messages on that flow that arrived at `host`. may_send: called for hosts that report no
 * addresses; returns whether they sent on it. Not thread-safe. The caller frees the list with vec_free. */
void path_candidates_find(struct candidate_book *, int32_t host, const struct flow_key *,
    bool (*may_send)(void *arg, int32_t host, const struct flow_key *), void *arg, struct candidates *out);

#endif
