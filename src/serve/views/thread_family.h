/* SPDX-License-Identifier: MIT */
/* Private to views: who is whose child among the threads of a host, as far as its trace says. */
#ifndef WEFT_VIEWS_THREAD_FAMILY_H
#define WEFT_VIEWS_THREAD_FAMILY_H

#include "views/view.h"

/* By row: the row of the parent, or -1 (the host); all rows by tid and begin; and in the order in which they are seen
 * when all are unfolded, so that a client can show the first ones while the others arrive. */
struct thread_family {
    int32_t *parents, *order, *seen;
    struct graph_row *rows;
    int32_t n;
};
void thread_family_init(struct thread_family *, const struct view_host *);
void thread_family_fini(struct thread_family *);

#endif
