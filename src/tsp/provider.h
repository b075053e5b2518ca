/* Private to tsp: what a data provider is, what it is given and how it answers. One file per provider
 * (provider_NAME.c), listed in providers.c. */
#ifndef WEFT_TSP_PROVIDER_H
#define WEFT_TSP_PROVIDER_H

#include <jansson.h>
#include <pthread.h>

#include "base/arena.h"
#include "base/json.h"
#include "clock/clock.h"
#include "flow/flow.h"
#include "graph/graph.h"
#include "http/http.h"
#include "index/index.h"
#include "path/path.h"
#include "stack/stack.h"
#include "state/state.h"

/* ---- what is analysed ---- */

/* A host of an opened experiment. Protocol times are on the reference clock; stores are on the host's. */
struct tsp_host {
    const struct index_host *index;
    const struct clock_map *map;         /* NULL: the host's own clock is used */
    const struct state_store *states;    /* NULL for traces without kernel events */
    int64_t first_thread;                /* entry ids of this host's threads are first_thread + row, in every
                                          * provider that shows threads */
    int32_t threads;                     /* rows of the graph; 0 without one */
    const char *id;                      /* hostId of its entries: unique in the experiment, the same after a restart */
};

enum { TSP_MAX_PROVIDERS = 64 };

/* An experiment that is open. All of it but `caches` is immutable; shared by all requests (reference counted by the
 * model). */
struct tsp_experiment {
    const char *name, *uuid;
    struct experiment *x;
    const struct clock_net *clocks;      /* NULL: one host, or not synchronised */
    struct tsp_host *hosts; size_t n_hosts;
    const struct ctf_source *sources; size_t n_sources; /* with clock maps set: merged reading is on the reference
                                                         * clock */
    const int32_t *source_hosts;         /* host of each source, -1 unknown */
    const struct index_trace *traces;    /* by source: those of user space with their stores */
    struct path_local *paths;            /* for critical paths; NULL without kernel traces */
    const int32_t *path_hosts;           /* host number in `paths` by host number here; -1 none */
    int64_t begin, end;                  /* reference clock */
    uint64_t events;
    int64_t last_thread;                 /* entry ids of threads over all hosts end there; other entries of providers
                                          * begin above */
    pthread_mutex_t lock;                /* guards caches; recursive */
    void *caches[TSP_MAX_PROVIDERS];     /* by provider number; made by tsp_cache, freed by the provider's close() */
};
int64_t tsp_to_host(const struct tsp_host *, int64_t t);
int64_t tsp_to_reference(const struct tsp_host *, int64_t t);
/* Host and row of a thread's entry id; false when it is none. */
bool tsp_thread_of(const struct tsp_experiment *, int64_t id, size_t *host, int32_t *row);

/* ---- one request ---- */

struct tsp_filter;
/* Parsed and checked for what its operation needs. All that it points to lives in the request's arena. */
struct tsp_query {
    struct http_request *http;           /* arena; http_gone() in long loops */
    json_t *parameters;                  /* the object "parameters" (never NULL) */
    int64_t begin, end;                  /* requested range; the whole experiment when absent */
    bool has_range;
    const int64_t *times; size_t n_times; /* sample times: expanded range or requested_times, ascending; at least 1
                                           * for states, xy and tooltip */
    const int64_t *items; size_t n_items; /* requested_items, ascending, distinct; has_items tells whether given */
    bool has_items;
    const struct tsp_filter *filter;     /* filter_query_parameters; NULL: none */
    bool deep;                           /* strategy DEEP: at least one matching state per gap between samples */
    const char *marker_set; json_t *marker_categories; /* array of strings, or NULL: all */
    /* tables */
    int64_t index, count; int64_t table_time; bool by_time;
    const int64_t *columns; size_t n_columns; bool has_columns; /* in the order requested */
    json_t *row_filter;                  /* table_filter_expressions: as `search`, for the only rows that there are
                                          * then; or NULL */
    json_t *search; bool search_find, search_backward; /* {column id: regular expression}, or NULL; find: the next or
                                                        * previous match is wanted */
    /* tooltips: element in lower case ("state", "annotation", "arrow"); its times and ids are 0 and -1 when not
     * given */
    const char *element; int64_t element_time, element_duration, element_entry, element_destination;
    json_t *configuration;               /* derived outputs: the parameters of their configuration, else NULL */
    const char *output_id;               /* full id as requested ("…:System Call", derived ids) */
    const char *member;                  /* families: the suffix behind the colon, else NULL */
};
/* Item wanted by the query: requested_items holds the id; true when none were given. */
bool tsp_wants(const struct tsp_query *, int64_t id);

