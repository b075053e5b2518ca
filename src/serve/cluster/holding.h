/* SPDX-License-Identifier: MIT */
/* Private to the room: the traces of a node as they are at one time, opened. Answers are made of one holding, whatever
 * comes meanwhile. */
#ifndef WEFT_CLUSTER_HOLDING_H
#define WEFT_CLUSTER_HOLDING_H

#include "cluster/node_parts.h"
#include "cluster/protocol.h"
#include "index/index.h"

struct holding;
/* Takes the experiment; NULL: there are no traces. mover: knows which traces were received, and when; or NULL. */
struct holding *holding_new(struct experiment *, const struct cluster_moving *, const void *mover);
const struct experiment *holding_experiment(const struct holding *);
struct holding *holding_ref(struct holding *);
void holding_unref(struct holding *);
/* What is said of it; borrowed from the holding. */
size_t holding_hosts(const struct holding *, const struct cluster_entry_host **out);
/* Of one of them: as flow_routes and flow_sent_hashes; none without packets. */
size_t holding_routes(const struct holding *, size_t host, size_t most, struct flow_route **out);
size_t holding_sent_hashes(const struct holding *, size_t host, size_t most, uint32_t **out);
/* ERR_LOST: files were cut off meanwhile; what was answered must not be sent. */
int holding_intact(const struct holding *, struct err *e);

/* Answers: what follows the kind of a question, and what follows in the answer. ERR_TIMEOUT: it would take longer than
 * to the deadline (monotonic). Any number of threads. */
int holding_answer(struct holding *, enum cluster_question, const void *bytes, size_t n, int64_t deadline_ns,
    struct text *out, struct err *e);

#endif
