/* SPDX-License-Identifier: MIT */
/* Private to groups of machines: their lines while a question for some of them is answered. */
#ifndef WEFT_COORD_GROUP_LINES_H
#define WEFT_COORD_GROUP_LINES_H

#include "coord/groups.h"

/* Line of a machine, by its id for clients. row: the answer of the machine's server. */
struct machine_line {
    int64_t id;
    size_t what;
    const struct node *machine;
    struct slice row;
};
/* Requested line of a group. */
struct group_asked { size_t group, what; };
struct group_lines {
    struct machine_line *v; size_t n;
    struct group_asked *asked; size_t n_asked;
    int64_t *hidden; size_t n_hidden; /* ascending */
};

/* Outputs with lines of groups: the first has states, the second has series. */
enum { OUTPUT_STATES, OUTPUT_SERIES };
/* Returns the output of the request; -1: neither. */
int coord_group_output(const struct coord_call *);
/* Returns a group's own id in an output: 0 for the group's entry, else for one of its lines. */
int64_t coord_group_own_id(int output, size_t line);
const struct coord_group *coord_group_config(const struct coord_call *, size_t group);
bool coord_group_has(const struct coord_group *, const struct node *machine);
double coord_machine_weight(const struct node *machine);
/* Takes the groups' lines from the requested items; `rest` receives the others. */
void coord_group_lines_asked(struct coord_call *, int output, struct group_lines *, json_t *rest);
/* Takes the machines' lines from the servers' answers. */
void coord_group_lines_take(struct coord_answers *, const char *array, const char *id);
/* Returns whether the machine's line is part of the group's line and has data. */
bool coord_group_line_counts(const struct coord_call *, const struct machine_line *, const struct group_asked *);
typedef void put_line(struct coord_call *, struct json *, const struct group_asked *);
/* Adds a part for each group with requested lines. */
void coord_group_lines_add(struct coord_answers *, const char *array, const char *id, put_line *);

#endif
