/* Private to views: critical paths of an experiment, computed in the background, kept while they are asked for. First
 * comes the local path (only the thread's own host is looked at), then the whole. */
#ifndef WEFT_VIEWS_CRITICAL_PATHS_H
#define WEFT_VIEWS_CRITICAL_PATHS_H

#include "base/map.h"
#include "base/mem.h"
#include "views/critical_question.h"

/* A row of the picture: a thread, or a CPU's interrupt context, that the path visits or gets a signal from. */
struct critical_row {
    struct path_row row;
    size_t host;                     /* of the experiment */
    int64_t entry;
    int32_t tid;                     /* -1: interrupt context */
    const char *name;
    int64_t total, totals[GRAPH_STATE_COUNT];
    size_t first, n;                 /* its segments: by_row[first … first + n), in time order */
    size_t seen;                     /* order of appearance */
};
/* A path, arranged for queries. Immutable. */
struct critical_view {
    struct path *path;
    const struct path_source *source;
    const size_t *hosts;             /* number in the experiment by number in the paths */
    struct critical_row *rows; size_t n_rows; /* hosts in order of appearance, in each its rows in order of
                                               * appearance */
    uint32_t *by_row;                /* numbers of segments */
    struct map by_entry;             /* entry id -> row number */
};
const struct critical_row *critical_row_of(const struct critical_view *, int64_t entry);
/* The segment at place k of the row. */
const struct path_segment *critical_segment(const struct critical_view *, const struct critical_row *, size_t k);
/* The gap that reaches into [begin, end), or NULL. */
const struct path_gap *critical_gap(const struct critical_view *, int64_t begin, int64_t end);
/* Entry ids: of hosts, and of rows of the paths' numbering. */
int64_t critical_host_entry(const struct views *, size_t host);
int64_t critical_entry(const struct views *, size_t host, int32_t row);

struct critical_paths;
void *critical_paths_new(struct views *);
void critical_paths_forget(struct critical_paths *); /* all that are computed and not in use */
void critical_paths_free(struct critical_paths *); /* ends what is being computed */

struct critical_answer {
    const struct critical_view *view; /* NULL: nothing yet, or failed */
    int status;                      /* TSP_RUNNING: the local path, or nothing; TSP_COMPLETED; TSP_FAILED */
    const char *message;             /* lives as long as the answer */
    struct critical_entry *kept;
};
/* The path that the parameters ask for; starts computing it when it is new. Waits a moment for it, as long as the
 * client is there. To be given back. Arena: the request's. */
struct critical_answer critical_paths_get(struct critical_paths *, json_t *parameters, struct http_request *);
void critical_paths_release(struct critical_paths *, struct critical_answer *);

#endif
