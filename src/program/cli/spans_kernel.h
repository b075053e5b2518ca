/* SPDX-License-Identifier: MIT */
/* weft spans critpath --kernel: why stages took so long, by what the kernels of their machines recorded meanwhile. */
#ifndef WEFT_CLI_SPANS_KERNEL_H
#define WEFT_CLI_SPANS_KERNEL_H

#include "cli/spans.h"

/* Opens the traces and puts their machines on one clock; builds stores that are missing. */
int cli_kernel_open(const struct cli_list *traces, const char *store, struct cli_kernel **, struct err *);
/* Finds the threads of the spans, whose rows have SPANS_PROCESS_KEYS. Before anything is asked. */
void cli_kernel_know(struct cli_kernel *, const struct spans *);
void cli_kernel_close(struct cli_kernel *);
struct experiment;
const struct experiment *cli_kernel_experiment(const struct cli_kernel *);

/* Where the time of a piece of a span went: the critical path of its process' thread over it, summed. */
enum cli_why {
    WHY_RUNNING, WHY_PREEMPTED, WHY_DISK, WHY_NETWORK, WHY_TIMER, WHY_BLOCKED,
    WHY_OTHER_SPAN,          /* whatever it was: in the process of another span */
    WHY_UNKNOWN, WHY_COUNT
};
extern const char *const cli_why_names[WHY_COUNT];
struct cli_reasons {
    int64_t ns[WHY_COUNT];
    int64_t asked, traced;   /* traced: the thread lived, and was recorded */
    size_t pieces, found;
    /* Of the last: its thread, and how that was found (enum index_span_by). */
    const char *host; int32_t tid; uint8_t by;
};
/* Adds to the reasons. False: the thread is not in the traces. `sentence`: NULL, or where the answer in words goes. */
bool cli_kernel_explain(const struct cli_kernel *, const struct spans_section *, struct cli_reasons *,
    struct text *sentence);

/* How much was added to times of a machine's spans: from so many that are marked in its trace. False: none are. */
struct cli_clock { const char *host; size_t marked, monotonic; int64_t least_ns, most_ns; };
size_t cli_kernel_hosts(const struct cli_kernel *);
bool cli_kernel_clock(const struct cli_kernel *, size_t host, struct cli_clock *);
/* Says it where it is much. */
void cli_kernel_note_clocks(const struct cli_kernel *);

#endif
