/* SPDX-License-Identifier: MIT */
/* Private to the room: the worker of a node, which takes traces to index from the work queue, below its shared
 * directory. */
#ifndef WEFT_SHARE_WORKER_H
#define WEFT_SHARE_WORKER_H

#include "share/shared.h"

struct worker;
struct share_worker_options {
    const char *cluster, *node;
    const char *root;            /* real path */
    const char *store;           /* see index_options.store; or NULL */
    void (*tell)(void *arg, const char *what); /* callback for messages to users, or NULL */
    void *arg;
};
/* Strings are borrowed. */
int share_worker_start(struct bus *, const struct share_worker_options *, struct worker **out, struct err *e);
/* Stops it. Items in progress return to the queue, for another node. NULL-safe. */
void share_worker_stop(struct worker *);

#endif
