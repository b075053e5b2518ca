/* SPDX-License-Identifier: MIT */
/* Private to cli: the parts of `weft place`. */
#ifndef WEFT_CLI_PLACE_H
#define WEFT_CLI_PLACE_H

#include "cli/cluster.h"
#include "place/place.h"

/* ---- place_auto.c ---- */

/* Options of --auto. Zero-initialise; rows of the option table: PLACE_AUTO. */
struct place_auto {
    bool is, once;
    const char *idle, *every, *settle;
    int64_t load, questions; /* 0: not given */
};
enum { PLACE_LOAD = 50, PLACE_QUESTIONS = 1 };
#define PLACE_AUTO(a) \
    {"auto", 0, CLI_FLAG, NULL, "move traces as advised, one at a time, while nodes are idle, until stopped", \
        &(a)->is}, \
        {"once", 0, CLI_FLAG, NULL, "with --auto: end after a move, or when none is possible", &(a)->once}, \
        {"idle", 0, CLI_STRING, "TIME", "with --auto: nodes must have been idle for so long (default: 60s)", \
            &(a)->idle}, \
        {"idle-load", 0, CLI_INT, "PERCENT", "with --auto: load of all CPUs of an idle node, at most (default: 50)", \
            &(a)->load, 1, 100000}, \
        {"idle-questions", 0, CLI_INT, "N", "with --auto: questions that an idle node answers a second (default: 1)", \
            &(a)->questions, 1, 1000000}, \
        {"settle", 0, CLI_STRING, "TIME", "with --auto: a trace that came stays for so long (default: 60m)", \
            &(a)->settle}, \
    { \
        "every", 0, CLI_STRING, "TIME", "with --auto: time between two looks (default: 10s)", &(a)->every \
    }

/* ERR_ARG: options for --auto are given without it. */
int cli_place_auto_check(const struct place_auto *, struct err *e);
/* Runs until it is stopped; returns the exit code. */
int cli_place_auto_run(const struct place_auto *, struct cli_cluster *, int64_t balance_percent, int64_t gain_percent);

/* ---- place_moves.c ---- */

struct place_choice {
    struct cli_list moves;   /* HOST=NODE */
    const char *begin, *end; /* interval to move as an excerpt; NULL: whole traces */
    struct cli_clocks clocks;
    int64_t balance, gain;
    bool apply;
    struct place_auto by_itself;
    int format;
    const char *table;
};

/* Move, and its result. */
struct place_line {
    struct place_move_advice is;
    const char *from, *to;
    bool excerpt;
    int64_t begin, end; /* interval of an excerpt, by the host's clock */
    bool done, aside;
    struct err failed;
};
struct place_lines {
    struct place_line *v;
    size_t n, cap;
};

static inline bool place_is_excerpt(const struct place_choice *c) { return c->begin || c->end; }
/* Finds the moves asked for, or else those advised. Returns 0 or ERR_ARG. */
int cli_place_find_moves(const struct place_choice *, const struct place_plan *, const struct cli_asked *,
    struct place_lines *, struct err *e);
/* Makes the moves one after the other; a failure does not stop the others. Returns the number of failures. */
size_t cli_place_apply(struct cli_asked *, struct place_lines *, int64_t patience_ns);
/* Returns the result in words. */
const char *cli_place_result(const struct place_line *);

#endif
