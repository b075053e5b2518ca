/* SPDX-License-Identifier: MIT */
/* Private to the room: the answer cache: what nodes answered about paths. A window that somebody asked for
 * before, in the same words, is answered from here. What an answer depends on is part of the words: the hosts of the
 * node and what their traces were when it answered, their clock maps, and how it was to walk. So nothing here ever
 * becomes wrong; what nobody asks for any more makes room. Any number of threads. */
#ifndef WEFT_CLUSTER_ANSWER_CACHE_H
#define WEFT_CLUSTER_ANSWER_CACHE_H

#include "cluster/membership.h"

struct cluster_answer_cache;
struct cluster_answer_cache *cluster_answer_cache_new(size_t most_bytes); /* of answers,
    with what tells them apart; 0: 64 MiB */
void cluster_answer_cache_free(struct cluster_answer_cache *);

/* How one node is asked. */
struct cluster_answer_scope {
    const struct cluster_membership *membership;
    const struct cluster_node_hosts *node_hosts; /* the node's hosts that it is asked about */
    uint64_t words;                 /* of what a request says before its windows */
};
struct cluster_answer_scope cluster_answer_scope_of(const struct cluster_membership *,
    const struct cluster_node_hosts *node_hosts,
    const struct path_known *);

/* Adds the cached answers to these windows. Moves the windows without one to the front, and returns their number. A
 * cache that is NULL is empty. */
size_t cluster_answer_cache_find(struct cluster_answer_cache *, const struct cluster_answer_scope *,
    struct path_known *, struct path_window *, size_t n);
/* An answer that a node gave: a state (cluster_state), a fragment. It was understood. */
void cluster_answer_cache_add(struct cluster_answer_cache *, const struct cluster_answer_scope *,
    const struct path_window *, size_t n, uint64_t state,
    const void *fragment, size_t size);

#endif
