/* SPDX-License-Identifier: MIT */
/* Private to views: what the tooltips of a critical path say. */
#ifndef WEFT_VIEWS_CRITICAL_TIPS_H
#define WEFT_VIEWS_CRITICAL_TIPS_H

#include "views/critical_paths.h"

/* The category of annotations, and the line of tooltips, of what could not be explained. */
#define CRITICAL_UNEXPLAINED "Unexplained"
/* The share of the path, as "12.34 %". */
const char *critical_share(struct arena *, const struct path *, int64_t ns);
/* The tooltip that the query asks for: of a segment, of a row where the path is elsewhere, or of an arrow. */
void critical_write_tooltip(struct views *, const struct tsp_query *, const struct critical_view *,
    struct tsp_answer *);

#endif
