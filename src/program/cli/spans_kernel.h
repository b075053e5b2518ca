/* SPDX-License-Identifier: MIT */
/* weft spans critpath --kernel: reasons for long stages, from kernel traces of their machines. */
#ifndef WEFT_CLI_SPANS_KERNEL_H
#define WEFT_CLI_SPANS_KERNEL_H

#include "cli/spans.h"

/* Opens the traces and puts their machines on one clock; builds stores that are missing. */
int cli_kernel_open(const struct cli_list *traces, const char *store, struct cli_kernel **, struct err *);
/* Finds the threads of the spans, whose rows have SPANS_PROCESS_KEYS. To be called before any query. */
void cli_kernel_know(struct cli_kernel *, const struct spans *);
void cli_kernel_close(struct cli_kernel *);
struct experiment;
const struct experiment *cli_kernel_experiment(const struct cli_kernel *);

/* Reasons for the time of a section of a span: the critical path of its process' thread over it, summed. */
enum cli_why {
    WHY_RUNNING, WHY_PREEMPTED, WHY_DISK, WHY_NETWORK, WHY_TIMER, WHY_BLOCKED,
    WHY_OTHER_SPAN,          /* state in the process of another span */
    WHY_UNKNOWN, WHY_COUNT
};
extern const char *const cli_why_names[WHY_COUNT];
struct cli_reasons {
    int64_t ns[WHY_COUNT];
    int64_t asked, traced;   /* traced: the thread lived, and was recorded */
    size_t pieces, found;
    /* Thread of the last section, and how it was found (enum index_span_by). */
    const char *host; int32_t tid; uint8_t by;
};
/* Adds to the reasons. Returns false if the thread is not in the traces. `sentence`: receives the answer in words; may
 * be NULL. */
bool cli_kernel_explain(const struct cli_kernel *, const struct spans_section *, struct cli_reasons *,
    struct text *sentence);

/* Shift of the times of a machine's spans: number of spans located in its trace, and range. Returns false if there are
 * none. */
struct cli_clock { const char *host; size_t marked, monotonic; int64_t least_ns, most_ns; };
size_t cli_kernel_hosts(const struct cli_kernel *);
bool cli_kernel_clock(const struct cli_kernel *, size_t host, struct cli_clock *);
/* Notes large shifts. */
void cli_kernel_note_clocks(const struct cli_kernel *);

#endif
