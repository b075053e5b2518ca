/* SPDX-License-Identifier: MIT */
/* Private to views: making the views that critical_paths.h hands out. */
#ifndef WEFT_VIEWS_CRITICAL_VIEW_H
#define WEFT_VIEWS_CRITICAL_VIEW_H

#include <stdatomic.h>

#include "views/critical_paths.h"

/* Takes the path over. hosts: number in the experiment by number in the paths. */
struct critical_view *critical_view_new(const struct views *, const size_t *hosts, size_t n_hosts,
    const struct path_source *, struct path *);
/* The same of a path that was asked for elsewhere. */
struct critical_view *critical_view_of_far(struct critical_paths *, const struct views *, struct views_far_path *);
/* Of one that is being found, as it is known now. The path is taken over; all else that is lent is copied. */
struct critical_view *critical_view_so_far(struct critical_paths *, const struct views *, struct views_far_path *);
void critical_view_free(const struct views *, struct critical_view *);
int64_t critical_first_keyed_entry(const struct views *);

/* The path; NULL with an error. only: the one host (of the paths' numbering) that is looked at; what came from others
 * is a gap, pending, that names the host. ASKING_FAR: all hosts that are here; what came from elsewhere is pending.
 * Once *stop is set the walk ends soon, with what it has by then. */
enum { CRITICAL_ALL_HOSTS = -1, CRITICAL_ASKING_FAR = -2 };
struct critical_view *critical_walk(const struct views *, const size_t *hosts, size_t n_hosts,
    const struct critical_question *, int32_t only, const atomic_bool *stop, struct err *);

#endif
