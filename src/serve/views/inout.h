/* SPDX-License-Identifier: MIT */
/* Private to views: the In-and-out analysis. An event that matches one expression of the user opens a pair, an event
 * that matches another closes it.
 *
 * An experiment is read once per configuration, in the background. The results are cached while they are requested. */
#ifndef WEFT_VIEWS_INOUT_H
#define WEFT_VIEWS_INOUT_H

#include "views/event_table.h"

/* ---- configuration ---- */

#define INOUT_TYPE "org.eclipse.tracecompass.incubator.internal.inandout.core.config"
extern const char inout_schema[];        /* JSON schema of the parameters */

/* Returns NULL, or an error message in the arena; `out` is already freed then. */
const char *inout_config_parse(const struct event_table *, json_t *parameters, struct arena *,
    struct event_pair_config *out);

/* ---- background reading ---- */

struct inout_cache;                       /* cache of an experiment; thread-safe */
void *inout_cache_new(struct views *);
void inout_cache_free(struct inout_cache *); /* stops running readers */
const struct event_table *inout_table(const struct inout_cache *);
struct inout_entry;
struct inout_answer {
    const struct event_pairs *pairs;     /* NULL: not yet known, or failed */
    int status;                          /* TSP_RUNNING, TSP_COMPLETED, TSP_FAILED */
    const char *message;                 /* text in the arena or static; NULL: the default word */
    uint64_t read, of;                   /* events, while running */
    struct inout_entry *entry;
};
/* Returns the pairs that the parameters request; starts reading unless a reader runs. Waits a moment, while the client
 * is connected. The caller releases the answer. Memory: the request's arena. */
struct inout_answer inout_get(struct inout_cache *, json_t *parameters, struct http_request *);
void inout_release(struct inout_cache *, struct inout_answer *);
/* Removes a configuration: stops its reader, drops its results. */
void inout_forget_all(struct inout_cache *); /* drops results that are complete and not in use */
void inout_forget(struct inout_cache *, json_t *parameters);

/* View of a derived output. Its functions write the answer to each operation once pairs exist, called by inout_ask. */
typedef void inout_write(struct views *, const struct tsp_query *, const struct event_pairs *, struct tsp_answer *);
struct inout_view { struct view view; inout_write *tree, *states, *tooltip, *lines, *xy; };
view_operation inout_ask;
/* Entry id of a row of the chart, or of a name. Hosts come before them. */
int64_t inout_row_id(const struct views *, size_t row);

/* Views that derived outputs add; not in the list of providers. */
extern const struct inout_view view_inout_chart, view_inout_table, view_inout_scatter, view_inout_statistics,
    view_inout_density;

#endif
