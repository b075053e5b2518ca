/* SPDX-License-Identifier: MIT */
/* Private to the groups of machines: their lines while a question for some of them is answered. */
#ifndef WEFT_COORD_GROUP_LINES_H
#define WEFT_COORD_GROUP_LINES_H

#include "coord/groups.h"

/* A machine's line, by the id that clients know; row: what its server says of it. */
struct machine_line {
    int64_t id;
    size_t what;
    const struct node *machine;
    struct slice row;
};
/* A group's line that is asked for. */
struct group_asked { size_t group, what; };
struct group_lines {
    struct machine_line *v; size_t n;
    struct group_asked *asked; size_t n_asked;
    int64_t *hidden; size_t n_hidden; /* ascending */
};

/* The summary whose lines are states is the first of the outputs with lines of groups; the one of series the other. */
enum { OUTPUT_STATES, OUTPUT_SERIES };
/* Of the call at hand; -1: it is none of these. */
int group_output(const struct coord_call *);
/* A group's own ids: of what stands for it (0), and of its lines, in each output. */
int64_t group_own_id(int output, size_t line);
const struct coord_group *group_config(const struct coord_call *, size_t group);
bool group_has(const struct coord_group *, const struct node *machine);
double machine_weight(const struct node *machine);
/* The groups' lines among the items asked for; `rest` takes the others. */
void group_lines_asked(struct coord_call *, int output, struct group_lines *, json_t *rest);
/* What servers say of the machines' lines. */
void group_lines_take(struct fan *, const char *array, const char *id);
/* The line is one of those that the group's is made of, and there is something of it. */
bool group_line_counts(const struct coord_call *, const struct machine_line *, const struct group_asked *);
typedef void put_line(struct coord_call *, struct json *, const struct group_asked *);
/* A part for each group with lines that are asked for. */
void group_lines_add(struct fan *, const char *array, const char *id, put_line *);

#endif
