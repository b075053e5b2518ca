/* SPDX-License-Identifier: MIT */
/* Private to coord: tables of many servers as one. A table that is in order of time, or of a number that its columns
 * say (the greatest first), is merged by it: a line's number
 * is how many lines of all servers come before it, those of equal times in the order of the servers. A position is the
 * number of lines of each server before it, which each server tells of any time, so that no lines are fetched to count
 * them. Other tables follow one another. */
#ifndef WEFT_COORD_TABLE_H
#define WEFT_COORD_TABLE_H

#include "coord/times.h"

/* ---- columns (columns.c) ---- */

/* Columns with equal names are one, whatever number each server gives it. */
struct table_column {
    int64_t id;
    struct slice name, object;
    bool timed;                      /* its cells are times */
    struct slice numbers_of;         /* its cells are numbers of entries of that tree; at NULL: of none */
    bool found;                      /* cells that a server leaves empty others may fill in */
};
/* What a server has of them. own: its numbers by column, -1: it has none. by: the column that lines are in order of,
 * then the first of times. trail: tells others what they may fill in; -1: none does. */
struct own_columns { bool known, descending; int64_t *own; int64_t by[2]; size_t n_by; int64_t trail; };
struct table_columns {
    struct table_column *v; size_t n;
    struct own_columns *of;          /* by member */
    bool ordered;                    /* every server has a time, or a number, for each line, in whose order they are; */
    bool descending;                 /* a number, the greatest first: its negative is taken for a time */
    size_t trace;                    /* a column that tells the server where a server has none; n: there is none */
};
/* Of the output at hand; asks members that never said. False: an answer was sent, or nobody waits. */
bool columns_find(struct coord_call *, struct table_columns *);

/* ---- where lines are (places.c) ---- */

struct merged_table {
    struct coord_call *call;
    const struct table_columns *columns;
    const struct group_numbers *numbering;     /* of the entries that cells are numbers of; NULL: no cell is */
    size_t n;                        /* members; all arrays below are by member */
    bool *asked;                     /* it takes part: it has lines, as far as is known */
    json_t **filter, **search;       /* as it calls the columns; NULL: none */
    bool *fits, *all_fit;            /* some of its lines may be what is searched for; all are */
    uint64_t *size;                  /* lines that it has, known once `sized` */
    bool *absent;                    /* it is away, and its part is what is remembered of it */
    const struct remembered **remembered; /* that; NULL: not looked for yet, or nothing is */
    bool sized;
    uint64_t key;                    /* of the table, filters included */
};
uint64_t table_size(const struct merged_table *);
uint64_t position_sum(const struct merged_table *, const uint64_t *position);

/* One question for lines to one member. */
struct line_ask {
    uint64_t index, count;           /* from there */
    bool by_time; int64_t time;      /* or the first at or after that time */
    bool find, backward, tagged;     /* the next or previous that is searched for; lines that fit are tagged */
    const int64_t *ids; size_t n_ids; /* the member's columns */
    bool skip;                       /* it is not asked */
};
/* own_time: by its server's clock. begin: which of those of one time, or number, comes first. Of an absent server the
 * object is at NULL; sure: the time is not estimated. */
struct table_line { struct slice object; int64_t own_time, time, begin; uint64_t index; bool sure; };
/* < 0: line a of member i comes before line b of member k. */
int table_compare(const struct table_line *a, size_t i, const struct table_line *b, size_t k);
struct line_answer {
    bool good;
    uint64_t low, size;
    struct table_line *lines; size_t n;
    int64_t *ids; size_t n_ids;      /* the columns of the cells */
};
/* Asks all at once; answers[i].good: member i answered (and is not skipped). What they lack is noted; those that do are
 * absent, or take part no more where nothing is remembered. `f` holds what the lines borrow: fan_end it. False: an
 * answer was sent, or nobody waits. */
bool table_ask(struct merged_table *, const struct line_ask *, struct line_answer *, struct fan *f);

/* ---- cells that others fill in (fills.c) ---- */

/* A line of the answer: whose, and as it told it. */
struct chosen_line { size_t member; const struct line_answer *of; const struct table_line *line; };
struct fill { size_t by; struct slice line; }; /* the member that filled in; its line at NULL: nobody did */
struct fills {
    struct fan fan;
    struct fill *of;                 /* by chosen line */
    int64_t **ids; size_t *n_ids;    /* by member: the columns of its cells */
};
/* Asks all for what the owners of lines do not know. False: nobody waits any more. To be ended in any case. */
bool fills_ask(struct merged_table *, const struct chosen_line *, size_t n, struct fills *);
void fills_end(struct fills *);
/* What was filled in there; at NULL: nothing. */
struct slice filled_in(const struct merged_table *, const struct fills *, size_t chosen, size_t column);
/* A cell of a line. */
struct slice line_cell(struct slice line, size_t cell);

/* Where a column is among ids; n: it is not. */
size_t table_find_id(const int64_t *ids, size_t n, int64_t id);
/* The number that a cell's content is, within quotes or without. */
bool table_take_time(struct slice content, int64_t *time);

/* ---- writing (lines.c) ---- */

/* What is asked for: lines from an index on, or from a time (of tables in descending order: the negative of a number);
 * or the next, or previous, that is searched for. */
struct lines_wanted {
    bool by_time, find, backward;
    int64_t time;
    uint64_t index, count;
    size_t *shown, n_shown;          /* columns */
};
/* Begins the model, up to the open array of lines. */
void put_table_head(const struct merged_table *, struct json *, const struct lines_wanted *, uint64_t low);
struct shown_line {
    struct chosen_line at;
    const struct fills *fills;
    size_t number;                   /* among the chosen ones */
};
/* A line, under its number in the whole table. */
void put_table_line(const struct merged_table *, struct json *, const struct lines_wanted *, const struct shown_line *,
    uint64_t index);

/* The position of the n-th line, of the first line at or after a time. False: as above. */
bool table_locate(struct merged_table *, uint64_t n, uint64_t *position);
bool table_locate_time(struct merged_table *, int64_t time, uint64_t *position);
/* The member whose line is next at a position; n: nobody's is. `next`: their next lines. */
size_t table_next(const struct merged_table *, const struct line_answer *next, const size_t *taken);

/* ---- what is remembered of servers that are away (memory.c) ---- */

/* How many lines each had in a table, and which of them were at what time. Where lines were shown all are known, so
 * that the lines of others keep their numbers there; elsewhere between known ones they are taken to be spread
 * evenly. */
struct memories *memories_new(void);
void memories_free(struct memories *); /* NULL-safe */
void memory_note(const struct merged_table *, size_t member, const struct line_answer *);
/* Answers in the member's stead; false: it never said anything of this table. */
bool memory_answer(struct merged_table *, size_t member, const struct line_ask *, struct line_answer *);

/* ---- what was found before (places.c) ---- */

/* Positions that were found, so that neighbours need no search; not while somebody is absent. */
void places_note(struct merged_table *, const uint64_t *position);
struct places *places_new(void);
void places_free(struct places *);
/* The nearest one that was noted; false: none. */
bool places_near(struct merged_table *, uint64_t n, uint64_t *position);
/* The n-th line itself was noted, once: sets the sizes, too, which may be others by now. */
bool places_exactly(struct merged_table *, uint64_t n, uint64_t *position);
/* What the members said of the columns, or the tree, of the output at hand: a copy in the arena, or at NULL; and
 * noting it. */
struct slice places_told(struct coord_call *, const struct node *);
void places_note_told(struct coord_call *, const struct node *, struct slice model);

#endif
