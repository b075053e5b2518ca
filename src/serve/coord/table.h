/* SPDX-License-Identifier: MIT */
/* Private to coord: tables of many servers as one. Tables in order of time, or of a number that their columns state
 * (largest first), are merged by it. A line's number is the number of lines of all servers before it; equal times are
 * in the order of the servers. A position is the number of lines of each server before it. Each server reports it for
 * any time, so that no lines are fetched for counting. Other tables follow one another. */
#ifndef WEFT_COORD_TABLE_H
#define WEFT_COORD_TABLE_H

#include "coord/times.h"

/* ---- columns (table_columns.c) ---- */

/* Merged column: columns with equal keys or names are one, whatever id each server gives them. */
struct table_column {
    int64_t id;
    struct slice name, object;
    bool timed;                      /* cells are times */
    struct slice numbers_of;         /* cells are numbers of entries of that tree; at NULL: they are not */
    bool found;                      /* empty cells may be filled in by other servers */
};
/* Columns of one server. own: its ids by column; -1: not there. by: column of the order of lines, then the first one of
 * times. trail: column for filling in by other servers; -1: none. */
struct own_columns { bool known, descending; int64_t *own; int64_t by[2]; size_t n_by; int64_t trail; };
struct table_columns {
    struct table_column *v; size_t n;
    struct own_columns *of;          /* own columns by member */
    bool ordered;                    /* lines are in order of a time, or number, that every server has for each line */
    bool descending;                 /* order by a number, largest first: its negative is used as time */
    size_t trace;                    /* column with the server's name where a server leaves it empty; n: none */
};
/* Finds the columns of the request's output; asks members that never reported them. False: an answer was sent, or the
 * client is gone. */
bool coord_columns_find(struct coord_call *, struct table_columns *);
/* Merges the members' lists of columns; at NULL: none. */
void coord_columns_merge(struct coord_call *, const struct slice *models, struct table_columns *);
void coord_put_columns(struct json *, const struct table_columns *);

/* ---- positions of lines (table_positions.c) ---- */

struct merged_table {
    struct coord_call *call;
    const struct table_columns *columns;
    const struct group_numbers *numbering;     /* numbering of the entries that cells name; NULL: none */
    size_t n;                        /* members; all arrays below are by member */
    bool *asked;                     /* takes part: has lines, as far as is known */
    json_t **filter, **search;       /* expressions with its own column ids; NULL: none */
    bool *fits, *all_fit;            /* lines may fit the search: some, or all of them */
    uint64_t *size;                  /* number of its lines, valid once `sized` */
    bool *absent;                    /* away; its part comes from the cache */
    const struct cached_lines **cached_lines; /* cached part; NULL: not looked up yet, or none */
    bool sized;
    uint64_t key;                    /* hash of the table, filters included */
};

/* Question for lines to one member. */
struct line_ask {
    uint64_t index, count;           /* first line by index, number of lines */
    bool by_time; int64_t time;      /* first line by time instead: at or after it */
    bool find, backward, tagged;     /* next or previous line that fits the search; fitting lines get tags */
    const int64_t *ids; size_t n_ids; /* the member's columns */
    bool skip;                       /* member gets no question */
};
/* Line. own_time: by its server's clock. begin: order of lines with one time, or number. object: at NULL for an absent
 * server; sure: the time is not estimated. */
struct table_line { struct slice object; int64_t own_time, time, begin; uint64_t index; bool sure; };
struct line_answer {
    bool good;
    uint64_t low, size;
    struct table_line *lines; size_t n;
    int64_t *ids; size_t n_ids;      /* columns of the cells */
};
/* Asks all members at once. answers[i].good: member i answered, and was not skipped. Missing sources are noted; those
 * members are absent, or take no more part if nothing of them is cached. `f` holds what the lines borrow: call
 * coord_gather_end in any case. False: an answer was sent, or the client is gone. */
bool coord_table_ask(struct merged_table *, const struct line_ask *, struct line_answer *, struct coord_answers *f);

/* ---- order of lines (table_merge.c) ---- */

/* Line of the answer: its member, and that one's answer. */
struct chosen_line { size_t member; const struct line_answer *of; const struct table_line *line; };
/* Lines of all members, in order. */
struct merged_lines { struct chosen_line *v; uint64_t n; };
/* Reads the lines in a member's model, at most `most`. Returns NULL, or what is wrong with them. */
const char *coord_table_read(const struct merged_table *, size_t member, struct slice model, uint64_t most,
    struct line_answer *);
