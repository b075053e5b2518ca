/* SPDX-License-Identifier: MIT */
/* Interface between the protocol and the data. A backend opens traces, lists the outputs that can be made of them, and
 * answers queries about each. `views` is a backend for traces on this machine. The protocol knows nothing of what is
 * analysed; the backend knows nothing of requests, bookmarks and restarts. */
#ifndef WEFT_TSP_PROVIDER_H
#define WEFT_TSP_PROVIDER_H

#include <jansson.h>

#include "base/arena.h"
#include "base/err.h"
#include "http/http.h"
#include "tsp/answer.h"

/* ---- outputs ---- */

/* Data provider, as the protocol lists it. Lives as long as the backend. */
struct tsp_provider {
    const char *id;              /* id, equal in every experiment; families add ":NAME" */
    const char *name, *description;
    const char *type;            /* TIME_GRAPH, TREE_TIME_XY, TABLE, DATA_TREE, NONE, … */
    const char *parent;          /* id of the grouping output, or NULL */
    const char *family;          /* outputs of a family share the entries with equal keys; NULL: alone */
    const struct tsp_derivation *derivation; /* outputs can be derived from it (canCreate); or NULL */
};

/* Derivation of an output from a provider. Operations on the derived output are those of the provider, with
 * tsp_query.configuration set. */
struct tsp_derivation {
    const char *type, *name, *schema; /* texts of the configuration; schema: JSON text */
    const char *const *times;    /* parameters that are times in ns if they are integers; NULL at the end; or NULL */
    const char *output_type;     /* type of derived outputs; NULL: the provider's */
    const char *prefix;          /* prefix of their ids; NULL: the provider's id and a colon */
    /* Views of a derived output: outputs with ids "SHOWN BY:DERIVED"; NULL at the end. NULL: it shows itself. */
    const struct tsp_provider *const *shown_by;
};

/* Output of opened traces. Lives as long as they are open. */
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
/* Query, parsed and checked for its operation. All that it points to lives in the request's arena. */
struct tsp_query {
    enum tsp_operation operation;
    struct http_request *http;           /* arena; http_gone() in long loops */
    json_t *parameters;                  /* the object "parameters" (never NULL) */
    int64_t begin, end;                  /* requested range; the whole experiment if absent */
    bool has_range;
    /* sample times: expanded range or requested_times, ascending; at least 1 for states, xy and tooltip */
    const int64_t *times; size_t n_times;
    /* requested_items, ascending, distinct; has_items: the request has them */
    const int64_t *items; size_t n_items;
    bool has_items;
    const struct tsp_filter *filter;     /* filter_query_parameters; NULL: none */
    bool deep;                           /* strategy DEEP: at least one matching state per gap between samples */
    const char *marker_set;
    json_t *marker_categories;           /* array of strings, or NULL: all */
    /* tables */
    int64_t index, count;
    int64_t table_time, table_value; bool by_time, by_value;
    const int64_t *columns; size_t n_columns; bool has_columns; /* columns in the order requested */
    json_t *row_filter;                  /* table_filter_expressions, like `search`: other rows do not exist; or NULL */
    struct kept_rows *kept;              /* cached rows of earlier filters; or NULL */
    json_t *search;                      /* {column id: regular expression}, or NULL */
    bool search_find, search_backward;   /* find the next or the previous match */
    /* tooltips: element in lower case ("state", "annotation", "arrow"). Absent times and ids: 0 and -1; ids of no
     * entry: TSP_NO_ENTRY */
    const char *element;
    int64_t element_time, element_duration, element_entry, element_destination;
    json_t *configuration;               /* derived outputs: parameters of their configuration; else NULL */
    const char *output_id;               /* full id as requested ("…:System Call", derived ids) */
    const char *member;                  /* families: the suffix behind the colon, else NULL */
};
/* True: the query wants the item: requested_items holds the id, or is absent. */
bool tsp_wants(const struct tsp_query *, int64_t id);
/* True: the query wants annotations of that category. */
bool tsp_wants_category(const struct tsp_query *, const char *category);

/* Tags (0, 1 dim, 4 exclude, 8 highlight) that the filter gives an element with these properties. Keys are compared
 * without regard to case. Pass "label" if there is one, "duration" and "start" in ns as decimal text, and what the
 * tooltip shows. */
struct tsp_property { const char *key, *value; };
int tsp_filter_tags(const struct tsp_query *, const struct tsp_property *, size_t n);

/* ---- opened traces ---- */

/* Figures of a trace that is open. `properties`: names and values. */
struct tsp_figures { uint64_t events; int64_t begin, end; size_t n_properties; const char *const (*properties)[2]; };
void tsp_figures_add(struct tsp_figures *sum, const struct tsp_figures *); /* figures without events do not count */

