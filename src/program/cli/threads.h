/* SPDX-License-Identifier: MIT */
/* weft threads: a line for each thread, of traces or of a cluster. */
#ifndef WEFT_CLI_THREADS_H
#define WEFT_CLI_THREADS_H

#include "cli/cli.h"
#include "cli/cluster.h"
#include "cli/traces.h"

struct threads_row {
    const char *host;
    int64_t host_begin;
    struct graph_time is;
};
struct threads_rows {
    struct threads_row *v;
    size_t n, cap, total; /* total: number of rows that exist, present here or not */
};

struct threads_choice {
    struct graph_choice choice;
    const char *host, *sort, *begin_text, *end_text;
    int64_t limit;
    int state; /* a graph_state; most of it first */
    int format;
    bool partial; /* something of the traces is missing */
};

/* ---- verb_threads.c ---- */

/* Checks --host and the interval against the hosts. */
int cli_threads_settle(struct threads_choice *, const struct cli_hosts *, struct err *);
/* Returns the maximum number of lines to show. */
size_t cli_threads_most_lines(const struct threads_choice *);
/* Sorts the lines and writes them. */
void cli_threads_show(const struct threads_choice *, struct threads_rows *, struct text *out);

/* ---- threads_cluster.c ---- */

/* Answers by querying the nodes of a cluster; returns the exit code. */
int cli_threads_ask_cluster(struct threads_choice *, struct cli_cluster *);

#endif
