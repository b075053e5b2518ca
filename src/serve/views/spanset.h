/* SPDX-License-Identifier: MIT */
/* Private to views: the spans (`weft serve --spans`) of an experiment, on its clock, and the rows that show them. */
#ifndef WEFT_VIEWS_SPANSET_H
#define WEFT_VIEWS_SPANSET_H

#include "base/map.h"
#include "base/mem.h"
#include "index/span_threads.h"
#include "span/analysis.h"
#include "views/view.h"

enum spanset_kind { SPANSET_TRACE, SPANSET_PATH, SPANSET_PLACE, SPANSET_LANE };
/* As many rows as a service on a host has in one trace, and services that have rows of their own: what is beyond is
 * counted, and not drawn. */
enum { SPANSET_LANES = 200, SPANSET_PLACES = 64, SPANSET_PATHS = 32 };
enum { SPANSET_NONE = UINT32_MAX };

/* A row of the view, by number. A lane's spans: lanes[first …], in time order, without overlap; a path's units:
 * path_units[first …], likewise. */
struct spanset_entry {
    uint32_t parent, trace;
    uint32_t first, n;
    uint32_t service, host_text;         /* of places and what is below */
    uint32_t left_out;                   /* so many spans (units) of it have no row */
    int32_t host;                        /* among the traced ones, or -1 */
    uint16_t number;                     /* among those of its kind and parent */
    uint8_t kind;
};
struct spanset_shown { uint32_t entry, entries, rows, errors; int64_t begin, end; }; /* of a trace */
struct spanset_time { int64_t begin, end; };
struct spanset_event { int64_t time; uint32_t row, name; };
struct spanset_arrow { int64_t begin, end; uint32_t from, to; bool is_link; }; /* rows */

struct spanset {
    const struct views *x;
    char *path, *store; bool is_store;   /* store: its directory or URL */
    struct spans *s;
    const struct spans_row *rows; size_t n_rows;
    const struct spans_trace *traces; size_t n_traces;
    const struct spans_unit *units; size_t n_units;
    struct spanset_time *times;          /* by row: on the experiment's clock */
    struct index_joined joined;          /* by row: host and thread among the traced ones */
    uint32_t *entry_of;                  /* by row: the lane it is in, or SPANSET_NONE */
    struct spanset_shown *shown;         /* by trace */
    VEC(struct spanset_entry) entries;   /* trace by trace, parents first */
    VEC(uint32_t) lanes;
    VEC(uint32_t) path_units;
    VEC(struct spanset_event) events;    /* by time */
    VEC(struct spanset_arrow) arrows;
    struct strings names;                /* of events */
    int64_t begin, end;
    /* A file's spans; a store is asked again. */
    struct arena arena;
    struct span_list list;
};

/* Reads a collector's store, or a file of OTLP JSON; the experiment's hosts are known. url: the store that the path
 * stands for; or NULL. */
int spanset_open(struct views *, const char *path, const char *url, struct spanset **out, struct err *);
void spanset_close(struct spanset *);
/* Is there a store, or what may be a file of spans? */
int spanset_look(const char *path, struct err *);
/* All that was recorded of a row, in the arena; span NULL: it is there no more. Until it is released. */
struct spanset_whole { const struct span *span; struct span_store *store; struct span_cursor *cursor; };
struct spanset_whole spanset_find(const struct spanset *, uint32_t row, struct arena *);
void spanset_release(struct spanset_whole *);
/* The row that it is a part of, or whose end it waited for; -1: none. */
int32_t spanset_cause(const struct spanset *, uint32_t row);

/* spanset_rows.c: lays all of them out. */
void spanset_lay_out(struct spanset *);
/* What a path's row shows: in time order, without overlap. Grows the list. */
struct spanset_section { int64_t begin, end; int32_t row; uint32_t unit; }; /* row as struct spans_section has it */
struct spanset_sections { struct spanset_section *v; size_t n, cap; };
void spanset_sections(const struct spanset *, uint32_t unit, struct spanset_sections *);
/* A time of the row's host on the experiment's clock. */
int64_t spanset_time_of(const struct spanset *, uint32_t row, int64_t t);

/* spanset_tips.c: adds to an open tooltip. */
struct spanset_pointed { struct views *x; const struct tsp_query *q; struct tsp_answer *answer; };
void spanset_tell_span(const struct spanset_pointed *, uint32_t row);
void spanset_tell_trace(const struct spanset_pointed *, uint32_t trace);
/* "glidein: startup" of what the trace begins with. */
void spanset_write_root(const struct spanset *, uint32_t trace, struct text *);

#endif