uint64_t coord_table_size(const struct merged_table *);
uint64_t coord_position_sum(const struct merged_table *, const uint64_t *position);
/* Compares line a of member i with line b of member k; < 0: a comes first. */
int coord_table_compare(const struct table_line *a, size_t i, const struct table_line *b, size_t k);
/* Returns the member whose line is next; n: none is left. next: next lines of the members; taken: number of those
 * already used. */
size_t coord_table_next(const struct merged_table *, const struct line_answer *next, const size_t *taken);
/* Returns the member with the last line before a position, among the lines left; n: none. */
size_t coord_table_previous(const struct merged_table *, const struct line_answer *before, const size_t *left);
/* Takes lines until there are `count`, and moves the position. False: before that, a member ran out of its `asked`
 * lines, so that the next line is unknown. */
bool coord_table_merge(struct merged_table *, const struct line_answer *, uint64_t asked, uint64_t count,
    uint64_t *position, struct merged_lines *out);
/* Returns the index of a column among ids; n: none. */
size_t coord_table_find_id(const int64_t *ids, size_t n, int64_t id);
/* Returns a cell of a line. */
struct slice coord_line_cell(struct slice line, size_t cell);
/* Reads the number in a cell's content, with or without quotes. */
bool coord_table_take_time(struct slice content, int64_t *time);
/* Returns the negative, for numbers in descending order. */
int64_t coord_table_negative(int64_t);

/* ---- backfill of cells by other servers (backfill.c) ---- */

struct fill { size_t by; struct slice line; }; /* the member that filled in; line at NULL: none did */
struct backfill {
    struct coord_answers gather;
    struct fill *of;                 /* fills by chosen line */
    int64_t **ids; size_t *n_ids;    /* columns of its cells, by member */
};
/* Asks all members for the cells that the owners of lines leave empty. False: the client is gone. Call
 * coord_backfill_end in any case. */
bool coord_backfill_ask(struct merged_table *, const struct chosen_line *, size_t n, struct backfill *);
void coord_backfill_end(struct backfill *);
/* Returns the filled-in cell; at NULL: none. */
struct slice coord_backfill_cell(const struct merged_table *, const struct backfill *, size_t chosen, size_t column);

/* ---- request and answer (table_request.c, table_lines.c) ---- */

/* Requested lines: from an index, or from a time (in descending tables, the negative of a number). With `find`: from
 * the next or previous line that fits the search. */
struct lines_wanted {
    bool by_time, find, backward;
    int64_t time;
    uint64_t index, count;
    size_t *shown, n_shown;          /* columns */
};
/* Reads the request. Returns NULL, or the error in it. */
const char *coord_lines_wanted(struct coord_call *, const struct table_columns *, struct lines_wanted *);
/* Begins a table: translates its expressions for each member. */
void coord_table_begin(struct merged_table *, struct coord_call *, const struct table_columns *,
    const struct group_numbers *);
/* Writes the lines, under their numbers in the whole table: `low` and following. */
void coord_put_table(const struct merged_table *, const struct lines_wanted *, uint64_t low,
    const struct merged_lines *, const struct backfill *, struct json *);

/* ---- search (table_locate.c) ---- */

/* Find the position of the n-th line, and of the first line at or after a time. False: an answer was sent, or the
 * client is gone. */
bool coord_table_locate(struct merged_table *, uint64_t n, uint64_t *position);
bool coord_table_locate_time(struct merged_table *, int64_t time, uint64_t *position);
/* ---- cache of servers that are away (line_cache.c) ---- */

/* Cache of the number of lines of each server in a table, and of the times of some lines. All lines that were shown are
 * cached, so that other servers' lines keep their numbers there. Other lines are assumed to be evenly spread between
 * cached ones. */
struct line_cache *coord_line_cache_new(void);
void coord_line_cache_free(struct line_cache *); /* NULL-safe */
void coord_line_cache_note(const struct merged_table *, size_t member, const struct line_answer *);
/* Answers in the member's stead; false: nothing of it is cached for this table. */
bool coord_line_cache_answer(struct merged_table *, size_t member, const struct line_ask *, struct line_answer *);

/* ---- cache of positions (table_positions.c) ---- */

/* Notes a position, so that neighbours need no search. Ignored while a member is absent. */
void coord_positions_note(struct merged_table *, const uint64_t *position);
struct positions *coord_positions_new(void);
void coord_positions_free(struct positions *);
/* Finds the nearest noted position; false: none. */
bool coord_positions_near(struct merged_table *, uint64_t n, uint64_t *position);
/* Finds the noted position of the n-th line itself. Sets the sizes noted with it, too, which may be outdated. */
bool coord_positions_exactly(struct merged_table *, uint64_t n, uint64_t *position);

#endif
