/* SPDX-License-Identifier: MIT */
/* Private to the room: which hosts can have sent a message at all, by what each tells of the addresses that it had and
 * sent to. No flow is read. */
#ifndef WEFT_PATH_CANDIDATES_H
#define WEFT_PATH_CANDIDATES_H

#include "base/mem.h"
#include "flow/flow.h"

/* The likeliest first. The first `sure` own the address, or sent on just that flow; those up to `likely` sent to the
 * destination. */
struct candidates { VEC(int32_t) hosts; size_t sure, likely; };

struct candidate_book;
struct candidate_book *candidate_book_new(void);
void candidate_book_free(struct candidate_book *);
/* The next host: addresses of its own, and addresses that it sent to; copied. */
void candidate_book_add(struct candidate_book *, const struct flow_address *own, size_t n_own,
    const struct flow_address *peers, size_t n_peers);
/* A host without packets: never a candidate. */
void candidate_book_skip(struct candidate_book *);
/* Of messages on that flow that came to `host`. Asked of hosts that tell of no addresses: did they send on it? Not
 * thread-safe. The list is the caller's, to be freed with vec_free. */
void candidates_find(struct candidate_book *, int32_t host, const struct flow_key *,
    bool (*may_send)(void *arg, int32_t host, const struct flow_key *), void *arg, struct candidates *out);

#endif
