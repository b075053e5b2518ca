/* Private to path: which host of several sent a message, as their stores tell. Who can have sent at all is decided by
 * addresses; the receive is then asked for as its key alone. */
#ifndef WEFT_PATH_SENDERS_H
#define WEFT_PATH_SENDERS_H

#include "clock/clock.h"
#include "flow/flow.h"
#include "path/path.h"

/* What is known of a flow that some host received. */
struct sender_peer {
    const char *label, *address, *unsure; /* unsure: the label where several sends fit */
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
};

struct path_senders;
/* The hosts are borrowed; of their stores nothing is read before the first question. */
struct path_senders *senders_new(const struct path_local_host *hosts, size_t n);
void senders_free(struct path_senders *);
/* The send that explains a receive of that host; false: nobody has it. *peer is set in any case; what it points to
 * stays. Any number of threads may ask. */
bool senders_find(struct path_senders *, int32_t host, const struct flow_packet *receive, struct sender *out,
    struct sender_peer *peer);

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
