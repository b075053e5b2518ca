/* SPDX-License-Identifier: MIT */
/* Private to the room: the packets of a host that clocks need, as a packed file that goes over the bus in parts: one
 * message would be too long for a host that talked much. */
#ifndef WEFT_CLUSTER_EXTRACTS_H
#define WEFT_CLUSTER_EXTRACTS_H

#include "cluster/protocol.h"

/* ---- who has the host ---- */

/* Extracts that were made last: who asks may have stopped waiting, and ask again. */
struct extracts;
struct extracts *cluster_extracts_new(void);
void cluster_extracts_free(struct extracts *);
/* Writes the part that is asked for; what is asked for first is made first. Any number of threads. */
int cluster_extracts_answer(struct extracts *, const struct flow_store *, const struct extract_question *,
    struct text *out, struct err *e);

/* ---- who gathers ---- */

/* Parts as they come, in order. Zeroed: none yet. */
struct coming {
    int fd;                  /* + 1; 0: none */
    uint64_t serial, total, got, question;
};
/* ERR_FORMAT: it is no part that goes on from there; begin again. ERR_LIMIT. */
int cluster_incoming_take(struct coming *, const void *bytes, size_t n, struct err *e);
static inline bool coming_is_whole(const struct coming *c) { return c->fd && c->got == c->total; }
/* Whatever was sent: it is checked as the file of a stranger. */
int cluster_incoming_open(const struct coming *, struct flow_store **out, struct err *e);
void cluster_incoming_fini(struct coming *);

#endif
