/* SPDX-License-Identifier: MIT */
/* Private to views: spans of an experiment (`weft serve --spans`), on its clock, and the rows that show them. */
#ifndef WEFT_VIEWS_SPANSET_H
#define WEFT_VIEWS_SPANSET_H

#include "base/map.h"
#include "base/mem.h"
#include "index/span_threads.h"
#include "span/analysis.h"
#include "views/view.h"

enum spanset_kind { SPANSET_TRACE, SPANSET_PATH, SPANSET_PLACE, SPANSET_LANE };
/* Limits per trace: rows of a service on a host, services with rows of their own, rows of paths. Anything beyond is
 * counted but not drawn. */
enum { SPANSET_LANES = 200, SPANSET_PLACES = 64, SPANSET_PATHS = 32 };
enum { SPANSET_NONE = UINT32_MAX };

/* Row of the view, by number. Spans of a lane: lanes[first …], in time order, without overlap. Units of a path:
 * path_units[first …], likewise. */
struct spanset_entry {
    uint32_t parent, trace;
    uint32_t first, n;
    uint32_t service, host_text;         /* names, for places and rows below them */
    uint32_t left_out;                   /* number of its spans (units) without a row */
    int32_t host;                        /* number of the traced host, or -1 */
    uint16_t number;                     /* number among siblings of its kind */
    uint8_t kind;
};
struct spanset_shown { uint32_t entry, entries, rows, errors; int64_t begin, end; }; /* state by trace */
struct spanset_time { int64_t begin, end; };
struct spanset_event { int64_t time; uint32_t row, name; };
struct spanset_arrow { int64_t begin, end; uint32_t from, to; bool is_link; }; /* arrow; from, to: rows */

struct spanset {
    const struct views *x;
    char *path, *store; bool is_store;   /* store: directory or URL */
    struct spans *s;
    const struct spans_row *rows; size_t n_rows;
    const struct spans_trace *traces; size_t n_traces;
    const struct spans_unit *units; size_t n_units;
    struct spanset_time *times;          /* times by row, on the experiment's clock */
    struct index_joined joined;          /* host and thread in the kernel traces, by row */
    uint32_t *entry_of;                  /* lane that shows the row, by row; or SPANSET_NONE */
    struct spanset_shown *shown;         /* indexed by trace */
    VEC(struct spanset_entry) entries;   /* trace by trace; parents come first */
    VEC(uint32_t) lanes;
    VEC(uint32_t) path_units;
    VEC(struct spanset_event) events;    /* order: time */
    VEC(struct spanset_arrow) arrows;
    struct strings names;                /* names of events */
    struct spans_notes notes;            /* about the spans as they were read; texts in the arena */
    char *shown_name;                    /* the store's name for display */
    int64_t begin, end;
    /* Spans of a file; details of stored spans are read from the store again. */
    struct arena arena;
    struct span_list list;
};

/* Reads a collector's store, or a file of OTLP JSON. Requires the experiment's hosts. url: store that the path stands
 * for; or NULL. */
int spanset_open(struct views *, const char *path, const char *url, struct spanset **out, struct err *);
void spanset_close(struct spanset *);
/* Checks that the path is a store, or may be a file of spans. Returns 0 or an error. */
int spanset_look(const char *path, struct err *);
/* Full record of a row, in the arena, valid until spanset_release. span NULL: it was deleted. */
struct spanset_whole { const struct span *span; struct span_store *store; struct span_cursor *cursor; };
struct spanset_whole spanset_find(const struct spanset *, uint32_t row, struct arena *);
void spanset_release(struct spanset_whole *);
/* Row that this row is a part of, or whose end it waited for; -1: none. */
int32_t spanset_cause(const struct spanset *, uint32_t row);

/* spanset_rows.c: lays out all rows. */
void spanset_lay_out(struct spanset *);
/* Sections of a path's row: in time order, without overlap. spanset_sections appends to the list. */
struct spanset_section { int64_t begin, end; int32_t row; uint32_t unit; }; /* row: as in struct spans_section */
struct spanset_sections { struct spanset_section *v; size_t n, cap; };
void spanset_sections(const struct spanset *, uint32_t unit, struct spanset_sections *);
/* Converts a time of the row's host to the experiment's clock. */
int64_t spanset_time_of(const struct spanset *, uint32_t row, int64_t t);

/* spanset_tips.c: adds lines to an open tooltip. */
struct spanset_pointed { struct views *x; const struct tsp_query *q; struct tsp_answer *answer; };
void spanset_tell_span(const struct spanset_pointed *, uint32_t row);
void spanset_tell_trace(const struct spanset_pointed *, uint32_t trace);
/* Writes service and name of the trace's first unit, as "glidein: startup". */
void spanset_write_root(const struct spanset *, uint32_t trace, struct text *);

#endif
