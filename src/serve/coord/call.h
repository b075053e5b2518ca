/* SPDX-License-Identifier: MIT */
/* Private to coord: the current operation: request, question, outcome. */
#ifndef WEFT_COORD_CALL_H
#define WEFT_COORD_CALL_H

#include "coord/outcome.h"
#include "coord/request.h"

struct coord_call {
    struct coordinator *c;
    struct http_request *q;          /* connection to the client */
    struct arena *arena;             /* freed after the reply */
    struct coord_request request;    /* what the client asked */
    struct {                         /* what the request becomes for servers; each made when first needed */
        struct coord_sent_times *own_times; /* by number of the server; NULL: none (question.c) */
        struct coord_rotation *rotations; size_t n_rotations; bool rotations_known; /* (rotation_find.c) */
        struct group_lines *lines;   /* machines' lines that groups are made of; NULL: none requested (groups.c) */
    } question;
    struct coord_outcome outcome;    /* what came back */
};

void coord_reply(struct coord_call *, int status, struct text *);
void coord_error(struct coord_call *, int status, const char *title, const char *detail);
/* Sends an error with this code; NONE: the code of the status. */
void coord_refuse(struct coord_call *, int status, enum tsp_code, const char *title, const char *detail);
/* Sets the header Warning, for answers that have no place for missing sources. */
void coord_warn(struct coord_call *);

/* ---- operations ---- */

typedef void coord_run(struct coord_call *);
coord_run coord_traces_list, coord_traces_get, coord_traces_post, coord_traces_delete;
coord_run coord_experiments_list, coord_experiments_get, coord_experiments_post, coord_experiments_delete;
coord_run coord_outputs_list, coord_outputs_derive, coord_outputs_pass;
coord_run coord_analysis_tree, coord_analysis_states, coord_analysis_arrows, coord_analysis_tooltip;
coord_run coord_analysis_xy, coord_analysis_style;
coord_run coord_analysis_categories, coord_analysis_annotations, coord_marker_sets;
coord_run coord_table_columns, coord_table_lines;
coord_run coord_bookmarks_list, coord_bookmarks_get, coord_bookmarks_post, coord_bookmarks_put, coord_bookmarks_delete;

/* Bookmarks of the coordinator itself. path NULL: they are not stored. */
int coord_bookmarks_open(const char *path, struct bookmarks **out, struct err *e);
void coord_bookmarks_close(struct bookmarks *);

#endif
