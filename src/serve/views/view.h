/* SPDX-License-Identifier: MIT */
/* Private to views: what a view is, what it is given, and how it answers. One file per view, listed in list.h.
 * docs/add-a-view.md leads through a table and a time graph. */
#ifndef WEFT_VIEWS_VIEW_H
#define WEFT_VIEWS_VIEW_H

#include <pthread.h>

#include "base/arena.h"
#include "base/time.h"
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
    int64_t first_thread;                /* this host's threads are entries first_thread + row, in every view */
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
    const struct views_far *far;         /* views.h; or NULL */
    struct spanset *spans;               /* spanset.h; or NULL */
    pthread_mutex_t lock;                /* guards caches; recursive */
    void *caches[VIEWS_MAX];             /* by view; made by view_cache, freed by the view's close() */
    struct arena arena;                  /* lives as long as the experiment is open */
};
/* ---- a view ---- */

struct view;
struct view_row_graph;
/* Writes the model and, unless it is COMPLETED, sets the answer's status. Called by many threads at once. */
typedef void view_operation(const struct view *self, struct views *, const struct tsp_query *, struct tsp_answer *);

struct view {
    struct tsp_provider provider;
    int kind;                            /* for files with several views: which this is, as the file likes it */
    /* Is it listed? One of the two: when there is data, or when some host has data. Both NULL: always. */
    bool (*has_data)(const struct view *self, struct views *);
    bool (*host_has_data)(const struct view *self, const struct view_host *);
    /* Families: number of members and the member's id suffix and name; NULL for single outputs. What they hand out
     * lives as long as the experiment. The output is called "member's name - name". */
    size_t (*members)(struct views *);
    void (*member)(struct views *, size_t i, const char **suffix, const char **name);
    /* NULL: not offered (405), but `arrows` of a time graph: none. `xy` serves XY or, for TREE_GENERIC_XY, generic XY.
     * What annotations and their categories write is joined by those of the traces (lost events). */
    view_operation *tree, *states, *arrows, *tooltip, *xy, *columns, *lines, *style, *annotation_categories,
        *annotations;
    /* Trees whose columns are always the same: `tree` writes only the entries. */
    const struct tsp_header *headers; size_t n_headers; /* by VIEW_HEADERS */
    int expand;                          /* levels that clients show opened; 0: all */
    /* Time graphs of rows of the state stores, by VIEW_ROWS: see rows.h. */
    const struct view_row_graph *rows;
    const struct view_look *looks; size_t n_looks; /* by VIEW_LOOKS: see looks.h */
    /* Charts: with a title, `xy` writes only the series, by view_write_series; `series`: what they have in common. */
    const char *title;
    struct tsp_series series;
    /* Tables whose columns are always the same: instead of `columns`. By VIEW_COLUMNS. */
    const struct tsp_column *table_columns; size_t n_table_columns;
    /* And whose rows are at hand by number: instead of `lines`. Fills all but the columns. */
    void (*table)(const struct view *self, struct views *, const struct tsp_query *, struct tsp_table *);
    /* Derived outputs: what is wrong with a configuration (NULL: nothing), and its code, INVALID_QUERY unless set; one
     * was removed. */
    const char *(*check)(struct views *, json_t *parameters, struct arena *, enum tsp_code *code);
    void (*forget)(struct views *, json_t *parameters);
    /* Memory is short: frees what caches[number] keeps only to be fast, and nobody uses. Or NULL. */
    void (*give_memory)(struct views *, void *cache);
    /* Frees caches[number]; no request runs any more. Waits for threads it started. */
    void (*close)(struct views *, void *cache);
};
/* Members of struct view: the columns of a tree as a list, those of a table as an array. */
#define VIEW_HEADERS(...) \
    .headers = (const struct tsp_header[]){__VA_ARGS__}, \
    .n_headers = sizeof((const struct tsp_header[]){__VA_ARGS__}) / sizeof(struct tsp_header)
