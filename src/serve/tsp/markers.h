/* SPDX-License-Identifier: MIT */
/* Private to tsp: marker sets, configurations of the server whose contents viewers draw over every chart. */
#ifndef WEFT_TSP_MARKERS_H
#define WEFT_TSP_MARKERS_H

#include "tsp/model.h"

/* Writes the annotations of a marker set, by category. */
void tsp_markers_write(struct tsp_server *, const char *set, const struct tsp_query *, struct tsp_answer *);
/* Writes the names of its categories. False: there is no such set. */
bool tsp_markers_write_category(struct tsp_server *, const char *set, struct json *open_array);

#endif
