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
/* cli_finish of an answer made from the experiment, if its files stayed as they were; else none of it is shown, and the
 * exit code is CLI_FAILED. */
int cli_finish_traces(const struct experiment *, struct text *out, int code);
/* --begin and --end, either NULL: unchanged; *begin, *end: ns, inclusive. `start`: what "+1s" counts from. */
int cli_parse_window(const char *from, const char *to, int64_t start, int64_t *begin, int64_t *end, struct err *);
/* --drift-prior: a number of ppm, or "none"; NULL leaves the default. */
int cli_drift_prior(const char *s, struct clock_options *, struct err *);

#endif