/* The tags (0, 1 dim, 4 exclude, 8 highlight) that the filter gives an element with these properties. Keys are compared
 * without regard to case; give at least "label" where there is one, "duration" and "start" in ns as decimal text, and
 * what the tooltip shows. */
struct tsp_property { const char *key, *value; };
int tsp_filter_tags(const struct tsp_query *, const struct tsp_property *, size_t n);

/* ---- providers ---- */

/* The provider writes only the value of "model" (nothing at all: null); status and statusMessage make the envelope. */
enum tsp_status { TSP_COMPLETED, TSP_RUNNING, TSP_FAILED, TSP_CANCELLED };
struct tsp_result { int status; const char *message; };  /* message: NULL for the usual word; arena or static */

/* Called by many threads at once. */
typedef struct tsp_result tsp_operation(struct tsp_experiment *, const struct tsp_query *, struct json *model);

struct tsp_provider {
    const char *id;                      /* fixed ids; families add ":NAME" and list their members in `members` */
    const char *name, *description, *type; /* TIME_GRAPH, TREE_TIME_XY, TABLE, DATA_TREE, NONE, … */
    const char *parent;                  /* id of the grouping output, or NULL */
    bool (*has_data)(struct tsp_experiment *); /* NULL: always */
    /* Families: number of members and the member's id suffix and name; NULL for single outputs. What they hand out
     * lives as long as the experiment. The output is called "member's name - name". */
    size_t (*members)(struct tsp_experiment *);
    void (*member)(struct tsp_experiment *, size_t i, const char **suffix, const char **name);
    /* NULL: not offered (405). `xy` serves XY and, for TREE_GENERIC_XY, generic XY. annotation_categories writes ["a",
     * …] items into an open array, annotations members "category": [ … ] into an open object: the server adds those of
     * the traces (lost events). */
    tsp_operation *tree, *states, *arrows, *tooltip, *xy, *columns, *lines, *style, *annotation_categories,
        *annotations;
    /* Derived outputs (canCreate): schema of the configuration as JSON text; check of a configuration (NULL = good,
     * else what is wrong). Operations on a derived output are those of this provider with q->configuration set.
     * derived_type: type of the derived output; NULL: as this one's. */
    const char *config_type, *config_name, *config_schema, *derived_type;
    const char *(*config_check)(struct tsp_experiment *, json_t *parameters, struct arena *);
    const char *derived_prefix;          /* what ids of derived outputs begin with; NULL: this one's and a colon */
    /* What shows a derived output, as outputs of its own with ids "VIEW:DERIVED"; NULL at the end. NULL: the derived
     * output shows itself. */
    const struct tsp_provider *const *derived_views;
    /* one was removed; or NULL. Requests for it may still run */
    void (*derived_gone)(struct tsp_experiment *, json_t *parameters);
    void (*close)(struct tsp_experiment *, void *cache); /* frees caches[number]; no request runs any more. Waits for
                                                          * threads it started */
};
extern const struct tsp_provider *const tsp_providers[]; /* NULL at the end */
size_t tsp_provider_number(const struct tsp_provider *);
/* What the provider keeps for the experiment, made by `make` on first use, under the experiment's lock. */
void *tsp_cache(struct tsp_experiment *, const struct tsp_provider *, void *(*make)(struct tsp_experiment *));

/* ---- writing models (write.c): keys and order as clients expect them; docs/tsp.md ---- */

/* Where a model goes: what providers are given is its first member. */
struct tsp_answer { struct json json; int64_t last_id; /* the largest entry id in it */ };

