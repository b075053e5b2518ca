/* Private to views: making the views that critical_paths.h hands out. */
#ifndef WEFT_VIEWS_CRITICAL_VIEW_H
#define WEFT_VIEWS_CRITICAL_VIEW_H

#include <stdatomic.h>

#include "views/critical_paths.h"

/* Takes the path over. hosts: number in the experiment by number in the paths; borrowed while the view lives. */
struct critical_view *critical_view_new(const struct views *, const size_t *hosts, const struct path_source *,
    struct path *);
void critical_view_free(struct critical_view *);

/* The path; NULL with an error. only: the one host (of the paths' numbering) that is looked at; what came from others
 * is a gap, pending, that names the host. Once *stop is set the walk ends soon, with what it has by then. */
enum { CRITICAL_ALL_HOSTS = -1 };
struct critical_view *critical_walk(const struct views *, const size_t *hosts,
    const struct critical_question *, int32_t only,
    const atomic_bool *stop, struct err *);

#endif
