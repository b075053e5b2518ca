/* SPDX-License-Identifier: MIT */
/* Private to views: time graphs whose rows are rows of the state stores, in a constant tree. Such a view defines its
 * rows, and the style and tooltip of an interval; requests.c is a model. */
#ifndef WEFT_VIEWS_ROWS_H
#define WEFT_VIEWS_ROWS_H

#include "base/arena.h"
#include "base/mem.h"
#include "views/looks.h"
#include "views/sampling.h"
#include "views/tips.h"

/* Row number i is the entry view_id(x, i). Valid while the experiment is open. */
struct view_rows {
    VEC(struct view_row) v;
    struct arena arena;                  /* memory of labels and the view's own data */
    void *own;                           /* data of the view */
};
/* Adds a row or a group and returns its number. Labels are borrowed. */
int64_t view_add_row(struct view_rows *, struct view_row);
int64_t view_add_group(struct view_rows *, int64_t parent, size_t host, const char *label);
/* Row with that entry id, or NULL. */
const struct view_row *view_row_of(const struct views *, const struct view_rows *, int64_t id);

/* Subject of a tooltip. */
struct view_pointed {
    struct views *x; const struct tsp_query *q; struct tsp_answer *answer;
    const struct view_rows *rows; const struct view_row *row;
    const struct view_host *host;
    int64_t t;                           /* host's clock */
    const struct state_interval *interval; /* interval at t; NULL: none */
};
/* Entry of the tree while it is filled in: labels[0] is the row's. */
struct view_row_entry { struct tsp_entry entry; const char *labels[4]; struct tsp_meta meta[3]; };

struct view_row_graph {
    /* Adds the rows of one host. Called once for each host in turn, also for hosts without states. */
    void (*add)(const struct view *self, const struct views *, size_t host, struct view_rows *);
    /* Fills in entry data besides the label, with memory of the arena. NULL: none. */
    void (*describe)(const struct views *, const struct view_rows *, const struct view_row *, struct arena *,
        struct view_row_entry *);
    view_show_state *show;
    view_sample_function *sample;        /* NULL: state_sample */
    /* Adds lines to an open tooltip; false: nothing to add. */
    bool (*tooltip)(const struct view_pointed *);
    bool whole_time;                     /* rows span the whole experiment, else their host's trace */
};
/* Members of struct view. */
#define VIEW_ROWS(graph) \
    .rows = &(graph), .tree = view_rows_tree, .states = view_rows_states, .tooltip = view_rows_tooltip, \
    .close = view_rows_close
view_operation view_rows_tree, view_rows_states, view_rows_tooltip;
void view_rows_close(struct views *, void *cache);
const struct view_rows *view_rows_of(struct views *, const struct view *);

#endif