/* The answer has become too large to send; long loops should end. The writers below write nothing more then. */
bool tsp_full(const struct json *);

/* Trees: begin, entries, end. type: NUMBER, BINARY_NUMBER, TIMESTAMP, DURATION, STRING, TIME_RANGE, or NULL. */
struct tsp_header { const char *name, *tooltip, *type; };
void tsp_begin_tree(struct json *, const struct tsp_header *, size_t n, int auto_expand /* levels; -1: all */);
struct tsp_meta { const char *key, *text; int64_t number; };   /* text NULL: the number */
struct tsp_entry {
    int64_t id, parent;                  /* parent -1: a root */
    const char *const *labels; size_t n_labels;
    bool time_graph; int64_t start, end; /* time_graph: start and end are written. The first entry of a time graph
                                          * starts at the experiment's begin */
    bool xy, is_default;                 /* xy: isDefault is written */
    bool has_data;
    const char *host_id;                 /* metadata hostId, or NULL */
    bool has_tid; int32_t tid;           /* metadata TID */
    const struct tsp_meta *meta; size_t n_meta; /* more metadata */
    const char *style_key;               /* or NULL */
};
void tsp_write_entry(struct json *, const struct tsp_entry *);
void tsp_end_tree(struct json *);

/* States: begin, per row begin … end, end. */
void tsp_begin_rows(struct json *);
void tsp_begin_row(struct json *, int64_t entry);
struct tsp_state { int64_t start, end; const char *label, *style_key; int tags; };
void tsp_write_state(struct json *, const struct tsp_state *);  /* style_key NULL: a known blank */
void tsp_end_row(struct json *);
void tsp_end_rows(struct json *);

/* Arrows: an array that the provider begins and ends itself (json_begin_array). */
void tsp_write_arrow(struct json *, int64_t start, int64_t end, int64_t source, int64_t target, const char *style_key);

/* XY: begin, series, end. */
void tsp_begin_xy(struct json *, const char *title);
struct tsp_series {
    int64_t id; const char *name, *type; /* line, area, scatter, bar */
    const int64_t *x; const double *y; size_t n;
    const char *x_label, *x_unit, *x_type; /* x_type NULL: TIMESTAMP */
    const char *y_label, *y_unit, *y_type; /* y_type NULL: NUMBER */
    const char *const *categories;       /* generic XY: instead of x */
    const int64_t (*ranges)[2];          /* generic XY: instead of x */
};
/* y that are whole numbers are written without fraction */
void tsp_write_series(struct json *, const struct tsp_series *);
void tsp_end_xy(struct json *);

/* Styles: begin, one call per key, end. parent NULL: none; color "#rrggbb" or NULL; height, opacity < 0: not written;
 * name: legend, or NULL. */
void tsp_begin_styles(struct json *);
void tsp_write_style(struct json *, const char *key, const char *parent, const char *color, double height,
    double opacity, const char *name);
void tsp_end_styles(struct json *);

/* Tooltips: an object of strings that the provider begins and ends itself. Annotations: items of the arrays of their
 * categories. entry -1: the chart. */
void tsp_write_annotation(struct json *, int64_t time, int64_t duration, int64_t entry, const char *label,
    const char *color, double opacity);

/* Tables whose rows are at hand by number. Cell texts are appended to `out`. */
struct tsp_column { int64_t id; const char *name, *description, *type; }; /* type as in tsp_header; NULL: STRING */
struct tsp_table {
    const struct tsp_column *columns; size_t n_columns;
    size_t rows;
    void *arg;
    void (*cell)(void *arg, size_t row, size_t column /* place in columns */, struct text *out);
    int64_t (*time)(void *arg, size_t row); /* for requested_times: ascending with the rows; NULL: always row 0 */
};
struct tsp_result tsp_table_columns(const struct tsp_column *, size_t n, struct json *model);
/* Lines by index or time, with search, as the protocol tells; ends early when the client has gone. */
struct tsp_result tsp_table_lines(const struct tsp_table *, const struct tsp_query *, struct json *model);

#endif
