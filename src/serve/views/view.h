/* SPDX-License-Identifier: MIT */
/* Private to views: a view, its inputs and its operations. One file per view, listed in list.h. docs/add-a-view.md
 * leads through a table and a time graph. */
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

/* ---- the experiment ---- */

/* Host of an opened experiment. Protocol times are on the reference clock; stores are on the host's. */
struct view_host {
    const struct index_host *index;
    const struct clock_map *map;         /* NULL: the host's own clock is used */
    const struct state_store *states;    /* NULL for traces without kernel events */
    int64_t first_thread;                /* threads of this host are entries first_thread + row, in every view */
    int32_t threads;                     /* rows of the graph; 0 without one */
    const char *id;                      /* hostId of its entries: unique in the experiment, stable over restarts */
};

enum { VIEWS_MAX = 64 };

/* Views of one opened experiment, shared by all requests. Immutable except `caches`. */
struct views {
    struct tsp_data data;                /* first member: the part that the protocol sees */
    const struct tsp_open_request *request;
    struct experiment *x;
    const struct clock_net *clocks;      /* NULL: one host, or not synchronised */
    struct view_host *hosts; size_t n_hosts;
    /* clock maps are set: merged reading is on the reference clock */
    const struct ctf_source *sources; size_t n_sources;
    const int32_t *source_hosts;         /* host of each source, -1 unknown */
    const struct index_trace *traces;    /* user-space traces with their stores, by source */
    struct path_local *paths;            /* traces for critical paths; NULL without kernel traces */
    const int32_t *path_hosts;           /* host number in `paths` by host number here; -1 none */
    const struct views_far *far;         /* views.h; or NULL */
    struct spanset *spans;               /* spanset.h; or NULL */
    pthread_mutex_t lock;                /* guards caches; recursive */
    void *caches[VIEWS_MAX];             /* index: view; made by view_cache, freed by the view's close() */
    struct arena arena;                  /* valid while the experiment is open */
};
/* ---- a view ---- */

struct view;
struct view_row_graph;
/* Writes the model and, unless it is COMPLETED, sets the answer's status. Called by many threads at once. */
typedef void view_operation(const struct view *self, struct views *, const struct tsp_query *, struct tsp_answer *);

struct view {
    struct tsp_provider provider;
    int kind;                            /* view within a file of several views; the file defines the values */
    /* Returns whether the view is listed. A view sets one of the two: data exists, or some host has data. Both NULL:
     * always listed. */
    bool (*has_data)(const struct view *self, struct views *);
    bool (*host_has_data)(const struct view *self, const struct view_host *);
    /* Families: number of members; id suffix and name of a member, valid while the experiment is open. NULL for single
     * outputs. The output is called "member's name - name". */
    size_t (*members)(struct views *);
    void (*member)(struct views *, size_t i, const char **suffix, const char **name);
    /* NULL: not offered (405); `arrows` of a time graph: no arrows. `xy` serves XY or, for TREE_GENERIC_XY, generic XY.
     * Annotations and their categories are followed by those of the traces (lost events). */
    view_operation *tree, *states, *arrows, *tooltip, *xy, *columns, *lines, *style, *annotation_categories,
        *annotations;
    /* Trees with constant columns: `tree` writes only the entries. */
    const struct tsp_header *headers; size_t n_headers; /* set by VIEW_HEADERS */
    int expand;                          /* levels that clients show expanded; 0: all */
    /* Time graphs of rows of the state stores, set by VIEW_ROWS (rows.h). */
    const struct view_row_graph *rows;
    const struct view_look *looks; size_t n_looks; /* set by VIEW_LOOKS (looks.h) */
    /* Charts: with a title, `xy` writes only the series, by view_write_series. `series`: common members of all
     * series. */
    const char *title;
    struct tsp_series series;
    /* Tables with constant columns, instead of `columns`. Set by VIEW_COLUMNS. */
    const struct tsp_column *table_columns; size_t n_table_columns;
    /* Tables with constant columns and rows accessible by number, instead of `lines`. Fills all but the columns. */
    void (*table)(const struct view *self, struct views *, const struct tsp_query *, struct tsp_table *);
    /* Derived outputs. `check` returns what is wrong with a configuration (NULL: nothing) and its code, INVALID_QUERY
     * unless set. `forget`: one was removed. */
    const char *(*check)(struct views *, json_t *parameters, struct arena *, enum tsp_code *code);
    void (*forget)(struct views *, json_t *parameters);
    /* Frees the parts of caches[number] that only save time and are not in use, when memory is short. Or NULL. */
    void (*give_memory)(struct views *, void *cache);
    /* Frees caches[number] when no request runs any more. Waits for threads it started. */
    void (*close)(struct views *, void *cache);
};
/* Members of struct view: the columns of a tree as a list, those of a table as an array. */
#define VIEW_HEADERS(...) \
    .headers = (const struct tsp_header[]){__VA_ARGS__}, \
    .n_headers = sizeof((const struct tsp_header[]){__VA_ARGS__}) / sizeof(struct tsp_header)
