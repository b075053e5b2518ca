/* SPDX-License-Identifier: MIT */
/* Merged event table for queries: columns and cells, selection of events, rows in order of time with search, pairs of
 * events.
 *
 * Rows are items of a merge: events, and losses between them. */
#ifndef WEFT_EVENTS_EVENTS_H
#define WEFT_EVENTS_EVENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/map.h"
#include "base/regex.h"
#include "base/text.h"
#include "base/time.h"
#include "clock/clock.h"
#include "ctf/ctf.h"
#include "index/index.h"

/* ---- the table ---- */

/* Origin of a source's events. All borrowed. */
struct event_origin {
    const char *host;        /* host's name; NULL: unknown */
    uint32_t host_number;    /* equal for all sources of a host, from 0 on */
    const struct index_host *index; /* stores that show the thread on a CPU if events do not; NULL: none */
    const struct clock_map *map;    /* converts the host's clock to the table's; NULL: both are the same */
};

/* Column ids, which clients remember: new columns are added at the end. */
enum {
    EVENT_TIMESTAMP, EVENT_TRACE, EVENT_CHANNEL, EVENT_CPU, EVENT_TYPE, EVENT_CONTENTS, EVENT_PACKET_CONTEXT,
    EVENT_STREAM_CONTEXT, EVENT_CONTEXT, EVENT_TID, EVENT_PID, EVENT_TIMESTAMP_NS, EVENT_PRIO, EVENT_COLUMNS
};
struct event_column { int64_t id; const char *name, *description, *type; /* NUMBER, TIMESTAMP; NULL: text */ };

struct event_table;          /* immutable: threads may share it */
/* sources: borrowed; origins: one per source, copied. */
struct event_table *events_table_new(const struct ctf_source *sources, const struct event_origin *origins, size_t n);
void events_table_free(struct event_table *);
/* Columns for which these traces have contents, in order of display. Below, a column is its number among them. */
size_t events_table_columns(const struct event_table *, const struct event_column **out);

/* ---- selection: by name, CPU, thread and expression (docs/verbs/events.md) ---- */

struct event_filter_options {
    /* Lists of shell patterns, each separated by commas and optional blanks. */
    const char *const *names; size_t n_names;
    int64_t cpu, tid;        /* -1: all */
    const char *where;       /* expression, or NULL */
};

struct event_filter;         /* filter with one owner */
/* `window` must be the merge's: if the filter asks for threads, those running at its begin are searched. */
int events_filter_new(const struct event_table *, const struct event_filter_options *, struct ctf_window window,
    struct event_filter **out, struct err *e);
/* Returns whether an item is selected. Call it for every item in order, since it follows the current threads. Losses
 * are selected by CPU only. */
bool events_filter_matches(struct event_filter *, const struct ctf_merge *, const struct ctf_event *);
void events_filter_free(struct event_filter *);
/* Calls `tell` for every part of a selection that matches no event of these traces, probably by mistake: names of
 * events, fields and hosts, CPUs, texts compared with numbers. option: "names", "cpu" or "where"; text: a sentence. */
void events_doubts(const struct event_table *, const struct event_filter_options *,
    void (*tell)(void *arg, const char *option, const char *text), void *arg);

/* ---- lines of chosen columns (docs/verbs/events.md) ---- */

struct event_lines;          /* writer with one owner */
/* lists: names of columns, separated by commas and optional blanks. ERR_ARG: there are none, or one twice. `window`:
 * see events_filter_new. */
int events_lines_new(const struct event_table *, const char *const *lists, size_t n, bool json,
    struct ctf_window window, struct event_lines **out, struct err *e);
void events_lines_free(struct event_lines *);
void events_lines_header(const struct event_lines *, struct text *out); /* CSV */
/* Appends the lines of wanted items. Call it for every item in order, since it follows the current threads. */
void events_lines_put(struct event_lines *, const struct ctf_merge *, const struct ctf_event *, bool wanted,
    struct text *out);
/* Checks columns as events_doubts. option: "columns". */
void events_column_doubts(const struct event_table *, const char *const *lists, size_t n,
    void (*tell)(void *arg, const char *option, const char *text), void *arg);

/* pattern searched in the cell's text */

struct event_term { int64_t column; /* id */ const char *pattern; /* pattern searched in the cell's text */ };
struct event_wanted {
    const struct event_term *terms; size_t n_terms; /* terms that must all match; an absent column never matches */
    const char *where;       /* see event_filter_options; or NULL */
};

struct event_match;          /* matcher with one owner */
/* Errors are those of the expression. Borrows `wanted`. */
int events_match_new(const struct event_table *, const struct event_wanted *wanted, struct event_match **out,
    struct err *e);
