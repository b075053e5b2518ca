/* SPDX-License-Identifier: MIT */
/* Private to tsp: parsing of an operation's query. */
#ifndef WEFT_TSP_QUERY_H
#define WEFT_TSP_QUERY_H

#include "tsp/provider.h"

/* query.c: parses what q->operation needs from q->parameters. Returns NULL, or the title of a 400. */
const char *tsp_query_parse(struct tsp_query *);
/* NULL: nothing to filter by. To be freed with tsp_filter_fini, which accepts NULL. */
struct tsp_filter *tsp_filter_compile(json_t *map, struct arena *);
void tsp_filter_fini(const struct tsp_filter *);

#endif
