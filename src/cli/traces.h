/* What all verbs on traces share: opening with progress and notes, choosing times and threads. */
#ifndef WEFT_CLI_TRACES_H
#define WEFT_CLI_TRACES_H

#include "base/text.h"
#include "clock/clock.h"
#include "flow/flow.h"
#include "graph/graph.h"
#include "index/index.h"

/* n = 0 is wrong use. */
int cli_need_traces(size_t n, struct err *);
/* experiment_open with a progress bar; problems of the input become notes. */
int cli_open_traces(char **args, size_t n, struct index_options *, struct experiment **, struct err *);
/* What a verb found out by reading a trace itself, besides what the experiment's notes tell. */
struct cli_reading { bool damaged; uint64_t events; };
/* cli_finish of an answer made from the experiment, and the one place that decides the exit status of an answer.
 * CLI_FAILED: files changed meanwhile, then nothing is shown; or the input is damaged and no event could be read.
 * CLI_PARTIAL: something is damaged or missing. reading: NULL for answers from stores. */
int cli_finish_traces(const struct experiment *, struct text *out, const struct cli_reading *);
/* Of all traces, in ns, as far as known before they are read: of the first event, and not before the last one. */
struct cli_span { int64_t first, last; };
/* --begin and --end, either NULL: unchanged; *begin, *end: ns, inclusive. "+1s" counts from the span's first. A window
 * that holds nothing of the span is noted. */
int cli_parse_window(const char *from, const char *to, const struct cli_span *, int64_t *begin, int64_t *end,
    struct err *);
/* --drift-prior: a number of ppm, or "none"; NULL leaves the default. */
int cli_drift_prior(const char *s, struct clock_options *, struct err *);

#endif
