/* SPDX-License-Identifier: MIT */
/* Private to views: durations as figures, as points over time, and as bars by length. */
#ifndef WEFT_VIEWS_DURATIONS_H
#define WEFT_VIEWS_DURATIONS_H

#include "base/mem.h"
#include "views/view.h"

/* "1.234 ms" */
const char *durations_text(struct arena *, double ns);

/* ---- figures: rows of data trees with least, most, mean and spread ---- */

/* Number of headers: all, or without the last, "Self Time". */
enum { DURATIONS_HEADERS = 9, DURATIONS_SELF_HEADERS = 10 };
extern const struct tsp_header durations_headers[DURATIONS_SELF_HEADERS];
/* Writes an entry, unless the figures are empty. begins: on the reference clock. self: ns of "Self Time", or NULL. row:
 * name of a sum over machines, for programs; NULL: not a sum. */
void durations_write_figures(struct tsp_answer *, struct arena *, int64_t id, int64_t parent, uint64_t key,
    const char *label, const char *row, const struct figures *, const int64_t *self);
/* Tree of figures by name: of the whole experiment and, if the query has one, of its selection. Joint figures are the
 * parent of the figures of each name. */
struct durations_statistics {
    void *arg; size_t n;                 /* n: number of names */
    /* Sets figures[n], zeroed, by name. */
    void (*find)(void *arg, bool selection, struct figures *);
    const char *(*label)(void *arg, size_t name, size_t *host); /* host: of the name; with several hosts, precedes the
                                                                 * label */
};
void durations_write_statistics(const struct views *, const struct tsp_query *, struct tsp_answer *,
    const struct durations_statistics *);

/* ---- points over time ---- */

/* Points are found gap by gap between the query's samples. The first gap starts at the query's begin, each later one at
 * the first instant after the previous gap. */
size_t durations_gaps(const struct tsp_query *);
int64_t durations_gap_end(const struct tsp_query *, size_t gap);
/* Points: only the shortest and the longest of each gap are shown, since more cannot be seen. */
struct durations_points { VEC(int64_t) x; VEC(double) y; };
/* begins: on the host's clock */
void durations_add_points(struct durations_points *, const struct view_host *, const struct figures *);
void durations_write_points(struct tsp_answer *, int64_t id, const char *name, const struct durations_points *);
void durations_free_points(struct durations_points *);

/* ---- bars: counts by duration ---- */

enum { DURATIONS_BARS = 128 };           /* default number of bars */
/* width, n: as in figures_range. */
struct durations_bars { int64_t width; size_t n; uint64_t *counts; };
/* Returns n ranges of equal width (at least the query's x_width) that cover durations up to the longest. Ranges grow by
 * ratio if the query's x_scale is "logarithmic". Counts are zero and live as long as the query. */
struct durations_bars durations_bars(const struct tsp_query *, int64_t longest, size_t n);
/* Writes a series of the counts; `series` has its id, name and style. Ranges by ratio are written from the first to the
 * last non-empty one. */
void durations_write_bars(const struct tsp_query *, struct tsp_answer *, struct tsp_series,
    const struct durations_bars *);
/* Charts of one series, "Total": a tree with one entry, and the bars if they are requested. */
view_operation durations_total_tree;
void durations_write_total(const struct views *, const struct tsp_query *, struct tsp_answer *,
    const struct durations_bars *);

#endif
