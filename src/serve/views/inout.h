/* SPDX-License-Identifier: MIT */
/* Private to views: the In-and-out analysis: an event that a user's expression fits opens, one that another fits
 * closes; what lies between is a pair.
 *
 * An experiment is read once per configuration, in the background; what was found is cached while it is asked for. */
#ifndef WEFT_VIEWS_INOUT_H
#define WEFT_VIEWS_INOUT_H

#include "views/event_table.h"

/* ---- what is wanted ---- */

#define INOUT_TYPE "org.eclipse.tracecompass.incubator.internal.inandout.core.config"
extern const char inout_schema[];        /* JSON schema of the parameters */

/* NULL; or what is wrong with the parameters, in the arena (`out` is as good as freed then). */
const char *inout_config_parse(const struct event_table *, json_t *parameters, struct arena *,
    struct event_pair_config *out);

/* ---- in the background ---- */

struct inout_cache;                       /* of an experiment; thread-safe */
void *inout_cache_new(struct views *);
void inout_cache_free(struct inout_cache *); /* ends what is being read */
const struct event_table *inout_table(const struct inout_cache *);
struct inout_entry;
struct inout_answer {
    const struct event_pairs *pairs;     /* NULL: not yet, or failed */
    int status;                          /* TSP_RUNNING, TSP_COMPLETED, TSP_FAILED */
    const char *message;                 /* arena or static; NULL: the usual word */
    uint64_t read, of;                   /* events, while it is running */
    struct inout_entry *entry;
};
/* What the parameters ask for; begins to read when nobody does. Waits a moment, as long as the client is there. To be
 * given back. Arena: the request's. */
struct inout_answer inout_get(struct inout_cache *, json_t *parameters, struct http_request *);
void inout_release(struct inout_cache *, struct inout_answer *);
/* Nobody wants it any more: ends what is being read for it, forgets what was found. */
void inout_forget_all(struct inout_cache *); /* that have been read and are not in use */
void inout_forget(struct inout_cache *, json_t *parameters);

/* A view of a derived output: what it writes to each operation once there are pairs, by inout_ask. */
typedef void inout_write(struct views *, const struct tsp_query *, const struct event_pairs *, struct tsp_answer *);
struct inout_view { struct view view; inout_write *tree, *states, *tooltip, *lines, *xy; };
view_operation inout_ask;
/* Entry id of a row of the chart, or of a name; hosts come before them. */
int64_t inout_row_id(const struct views *, size_t row);

/* Views (not in the list of providers: derived outputs bring them). */
extern const struct inout_view view_inout_chart, view_inout_table, view_inout_scatter, view_inout_statistics,
    view_inout_density;

#endif
