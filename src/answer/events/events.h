/* SPDX-License-Identifier: MIT */
/* The merged event table as questions ask it: columns and cells, which events are wanted, rows in order of time and
 * search among them, pairs of events.
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

/* Where the events of a source come from. All borrowed. */
struct event_origin {
    const char *host;        /* its name; NULL: not known */
    uint32_t host_number;    /* the same for all sources of a host, from 0 on */
    const struct index_host *index; /* its stores say who has a CPU where events do not; NULL: there are none */
    const struct clock_map *map;    /* from the host's clock to the table's; NULL: the same */
};

/* Clients remember these numbers: new columns go behind. */
enum {
    EVENT_TIMESTAMP, EVENT_TRACE, EVENT_CHANNEL, EVENT_CPU, EVENT_TYPE, EVENT_CONTENTS, EVENT_PACKET_CONTEXT,
    EVENT_STREAM_CONTEXT, EVENT_CONTEXT, EVENT_TID, EVENT_PID, EVENT_TIMESTAMP_NS, EVENT_PRIO, EVENT_COLUMNS
};
struct event_column { int64_t id; const char *name, *description, *type; /* NUMBER, TIMESTAMP; NULL: text */ };

struct event_table;          /* immutable: threads may share it */
/* sources: borrowed; origins: one of each source, copied. */
struct event_table *event_table_new(const struct ctf_source *sources, const struct event_origin *origins, size_t n);
void event_table_free(struct event_table *);
/* The columns that these traces have something for, as they are to be shown. Below, a column is its number among
 * them. */
size_t event_table_columns(const struct event_table *, const struct event_column **out);

/* ---- selection: by name, CPU, thread and expression (docs/verbs/events.md) ---- */

struct event_filter_options {
    /* Each a list of patterns as the shell's, with commas and maybe blanks between. */
    const char *const *names; size_t n_names;
    int64_t cpu, tid;        /* -1: all */
    const char *where;       /* expression, or NULL */
};

struct event_filter;         /* one owner */
/* `window` is the one that the merge will be given: the threads running at its begin are found out where the filter
 * asks for threads. */
int event_filter_new(const struct event_table *, const struct event_filter_options *, struct ctf_window window,
    struct event_filter **out, struct err *e);
/* To be asked for every item in order, since it follows which thread runs where. Losses only pass or fail by CPU. */
bool event_filter_matches(struct event_filter *, const struct ctf_merge *, const struct ctf_event *);
void event_filter_free(struct event_filter *);
/* Calls `tell` for whatever of a selection fits no event of these traces, likely by mistake: names of events, fields
 * and hosts, CPUs, texts compared with numbers. option: "names", "cpu" or "where"; text: a sentence. */
void event_doubts(const struct event_table *, const struct event_filter_options *,
    void (*tell)(void *arg, const char *option, const char *text), void *arg);

/* ---- lines of chosen columns (docs/verbs/events.md) ---- */

struct event_lines;          /* one owner */
/* lists: names of columns, with commas and maybe blanks between. ERR_ARG: there are none, or one twice. `window` as for
 * event_filter_new. */
int event_lines_new(const struct event_table *, const char *const *lists, size_t n, bool json,
    struct ctf_window window, struct event_lines **out, struct err *e);
void event_lines_free(struct event_lines *);
void event_lines_header(const struct event_lines *, struct text *out); /* CSV */
/* To be called for every item in order, since it follows which thread runs where; appends the lines of the wanted. */
void event_lines_put(struct event_lines *, const struct ctf_merge *, const struct ctf_event *, bool wanted,
    struct text *out);
/* As event_doubts, for columns. option: "columns". */
void event_column_doubts(const struct event_table *, const char *const *lists, size_t n,
    void (*tell)(void *arg, const char *option, const char *text), void *arg);

/* ---- search ---- */

struct event_term { int64_t column; /* id */ const char *pattern; /* finds something in the cell's text */ };
struct event_wanted {
    const struct event_term *terms; size_t n_terms; /* all must fit; where there is no such column, nothing fits */
    const char *where;       /* as in event_filter_options, or NULL */
};

struct event_match;          /* one owner */
/* Errors are those of the expression. `wanted` is borrowed. */
int event_match_new(const struct event_table *, const struct event_wanted *wanted, struct event_match **out,
    struct err *e);
void event_match_free(struct event_match *);

/* ---- rows ---- */

/* A few readers over all events, so that a client that pages through them goes on reading where it stopped; and scans
 * in the background for the rows that fit what is wanted, one for all who want the same. Thread-safe. */
