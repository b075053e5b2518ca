/* SPDX-License-Identifier: MIT */
/* Private to the room: what each host can have sent: on which flows (flow_sent_hashes), and under other addresses
 * (flow_routes), in a table by host: written by the nodes that have it, and read only by who meets a message from an
 * address that nobody owns, or several do. */
#ifndef WEFT_CLUSTER_ROUTES_H
#define WEFT_CLUSTER_ROUTES_H

#include "cluster/membership.h"
#include "cluster/trace_set.h"

struct bus; struct bus_table;

struct routes {
    uint64_t hash;           /* of the host, as it was */
    bool all, all_sent;      /* they are all here; false: it is not known which there are */
    const struct flow_route *v; size_t n;
    const uint32_t *sent; size_t n_sent;
};
/* What it points to lives in the arena. ERR_FORMAT. */
int cluster_routes_read(struct arena *, const void *bytes, size_t n, struct routes *out);

/* What a node has said of its hosts. */
struct routes_published;
struct routes_published *cluster_routes_published_new(void);
void cluster_routes_published_free(struct routes_published *);
/* Says what has changed; `anew`: all, since the table may have lost it. Of what cannot be said everybody thinks that it
 * may be. */
void cluster_routes_publish(struct routes_published *, struct bus_table *, const struct cluster_trace_set *, bool anew);
/* Whether the table still has all that was said, as far as the broker answers. cluster_routes_publish repeats what is
 * lost. */
bool cluster_routes_are_in_table(struct routes_published *, struct bus_table *, const struct cluster_trace_set *);

/* What was said of the hosts of a membership. */
struct routes_book;
/* Of hosts of which nothing is known, or what they were before they grew, the book knows nothing. Never fails, but not
 * all may be *read. */
struct routes_book *cluster_routes_book_read(struct bus *, const char *cluster, const struct cluster_membership *,
    bool *read);
void cluster_routes_book_free(struct routes_book *);
/* Can the host have sent it under other addresses? On just its flow, or under others? True where the book does not
 * know. */
bool cluster_routes_book_lead(const struct routes_book *, size_t host, const struct flow_message_key *);
bool cluster_routes_book_may_send(const struct routes_book *, size_t host, const struct flow_message_key *);

#endif
