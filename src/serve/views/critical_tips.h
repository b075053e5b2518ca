/* SPDX-License-Identifier: MIT */
/* Private to views: tooltips of a critical path. */
#ifndef WEFT_VIEWS_CRITICAL_TIPS_H
#define WEFT_VIEWS_CRITICAL_TIPS_H

#include "views/critical_paths.h"

/* Category of annotations, and tooltip line, for unexplained parts. */
#define CRITICAL_UNEXPLAINED "Unexplained"
/* Share of the path, as "12.34 %". */
const char *critical_share(struct arena *, const struct path *, int64_t ns);
/* Writes the requested tooltip: of a segment, of a row while the path is elsewhere, or of an arrow. */
void critical_write_tooltip(struct views *, const struct tsp_query *, const struct critical_view *,
    struct tsp_answer *);

#endif