#define VIEW_COLUMNS(columns) .table_columns = (columns), .n_table_columns = sizeof(columns) / sizeof *(columns)
/* Is a `has_data` of tables at hand whose `table` needs no query: it is called with NULL. */
bool view_has_rows(const struct view *self, struct views *);

extern const struct view *const view_list[]; /* NULL at the end */
size_t view_number(const struct view *);  /* in the list */

/* ---- view.c: what views share ---- */

/* What the view keeps for the experiment, made by `make` on first use, under the experiment's lock. */
void *view_cache(struct views *, const struct view *, void *(*make)(struct views *));

int64_t view_to_host(const struct view_host *, int64_t t);
int64_t view_to_reference(const struct view_host *, int64_t t);

/* ---- entries ----
 *
 * Views call them by numbers; clients know them by ids that stay while traces grow, come from other directories or in
 * another order. These are made of keys (tsp_entry.key): which of its parent's children an entry is, for good. Where
 * the first label says that there is nothing to do; labels that others have too, or that may change, need a key. */

/* The view's entry `number`, counted from 0: entries that are no threads. */
int64_t view_id(const struct views *, size_t number);
/* Host and row of a thread's entry; false when it is none. */
bool view_thread_of(const struct views *, int64_t id, size_t *host, int32_t *row);
/* The name of a container of the host's graph; NULL: GRAPH_NO_CONTAINER. And its key, below its host. */
const char *view_container(const struct view_host *, int32_t container);
uint64_t view_key_container(const struct view_host *, int32_t container);
/* Parameter group_by: "container": entries of these stand between machines and their threads. */
bool view_by_container(const struct tsp_query *);
/* Keys of entries that stand for a thread of the host but are not its entry (row -1: for none that is known), for what
 * has a number, and for what has a name and a number. */
uint64_t view_key_thread(const struct view_host *, int32_t row);
uint64_t view_key_number(int64_t number);
uint64_t view_key(const char *name, int64_t number);
/* Does somebody still wait for the answer, and has it room for more? Asked in long loops; a system call. */
bool view_goes_on(const struct tsp_query *, const struct tsp_answer *);
/* The next of the requested items, from item *i on, while the answer goes on; advances *i. Items that were not
 * requested by id are none. */
bool view_next_item(const struct tsp_query *, const struct tsp_answer *, size_t *i, int64_t *id);
/* The same for items that are threads; of one host, or of all when `host` is NULL. */
struct view_thread { int64_t id; const struct view_host *host; int32_t row; struct graph_row is; };
bool view_next_thread(const struct views *, const struct view_host *host, const struct tsp_query *,
    const struct tsp_answer *, size_t *i, struct view_thread *out);
/* Does the query ask for less than the whole experiment? Statistics then have figures of that selection, too. */
bool view_has_selection(const struct views *, const struct tsp_query *);

/* An entry of a chart with one label. host: NULL for none; a root that has one stands for it. */
enum view_entry { VIEW_GROUP = 0, VIEW_DATA = 1 /* it has a series */, VIEW_DEFAULT = 2 /* shown at first */ };
void view_write_entry(struct tsp_answer *, const struct view_host *, int64_t id, int64_t parent, const char *label,
    unsigned flags);
/* One that stands for something else than its label says. */
void view_write_keyed(struct tsp_answer *, const struct view_host *, int64_t id, int64_t parent, uint64_t key,
    const char *label, unsigned flags);
/* One that is merged with, or a part of, rows that other servers have: see tsp_entry.row. */
void view_write_merged(struct tsp_answer *, const struct view_host *, int64_t id, int64_t parent, const char *label,
    unsigned flags, const char *row, enum tsp_merge);
/* A series of the view's chart: y at the query's sample times. */
void view_write_series(const struct view *self, const struct tsp_query *, struct tsp_answer *, int64_t id,
    const char *name, const double *y);

/* lost_events.c: annotations of every view. */
void view_lost_events_category(const struct views *, struct tsp_answer *);
void view_lost_events(const struct views *, const struct tsp_query *, struct tsp_answer *);

#endif