struct progress;
/* Traces to be opened together. All is borrowed until they are closed. */
struct tsp_open_request {
    const char *name;                    /* name of the experiment */
    const char *const *paths;            /* real paths, distinct */
    const char *const *hosts;            /* names for hosts by path, or NULL */
    size_t n;
    /* Called by several threads while traces are read, with the number of further events below paths[i], and their
     * times. */
    void (*grow)(void *arg, size_t i, uint64_t events, int64_t begin, int64_t end);
    bool (*stop)(void *arg);             /* called while traces are read; true: nobody wants them any more */
    void *arg;
    struct progress *progress;           /* bytes read of the traces; or NULL */
};

/* Host with data missing in every answer (failed: all of it). */
struct tsp_lack { const char *host, *why; bool failed; };

/* Traces opened together, as the protocol sees them: immutable. The backend's own struct begins with it.
 * Queries and answers identify entries by numbers. The backend counts them in each output from 0, while the traces are
 * open. Clients know entries by ids, which survive growth, restarts and copies. Ids come from keys: the entry's
 * identity among its siblings (tsp_entry.key), below the identity of its parent. */
struct tsp_data {
    int64_t begin, end;                  /* range of all traces, in the clock of answers */
    const char *reference;               /* host of that clock; NULL: each host's times are in its own */
    uint64_t events;
    const struct tsp_figures *figures;   /* figures by path of the request */
    const struct tsp_output *outputs; size_t n_outputs;
    const struct tsp_lack *lacks; size_t n_lacks; /* the first TSP_LACKS of them are reported */
    size_t whole;                        /* number of hosts with nothing missing */
    int64_t shared;                      /* entries below this number are the same in every output: see `key` */
    const char *ids_dir;                 /* directory for the file of given ids; NULL: none */
};
/* Result of a call of tidy: nothing is left; a piece is done, with maybe more to do; stop returned true. */
enum tsp_tidied { TSP_TIDY_ALL, TSP_TIDY_SOME, TSP_TIDY_STOPPED };
enum { TSP_LACKS = 100 };
/* Number of no entry. */
#define TSP_NO_ENTRY INT64_MAX

/* Functions of the backend. Many threads call them at once. Those that take tsp_data are called between open and
 * close. */
struct tsp_backend {
    void *arg;
    /* Providers from which outputs can be derived, and those that show derived outputs; NULL at the end. */
    const struct tsp_provider *const *providers;
    /* Returns 0 if there is a trace at or below the path. ERR_IO: it cannot be read; other errors: no trace. Opens
     * nothing. */
    int (*look)(void *arg, const char *path, struct err *);
    /* Opens the traces, which may take long; reports progress by `grow`. ERR_CANCELLED soon after `stop` returns
     * true. */
    int (*open)(void *arg, const struct tsp_open_request *, struct tsp_data **out, struct err *);
    /* Loads what the first requests are about to need, until `stop` returns true. Called after open, while requests are
     * answered. */
    void (*populate)(struct tsp_data *, bool (*stop)(void *), void *stop_arg);
    /* Compacts, piece by piece, what each opening writes: does a piece, to its end or until `stop` returns true.
     * Called after populate. Answers are made meanwhile, and do not change. */
    enum tsp_tidied (*tidy)(struct tsp_data *, bool (*stop)(void *), void *stop_arg);
    /* ERR_LOST: files were truncated since they were opened; what was computed must not be shown. */
    int (*intact)(struct tsp_data *, struct err *);
    void (*close)(struct tsp_data *);
    /* Frees what is kept only for speed and not in use, when memory is short. */
    void (*give_memory)(struct tsp_data *);
    /* True: the operation is answered. Annotations, their categories, and styles always are. */
    bool (*offers)(const struct tsp_provider *, enum tsp_operation);
    /* Writes the value of "model" (nothing: null) and sets the answer's status. Annotation categories: items of an open
     * array; annotations: members "category": [ … ] of an open object. */
    void (*ask)(struct tsp_data *, const struct tsp_provider *, const struct tsp_query *, struct tsp_answer *);
    /* Key of an entry that all outputs share. Its high 52 bits are the entry's id, unless another entry has that. It
     * does not depend on the place of its trace, or on other traces opened with it. */
    uint64_t (*key)(struct tsp_data *, int64_t number);
    /* Finds entries whose key has that id, at most `max`; returns their number. */
    size_t (*find)(struct tsp_data *, uint64_t id, int64_t *numbers, size_t max);
    /* Converts a time from that host's clock (a name as in tsp_data.reference) to the clock of answers. An unknown
     * clock leaves it unchanged. */
    int64_t (*by_reference)(struct tsp_data *, const char *host, int64_t t);
    /* Checks a configuration for a derived output. Returns NULL, or the error; *code is then set. */
    const char *(*check)(struct tsp_data *, const struct tsp_provider *, json_t *parameters, struct arena *,
        enum tsp_code *code);
    /* Reports that a derived output was removed. Requests for it may still run. */
    void (*forget)(struct tsp_data *, const struct tsp_provider *, json_t *parameters);
};

#endif
