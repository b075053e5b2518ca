/* SPDX-License-Identifier: MIT */
/* Common parts of all verbs on traces: opening with progress and notes, choosing times and threads. */
#ifndef WEFT_CLI_TRACES_H
#define WEFT_CLI_TRACES_H

#include "base/arena.h"
#include "base/text.h"
#include "cli/cli.h"
#include "clock/clock.h"
#include "flow/flow.h"
#include "graph/graph.h"
#include "index/index.h"

/* Reports wrong use if n = 0. */
int cli_need_traces(size_t n, struct err *);
/* Calls index_experiment_open with a progress bar; problems of the input become notes. */
int cli_open_traces(char **args, size_t n, struct index_options *, struct experiment **, struct err *);
/* Result of reading a trace directly, in addition to the experiment's notes. */
struct cli_reading { bool damaged; uint64_t events; };
/* Calls cli_finish for an answer made from the experiment. Only this function decides the exit status of an answer.
 * CLI_FAILED: files changed meanwhile, and nothing is shown; or the input is damaged and no event could be read.
 * CLI_PARTIAL: something is damaged or missing. reading: NULL for answers from stores. */
int cli_finish_traces(const struct experiment *, struct text *out, const struct cli_reading *);
/* Span of all traces, ns, as far as known before reading: first event, and a time not before the last one. */
struct cli_span { int64_t first, last; };
/* Parses --begin and --end. NULL leaves *begin or *end unchanged; both are ns, inclusive. "+1s" counts from the span's
 * first. A window outside the span is noted. */
int cli_parse_window(const char *from, const char *to, const struct cli_span *, int64_t *begin, int64_t *end,
    struct err *);

/* Parses the value of an option that takes a duration above 0: "500ms", "30s", "2m". NULL leaves *ns unchanged. */
int cli_parse_duration(const char *option, const char *s, int64_t *ns, struct err *);

/* Names of all hosts, and the span of all; borrowed. */
struct cli_hosts { const char **v; size_t n, cap; struct cli_span span; };
#define CLI_HOSTS_NONE {.span = {INT64_MAX, INT64_MIN}}
void cli_hosts_add(struct cli_hosts *, const char *name, int64_t begin, int64_t end);
/* Checks that a host of the name given to the option ("--host") exists. ERR_ARG: it does not; the message lists all. */
int cli_hosts_check(const struct cli_hosts *, const char *option, const char *wanted, struct err *);
void cli_hosts_fini(struct cli_hosts *);

/* Options of all verbs that relate clocks. Zero-initialise; rows of the option table: CLI_CLOCKS. */
struct cli_clocks {
    const char *reference, *prior;
    struct cli_list trust;
    bool no_sync;
    struct arena arena;
    struct clock_options options; /* set by cli_clocks_parse; valid as long as this struct */
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
/* Returns whether every host keeps its own clock, unrelated. */
bool cli_clocks_apart(const struct cli_clocks *);
/* Calls index_experiment_sync; contradictions between messages and --trust become notes. */
int cli_sync(struct experiment *, const struct cli_clocks *, const struct clock_net **, struct err *);
/* Calls cli_sync; *net is NULL if every host keeps its own clock. ERR_ARG: no other host is related to the reference
 * named. */
int cli_relate(struct experiment *, const struct cli_clocks *, const struct clock_net **net, struct err *);

#endif