#define VIEW_COLUMNS(columns) .table_columns = (columns), .n_table_columns = sizeof(columns) / sizeof *(columns)
/* Implementation of `has_data` for tables whose `table` needs no query: calls it with NULL. */
bool view_has_rows(const struct view *self, struct views *);

extern const struct view *const view_list[]; /* NULL at the end */
size_t view_number(const struct view *);  /* index in view_list */

/* ---- view.c: shared by views ---- */

/* Returns the view's cache for the experiment, created by `make` on first use under the experiment's lock. */
void *view_cache(struct views *, const struct view *, void *(*make)(struct views *));

int64_t view_to_host(const struct view_host *, int64_t t);
int64_t view_to_reference(const struct view_host *, int64_t t);

/* ---- entries ----
 *
 * Views number their entries. Clients see ids that stay while traces grow, come from other directories or in another
 * order. Ids are made of keys (tsp_entry.key), which identify an entry among its parent's children permanently. An
 * entry needs no key if its first label identifies it. Labels that are not unique, or may change, need one. */

/* Id of the view's entry `number`, counted from 0, for entries that are not threads. */
int64_t view_id(const struct views *, size_t number);
/* Finds host and row of a thread's entry; false: the entry is not a thread. */
bool view_thread_of(const struct views *, int64_t id, size_t *host, int32_t *row);
/* Name of a container of the host's graph (NULL: GRAPH_NO_CONTAINER), and its key below its host. */
const char *view_container(const struct view_host *, int32_t container);
uint64_t view_key_container(const struct view_host *, int32_t container);
/* Returns whether parameter group_by is "container": container entries stand between machines and their threads. */
bool view_by_container(const struct tsp_query *);
/* Keys of entries. view_key_thread: the entry represents a thread of the host (row -1: none known) but is not the
 * thread's entry. view_key_number, view_key: the entry has a number, or a name and a number. */
uint64_t view_key_thread(const struct view_host *, int32_t row);
uint64_t view_key_number(int64_t number);
uint64_t view_key(const char *name, int64_t number);
/* Returns whether the client still waits for the answer and the answer has room. For long loops; makes a system
 * call. */
bool view_goes_on(const struct tsp_query *, const struct tsp_answer *);
/* Finds the next requested item, from item *i on, while the answer continues; advances *i. Skips items that were not
 * requested by id. */
bool view_next_item(const struct tsp_query *, const struct tsp_answer *, size_t *i, int64_t *id);
/* Finds the next requested item that is a thread, of one host or (`host` NULL) of all. */
struct view_thread { int64_t id; const struct view_host *host; int32_t row; struct graph_row is; };
bool view_next_thread(const struct views *, const struct view_host *host, const struct tsp_query *,
    const struct tsp_answer *, size_t *i, struct view_thread *out);
/* Returns whether the query selects less than the whole experiment. Statistics then include figures of that
 * selection. */
bool view_has_selection(const struct views *, const struct tsp_query *);

/* Writes an entry of a chart, with one label. host: NULL for none; a root with a host represents it. */
enum view_entry { VIEW_GROUP = 0, VIEW_DATA = 1 /* entry with a series */, VIEW_DEFAULT = 2 /* shown at first */ };
void view_write_entry(struct tsp_answer *, const struct view_host *, int64_t id, int64_t parent, const char *label,
    unsigned flags);
/* Writes an entry whose label does not identify it. */
void view_write_keyed(struct tsp_answer *, const struct view_host *, int64_t id, int64_t parent, uint64_t key,
    const char *label, unsigned flags);
/* Writes an entry that is merged with rows of other servers, or is a part of them (tsp_entry.row). */
void view_write_merged(struct tsp_answer *, const struct view_host *, int64_t id, int64_t parent, const char *label,
    unsigned flags, const char *row, enum tsp_merge);
/* Writes a series of the view's chart: y at the query's sample times. */
void view_write_series(const struct view *self, const struct tsp_query *, struct tsp_answer *, int64_t id,
    const char *name, const double *y);

/* lost_events.c: annotations of every view. */
void view_lost_events_category(const struct views *, struct tsp_answer *);
void view_lost_events(const struct views *, const struct tsp_query *, struct tsp_answer *);

#endif
