/* SPDX-License-Identifier: MIT */
/* Private to views: critical paths of an experiment, computed in the background, kept while they are asked for. First
 * comes the local path (only the thread's own host is looked at), then the whole; while other machines are asked for
 * it, who asks here sees what they have told by then. */
#ifndef WEFT_VIEWS_CRITICAL_PATHS_H
#define WEFT_VIEWS_CRITICAL_PATHS_H

#include "base/map.h"
#include "base/mem.h"
#include "views/critical_question.h"
#include "views/views.h"

/* A machine of a path. */
struct critical_host {
    const char *name, *id;           /* id: struct view_host */
    uint64_t key;
    int64_t entry;
    const struct view_host *here;    /* of the experiment; NULL: its traces are elsewhere */
};
/* A row of the picture: a thread, or a CPU's interrupt context, that the path visits or gets a signal from. */
struct critical_row {
    struct path_row row;
    const struct critical_host *host;
    int64_t entry;
    uint64_t key;                    /* by which the entry is known; of threads that are here: none */
    int32_t tid;                     /* -1: interrupt context */
    int32_t container;               /* of a machine that is here; GRAPH_NO_CONTAINER: none, or not known */
    const char *name;
    int64_t total, totals[GRAPH_STATE_COUNT];
    size_t first, n;                 /* its segments: by_row[first … first + n), in time order */
    size_t seen;                     /* order of appearance */
};
/* A path, arranged for queries. Immutable, but for who holds it, which the lock of the paths guards. */
struct critical_view {
    unsigned refs;
    const struct path *path;
    const struct path_source *source;
    struct critical_host *hosts;     /* by number in the path */
    size_t n_hosts;
    struct views_far_path far;       /* whose the path is, if it was asked for elsewhere */
    struct critical_names *names;    /* whose the source is, if it is being asked for */
    char *sentence;                  /* the answer in words (show/show.h); empty for a path without length */
    struct critical_row *rows; size_t n_rows; /* hosts in order of appearance, in each its rows in order of
                                               * appearance */
    uint32_t *by_row;                /* numbers of segments */
    struct map by_entry;             /* entry id -> row number */
    struct map by_row_of_path;       /* row of the path -> row number + 1 */
};
const struct critical_row *critical_row_of(const struct critical_view *, int64_t entry);
/* The segment at place k of the row. */
const struct path_segment *critical_segment(const struct critical_view *, const struct critical_row *, size_t k);
/* The gap that reaches into [begin, end), or NULL. */
const struct path_gap *critical_gap(const struct critical_view *, int64_t begin, int64_t end);
/* The entry of a row of the path; -1: it is in no picture. */
int64_t critical_entry(const struct critical_view *, struct path_row);

struct critical_names;
struct critical_paths;
void *critical_paths_new(struct views *);
void critical_paths_forget(struct critical_paths *); /* all that are computed and not in use */
void critical_paths_free(struct critical_paths *); /* ends what is being computed */
/* A number for an entry that is no thread or CPU of this experiment, the same for the same key. */
int64_t critical_keyed_entry(struct critical_paths *, uint64_t key);
/* Is there room for so many more? What clients tell is not to fill the memory. */
bool critical_keyed_room(struct critical_paths *, size_t n);

struct critical_answer {
    struct critical_view *view;      /* NULL: nothing yet, or failed */
    int status;                      /* TSP_RUNNING: what is known, or nothing; TSP_COMPLETED; TSP_FAILED */
    const char *message;             /* lives as long as the answer */
    enum tsp_code code;              /* of the message */
    struct critical_entry *kept;
};
/* The path that the parameters ask for; starts computing it when it is new. Waits a moment for it, as long as the
 * client is there. To be given back. Arena: the request's. */
struct critical_answer critical_paths_get(struct critical_paths *, json_t *parameters, struct http_request *);
void critical_paths_release(struct critical_paths *, struct critical_answer *);

#endif
