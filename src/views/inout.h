/* Private to views: the In-and-out analysis: an event that a user's expression fits opens, one that another fits closes;
 * what lies between is a pair.
 *
 * An experiment is read once per configuration, in the background; what was found is kept while it is asked for. */
#ifndef WEFT_VIEWS_INOUT_H
#define WEFT_VIEWS_INOUT_H

#include "base/map.h"
#include "base/regex.h"
#include "events/cell.h"
#include "views/view.h"

/* ---- what is wanted ---- */

#define INOUT_TYPE "org.eclipse.tracecompass.incubator.internal.inandout.core.config"
extern const char inout_schema[];        /* JSON schema of the parameters */

enum { INOUT_MAX_SPECIFIERS = 64 };
enum inout_label { INOUT_LABEL, INOUT_LABEL_IN, INOUT_LABEL_OUT, INOUT_LABEL_CONTEXT_IN, INOUT_LABEL_CONTEXT_OUT };
struct inout_specifier {
    char *label;
    enum inout_label label_is;           /* the text, or what an expression captures of the event that opens */
    struct regex *in, *out;              /* fit whole names of events */
    struct regex *context_in, *context_out; /* look into their fields; NULL: no context */
    size_t classifier;                   /* place in the cells' columns; SIZE_MAX: none */
};
struct inout_config { struct inout_specifier v[INOUT_MAX_SPECIFIERS]; size_t n; };
/* NULL; or what is wrong with the parameters, in the arena (`out` is as good as freed then). */
const char *inout_config_parse(const struct event_cells *, json_t *parameters, struct arena *,
    struct inout_config *out);
void inout_config_free(struct inout_config *);

/* ---- what is found ---- */

/* times of the reference clock; row, name: numbers of the below */
struct inout_pair { int64_t begin, end; uint32_t row, name; };
static inline int64_t inout_duration(const struct inout_pair *v)
{
    uint64_t ns = (uint64_t)v->end - (uint64_t)v->begin;
    return ns < INT64_MAX ? (int64_t)ns : INT64_MAX;
}
/* What is open at once on a host with the same classifier and context lies on levels, from 0 on; each is a row. */
struct inout_row { uint32_t host, level; const char *classifier, *context; size_t first, n; /* in by_row */ };
struct inout_name { uint32_t host; const char *label; };
/* Immutable. */
struct inout_pairs {
    struct inout_pair *v; size_t n;
    size_t closed;                       /* the first ones, by begin; behind them, by begin, those of which no end
                                          * was seen */
    struct inout_row *rows; size_t n_rows; /* by host, classifier, context, level */
    uint32_t *by_row;                    /* numbers of pairs, by row, in each by begin */
    struct inout_name *names; size_t n_names; /* by host, label */
    struct strings texts;                /* that all these point to */
};
void inout_pairs_free(struct inout_pairs *);
/* First of the closed pairs that begins at or after t. */
size_t inout_find(const struct inout_pairs *, int64_t t);

/* A pass over the events of an experiment, in order; one owner. */
struct inout_pass;
struct inout_pass *inout_pass_new(const struct event_cells *, const struct inout_config *);
/* The next event. ERR_LIMIT: an expression needs too many steps, or too much is told apart. */
int inout_pass_add(struct inout_pass *, const struct ctf_merge *, const struct ctf_event *, struct err *);
/* What was found; the pass can only be freed then. */
struct inout_pairs *inout_pass_finish(struct inout_pass *);
void inout_pass_free(struct inout_pass *);

/* ---- in the background ---- */

struct inout_kept;                       /* of an experiment; thread-safe */
void *inout_kept_new(struct views *);
void inout_kept_free(struct inout_kept *); /* ends what is being read */
const struct event_cells *inout_cells(const struct inout_kept *);
struct inout_entry;
struct inout_answer {
    const struct inout_pairs *pairs;     /* NULL: not yet, or failed */
    int status;                          /* TSP_RUNNING, TSP_COMPLETED, TSP_FAILED */
    const char *message;                 /* arena or static; NULL: the usual word */
    struct inout_entry *entry;
};
/* What the parameters ask for; begins to read when nobody does. Waits a moment, as long as the client is there. To be
 * given back. Arena: the request's. */
struct inout_answer inout_get(struct inout_kept *, json_t *parameters, struct http_request *);
void inout_release(struct inout_kept *, struct inout_answer *);
/* Nobody wants it any more: ends what is being read for it, forgets what was found. */
void inout_forget(struct inout_kept *, json_t *parameters);

/* The answer for a query on a view of a derived output: `write` writes the model once there is something to write. */
typedef void inout_write(struct views *, const struct tsp_query *, const struct inout_pairs *, struct tsp_answer *);
void inout_answer_with(struct views *, const struct tsp_query *, struct tsp_answer *, inout_write *);
/* Entry ids: of hosts, rows, names. */
int64_t inout_host_id(const struct views *, size_t host);
int64_t inout_row_id(const struct views *, size_t row);
int64_t inout_name_id(const struct views *, size_t name);

/* Views (not in the list of providers: derived outputs bring them). */
extern const struct view view_inout_chart, view_inout_table, view_inout_scatter, view_inout_statistics,
    view_inout_density;

#endif
