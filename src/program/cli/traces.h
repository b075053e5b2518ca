/* SPDX-License-Identifier: MIT */
/* What all verbs on traces share: opening with progress and notes, choosing times and threads. */
#ifndef WEFT_CLI_TRACES_H
#define WEFT_CLI_TRACES_H

#include "base/arena.h"
#include "base/text.h"
#include "cli/cli.h"
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

/* The value of an option that takes a duration: "500ms", "30s", "2m"; more than nothing. NULL: *ns stays as it is. */
int cli_parse_duration(const char *option, const char *s, int64_t *ns, struct err *);

/* The names of the hosts that there are, and the span of all; borrowed. */
struct cli_hosts { const char **v; size_t n, cap; struct cli_span span; };
#define CLI_HOSTS_NONE {.span = {INT64_MAX, INT64_MIN}}
void cli_hosts_add(struct cli_hosts *, const char *name, int64_t begin, int64_t end);
/* Is there one of the name that the option ("--host") has? ERR_ARG: no; the message lists them. */
int cli_hosts_check(const struct cli_hosts *, const char *option, const char *wanted, struct err *);
void cli_hosts_fini(struct cli_hosts *);

/* What every verb that relates clocks understands. Zero-initialise; the rows of its table of options: CLI_CLOCKS. */
struct cli_clocks {
    const char *reference, *prior;
    struct cli_list trust;
    bool no_sync;
    struct arena arena;
    struct clock_options options; /* after cli_clocks_parse; as long as this lives */
};
#define CLI_CLOCKS(c) \
    {"reference", 'r', CLI_STRING, "HOST", \
        "the host whose clock counts (default: the one from which all others are known best)", &(c)->reference}, \
        {"trust", 0, CLI_LIST, "HOST,…[=ERROR]", \
        "the clocks of these hosts are at most ERROR apart (50us; 0 when left away); may be given several times", \
        &(c)->trust}, \
        {"no-sync", 0, CLI_FLAG, NULL, \
            "leave clocks as they are: messages are not asked how they are related, only --trust counts", \
            &(c)->no_sync}, \
    { \
        "drift-prior", 0, CLI_STRING, "PPM", "how far clocks may drift apart, or none (default: 300)", &(c)->prior \
    }
int cli_clocks_parse(struct cli_clocks *, struct err *);
void cli_clocks_fini(struct cli_clocks *);
/* Should every host keep its own clock, unrelated? */
bool cli_clocks_apart(const struct cli_clocks *);
/* experiment_sync; what messages contradict of --trust becomes notes. */
int cli_sync(struct experiment *, const struct cli_clocks *, const struct clock_net **, struct err *);
/* The same; *net is NULL where every host keeps its own clock. ERR_ARG: nothing relates the reference that was named to
 * any other host. */
int cli_relate(struct experiment *, const struct cli_clocks *, const struct clock_net **net, struct err *);

#endif
