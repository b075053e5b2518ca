/* Private to tsp: making the views that critical_paths.h hands out. */
#ifndef WEFT_TSP_CRITICAL_VIEW_H
#define WEFT_TSP_CRITICAL_VIEW_H

#include "tsp/critical_paths.h"

/* Takes the path over. hosts: number in the experiment by number in the paths; borrowed while the view is made. */
struct critical_view *critical_view_new(const struct tsp_experiment *, const size_t *hosts, const struct path_source *, struct path *);
void critical_view_free(struct critical_view *);

#endif
