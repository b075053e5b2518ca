/* SPDX-License-Identifier: MIT */
/* Private to views: arrows of Thread Status, from each thread of a CPU to the next. */
#ifndef WEFT_VIEWS_THREAD_ARROWS_H
#define WEFT_VIEWS_THREAD_ARROWS_H

#include "views/view.h"

#define THREAD_ARROW "CPU transition"
/* Writes the arrows of one host's CPUs that overlap the query's range: all, or samples if there are too many. */
void thread_arrows_write(const struct view_host *, const struct tsp_query *, struct tsp_answer *);

#endif
