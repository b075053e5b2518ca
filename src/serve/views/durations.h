/* SPDX-License-Identifier: MIT */
/* Private to views: how durations are shown: in figures, as points over time, and as bars by length. */
#ifndef WEFT_VIEWS_DURATIONS_H
#define WEFT_VIEWS_DURATIONS_H

#include "base/mem.h"
#include "views/view.h"

/* "1.234 ms" */
const char *durations_text(struct arena *, double ns);

/* ---- figures: rows of data trees with least, most, mean and spread ---- */

/* All, or those before the last, "Self Time". */
enum { DURATIONS_HEADERS = 9, DURATIONS_SELF_HEADERS = 10 };
extern const struct tsp_header durations_headers[DURATIONS_SELF_HEADERS];
/* Writes an entry, unless there is nothing in it. The begins are on the reference clock. self: ns of "Self Time", or
 * NULL. row: what a sum over machines is called by programs; NULL: it is none. */
void durations_write_figures(struct tsp_answer *, struct arena *, int64_t id, int64_t parent, uint64_t key,
    const char *label, const char *row, const struct figures *, const int64_t *self);
/* A tree of figures by name: of the whole experiment and, when the query has one, of its selection; the joint figures,
 * and below them those of each name. */
struct durations_statistics {
    void *arg; size_t n;                 /* names */
    /* Sets figures[n], zeroed, by name. */
    void (*find)(void *arg, bool selection, struct figures *);
    const char *(*label)(void *arg, size_t name, size_t *host); /* whose the name is: with several, it is told before */
};
void durations_write_statistics(const struct views *, const struct tsp_query *, struct tsp_answer *,
    const struct durations_statistics *);

/* ---- points over time ---- */

/* Points are found gap by gap between the query's samples. The first gap starts at its begin, each other one where the
 * one before it ended: at the first instant that is not in it. */
size_t durations_gaps(const struct tsp_query *);
int64_t durations_gap_end(const struct tsp_query *, size_t gap);
/* Of those that figures stand for, the shortest and the longest are shown: more cannot be seen. */
struct durations_points { VEC(int64_t) x; VEC(double) y; };
/* begins by the host's clock */
void durations_add_points(struct durations_points *, const struct view_host *, const struct figures *);
void durations_write_points(struct tsp_answer *, int64_t id, const char *name, const struct durations_points *);
void durations_free_points(struct durations_points *);

/* ---- bars: how many are how long ---- */

enum { DURATIONS_BARS = 128 };           /* unless somebody asks for another number */
/* width, n: as figures_range takes them. */
struct durations_bars { int64_t width; size_t n; uint64_t *counts; };
/* n ranges of equal width (the question's x_width, if that is more) that hold durations up to the longest; by ratio,
 * where the question's x_scale is "logarithmic". The counts are zero, and live as long as the question. */
struct durations_bars durations_bars(const struct tsp_query *, int64_t longest, size_t n);
/* Writes a series of the counts; `series` says its id, name and looks. Ranges by ratio: from the first that has some to
 * the last. */
void durations_write_bars(const struct tsp_query *, struct tsp_answer *, struct tsp_series,
    const struct durations_bars *);
/* Charts of one series, "Total": the only entry of its tree; its bars, if they are wanted. */
view_operation durations_total_tree;
void durations_write_total(const struct views *, const struct tsp_query *, struct tsp_answer *,
    const struct durations_bars *);

#endif
