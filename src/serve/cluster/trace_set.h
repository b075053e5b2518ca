/* SPDX-License-Identifier: MIT */
/* Private to the room: a trace set: the traces of a node as they are at one time, opened. Each answer is made from one
 * set, whatever changes meanwhile. */
#ifndef WEFT_CLUSTER_TRACE_SET_H
#define WEFT_CLUSTER_TRACE_SET_H

#include "cluster/node_parts.h"
#include "cluster/protocol.h"
#include "index/index.h"

struct cluster_trace_set;
/* Takes over the experiment; NULL: no traces. mover: knows which traces were received, and when; or NULL. */
struct cluster_trace_set *cluster_trace_set_new(struct experiment *, const struct cluster_moving *, const void *mover);
const struct experiment *cluster_trace_set_experiment(const struct cluster_trace_set *);
struct cluster_trace_set *cluster_trace_set_ref(struct cluster_trace_set *);
void cluster_trace_set_unref(struct cluster_trace_set *);
/* The hosts as the registry entry describes them; borrowed. */
size_t cluster_trace_set_hosts(const struct cluster_trace_set *, const struct cluster_entry_host **out);
/* Return the results of flow_routes and flow_sent_hashes for a host; none without packets. */
size_t cluster_trace_set_routes(const struct cluster_trace_set *, size_t host, size_t most, struct flow_route **out);
size_t cluster_trace_set_sent_hashes(const struct cluster_trace_set *, size_t host, size_t most, uint32_t **out);
/* ERR_LOST: files were cut off meanwhile, and answers must not be sent. */
int cluster_trace_set_intact(const struct cluster_trace_set *, struct err *e);

/* Answers a question: bytes behind its kind, and behind the answer's. ERR_TIMEOUT: it would last beyond the deadline
 * (monotonic). Thread-safe. */
int cluster_trace_set_answer(struct cluster_trace_set *, enum cluster_question, const void *bytes, size_t n,
    int64_t deadline_ns, struct text *out, struct err *e);

#endif
