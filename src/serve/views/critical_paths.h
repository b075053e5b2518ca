/* SPDX-License-Identifier: MIT */
/* Private to views: critical paths of an experiment, computed in the background and cached while they are requested.
 * The local path (only the thread's own host) comes first, then the whole. While other machines are being queried,
 * requests get the partial path known so far. */
#ifndef WEFT_VIEWS_CRITICAL_PATHS_H
#define WEFT_VIEWS_CRITICAL_PATHS_H

#include "base/map.h"
#include "base/mem.h"
#include "views/critical_question.h"
#include "views/views.h"

/* Machine of a path. */
struct critical_host {
    const char *name, *id;           /* id: struct view_host */
    uint64_t key;
    int64_t entry;
    const struct view_host *here;    /* host of the experiment; NULL: its traces are elsewhere */
};
/* Row of the picture: a thread, or a CPU's interrupt context, that the path visits or that sends it a signal. */
struct critical_row {
    struct path_row row;
    const struct critical_host *host;
    int64_t entry;
    uint64_t key;                    /* key of the entry; unused for threads that are here */
    int32_t tid;                     /* -1: interrupt context */
    int32_t container;               /* container, if the machine is here; GRAPH_NO_CONTAINER: none, or unknown */
    const char *name;
    int64_t total, totals[GRAPH_STATE_COUNT];
    size_t first, n;                 /* segments: by_row[first … first + n), in time order */
    size_t seen;                     /* order of appearance */
};
/* Path, arranged for queries. Immutable except `refs`, which the lock of the paths guards. */
struct critical_view {
    unsigned refs;
    const struct path *path;
    const struct path_source *source;
    struct critical_host *hosts;     /* index: host number in the path */
    size_t n_hosts;
    struct views_far_path far;       /* owner of the path, if it came from other nodes */
    struct critical_names *names;    /* owner of the source, if the path is partial */
    char *sentence;                  /* answer in words (show/show.h); empty for a path of length zero */
    struct critical_row *rows; size_t n_rows; /* ordered by host, in order of appearance; within a host likewise */
    uint32_t *by_row;                /* numbers of segments */
    struct map by_entry;             /* entry id -> row number */
    struct map by_row_of_path;       /* row of the path -> row number + 1 */
};
const struct critical_row *critical_row_of(const struct critical_view *, int64_t entry);
/* Segment number k of the row. */
const struct path_segment *critical_segment(const struct critical_view *, const struct critical_row *, size_t k);
/* Gap that overlaps [begin, end), or NULL. */
const struct path_gap *critical_gap(const struct critical_view *, int64_t begin, int64_t end);
/* Entry of a row of the path; -1: the row is not in the picture. */
int64_t critical_entry(const struct critical_view *, struct path_row);

struct critical_names;
struct critical_paths;
void *critical_paths_new(struct views *);
void critical_paths_forget(struct critical_paths *); /* drops finished paths that are not in use */
void critical_paths_free(struct critical_paths *); /* stops running computations first */
/* Entry id for something that is not a thread or CPU of this experiment; equal keys give equal ids. */
int64_t critical_keyed_entry(struct critical_paths *, uint64_t key);
/* Returns whether there is room for n more ids. The limit keeps clients from filling the memory. */
bool critical_keyed_room(struct critical_paths *, size_t n);

struct critical_answer {
    struct critical_view *view;      /* NULL: no path yet, or failed */
    int status;                      /* TSP_RUNNING: partial path, or none; TSP_COMPLETED; TSP_FAILED */
    const char *message;             /* valid as long as the answer */
    enum tsp_code code;              /* code of the message */
    struct critical_entry *kept;
};
/* Returns the path that the parameters request; starts its computation if it is new. Waits a moment for it, while the
 * client is connected. The caller releases the answer. Memory: the request's arena. */
struct critical_answer critical_paths_get(struct critical_paths *, json_t *parameters, struct http_request *);
void critical_paths_release(struct critical_paths *, struct critical_answer *);

#endif
