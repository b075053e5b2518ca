/* SPDX-License-Identifier: MIT */
/* The parts of weft critpath: what is asked, what stands open meanwhile, choosing the thread, answering. */
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

/* What the answer is shown by, wherever the graphs lie. */
struct critpath_host {
    const char *name;
    const struct clock_map *map;
    bool has_graph;          /* it can be on a path */
};
struct critpath_shown {
    const struct path *path;
    const struct path_source *source;
    const struct path_local *local; /* NULL: nodes of a cluster told the path */
    const struct critpath_host *hosts; size_t n;
    bool synced;             /* clocks were related */
    const char *method;
};

/* ---- critpath_answer.c ---- */

/* Adds the span of a host with that map, or NULL. */
void critpath_add_span(struct cli_span *, const struct clock_map *, int64_t begin, int64_t end);
/* --begin and --end within a span of the hosts. */
int critpath_parse_interval(const struct critpath_question *, const struct cli_span *, struct path_options *,
    struct err *e);
/* Notes on hosts whose clocks are not related to that of the thread. */
void critpath_note_clocks(const struct critpath_shown *);
void critpath_write(const struct critpath_shown *, const struct critpath_question *, struct text *out);
/* Two paths beside each other. */
void critpath_write_compared(const struct critpath_shown *a, const struct critpath_shown *b,
    const struct critpath_question *, struct text *out);
/* The second question, of --compare THREAD,BEGIN,END; its strings are in the arena. */
int critpath_second(const struct critpath_question *, struct arena *, struct critpath_question *out, struct err *e);
int critpath_write_svg(const struct critpath_shown *, const char *file, struct err *e);
/* The thread means several lives, or none in that interval. Return the exit code. */
int critpath_refuse_several(const char *thread, const struct path_lives *);
int critpath_refuse_absent(const char *thread, const struct path_lives *at_any_time);

/* ---- critpath_requests.c ---- */

/* Does --requests fit to what else is asked, and is it a set? */
int critpath_check_requests(const struct critpath_question *, struct err *);
/* Of which host; NULL: any. In the arena. For a set that was checked. */
const char *critpath_requests_host(const char *set, struct arena *);
struct critpath_set {
    struct critpath_sums sums;
    size_t of, left_out;     /* how many there are; of how many of the set the path cannot be followed */
    bool missing;            /* pieces that somebody has who does not answer */
};
void critpath_set_fini(struct critpath_set *);
/* Sums of the paths of those requests of the set that were found, of that host and within the interval; far NULL: they
 * were found here. out: zeroed, for critpath_set_fini in any case. */
int critpath_sum_requests(const char *set, const struct requests *, const struct requests_far *far,
    struct critpath_set *out, struct err *);
/* One set, or two beside each other: --requests, --compare. */
enum { CRITPATH_SETS = 2 };
void critpath_write_requests(const struct critpath_question *, struct critpath_set sets[CRITPATH_SETS], struct text *);
/* The i-th of them; NULL: there is none. */
const char *critpath_set_asked(const struct critpath_question *, size_t i);

/* ---- critpath_served.c ---- */

/* The containers of so many machines are not told: says so. False: of none. */
bool critpath_note_containers(size_t machines, const struct err *why);

/* The same over a cluster that is open, within the interval; returns the exit code. */
int critpath_ask_served(const struct critpath_question *, const struct cli_asked *, int64_t begin, int64_t end);

/* ---- critpath_cluster.c ---- */

/* Answers by asking the nodes of a cluster; returns the exit code. */
int critpath_ask_cluster(struct critpath_question *);

#endif
