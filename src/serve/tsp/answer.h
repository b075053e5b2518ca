/* SPDX-License-Identifier: MIT */
/* Writers of models: keys and order as clients expect them (docs/tsp.md). */
#ifndef WEFT_TSP_ANSWER_H
#define WEFT_TSP_ANSWER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/json.h"

struct tsp_query; struct tsp_entries;

/* ---- codes: the meaning of an answer's message, for programs; its words may change ----
 *
 * Errors have it as member "code", as do answers whose message says more than their status (docs/tsp.md). Names never
 * change; new ones may be added. */
#define TSP_CODES(X) \
    X(NOTE)              /* the status message says something about the data */ \
    X(LOCAL_PATH)        /* the critical path ends at the machines of one server */ \
    X(INVALID_QUERY)     /* the question is wrong, or nothing here is what it asks for */ \
    X(AMBIGUOUS_THREAD)  /* threads of several machines match, or several one after the other: name one */ \
    X(NOT_FOUND)         /* 404 */ \
    X(NOT_OFFERED)       /* 405, 501: this server does not do that */ \
    X(FORBIDDEN)         /* 401, 403 */ \
    X(CONFLICT)          /* 409: the name stands for something else */ \
    X(TOO_LARGE)         /* 413, or the answer would be too large: ask for less */ \
    X(UNAVAILABLE)       /* 502, 503: ask again later */ \
    X(NO_ROOM)           /* 507: the disk is full */ \
    X(LOOP)              /* 508: coordinators ask each other in a circle */ \
    X(FAILED)            /* anything else */
#define TSP_CODE_ENUM(name) TSP_CODE_##name,
enum tsp_code { TSP_CODE_NONE, TSP_CODES(TSP_CODE_ENUM) TSP_N_CODES };
/* Returns NULL for TSP_CODE_NONE. */
const char *tsp_code_name(enum tsp_code);
/* Code of an HTTP status, for errors without a more exact one. */
enum tsp_code tsp_code_of_status(int status);
/* Writes the member "progress" of an open object. */
void tsp_write_progress(struct json *, uint64_t done, uint64_t of);

/* Answer while it is written. A writer may end early once http_gone returns true: the answer is then marked as
 * incomplete. Parts without a writer below are written to `json`. */
enum tsp_status { TSP_COMPLETED, TSP_RUNNING, TSP_FAILED, TSP_CANCELLED };
struct tsp_answer {
    struct json json;
    enum tsp_status status;
    const char *message;                 /* NULL: the usual word for the status; valid as long as the request */
    const char *detail;                  /* failed table: error in the parameter that message names */
    enum tsp_code code;                  /* code of the message; NONE: NOTE, or FAILED for a failed answer */
    /* RUNNING answers: work done, and all work. `of` 0: unknown. */
    struct { uint64_t done, of; } progress;
    struct tsp_entries *entries;         /* ids to write for given numbers; NULL: the numbers are written */
};

/* True: the answer is too large to send, and long loops should end. The writers below then write nothing more. */
bool tsp_full(const struct tsp_answer *);
void tsp_fail(struct tsp_answer *, enum tsp_code, const char *message);
/* Id by which clients know an entry, for parts without a writer below. */
int64_t tsp_id(const struct tsp_answer *, int64_t number);

/* ---- merging: how the values of several servers for one row or series become one (docs/tsp.md) ---- */

#define TSP_MERGES(X) \
    X(FIRST)             /* the first text that says something */ \
    X(SUM)               /* the sum; of rows: a sum over machines, added up over servers */ \
    X(MIN)               /* the least; of type TIME_RANGE: where it is */ \
    X(MAX)               /* the greatest */ \
    X(MEAN)              /* the sum of `of` divided by that of `by`; without `by`: weighted by time */ \
    X(DEVIATION)         /* the standard deviation, from figures of durations */ \
    X(SHARE)             /* `of` as a share of `by` of the root above; without `by`: of the range's length */ \
    X(COUNTS)            /* rows of a generic XY: counts by ranges of durations, an eighth of a decade each */ \
    X(LEVEL)             /* series: what is there at a time, from the server that has the time */ \
    X(CONCATENATE)       /* series: the points of all */
#define TSP_MERGE_ENUM(name) TSP_##name,
enum tsp_merge { TSP_MERGE_NONE, TSP_MERGES(TSP_MERGE_ENUM) TSP_N_MERGES };
const char *tsp_merge_name(enum tsp_merge); /* NULL of TSP_MERGE_NONE */

/* ---- trees: begin, entries, end ---- */

/* type: NUMBER, BINARY_NUMBER, TIMESTAMP, DURATION, STRING, TIME_RANGE, or NULL. key: the column's name for programs,
 * equal on all servers; NULL: none ("row" for the first column). of, by: members of the entries' metadata with the
 * numbers behind the cells; of NULL: the key. */
