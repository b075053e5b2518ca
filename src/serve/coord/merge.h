/* SPDX-License-Identifier: MIT */
/* Private to coord: how columns, rows and series of several servers become one, as their views state it (docs/tsp.md,
 * "key" and "merge"). No title decides. What servers do not state is not merged. Exceptions are outputs of Trace
 * Compass, known by their ids and the places of their columns: merge.c has all of these. */
#ifndef WEFT_COORD_MERGE_H
#define WEFT_COORD_MERGE_H

#include "coord/call.h"

enum { MERGE_NAME = 32 };
/* Of a column of a tree or table. of, by: members of entries' metadata; "" where there is none. */
struct merge_rule {
    enum tsp_merge how;              /* TSP_MERGE_NONE: not stated */
    char key[MERGE_NAME];            /* "": not stated */
    char of[MERGE_NAME], by[MERGE_NAME];
    bool is_duration, is_range;      /* of type DURATION, TIME_RANGE */
};
/* header: an object; place: which of its list it is, of the output at hand. */
struct merge_rule merge_rule_of(const struct coord_call *, struct slice header, size_t place);
/* Two columns are one: of equal keys; where one states none, of equal names. That says only what is shown below one
 * title: numbers are merged where both state it. */
bool merge_same_column(struct slice a, struct slice b);
/* Which of n others the column is; n: none. */
size_t merge_find_column(const struct slice *headers, size_t n, struct slice header);
/* Cells and labels of the column are times. */
bool merge_is_time(const struct coord_call *, struct slice header, size_t place);
/* A table's lines are in the order of the column's times. */
bool merge_orders_lines(const struct coord_call *, struct slice column, size_t place);
/* How pieces of a series are joined. TSP_LEVEL where nothing is known: the piece that has the time. */
enum tsp_merge merge_of_series(const struct coord_call *, struct slice series);

/* The object states that key. */
bool merge_has_key(struct slice object, const char *key);
/* How an entry, a header or a series states that it is merged; TSP_MERGE_NONE: it does not. */
enum tsp_merge merge_stated(struct slice entry);

/* Outputs with lines of the whole experiment that are summed up over servers; NULL: it is none. */
struct merge_whole {
    const char *output;              /* an id, or what ids of a family begin with */
    bool family;
    /* Keys of the lines, NULL at the end. Servers that state none have the lines at these places below their parent. */
    const char *lines[3];
};
const struct merge_whole *merge_whole_of(const struct coord_call *);
/* Which of the lines an entry is, the place-th of those with its parent; -1: none. */
int merge_whole_line(const struct merge_whole *, struct slice entry, size_t place);

#endif
