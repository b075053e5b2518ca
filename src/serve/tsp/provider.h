/* SPDX-License-Identifier: MIT */
/* What the protocol asks of those who have the data: a backend opens traces, lists the outputs that can be made of
 * them, and answers questions about each. `views` is one, for traces on this machine. The protocol knows nothing of
 * what is analysed, and the backend nothing of requests, bookmarks and restarts. */
#ifndef WEFT_TSP_PROVIDER_H
#define WEFT_TSP_PROVIDER_H

#include <jansson.h>

#include "base/arena.h"
#include "base/err.h"
#include "http/http.h"
#include "tsp/answer.h"

/* ---- outputs ---- */

/* A data provider, as the protocol lists it. Lives as long as the backend. */
struct tsp_provider {
    const char *id;              /* the same in every experiment; families add ":NAME" */
    const char *name, *description;
    const char *type;            /* TIME_GRAPH, TREE_TIME_XY, TABLE, DATA_TREE, NONE, … */
    const char *parent;          /* id of the grouping output, or NULL */
    const char *family;          /* outputs of one family have the entries with equal keys in common; NULL: alone */
    const struct tsp_derivation *derivation; /* outputs can be derived from it (canCreate); or NULL */
};

/* How an output is derived from a provider. Operations on what was derived are those of the provider, with
 * tsp_query.configuration set. */
struct tsp_derivation {
    const char *type, *name, *schema; /* of the configuration; schema: JSON text */
    const char *const *times;    /* parameters that are times in ns where they are integers; NULL at the end; or NULL */
    const char *output_type;     /* of derived outputs; NULL: as the provider's */
    const char *prefix;          /* what their ids begin with; NULL: the provider's id and a colon */
    /* What shows a derived output, as outputs with ids "SHOWN BY:DERIVED"; NULL at the end. NULL: it shows itself. */
    const struct tsp_provider *const *shown_by;
};

/* An output of opened traces. Lives as long as they are open. */
struct tsp_output {
    const struct tsp_provider *provider;
    const char *id, *name;
    const char *member;          /* families: the suffix behind the colon, else NULL */
};

/* ---- questions ---- */

enum tsp_operation {
    TSP_TREE, TSP_STATES, TSP_ARROWS, TSP_TOOLTIP, TSP_XY, TSP_GENERIC_XY, TSP_COLUMNS, TSP_LINES, TSP_STYLE,
    TSP_ANNOTATION_CATEGORIES, TSP_ANNOTATIONS
};

struct tsp_filter; struct kept_rows;
/* Parsed and checked for what its operation needs. All that it points to lives in the request's arena. */
struct tsp_query {
    enum tsp_operation operation;
    struct http_request *http;           /* arena; http_gone() in long loops */
    json_t *parameters;                  /* the object "parameters" (never NULL) */
    int64_t begin, end;                  /* requested range; the whole experiment when absent */
    bool has_range;
    /* sample times: expanded range or requested_times, ascending; at least 1 for states, xy and tooltip */
    const int64_t *times; size_t n_times;
    /* requested_items, ascending, distinct; has_items: they were given */
    const int64_t *items; size_t n_items;
    bool has_items;
    const struct tsp_filter *filter;     /* filter_query_parameters; NULL: none */
    bool deep;                           /* strategy DEEP: at least one matching state per gap between samples */
    const char *marker_set;
    json_t *marker_categories;           /* array of strings, or NULL: all */
    /* tables */
    int64_t index, count;
    int64_t table_time, table_value; bool by_time, by_value;
    const int64_t *columns; size_t n_columns; bool has_columns; /* in the order requested */
    json_t *row_filter;                  /* table_filter_expressions, as `search`: the only rows there are; or NULL */
    struct kept_rows *kept;              /* what fitted filters before; or NULL */
    json_t *search;                      /* {column id: regular expression}, or NULL */
    bool search_find, search_backward;   /* the next or the previous match is wanted */
    /* tooltips: element in lower case ("state", "annotation", "arrow"); times and ids that are not given: 0 and -1; ids
     * that nobody has: TSP_NO_ENTRY */
    const char *element;
    int64_t element_time, element_duration, element_entry, element_destination;
    json_t *configuration;               /* derived outputs: the parameters of their configuration, else NULL */
    const char *output_id;               /* full id as requested ("…:System Call", derived ids) */
    const char *member;                  /* families: the suffix behind the colon, else NULL */
};
/* Item wanted by the query: requested_items holds the id; true when none were given. */
bool tsp_wants(const struct tsp_query *, int64_t id);
/* Does the query want annotations of that category? */
bool tsp_wants_category(const struct tsp_query *, const char *category);

/* The tags (0, 1 dim, 4 exclude, 8 highlight) that the filter gives an element with these properties. Keys are compared
 * without regard to case; give at least "label" where there is one, "duration" and "start" in ns as decimal text, and
 * what the tooltip shows. */
struct tsp_property { const char *key, *value; };
int tsp_filter_tags(const struct tsp_query *, const struct tsp_property *, size_t n);

/* ---- opened traces ---- */

