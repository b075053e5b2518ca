/* SPDX-License-Identifier: MIT */
/* Private to the room: packets of a host that clocks need, as a packed file. It goes over the bus in parts: one message
 * would be too long for a host with much traffic. */
#ifndef WEFT_CLUSTER_EXTRACTS_H
#define WEFT_CLUSTER_EXTRACTS_H

#include "cluster/protocol.h"

/* ---- side of the host's node ---- */

/* Latest extracts. A client may have stopped waiting, and ask again. */
struct extracts;
struct extracts *cluster_extracts_new(void);
void cluster_extracts_free(struct extracts *);
/* Writes the part asked for. Extracts are made in the order of questions. Thread-safe. */
int cluster_extracts_answer(struct extracts *, const struct flow_store *, const struct extract_question *,
    struct text *out, struct err *e);

/* ---- side of the clock leader ---- */

/* Parts received so far, in order. Zeroed: none yet. */
struct coming {
    int fd;                  /* descriptor + 1; 0: none */
    uint64_t serial, total, got, question;
};
/* ERR_FORMAT: not the next part; begin again. ERR_LIMIT. */
int cluster_incoming_take(struct coming *, const void *bytes, size_t n, struct err *e);
static inline bool coming_is_whole(const struct coming *c) { return c->fd && c->got == c->total; }
/* Opens the received file, with full checks of its untrusted contents. */
int cluster_incoming_open(const struct coming *, struct flow_store **out, struct err *e);
void cluster_incoming_fini(struct coming *);

#endif
