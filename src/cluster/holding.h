/* Private to the room: the traces of a node as they are at one time, opened. Answers are made of one holding, whatever
 * comes meanwhile. */
#ifndef WEFT_CLUSTER_HOLDING_H
#define WEFT_CLUSTER_HOLDING_H

#include "cluster/protocol.h"
#include "index/index.h"

struct holding;
/* Takes the experiment. */
struct holding *holding_new(struct experiment *);
struct holding *holding_ref(struct holding *);
void holding_unref(struct holding *);
/* What is said of it; borrowed from the holding. */
size_t holding_hosts(const struct holding *, const struct card_host **out);
/* ERR_LOST: files were cut off meanwhile; what was answered must not be sent. */
int holding_intact(const struct holding *, struct err *e);

/* Answers: what follows the kind of a question, and what follows in the answer. Any number of threads. */
int holding_answer(struct holding *, enum cluster_question, const void *bytes, size_t n, struct text *out,
    struct err *e);

#endif