/* What is known of a trace that is open. `properties`: names and values. */
struct tsp_figures { uint64_t events; int64_t begin, end; size_t n_properties; const char *const (*properties)[2]; };
void tsp_figures_add(struct tsp_figures *sum, const struct tsp_figures *); /* those without events count nothing */

struct progress;
/* Traces to be opened together. All is borrowed, and stays until they are closed. */
struct tsp_open_request {
    const char *name;                    /* of the experiment */
    const char *const *paths;            /* real paths, distinct */
    const char *const *hosts;            /* by path: what its host shall be called, or NULL */
    size_t n;
    /* Called by several threads while traces are read: so many more events below paths[i], their times so far. */
    void (*grow)(void *arg, size_t i, uint64_t events, int64_t begin, int64_t end);
    bool (*stop)(void *arg);             /* asked while traces are read: nobody wants them any more */
    void *arg;
    struct progress *progress;           /* bytes of the traces that were read; or NULL */
};

/* A host of which something is missing in every answer (failed: all of it). */
struct tsp_lack { const char *host, *why; bool failed; };

/* Traces opened together, as the protocol sees them: immutable. The backend's own struct begins with it.
 *
 * Queries and answers speak of entries by numbers: as the backend counts them in each output, from 0 on, while the
 * traces are open. Clients know entries by ids, which stay over growth, restarts and copies. They come from keys: what
 * an entry is among those with the same parent (tsp_entry.key), below what its parent is. */
struct tsp_data {
    int64_t begin, end;                  /* of all, by the clock that answers are in */
    const char *reference;               /* whose clock that is; NULL: every host's times are by its own */
    uint64_t events;
    const struct tsp_figures *figures;   /* by path of the request */
    const struct tsp_output *outputs; size_t n_outputs;
    const struct tsp_lack *lacks; size_t n_lacks; /* the first TSP_LACKS of them are told */
    size_t whole;                        /* so many hosts are there without any */
    int64_t shared;                      /* entries below this number are the same in every output: see `key` */
    const char *ids_dir;                 /* where a file with the ids that were given can be; NULL: nowhere */
};
/* What came of a call of tidy: nothing is left to do; a piece is done, there may be more; stop has said so. */
enum tsp_tidied { TSP_TIDY_ALL, TSP_TIDY_SOME, TSP_TIDY_STOPPED };
enum { TSP_LACKS = 100 };
/* No entry's number. */
#define TSP_NO_ENTRY INT64_MAX

/* The functions are called by many threads at once; those that take tsp_data, between open and close. */
struct tsp_backend {
    void *arg;
    /* NULL at the end: those that outputs can be derived from, or derived outputs are shown by. */
    const struct tsp_provider *const *providers;
    /* Is there a trace at or below the path? ERR_IO: it cannot be read; others: none. Opens nothing. */
    int (*look)(void *arg, const char *path, struct err *);
    /* Takes as long as it needs; reports its progress by `grow`. ERR_CANCELLED soon after `stop` says so. */
    int (*open)(void *arg, const struct tsp_open_request *, struct tsp_data **out, struct err *);
    /* After open, while first requests are answered: loads what they are about to need, until `stop` says so. */
    void (*populate)(struct tsp_data *, bool (*stop)(void *), void *stop_arg);
    /* After populate: does a piece of what keeps small what is written with each opening, to its end or until `stop`
     * says so. Answers are made meanwhile, and stay what they are. */
    enum tsp_tidied (*tidy)(struct tsp_data *, bool (*stop)(void *), void *stop_arg);
    /* ERR_LOST when files were cut off since they were opened: what was computed must not be shown. */
    int (*intact)(struct tsp_data *, struct err *);
    void (*close)(struct tsp_data *);
    /* Memory is short: forgets what is kept only to be fast and not in use. */
    void (*give_memory)(struct tsp_data *);
    /* Is the operation answered? Annotations and their categories, and styles, always are. */
    bool (*offers)(const struct tsp_provider *, enum tsp_operation);
    /* Writes the value of "model" (nothing at all: null) and sets the answer's status. Annotation categories: items of
     * an open array; annotations: members "category": [ … ] of an open object. */
    void (*ask)(struct tsp_data *, const struct tsp_provider *, const struct tsp_query *, struct tsp_answer *);
    /* Of an entry that all outputs share: its high 52 bits are its id, unless another entry has that. The same wherever
     * and with whatever else its trace is opened. */
    uint64_t (*key)(struct tsp_data *, int64_t number);
    /* Those that have a key with that id, at most `max`; returns how many. */
    size_t (*find)(struct tsp_data *, uint64_t id, int64_t *numbers, size_t max);
    /* A time by the clock of that host (as tsp_data.reference names it) by the clock that answers are in; as it is when
     * nothing is known of it. */
    int64_t (*by_reference)(struct tsp_data *, const char *host, int64_t t);
    /* What is wrong with a configuration to derive an output with; NULL: nothing. *code is set then. */
    const char *(*check)(struct tsp_data *, const struct tsp_provider *, json_t *parameters, struct arena *,
        enum tsp_code *code);
    /* A derived output was removed. Requests for it may still run. */
    void (*forget)(struct tsp_data *, const struct tsp_provider *, json_t *parameters);
};

#endif
