/* SPDX-License-Identifier: MIT */
/* Private to the room: a node takes traces to index from the queue of work, below the directory that it shares. */
#ifndef WEFT_SHARE_WORKER_H
#define WEFT_SHARE_WORKER_H

#include "share/shared.h"

struct worker;
struct share_worker_options {
    const char *cluster, *node;
    const char *root;            /* a real path */
    const char *store;           /* as index_options.store, or NULL */
    void (*tell)(void *arg, const char *what); /* or NULL */
    void *arg;
};
/* Strings are borrowed. */
int share_worker_start(struct bus *, const struct share_worker_options *, struct worker **out, struct err *e);
/* What is under way goes back to the queue, where another node takes it. NULL-safe. */
void share_worker_stop(struct worker *);

#endif
