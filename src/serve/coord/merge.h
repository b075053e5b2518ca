/* SPDX-License-Identifier: MIT */
/* Private to coord: merging of columns, rows and series of several servers, as their views state it (docs/tsp.md, "key"
 * and "merge"). Titles decide nothing. Values without a stated rule are not merged. Exceptions are outputs of Trace
 * Compass, known by their ids and the places of their columns; all of them are in merge.c. */
#ifndef WEFT_COORD_MERGE_H
#define WEFT_COORD_MERGE_H

#include <jansson.h>

#include "base/slice.h"
#include "tsp/answer.h"

enum { MERGE_NAME = 32 };
/* Rule of a column of a tree or table. of, by: members of entries' metadata; "": none. */
struct merge_rule {
    enum tsp_merge how;              /* TSP_MERGE_NONE: not stated */
    char key[MERGE_NAME];            /* "": not stated */
    char of[MERGE_NAME], by[MERGE_NAME];
    bool is_duration, is_range;      /* column is of type DURATION, TIME_RANGE */
};
/* Returns the rule of a column of the request's output. header: an object; place: its index in the list of headers. */
struct merge_rule coord_merge_rule_of(const char *output, struct slice header, size_t place);
/* Returns whether two columns are the same: by equal keys, or by equal names if one states no key. That only puts them
 * below one title: numbers are merged only if both columns state it. */
bool coord_merge_same_column(struct slice a, struct slice b);
/* Returns the index of the same column among n headers; n: none. */
size_t coord_merge_find_column(const struct slice *headers, size_t n, struct slice header);
/* Returns whether cells and labels of the column are times. */
bool coord_merge_is_time(const char *output, struct slice header, size_t place);
/* Returns whether a table's lines are in the order of the column's times. */
bool coord_merge_orders_lines(const char *output, struct slice column, size_t place);
/* Returns how pieces of a series are joined. TSP_LEVEL, also if unknown: from the piece that covers the time. */
enum tsp_merge coord_merge_of_series(const char *output, struct slice series);

/* Returns whether the object states that key. */
bool coord_merge_has_key(struct slice object, const char *key);
/* Returns the rule that an entry, a header or a series states; TSP_MERGE_NONE: none. */
enum tsp_merge coord_merge_stated(struct slice entry);

/* Output with lines of the whole experiment that are summed up over servers. coord_merge_total_of returns NULL for
 * other outputs. */
struct merge_total {
    const char *output;              /* an id, or the prefix of a family's ids */
    bool family;
    /* Keys of the lines, NULL-terminated. Servers that state no keys have the lines at these places below their
     * parent. */
    const char *lines[3];
};
const struct merge_total *coord_merge_total_of(const char *output);
/* Returns the index of the line that an entry is; -1: none. place: its index among the entries with its parent. */
int coord_merge_total_line(const struct merge_total *, struct slice entry, size_t place);

#endif
