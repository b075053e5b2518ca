/* Private to views: what a view is, what it is given, and how it answers. One file per view, listed in list.h.
 * docs/add-a-view.md leads through a table and a time graph. */
#ifndef WEFT_VIEWS_VIEW_H
#define WEFT_VIEWS_VIEW_H

#include <pthread.h>

#include "base/arena.h"
#include "clock/clock.h"
#include "flow/flow.h"
#include "graph/graph.h"
#include "index/index.h"
#include "path/path.h"
#include "stack/stack.h"
#include "state/state.h"
#include "tsp/provider.h"

/* ---- what is looked at ---- */

/* A host of an opened experiment. Protocol times are on the reference clock; stores are on the host's. */
struct view_host {
    const struct index_host *index;
    const struct clock_map *map;         /* NULL: the host's own clock is used */
    const struct state_store *states;    /* NULL for traces without kernel events */
    int64_t first_thread;                /* entry ids of this host's threads are first_thread + row, in every view */
    int32_t threads;                     /* rows of the graph; 0 without one */
    const char *id;                      /* hostId of its entries: unique in the experiment, the same after a restart */
};

enum { VIEWS_MAX = 64 };

/* All views of one opened experiment. Everything but `caches` is immutable; shared by all requests. */
struct views {
    struct tsp_data data;                /* first: what the protocol sees of it */
    const struct tsp_open_request *request;
    struct experiment *x;
    const struct clock_net *clocks;      /* NULL: one host, or not synchronised */
    struct view_host *hosts; size_t n_hosts;
    /* with clock maps set: merged reading is on the reference clock */
    const struct ctf_source *sources; size_t n_sources;
    const int32_t *source_hosts;         /* host of each source, -1 unknown */
    const struct index_trace *traces;    /* by source: those of user space with their stores */
    struct path_local *paths;            /* for critical paths; NULL without kernel traces */
    const int32_t *path_hosts;           /* host number in `paths` by host number here; -1 none */
    int64_t last_thread;                 /* entry ids of threads over all hosts end there; other entries begin above */
    pthread_mutex_t lock;                /* guards caches; recursive */
    void *caches[VIEWS_MAX];             /* by view; made by view_cache, freed by the view's close() */
    struct arena arena;                  /* lives as long as the experiment is open */
};
int64_t view_to_host(const struct view_host *, int64_t t);
int64_t view_to_reference(const struct view_host *, int64_t t);
/* Host and row of a thread's entry id; false when it is none. */
bool view_thread_of(const struct views *, int64_t id, size_t *host, int32_t *row);

/* ---- a view ---- */

struct view;
/* Writes the model and, unless it is COMPLETED, sets the answer's status. Called by many threads at once. */
typedef void view_operation(const struct view *self, struct views *, const struct tsp_query *, struct tsp_answer *);

struct view {
    struct tsp_provider provider;
    int kind;                            /* for files with several views: which this is, as the file likes it */
    bool (*has_data)(const struct view *self, struct views *); /* NULL: always */
    /* Families: number of members and the member's id suffix and name; NULL for single outputs. What they hand out
     * lives as long as the experiment. The output is called "member's name - name". */
    size_t (*members)(struct views *);
    void (*member)(struct views *, size_t i, const char **suffix, const char **name);
    /* NULL: not offered (405), but `arrows` of a time graph: none. `xy` serves XY or, for TREE_GENERIC_XY, generic XY.
     * What annotations and their categories write is joined by those of the traces (lost events). */
    view_operation *tree, *states, *arrows, *tooltip, *xy, *columns, *lines, *style, *annotation_categories,
        *annotations;
    /* Tables whose rows are at hand by number: instead of `columns` and `lines`. Fills all but the columns. */
    const struct tsp_column *table_columns; size_t n_table_columns;
    void (*table)(const struct view *self, struct views *, const struct tsp_query *, struct tsp_table *);
    /* Derived outputs: what is wrong with a configuration (NULL: nothing); one was removed. */
    const char *(*check)(struct views *, json_t *parameters, struct arena *);
    void (*forget)(struct views *, json_t *parameters);
    /* Frees caches[number]; no request runs any more. Waits for threads it started. */
    void (*close)(struct views *, void *cache);
};
/* What the view keeps for the experiment, made by `make` on first use, under the experiment's lock. */
void *view_cache(struct views *, const struct view *, void *(*make)(struct views *));
/* Its number in the list. */
size_t view_number(const struct view *);
extern const struct view *const view_list[]; /* NULL at the end */

/* common.c: lost events, which are annotations of every view. */
void view_lost_events_category(const struct views *, struct tsp_answer *);
void view_lost_events(const struct views *, const struct tsp_query *, struct tsp_answer *);

#endif
