/* SPDX-License-Identifier: MIT */
/* Private to path: which host of several sent a message, as their stores tell. Who can have sent at all is decided by
 * addresses; the receive is then asked for as its key alone. */
#ifndef WEFT_PATH_SENDERS_H
#define WEFT_PATH_SENDERS_H

#include "clock/clock.h"
#include "flow/flow.h"
#include "path/path.h"
#include "path/remote.h"

struct arena;

/* How a message on a flow is called: its source; source and destination; that, where several sends fit. */
struct sender_labels { const char *address, *label, *unsure; };
struct sender_labels sender_labels(struct arena *, const struct flow_key *);

/* What is known of a flow that some host received. */
struct sender_peer {
    struct sender_labels labels;
    int32_t *senders; /* hosts that may have sent on it, the likeliest first */
    /* The first `sure` own the address, or sent on just that flow; those up to `likely` sent to the destination. */
    size_t sure, likely, n;
    bool found;
    uint32_t failures;
};

/* Who sent a message, and how sure that is. */
struct sender {
    int32_t host;
    enum flow_answer answer;
    struct flow_packet send;
    int64_t sent;          /* on the reference clock */
};

struct path_senders;
/* The hosts are borrowed; of their stores nothing is read before the first question. */
struct path_senders *senders_new(const struct path_local_host *hosts, size_t n);
void senders_free(struct path_senders *);
/* The send that explains a receive of that host; false: nobody has it. *peer is set in any case; what it points to
 * stays. Any number of threads may ask. */
bool senders_find(struct path_senders *, int32_t host, const struct flow_packet *receive, struct sender *out,
    struct sender_peer *peer);

/* Who may have sent on the flow that the host received. */
void senders_peer(struct path_senders *, int32_t host, uint32_t flow, struct sender_peer *out);
/* Those of a joined source. */
struct path_senders *path_local_senders(const struct path_local *);

/* ---- one host at a time ---- */

/* What came, told so that any host can look for the send. `to`: the receiver, number `host`. */
void sender_message_of(const struct path_local_host *to, int32_t host, const struct flow_packet *receive,
    struct path_message *out);
/* Did that host, number `host`, send it? */
bool sender_ask(const struct path_local_host *, int32_t host, const struct path_message *, struct sender *out);
/* Does `a` explain better than `b` the message that came at `came`? Of hosts whose times can be compared or not. */
bool sender_is_better(int64_t came, const struct sender *a, const struct sender *b, bool boots_of_same,
    bool comparable);
/* The row that sent it. */
int32_t sender_row(const struct sender *);
/* Did the host lose events in the second before the message came? */
bool sender_lost(const struct path_local_host *, const struct path_message *);

/* Did the host lose events within [begin, end] of its own clock? */
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

/* Can times of the two hosts be compared? */
static inline bool path_comparable(const struct path_local_host *a, const struct path_local_host *b)
{
    return a == b || !a->map || !b->map || (a->map->n && b->map->n && a->map->island == b->map->island);
}

#endif