struct event_pager;
/* Counts the events of traces that are not counted yet, which takes a while. */
struct event_pager *event_pager_new(const struct event_table *);
void event_pager_free(struct event_pager *); /* stops what runs */
uint64_t event_pager_items(const struct event_pager *);

/* All rows, or those that are wanted, as far as they are found. One owner; for one request. */
struct event_rows;
/* wanted NULL: all rows; else waits a moment for the scan. `near`: the row that will be asked for first; UINT64_MAX:
 * rows will be asked for by time. Errors: those of the expression. */
int event_rows_open(struct event_pager *, const struct event_wanted *wanted, uint64_t near, struct event_rows **out,
    struct err *e);
void event_rows_close(struct event_rows *);
/* How many are known; *done: there are no more. */
uint64_t event_rows_count(const struct event_rows *, bool *done);
/* First row at or after the time; event_rows_count when there is none, or it is not found yet. */
uint64_t event_rows_at(struct event_rows *, int64_t time);
/* The event of a row; quick where rows below `end` are asked for in order. NULL: there is none. Valid until the next
 * call that reads. */
const struct ctf_event *event_rows_get(struct event_rows *, uint64_t row, uint64_t end);
/* Appends the text of a cell of the event, which event_rows_get gave. */
void event_rows_cell(struct event_rows *, const struct ctf_event *, size_t column, struct text *out);
/* Does the event have all the terms? False without any. Not for a match with `where`. */
bool event_rows_fit(const struct event_rows *, struct event_match *, const struct ctf_event *);
/* The first row from `row` on that fits, or (backward) the last up to `row`; waits for rows that are still to be found.
 * UINT64_MAX: none, or `gone` (asked now and then) says that nobody waits any more. */
uint64_t event_rows_find(struct event_rows *, struct event_match *, uint64_t row, bool backward,
    bool (*gone)(void *arg), void *arg);

/* ---- pairs: an event that an expression fits opens, one that another fits closes ---- */

enum { EVENT_PAIR_SPECIFIERS = 64 };
enum event_pair_label { EVENT_LABEL, EVENT_LABEL_IN, EVENT_LABEL_OUT, EVENT_LABEL_CONTEXT_IN, EVENT_LABEL_CONTEXT_OUT };
struct event_pair_specifier {
    char *label;
    enum event_pair_label label_is;      /* the text, or what an expression captures of the event that opens */
    struct regex *in, *out;              /* fit whole names of events */
    struct regex *context_in, *context_out; /* look into their fields; NULL: no context */
    size_t classifier;                   /* column whose text must be the same in both; SIZE_MAX: none */
};
struct event_pair_config { struct event_pair_specifier v[EVENT_PAIR_SPECIFIERS]; size_t n; };
void event_pair_config_free(struct event_pair_config *); /* what it holds; the texts are of mem_strdup */

/* Times of the table's clock; row, name: indices into rows and names below. */
struct event_pair { int64_t begin, end; uint32_t row, name; };
static inline int64_t event_pair_duration(const struct event_pair *v) { return time_between(v->begin, v->end); }
/* What is open at once on a host with the same classifier and context lies on levels, from 0 on; each is a row. */
struct event_pair_row { uint32_t host, level; const char *classifier, *context; size_t first, n; /* in by_row */ };
struct event_pair_name { uint32_t host; const char *label; };
/* Immutable. */
struct event_pairs {
    struct event_pair *v; size_t n;      /* by begin: first the `closed` ones, then those of which no end was seen */
    size_t closed;
    struct event_pair_row *rows; size_t n_rows; /* by host, classifier, context, level */
    uint32_t *by_row;                    /* numbers of pairs, by row, in each by begin */
    struct event_pair_name *names; size_t n_names; /* by host, label */
    struct strings texts;                /* that all these point to */
};
/* Reads all events once. `progress` is called now and then: so many more were read; other than 0 ends it with that
 * error. What is open at the last event lasts until `end`, or that event. ERR_LIMIT: an expression needs too many
 * steps, or there are too many rows or names. */
int event_pairs_read(const struct event_table *, const struct event_pair_config *, int64_t end,
    int (*progress)(void *arg, size_t events, struct err *e), void *arg, struct event_pairs **out, struct err *e);
void event_pairs_free(struct event_pairs *);
/* First of the closed pairs that begins at or after t. */
size_t event_pairs_find(const struct event_pairs *, int64_t t);

#endif
