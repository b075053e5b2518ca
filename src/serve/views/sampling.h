/* SPDX-License-Identifier: MIT */
/* Private to views: rows of states at the sample times of a query, on the reference clock. */
#ifndef WEFT_VIEWS_SAMPLING_H
#define WEFT_VIEWS_SAMPLING_H

#include "views/view.h"

/* Last instant of the host's clock that is not after t (reference clock). An interval that contains it contains t once
 * its bounds are converted. */
int64_t view_sample_time(const struct view_host *, int64_t t);
/* Converts [begin, end] to the host's clock, cut to its trace; false: it lies outside. */
bool view_range_on(const struct view_host *, int64_t begin, int64_t end, int64_t *host_begin, int64_t *host_end);
/* Sample times of the query on the clocks of hosts, made on first use. Memory: the request's arena. */
struct view_times { const struct views *x; const struct tsp_query *q; int64_t **by_host; };
struct view_times view_times_new(const struct views *, const struct tsp_query *);
const int64_t *view_times_on(const struct view_times *, size_t host);

/* ---- style and properties of an interval ---- */

enum { VIEW_SHOWN_PROPERTIES = 12 };
struct view_shown {
    const char *label, *style_key;         /* style_key NULL: blank */
    const char *filtered_label;            /* label for filters; NULL: the label */
    struct tsp_property properties[VIEW_SHOWN_PROPERTIES]; size_t n; /* needed only if the query has a filter */
    char numbers[VIEW_SHOWN_PROPERTIES][24]; /* buffers for texts of the properties */
    char text[48];                         /* buffer for the label */
};
void view_add_property(struct view_shown *, const char *key, const char *value); /* value NULL: none */
void view_add_number(struct view_shown *, const char *key, int64_t value);
/* Writes the state with the tags of the query's filter; adds label, start and duration to the properties. False:
 * nothing was written, since the interval is empty, or `only_matches` is set and the filter rejects it. */
bool view_write_shown(const struct tsp_query *, struct tsp_answer *, int64_t begin, int64_t end, struct view_shown *,
    bool only_matches);

/* ---- rows of the state stores ---- */

/* kind VIEW_NO_STATES: a host or a group, without states. */
enum { VIEW_NO_PARENT = -1, VIEW_NO_STATES = -1 };
struct view_row {
    int64_t parent;                        /* number of an earlier row, or VIEW_NO_PARENT; see rows.h */
    size_t host;
    const char *label;
    int kind; size_t row;                  /* kind and row in the host's store */
    int64_t number;                        /* meaning defined by the view: a CPU, an interrupt, … */
    const char *beside;                    /* second column of the tree; NULL: empty */
    uint64_t key;                          /* key as in tsp_entry. 0: the host for a root, the label for others */
};

struct view_rows;
struct view_sampler;
typedef void view_show_state(const struct view_sampler *, const struct view_row *, const struct state_interval *,
    struct view_shown *);
/* Replacement for state_sample, in views that do not show just the row's intervals. */
typedef size_t view_sample_function(const struct state_store *, const struct view_row *, const int64_t *times, size_t n,
    struct state_interval *out);

/* Writes rows of states: begin, one call per row, end. */
struct view_sampler {
    struct views *x; const struct tsp_query *q; struct tsp_answer *answer;
    const struct view_rows *rows;          /* rows of the view, or NULL */
    view_show_state *show;
    view_sample_function *sample;          /* NULL: state_sample */
    struct view_times times;
    struct state_interval *found;          /* buffer for one row */
};
struct view_sampler view_begin_sampling(struct views *, const struct tsp_query *, struct tsp_answer *,
    view_show_state *);
/* Writes a row; false: stopped, since the answer is full or the client has gone. */
bool view_sample_row(const struct view_sampler *, int64_t entry, const struct view_row *);
void view_end_sampling(const struct view_sampler *);

#endif
