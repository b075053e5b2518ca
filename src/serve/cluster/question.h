/* SPDX-License-Identifier: MIT */
/* Names of a cluster's subjects and tables, and kinds of questions; also for rooms with questions of their own
 * (docs/cluster-protocol.md). */
#ifndef WEFT_CLUSTER_QUESTION_H
#define WEFT_CLUSTER_QUESTION_H

#include "base/err.h"
#include "base/text.h"

enum { CLUSTER_SUBJECT = 256 };
/* Makes "weft.CLUSTER.ask.NODE", as tokens. ERR_LIMIT. */
int cluster_subject_of(const char *cluster, const char *node, char out[CLUSTER_SUBJECT], struct err *e);
/* Makes "weft_CLUSTER_KIND"; characters that tables may not have become '-'. ERR_LIMIT. */
int cluster_table_name(const char *cluster, const char *kind, char out[CLUSTER_SUBJECT], struct err *e);

enum cluster_question {
    CLUSTER_HELLO,           /* → instance */
    CLUSTER_PATH,            /* path_request → state, fragment */
    CLUSTER_LIVES,           /* thread of a path: struct lives_question → lives */
    CLUSTER_FLOWS,           /* hosts → hashes of their flows */
    CLUSTER_EXTRACT,         /* flows of a host → their packets */
    CLUSTER_THREADS,         /* choice of threads → lines */
    CLUSTER_TALK,            /* hosts → traffic of their flows */
    CLUSTER_DELAYS,          /* hosts on clocks → delays of their common packets; for the clock leader */
    CLUSTER_REQUESTS,        /* hosts on clocks → requests that they served */
    CLUSTER_CONTAINERS,      /* rows of hosts → container of each */
    CLUSTER_STATUS,          /* → activity (report.h); also without traces */
    CLUSTER_STACKS,          /* waits and stretches of running of rows → call stack of each */
    CLUSTER_LOAD = 16,       /* → load and free space; also without traces */
    /* Moving traces (room `place`). A node without traces answers the first, too. */
    CLUSTER_TAKE,            /* takes a trace from another node → progress */
    CLUSTER_FILES,           /* → files of a trace */
    CLUSTER_READ,            /* → part of a file */
    CLUSTER_SUM,             /* → sum of a file */
    CLUSTER_LEAVE            /* another node has taken the trace → whether it was removed */
};
/* Begins a question: version and kind; the rest depends on the kind. */
void cluster_question_begin(struct text *, enum cluster_question);

#endif