struct tsp_header { const char *name, *tooltip, *type, *key; enum tsp_merge merge; const char *of, *by; };
void tsp_begin_tree(struct tsp_answer *, const struct tsp_header *, size_t n, int auto_expand); /* levels; -1: all */
/* Metadata: the text, or (NULL) the number, or (is_real) the other number. */
struct tsp_meta { const char *key, *text; int64_t number; bool is_real; double real; };
struct tsp_entry {
    int64_t id, parent;                  /* numbers; parent -1: a root. Parents precede children */
    /* Identity among the children of its parent, forever: a nonzero hash of what does not change when traces grow. 0:
     * its first label is its identity. See docs/add-a-view.md. */
    uint64_t key;
    const char *const *labels; size_t n_labels;
    /* time_graph: start and end are written. The first entry of a time graph starts at the experiment's begin. */
    bool time_graph; int64_t start, end;
    bool xy, is_default;                 /* xy: isDefault is written */
    bool has_data;
    const char *host_id;                 /* metadata hostId, or NULL */
    bool has_tid; int32_t tid;           /* metadata TID */
    const char *container;               /* metadata Container, or NULL */
    const struct tsp_meta *meta; size_t n_meta; /* further metadata, also the numbers shown in labels */
    const char *style_key;               /* key of a style, or NULL */
    /* Key of rows of several servers that are merged into one row, or are parts of one; NULL: none. */
    const char *row; enum tsp_merge merge;
};
void tsp_write_entry(struct tsp_answer *, const struct tsp_entry *);
void tsp_end_tree(struct tsp_answer *);

/* ---- time graphs: begin, per row begin … end, end ---- */

void tsp_begin_rows(struct tsp_answer *);
void tsp_begin_row(struct tsp_answer *, int64_t entry);
struct tsp_state { int64_t start, end; const char *label, *style_key; int tags; };
void tsp_write_state(struct tsp_answer *, const struct tsp_state *);  /* style_key NULL: known to be blank */
void tsp_end_row(struct tsp_answer *);
void tsp_end_rows(struct tsp_answer *);

void tsp_begin_arrows(struct tsp_answer *);
void tsp_write_arrow(struct tsp_answer *, int64_t start, int64_t end, int64_t source, int64_t target,
    const char *style_key);
void tsp_end_arrows(struct tsp_answer *);

/* Writes an item of the array of its category. entry -1: it belongs to the whole chart. */
void tsp_write_annotation(struct tsp_answer *, int64_t time, int64_t duration, int64_t entry, const char *label,
    const char *color, double opacity);

/* Tooltips: begin, texts by name, end. */
void tsp_begin_tooltip(struct tsp_answer *);
void tsp_write_tip(struct tsp_answer *, const char *name, const char *value);
void tsp_end_tooltip(struct tsp_answer *);

/* ---- XY: begin, series, end ---- */

void tsp_begin_xy(struct tsp_answer *, const char *title);
struct tsp_series {
    int64_t id; const char *name, *type; /* line, area, scatter, bar */
    const int64_t *x; const double *y; size_t n;
    const char *x_label, *x_unit, *x_type; /* x_type NULL: TIMESTAMP */
    const char *y_label, *y_unit, *y_type; /* y_type NULL: NUMBER */
    const char *const *categories;       /* generic XY: instead of x */
    const int64_t (*ranges)[2];          /* generic XY: instead of x */
    enum tsp_merge merge;                /* merge of pieces that several servers have */
};
void tsp_write_series(struct tsp_answer *, const struct tsp_series *); /* whole y are written without fraction */
void tsp_end_xy(struct tsp_answer *);

/* ---- styles: begin, one call per key, end ---- */

void tsp_begin_styles(struct tsp_answer *);
/* parent NULL: none; color "#rrggbb" or NULL; height, opacity < 0: not written; name: legend, or NULL. */
void tsp_write_style(struct tsp_answer *, const char *key, const char *parent, const char *color, double height,
    double opacity, const char *name);
void tsp_end_styles(struct tsp_answer *);

/* ---- tables ---- */

struct tsp_column {
    int64_t id;
    const char *name, *description, *type; /* type as in tsp_header; NULL: STRING */
    const char *numbers_of;              /* output whose entries the cells' numbers refer to; or NULL */
    /* 0, or the number of a column that is shown only on request: its values tell others how to fill in cells that
     * are empty here. */
    int64_t found_by;
    bool descending;                     /* lines are sorted by its numbers, greatest first */
    bool ascending;                      /* lines are sorted by its times */
    const char *key;                     /* key as in tsp_header; NULL: the number, equal on all servers */
    enum { TSP_SHOWN, TSP_ASIDE, TSP_WIDE } display; /* ASIDE: hidden at first; WIDE: long texts */
};
/* Appends the text of a cell. `column`: index into the table's columns, not an id. */
typedef void tsp_cell(void *arg, size_t row, size_t column, struct text *out);
/* Tables that are read while they are written: begin, lines, end. Columns: all, or those of the query. */
struct tsp_lines { struct tsp_answer *answer; const size_t *columns; size_t n_columns; };
struct tsp_lines tsp_begin_lines(struct tsp_answer *, const struct tsp_query *, const struct tsp_column *, size_t n,
    uint64_t low, uint64_t size);
/* found: the line matches the search. */
void tsp_write_line(const struct tsp_lines *, uint64_t index, bool found, tsp_cell *, void *arg, size_t row);
void tsp_end_lines(const struct tsp_lines *);
/* Table with random access to its rows. */
struct tsp_table {
    const struct tsp_column *columns; size_t n_columns;
    size_t rows;
    void *arg;
    tsp_cell *cell;
    /* requested_times: ascending with the rows; NULL: always row 0 */
    int64_t (*time)(void *arg, size_t row);
    /* requested_value: the number of the column that is `descending` */
    int64_t (*value)(void *arg, size_t row);
};
void tsp_table_columns(struct tsp_answer *, const struct tsp_column *, size_t n);
/* Writes lines by index or time, with search, as in the protocol. Ends early when the client has gone. */
void tsp_table_lines(struct tsp_answer *, const struct tsp_table *, const struct tsp_query *);

#endif
