/* SPDX-License-Identifier: MIT */
/* Private to views: construction of the struct critical_view that critical_paths.h hands out. */
#ifndef WEFT_VIEWS_CRITICAL_VIEW_H
#define WEFT_VIEWS_CRITICAL_VIEW_H

#include <stdatomic.h>

#include "views/critical_paths.h"

/* Takes ownership of the path. hosts: number in the experiment by number in the paths. */
struct critical_view *critical_view_new(const struct views *, const size_t *hosts, size_t n_hosts,
    const struct path_source *, struct path *);
/* View of a path that other nodes computed. */
struct critical_view *critical_view_of_far(struct critical_paths *, const struct views *, struct views_far_path *);
/* View of a partial path. Takes ownership of the path and copies all else, which is borrowed. */
struct critical_view *critical_view_so_far(struct critical_paths *, const struct views *, struct views_far_path *);
void critical_view_free(const struct views *, struct critical_view *);
int64_t critical_first_keyed_entry(const struct views *);

/* Returns the path; NULL with an error.
 *
 * only: the one host (number in the paths) that is walked; signals from other hosts become pending gaps that name the
 * host. CRITICAL_ASKING_FAR: all hosts that are here; signals from elsewhere become pending gaps.
 *
 * Ends soon after *stop is set, with the path found by then. */
enum { CRITICAL_ALL_HOSTS = -1, CRITICAL_ASKING_FAR = -2 };
struct critical_view *critical_walk(const struct views *, const size_t *hosts, size_t n_hosts,
    const struct critical_question *, int32_t only, const atomic_bool *stop, struct err *);

#endif
