/* SPDX-License-Identifier: MIT */
/* Private to the room: the hosts of a cluster, as its nodes' cards tell. The same cards give the same roster,
 * whoever reads them, in whatever order they come. */
#ifndef WEFT_CLUSTER_ROSTER_H
#define WEFT_CLUSTER_ROSTER_H

#include "cluster/condition.h"

struct bus_table;

struct roster_host {
    const struct card_host *card; /* the newest, where several nodes have copies */
    const char *own_name;         /* without the number that its node gave it */
    const char *name, *clock_name; /* as index_name_hosts names them: clock_name is unique in the cluster */
    const char **nodes; size_t n_nodes; /* those that hold most first: lesser copies are behind them */
    size_t *cards;                /* theirs, */
    const struct card_host **copies; /* and what they say of the host */
    /* Snips stand behind these, n_snips of them, those of most time first; where nobody has all of the
     * trace, the first and its copies are the nodes. */
    size_t n_snips;
    const struct card_snip *used; /* what is asked about is a snip, this one; NULL: it is not */
    const char *whole;            /* then: the node that has more, here or not */
    char id[CLUSTER_ID];
};
struct roster {
    struct arena arena;
    const struct card *cards; size_t n_cards;    /* by name of the node */
    struct roster_card {      /* by card: hosts of which its node has all, and hashes of what it has of them */
        int32_t *hosts; uint64_t *hashes; size_t n;
    } *held;
    struct roster_host *hosts; size_t n_hosts;   /* in the order of an experiment of them all: by name, then begin,
                                                  * those without a kernel trace last */
    struct cluster_missing *missing; size_t n_missing; /* by node: who is not in the above, or not all of it */
    /* What nodes of earlier releases have that cannot be told from what others have, and is not among the hosts: their
     * keys are of a machine's boot, whatever the session. */
    struct roster_unclear { const char *node, *host; } *unclear; size_t n_unclear;
};
/* With what is missing. */
int roster_read(struct bus_table *, struct roster *out, struct err *e);
/* Of cards that live in its arena. */
void roster_make(struct roster *, struct card *cards, size_t n);
/* From now on the first snip of a host is what is asked about, and its copies, instead of its nodes; but of those hosts
 * (by number) of which somebody with all of the trace is there. Cards stay as they are. */
void roster_use_snips(struct roster *, const bool *there);
void roster_fini(struct roster *);
/* Does that copy (by number among nodes) lack something that the first has? */
bool roster_is_lesser(const struct roster_host *, size_t copy);

#endif
