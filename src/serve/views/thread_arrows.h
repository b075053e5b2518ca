/* SPDX-License-Identifier: MIT */
/* Private to views: arrows of Thread Status: who ran next on a CPU. */
#ifndef WEFT_VIEWS_THREAD_ARROWS_H
#define WEFT_VIEWS_THREAD_ARROWS_H

#include "views/view.h"

#define THREAD_ARROW "CPU transition"
/* Those of one host's CPUs that reach into the query's range: all, or samples where they are too many. */
void thread_arrows_write(const struct view_host *, const struct tsp_query *, struct tsp_answer *);

#endif
