/* SPDX-License-Identifier: MIT */
/* Private to path: finds which of several hosts sent a message, by their stores. Addresses decide who can have sent at
 * all; then the key of the receive is searched. */
#ifndef WEFT_PATH_SENDERS_H
#define WEFT_PATH_SENDERS_H

#include "clock/clock.h"
#include "flow/flow.h"
#include "path/path.h"
#include "path/remote.h"

struct arena;

/* Labels of a message on a flow: its source; source and destination; the latter if several sends match. */
struct path_sender_labels { const char *address, *label, *unsure; };
struct path_sender_labels path_sender_labels(struct arena *, const struct flow_key *);

/* Knowledge of a flow that some host received. */
struct sender_peer {
    struct path_sender_labels labels;
    int32_t *senders; /* hosts that may have sent on it, the most likely first */
    /* The first `sure` own the address, or sent on that very flow; those up to `likely` sent to the destination. */
    size_t sure, likely, n;
    bool found;
    uint32_t failures;
};

/* Sender of a message, and how certain it is. */
struct sender {
    int32_t host;
    enum flow_answer answer;
    struct flow_packet send;
    int64_t sent;          /* time of the send on the reference clock */
};

struct path_senders;
/* Borrows the hosts; reads nothing of their stores before the first question. */
struct path_senders *path_senders_new(const struct path_local_host *hosts, size_t n);
void path_senders_free(struct path_senders *);
/* Finds the send that matches a receive of that host; false: none. *peer is always set, and its contents stay valid.
 * Thread-safe. */
bool path_senders_find(struct path_senders *, int32_t host, const struct flow_packet *receive, struct sender *out,
    struct sender_peer *peer);

/* Possible senders on a flow that the host received. */
void path_senders_peer(struct path_senders *, int32_t host, uint32_t flow, struct sender_peer *out);
/* Senders of a joined source. */
struct path_senders *path_local_senders(const struct path_local *);

/* ---- single hosts ---- */

/* Describes a received message so that any host can search for the send. `to`: the receiver, number `host`. */
void path_sender_message_of(const struct path_local_host *to, int32_t host, const struct flow_packet *receive,
    struct path_message *out);
/* Returns whether that host, number `host`, sent it. */
bool path_sender_ask(const struct path_local_host *, int32_t host, const struct path_message *, struct sender *out);
/* Returns whether `a` explains the message that arrived at `came` better than `b`. comparable: whether times of both
 * hosts can be compared. */
bool path_sender_is_better(int64_t came, const struct sender *a, const struct sender *b, bool boots_of_same,
    bool comparable);
/* Row that sent it. */
int32_t path_sender_row(const struct sender *);
/* Returns whether the host lost events in the second before the message arrived. */
bool path_sender_lost(const struct path_local_host *, const struct path_message *);

/* Returns whether the host lost events within [begin, end] of its own clock. */
bool path_lost_within(const struct path_local_host *, int64_t begin, int64_t end);

/* ---- clocks of hosts ---- */

static inline int64_t path_to_reference(const struct path_local_host *h, int64_t t)
{
    return h->map ? clock_to_reference(h->map, t) : t;
}
static inline int64_t path_from_reference(const struct path_local_host *h, int64_t t)
{
    return h->map ? clock_from_reference(h->map, t) : t;
}

/* stacks.c: struct path_source's `stack` for a row of the host. */
bool path_local_stack(const struct path_local_host *, int32_t row, int64_t begin, int64_t end, bool waits,
    struct graph_stack *out);

/* Returns whether times of the two hosts can be compared. */
static inline bool path_comparable(const struct path_local_host *a, const struct path_local_host *b)
{
    return a == b || !a->map || !b->map || (a->map->n && b->map->n && a->map->island == b->map->island);
}

#endif
