/* SPDX-License-Identifier: MIT */
/* Private to views: names on a partial path: a source of names alone, which stays valid when the path's own source
 * changes. */
#ifndef WEFT_VIEWS_CRITICAL_NAMES_H
#define WEFT_VIEWS_CRITICAL_NAMES_H

#include "views/views.h"

struct critical_names;
/* Copies the names of all machines, and of the rows: on the path and at its end. */
struct critical_names *critical_names_new(const struct views_far_path *);
void critical_names_free(struct critical_names *); /* accepts NULL */
const struct path_source *critical_names_source(const struct critical_names *); /* offers host_name and row_name */

#endif
