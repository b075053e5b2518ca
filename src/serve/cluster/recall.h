/* SPDX-License-Identifier: MIT */
/* Private to the room: answers of nodes about paths, kept for questions to come. A window that somebody asked for
 * before, in the same words, is answered from here. What an answer depends on is part of the words: the hosts of the
 * node and what their traces were when it answered, their clock maps, and how it was to walk. So nothing here ever
 * becomes wrong; what nobody asks for any more makes room. Any number of threads. */
#ifndef WEFT_CLUSTER_RECALL_H
#define WEFT_CLUSTER_RECALL_H

#include "cluster/membership.h"

struct recall;
struct recall *recall_new(size_t most_bytes); /* of answers, with what tells them apart; 0: 64 MiB */
void recall_free(struct recall *);

/* How one node is asked. */
struct recall_scope {
    const struct cluster_membership *membership;
    const struct cluster_node_hosts *node_hosts; /* the node's hosts that it is asked about */
    uint64_t words;                 /* of what a request says before its windows */
};
struct recall_scope recall_scope_of(const struct cluster_membership *, const struct cluster_node_hosts *node_hosts,
    const struct path_known *);

/* Adds what is kept of the answers to these windows. Those that nothing is kept of are moved to the front: their
 * number. Nothing is kept in a recall that is NULL. */
size_t recall_answer(struct recall *, const struct recall_scope *, struct path_known *, struct path_window *, size_t n);
/* An answer that a node gave: a state (cluster_state), a fragment. It was understood. */
void recall_keep(struct recall *, const struct recall_scope *, const struct path_window *, size_t n, uint64_t state,
    const void *fragment, size_t size);

#endif
