/* Private to cli: `weft place --auto`. */
#ifndef WEFT_CLI_PLACE_H
#define WEFT_CLI_PLACE_H

#include "cli/cluster.h"

/* Zero-initialise; the rows of a table of options: PLACE_AUTO. */
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

/* ERR_ARG: options that are for --auto alone, without it. */
int place_auto_check(const struct place_auto *, struct err *e);
/* Runs until it is stopped; the exit code. */
int place_auto_run(const struct place_auto *, struct cli_cluster *, int64_t balance_percent, int64_t gain_percent);

#endif
