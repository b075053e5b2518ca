/* SPDX-License-Identifier: MIT */
/* Private to views: requests of an experiment and their groups (path/requests.h). They are found once, in the
 * background, at the first query, and cached while memory lasts. */
#ifndef WEFT_VIEWS_SERVED_LIST_H
#define WEFT_VIEWS_SERVED_LIST_H

#include <stdatomic.h>

#include "path/requests.h"
#include "views/view.h"

/* Client for the cluster's other nodes (struct views_far). Must not be moved (self-referential). */
struct served_far { struct requests_far is; const struct views *x; const atomic_bool *stop; };
void served_far_init(struct served_far *, const struct views *, const atomic_bool *stop);

/* Immutable, except by path_request_groups_tell, which is thread-safe. */
struct served {
    struct requests *found;
    struct request_groups *groups;
    const struct path_source *source;    /* names of hosts by number in the list */
    char *notes;                         /* missing parts, in words; empty: none */
    unsigned used;                       /* number of answers that use it; the owner's lock guards it */
};
typedef void served_write(const struct view *self, struct views *, const struct tsp_query *, const struct served *,
    struct tsp_answer *);
/* Calls `served_write` with the list. Waits a moment for the list, while the client is connected. Until the list is
 * found, the model stays empty (a table: null) and the answer is RUNNING. */
void served_with(const struct view *self, struct views *, const struct tsp_query *, struct tsp_answer *,
    served_write *);
/* Host with that number in the list; NULL: not open here. */
const struct view_host *served_host(const struct views *, int32_t number);
void served_forget(struct views *, void *cache);
void served_close(struct views *, void *cache);

#endif
