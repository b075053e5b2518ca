/* SPDX-License-Identifier: MIT */
/* Names of a cluster's subjects and tables, and the kinds of questions: also for the rooms that add questions of their
 * own (docs/cluster-protocol.md). */
#ifndef WEFT_CLUSTER_QUESTION_H
#define WEFT_CLUSTER_QUESTION_H

#include "base/err.h"
#include "base/text.h"

enum { CLUSTER_SUBJECT = 256 };
/* "weft.CLUSTER.ask.NODE", as tokens. ERR_LIMIT. */
int cluster_subject_of(const char *cluster, const char *node, char out[CLUSTER_SUBJECT], struct err *e);
/* "weft_CLUSTER_KIND"; letters of the name that tables may not have become '-'. ERR_LIMIT. */
int cluster_table_name(const char *cluster, const char *kind, char out[CLUSTER_SUBJECT], struct err *e);

enum cluster_question {
    CLUSTER_HELLO,           /* → instance */
    CLUSTER_PATH,            /* path_request → state, fragment */
    CLUSTER_LIVES,           /* whose path: struct lives_question → lives */
    CLUSTER_FLOWS,           /* hosts → hashes of their flows */
    CLUSTER_EXTRACT,         /* flows of a host → their packets */
    CLUSTER_THREADS,         /* which threads were there → lines */
    CLUSTER_TALK,            /* hosts → what went of their flows */
    CLUSTER_DELAYS,          /* of whoever keeps the clocks: hosts on clocks → delays of what they have in common */
    CLUSTER_REQUESTS,        /* hosts on clocks → the requests that they served */
    CLUSTER_CONTAINERS,      /* rows of hosts → which container each is in */
    CLUSTER_STATUS,          /* → what it is doing (report.h); also of a node that has no traces yet */
    CLUSTER_LOAD = 16,       /* → how busy it is, and what room it has; also of a node that has no traces yet */
    /* Moving traces (room `place`). A node without traces answers the first, too. */
    CLUSTER_TAKE,            /* takes a trace from another node → how far it is */
    CLUSTER_FILES,           /* → the files of a trace */
    CLUSTER_READ,            /* → a piece of one */
    CLUSTER_SUM,             /* → the sum of one */
    CLUSTER_LEAVE            /* another node has taken the trace → has it been removed? */
};
/* The beginning of a question: version and kind; what follows is the kind's. */
void cluster_question_begin(struct text *, enum cluster_question);

#endif
