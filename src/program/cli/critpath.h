/* SPDX-License-Identifier: MIT */
/* Parts of weft critpath: the question, open data, choice of the thread, and output. */
#ifndef WEFT_CLI_CRITPATH_H
#define WEFT_CLI_CRITPATH_H

#include "cli/cli.h"
#include "cli/cluster.h"
#include "cli/critpath_sums.h"
#include "cli/traces.h"
#include "path/path.h"
#include "path/requests.h"

struct critpath_question {
    const char *thread, *begin, *end, *method, *svg, *store, *format_name, *polling, *compare,
        *requests, *by;
    struct cli_clocks clocks;
    struct cli_cluster cluster;
    bool segments, aggregate, no_early_return, request, refine, snips;
    int format;
};

/* Data for showing the answer, independent of where the graphs lie. */
struct critpath_host {
    const char *name;
    const struct clock_map *map;
    bool has_graph;          /* host can be on a path */
};
struct critpath_shown {
    const struct path *path;
    const struct path_source *source;
    const struct path_local *local; /* NULL: the path came from nodes of a cluster */
    const struct critpath_host *hosts; size_t n;
    bool synced;             /* clocks are related */
    const char *method;
};

/* ---- critpath_answer.c ---- */

/* Adds the span of a host with that clock map; map may be NULL. */
void cli_critpath_add_span(struct cli_span *, const struct clock_map *, int64_t begin, int64_t end);
/* Parses --begin and --end within a span of the hosts. */
int cli_critpath_parse_interval(const struct critpath_question *, const struct cli_span *, struct path_options *,
    struct err *e);
/* Notes hosts whose clocks are not related to that of the thread. */
void cli_critpath_note_clocks(const struct critpath_shown *);
void cli_critpath_write(const struct critpath_shown *, const struct critpath_question *, struct text *out);
/* Writes two paths side by side. */
void cli_critpath_write_compared(const struct critpath_shown *a, const struct critpath_shown *b,
    const struct critpath_question *, struct text *out);
/* Parses the second question, --compare THREAD,BEGIN,END; its strings are in the arena. */
int cli_critpath_second(const struct critpath_question *, struct arena *, struct critpath_question *out, struct err *e);
int cli_critpath_write_svg(const struct critpath_shown *, const char *file, struct err *e);
/* Report that the thread means several lives, or none in that interval. Return the exit code. */
int cli_critpath_refuse_several(const char *thread, const struct path_lives *);
int cli_critpath_refuse_absent(const char *thread, const struct path_lives *at_any_time);

/* ---- critpath_requests.c ---- */

/* Checks whether --requests is a set and fits the other options. */
int cli_critpath_check_requests(const struct critpath_question *, struct err *);
/* Returns the host of a checked set; NULL: any. In the arena. */
const char *cli_critpath_requests_host(const char *set, struct arena *);
struct critpath_set {
    struct critpath_sums sums;
    size_t of, left_out;     /* number of requests found; number of those without a path */
    bool missing;            /* graph parts are missing because their node does not answer */
};
void cli_critpath_set_fini(struct critpath_set *);
/* Sums the paths of requests of the set that were found, served by that host and within the interval. far NULL: they
 * were found here. out: zeroed, for cli_critpath_set_fini in any case. */
int cli_critpath_sum_requests(const char *set, const struct requests *, const struct requests_far *far,
    struct critpath_set *out, struct err *);
/* Sets: --requests, and --compare for a second one beside it. */
enum { CRITPATH_SETS = 2 };
void cli_critpath_write_requests(const struct critpath_question *, struct critpath_set sets[CRITPATH_SETS],
    struct text *);
/* Returns set i of the question; NULL: none. */
const char *cli_critpath_set_asked(const struct critpath_question *, size_t i);

/* ---- critpath_served.c ---- */

/* Reports that containers of so many machines are unknown. Returns false if there are none. */
bool cli_critpath_note_containers(size_t machines, const struct err *why);

/* Answers the same for an open cluster, within the interval; returns the exit code. */
int cli_critpath_ask_served(const struct critpath_question *, const struct cli_asked *, int64_t begin, int64_t end);

/* ---- critpath_cluster.c ---- */

/* Answers by querying the nodes of a cluster; returns the exit code. */
int cli_critpath_ask_cluster(struct critpath_question *);

#endif
