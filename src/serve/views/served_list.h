/* SPDX-License-Identifier: MIT */
/* Private to views: the requests of an experiment and the groups of like ones (path/requests.h), found once, in the
 * background, when first asked for, and kept while memory lasts. */
#ifndef WEFT_VIEWS_SERVED_LIST_H
#define WEFT_VIEWS_SERVED_LIST_H

#include <stdatomic.h>

#include "path/requests.h"
#include "views/view.h"

/* Who asks the other machines of the cluster (struct views_far). Stays where it is. */
struct served_far { struct requests_far is; const struct views *x; const atomic_bool *stop; };
void served_far_init(struct served_far *, const struct views *, const atomic_bool *stop);

/* Immutable, but for request_groups_tell, which any number of threads may call. */
struct served {
    struct requests *found;
    struct request_groups *groups;
    const struct path_source *source;    /* names of the hosts by their numbers in the list */
    char *notes;                         /* what is not told, in words; empty: nothing */
    unsigned used;                       /* by so many answers; a lock of who has it guards it */
};
typedef void served_write(const struct view *self, struct views *, const struct tsp_query *, const struct served *,
    struct tsp_answer *);
/* Writes with the list; waits a moment for it, as long as the client is there. While it is being found the model stays
 * empty (a table: null) and the answer is RUNNING. */
void served_with(const struct view *self, struct views *, const struct tsp_query *, struct tsp_answer *,
    served_write *);
/* The host that has the number in the list; NULL: it is not open here. */
const struct view_host *served_host(const struct views *, int32_t number);
void served_forget(struct views *, void *cache);
void served_close(struct views *, void *cache);

#endif
