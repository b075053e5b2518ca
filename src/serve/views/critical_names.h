/* SPDX-License-Identifier: MIT */
/* Private to views: the names of what is on a path that was looked at while it is being found: a source of names alone,
 * which stays when the path's own goes on. */
#ifndef WEFT_VIEWS_CRITICAL_NAMES_H
#define WEFT_VIEWS_CRITICAL_NAMES_H

#include "views/views.h"

struct critical_names;
/* Of all machines, and of the rows as they are called on the path and at its end. */
struct critical_names *critical_names_new(const struct views_far_path *);
void critical_names_free(struct critical_names *); /* or NULL */
const struct path_source *critical_names_source(const struct critical_names *); /* host_name and row_name */

#endif
