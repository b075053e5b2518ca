/* SPDX-License-Identifier: MIT */
/* Private to the room: the answer cache, of nodes' answers about paths. It answers a window that was asked for before,
 * in the same words. The words include all that an answer depends on: the node's hosts and the state of their traces,
 * their clock maps, and the options of the walk. So entries never become wrong; unused ones are dropped for space.
 * Thread-safe. */
#ifndef WEFT_CLUSTER_ANSWER_CACHE_H
#define WEFT_CLUSTER_ANSWER_CACHE_H

#include "cluster/membership.h"

struct cluster_answer_cache;
struct cluster_answer_cache *cluster_answer_cache_new(size_t most_bytes); /* limit of all answers with their keys; 0: 64
                                                                           * MiB */
void cluster_answer_cache_free(struct cluster_answer_cache *);

/* Context of the questions to one node. */
struct cluster_answer_scope {
    const struct cluster_membership *membership;
    const struct cluster_node_hosts *node_hosts; /* the node's hosts in the question */
    uint64_t words;                 /* hash of a request without its windows */
};
struct cluster_answer_scope cluster_answer_scope_of(const struct cluster_membership *,
    const struct cluster_node_hosts *node_hosts,
    const struct path_known *);

/* Adds the cached answers to these windows. Moves windows without one to the front, and returns their number. A NULL
 * cache is empty. */
size_t cluster_answer_cache_find(struct cluster_answer_cache *, const struct cluster_answer_scope *,
    struct path_known *, struct path_window *, size_t n);
/* Adds a valid answer of a node: a state (cluster_state), a fragment. */
void cluster_answer_cache_add(struct cluster_answer_cache *, const struct cluster_answer_scope *,
    const struct path_window *, size_t n, uint64_t state,
    const void *fragment, size_t size);

#endif
