/* SPDX-License-Identifier: MIT */
/* Private to the room: possible sends of each host: its flows (flow_sent_hashes), and translated addresses
 * (flow_routes). They are a table by host, written by nodes that have it. A client reads it only for a message from an
 * address that has no owner, or several. */
#ifndef WEFT_CLUSTER_ROUTES_H
#define WEFT_CLUSTER_ROUTES_H

#include "cluster/membership.h"
#include "cluster/trace_set.h"

struct bus; struct bus_table;

struct routes {
    uint64_t hash;           /* hash of the host when they were written */
    bool all, all_sent;      /* complete lists; false: it is unknown what is missing */
    const struct flow_route *v; size_t n;
    const uint32_t *sent; size_t n_sent;
};
/* Reads it; pointers lead into the arena. ERR_FORMAT. */
int cluster_routes_read(struct arena *, const void *bytes, size_t n, struct routes *out);

/* Routes that a node has published. */
struct routes_published;
struct routes_published *cluster_routes_published_new(void);
void cluster_routes_published_free(struct routes_published *);
/* Publishes changes; `anew`: all, since the table may have lost it. What cannot be published counts as possible for all
 * readers. */
void cluster_routes_publish(struct routes_published *, struct bus_table *, const struct cluster_trace_set *, bool anew);
/* Returns whether the table still has everything published, as far as the broker answers. cluster_routes_publish
 * repeats what is lost. */
bool cluster_routes_are_in_table(struct routes_published *, struct bus_table *, const struct cluster_trace_set *);

/* Routes of all hosts of a membership. */
struct routes_book;
/* Reads the book. It knows nothing of hosts without routes, or with routes from before they grew. Never fails; *read:
 * false if not everything could be read. */
struct routes_book *cluster_routes_book_read(struct bus *, const char *cluster, const struct cluster_membership *,
    bool *read);
void cluster_routes_book_free(struct routes_book *);
/* Return whether the host can have sent the message: under other addresses; on just its flow, or under other addresses.
 * True if the book does not know. */
bool cluster_routes_book_lead(const struct routes_book *, size_t host, const struct flow_message_key *);
bool cluster_routes_book_may_send(const struct routes_book *, size_t host, const struct flow_message_key *);

#endif
