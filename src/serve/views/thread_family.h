/* SPDX-License-Identifier: MIT */
/* Private to views: parents and children among the threads of a host, as recorded in its trace. */
#ifndef WEFT_VIEWS_THREAD_FAMILY_H
#define WEFT_VIEWS_THREAD_FAMILY_H

#include "views/view.h"

/* parents: row of the parent by row, or -1 (the host). order: rows by tid and begin. seen: rows in display order when
 * all are expanded, so that clients can show the first rows while others arrive. */
struct thread_family {
    int32_t *parents, *order, *seen;
    struct graph_row *rows;
    int32_t n;
};
void thread_family_init(struct thread_family *, const struct view_host *);
void thread_family_fini(struct thread_family *);

#endif