void events_match_free(struct event_match *);

/* ---- rows ---- */

/* Pager: a few readers over all events, so that a client that pages through them continues where it stopped; and
 * background scans for matching rows, one for all clients with the same conditions. Thread-safe. */
struct event_pager;
/* Counts the events of traces that are not counted yet, which may take long. */
struct event_pager *events_pager_new(const struct event_table *);
void events_pager_free(struct event_pager *); /* stops running scans */
uint64_t events_pager_items(const struct event_pager *);

/* All rows, or the matching ones found so far. One owner; for one request. */
struct event_rows;
/* wanted NULL: all rows; otherwise waits a moment for the scan. `near`: first row that will be requested; UINT64_MAX:
 * rows will be requested by time. Errors: those of the expression. */
int events_rows_open(struct event_pager *, const struct event_wanted *wanted, uint64_t near, struct event_rows **out,
    struct err *e);
void events_rows_close(struct event_rows *);
/* Number of known rows; *done: there are no more. */
uint64_t events_rows_count(const struct event_rows *, bool *done);
/* First row at or after the time; events_rows_count if there is none, or it is not found yet. */
uint64_t events_rows_at(struct event_rows *, int64_t time);
/* Event of a row; fast if rows below `end` are requested in order. NULL: none. Valid until the next call that reads. */
const struct ctf_event *events_rows_get(struct event_rows *, uint64_t row, uint64_t end);
/* Appends the text of a cell of the event, which must be from events_rows_get. */
void events_rows_cell(struct event_rows *, const struct ctf_event *, size_t column, struct text *out);
/* Returns whether the event matches all terms; false without any. Not for a match with `where`. */
bool events_rows_fit(const struct event_rows *, struct event_match *, const struct ctf_event *);
/* First matching row from `row` on, or (backward) the last up to `row`; waits for rows that are not found yet.
 * UINT64_MAX: none, or `gone` (called now and then) says that the client has disconnected. */
uint64_t events_rows_find(struct event_rows *, struct event_match *, uint64_t row, bool backward,
    bool (*gone)(void *arg), void *arg);

/* ---- pairs: an event that matches one expression opens, one that matches another closes ---- */

enum { EVENT_PAIR_SPECIFIERS = 64 };
enum event_pair_label { EVENT_LABEL, EVENT_LABEL_IN, EVENT_LABEL_OUT, EVENT_LABEL_CONTEXT_IN, EVENT_LABEL_CONTEXT_OUT };
struct event_pair_specifier {
    char *label;
    enum event_pair_label label_is;      /* the text, or the part of the opening event that an expression captures */
    struct regex *in, *out;              /* match whole names of events */
    struct regex *context_in, *context_out; /* search the fields; NULL: no context */
    size_t classifier;                   /* column with equal text in both; SIZE_MAX: none */
};
struct event_pair_config { struct event_pair_specifier v[EVENT_PAIR_SPECIFIERS]; size_t n; };
void events_pair_config_free(struct event_pair_config *); /* frees the contents; the texts are from mem_strdup */

/* Times of the table's clock; row, name: indices into rows and names below. */
struct event_pair { int64_t begin, end; uint32_t row, name; };
static inline int64_t event_pair_duration(const struct event_pair *v) { return time_between(v->begin, v->end); }
/* Row of pairs: those open at the same time on a host with equal classifier and context are on different levels, from 0
 * on. */
struct event_pair_row { uint32_t host, level; const char *classifier, *context; size_t first, n; /* in by_row */ };
struct event_pair_name { uint32_t host; const char *label; };
/* Immutable. */
struct event_pairs {
    struct event_pair *v; size_t n;      /* by begin: first the `closed` ones, then those without a seen end */
    size_t closed;
    struct event_pair_row *rows; size_t n_rows; /* rows by host, classifier, context, level */
    uint32_t *by_row;                    /* numbers of pairs, by row, then by begin */
    struct event_pair_name *names; size_t n_names; /* names by host, label */
    struct strings texts;                /* strings of all these */
};
/* Reads all events once. Calls `progress` now and then with the number read since; a result other than 0 ends it with
 * that error. Pairs open at the last event last until `end`, or that event. ERR_LIMIT: an expression needs too many
 * steps, or there are too many rows or names. */
int events_pairs_read(const struct event_table *, const struct event_pair_config *, int64_t end,
    int (*progress)(void *arg, size_t events, struct err *e), void *arg, struct event_pairs **out, struct err *e);
void events_pairs_free(struct event_pairs *);
/* First of the closed pairs that begins at or after t. */
size_t events_pairs_find(const struct event_pairs *, int64_t t);

#endif
