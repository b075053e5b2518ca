/* SPDX-License-Identifier: MIT */
/* What many spans tell together: tables, stages, outliers, differences, clusters and critical paths.
 *
 * Spans are gathered (spans_add), then settled once: they become rows by trace and end, parts of one another, and
 * units. Nothing changes afterwards.
 *
 * A unit is what is analysed as one piece of work: a request, a pilot job. It is a tree of spans that were there while
 * their parents were. A span that begins only after its parent has ended does not belong to the parent's unit: it
 * waited in a queue meanwhile, and begins a unit of its own. Where several such spans are stages of one job (pilot jobs
 * tell them one after the other, without a span around them) they are one unit below an envelope, which is synthetic:
 * nobody recorded it. Which stages belong together an attribute says, or that each begins when the one before ends.
 *
 * Begins that were cut to the second are repaired where the stage before ended within that second: there, it began.
 *
 * Machines' clocks differ. Where client and server spans cannot both be right the server's is moved into the client's,
 * with all below it that the same clock timed (as Jaeger's clock skew adjuster does). */
#ifndef WEFT_SPAN_ANALYSIS_H
#define WEFT_SPAN_ANALYSIS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "span/span.h"

/* With fewer of a kind nothing is claimed: the numbers alone are told. */
enum { SPANS_FEW = 8 };

struct spans;
/* Names of attributes are remembered for `keys` alone (NULL ends them), or for all. "host", "site", "entry" and
 * "client" stand for the several names that attributes have for them. */
struct spans_choice {
    const char *const *keys;
    bool all_keys;
    const char *group;       /* the attribute that tells units apart; NULL: the usual ones */
    bool as_recorded;        /* begins are not repaired */
};
struct spans *spans_new(const struct spans_choice *);
/* From now on only what the query means is added. */
void spans_only(struct spans *, const struct span_query *);
void spans_add(struct spans *, const struct span *);
/* Of a file or a store; what the file's reader left out is told. */
int spans_add_file(struct spans *, const char *path, struct span_told *, struct err *);
int spans_add_store(struct spans *, const char *directory, const struct span_query *, struct err *);
void spans_settle(struct spans *);
void spans_free(struct spans *);

/* Ids as numbers, their first byte the highest. Rows of a trace follow one another, by end; traces by first begin. */
struct spans_row {
    uint64_t id, parent_id;  /* parent_id 0: none */
    int64_t begin_ns, end_ns, recorded_ns;  /* begin, repaired, and as recorded */
    int64_t shift_ns;        /* added to begin and end, because its machine's clock contradicts its caller's */
    uint32_t trace, name, service, origin, unit;
    uint32_t fact, facts;
    int32_t parent;          /* the row that it is a part of; -1: the root of a unit, or a stage below an envelope */
    uint8_t status, life, kind;             /* enum span_status, enum span_life, enum span_kind */
    bool follows;            /* its parent does not wait for it: a link says that it only follows */
    bool cut;                /* the begin is known to the second only: it was up to 1 s later */
};
struct spans_trace { uint8_t id[SPAN_TRACE_BYTES]; uint32_t row, rows; };
struct spans_unit {
    int64_t begin_ns, end_ns;
    uint32_t trace, name, service;
    int32_t root;            /* -1: an envelope, `name` being its service's */
    int32_t after;           /* the row whose end it waited for since, its parent; -1: not known */
    uint32_t member, members;           /* its rows: spans_member(member …), by end */
    bool guessed;            /* that these stages belong together was told by their times */
};
/* What was found and put right while settling. */
struct spans_told {
    size_t repaired, cut;    /* begins */
    size_t doubtful;         /* stages that could as well belong to another unit */
    size_t circles;          /* spans that were their own forebears */
    size_t orphans;          /* whose parent is not there */
    size_t skewed;           /* server spans that were moved into their clients' */
    int64_t skew_most_ns;    /* the farthest */
    size_t doubles;          /* the same span again */
};
size_t spans_rows(const struct spans *, const struct spans_row **);
size_t spans_traces(const struct spans *, const struct spans_trace **);
size_t spans_units(const struct spans *, const struct spans_unit **);
const uint32_t *spans_members(const struct spans *, const struct spans_unit *);
const struct spans_told *spans_told(const struct spans *);
const char *spans_text(const struct spans *, uint32_t text);
/* What an attribute (one of the choice's keys) is: of a row, its own or its process'; of a trace, the first that any of
 * its rows has. A text; 0: nothing tells. O(rows) for a trace. */
uint32_t spans_own_value(const struct spans *, const struct spans_row *, const char *key);
uint32_t spans_trace_value(const struct spans *, const struct spans_trace *, const char *key);
static inline int64_t spans_duration(const struct spans_row *r) { return r->end_ns - r->begin_ns; }
void spans_write_id(struct text *, uint64_t id);
/* What a row says of who made it, where the choice has these keys. Texts NULL and numbers 0: it does not. */
#define SPANS_PROCESS_KEYS "host", "host.boot_id", "process.pid", "thread.id", "weft.pid_namespace", \
    "weft.monotonic_start_ns", "weft.monotonic_end_ns"
struct spans_process { const char *host, *boot; int64_t pid, tid, pid_namespace, monotonic_begin, monotonic_end; };
struct spans_process spans_process(const struct spans *, const struct spans_row *);

/* ---- stages: all spans of one service and name, apart by attributes ---- */

enum { SPANS_BY = 4, SPANS_EXAMPLES = 3 };
struct spans_by { const char *keys[SPANS_BY]; size_t n; };
struct spans_stage {
    uint32_t service, name, by[SPANS_BY];   /* texts; 0: not told */
    size_t n, errors, cut;
    double least, p50, p90, p99, most, mean;    /* ns */
    int64_t total, self;     /* ns; self: while none of its parts ran */
    double share;            /* of the self time of all stages with the same `by` */
};
struct spans_group {
    uint32_t by[SPANS_BY];
    size_t units, waited;    /* waited: units whose time in the queue is known */
    int64_t total, queue;    /* ns: of the units; in the queue */
    int64_t useful;          /* within spans named `main`; -1: there are none */
};
struct spans_stages { struct spans_stage *v; struct spans_group *groups; size_t n, n_groups; };
/* Stages in the order of time (median place within units), the groups by name. */
struct spans_stages *spans_stages(const struct spans *, const struct spans_by *, const char *main);
void spans_stages_free(struct spans_stages *);

/* ---- outliers ---- */

enum spans_oddity { SPANS_SLOW, SPANS_FAST, SPANS_MISSING, SPANS_EXTRA, SPANS_REORDERED, SPANS_FAILED, SPANS_NO_END,
    SPANS_ODDITIES };
const char *spans_oddity_name(enum spans_oddity);
struct spans_outlier {
    enum spans_oddity what;
    uint32_t unit, service, name;
    int32_t row;             /* -1: a stage that is missing */
    size_t n;                /* spans of the stage, or units of the kind, that it was compared with */
    double typical, z, p;    /* ns; robust spreads from it, of logarithms; corrected for all stages looked at */
};
struct spans_outliers {
    struct spans_outlier *v;
    size_t n;
    size_t looked, few;      /* spans compared, and those of stages with too few to tell */
};
/* The least likely first, then by time. */
struct spans_outliers *spans_outliers(const struct spans *, const struct spans_by *);
void spans_outliers_free(struct spans_outliers *);

/* ---- two sides, and changes over time ---- */

/* Which side a row is on: 0, 1, or -1 for neither. */
typedef int spans_side(void *arg, const struct spans_row *);
struct spans_difference {
    uint32_t service, name;
    size_t n[2];
    double p50[2], p95[2];   /* ns */
    double shift, low, high; /* ns: how far the second lies above the first (Hodges & Lehmann), and its 95 % interval */
    double tail, tail_low, tail_high;   /* of the 95th percentiles (bootstrap) */
    double p;                /* Mann & Whitney, corrected for all stages (Holm); 1 where there are too few */
    bool few;
    uint32_t example[2];     /* rows near the medians */
};
struct spans_differences { struct spans_difference *v; size_t n; };
struct spans_differences *spans_compare(const struct spans *, spans_side *, void *arg);
void spans_differences_free(struct spans_differences *);

struct spans_change {
    uint32_t service, name;
    int64_t at_ns;           /* begin of the first span of the new level */
    size_t n[2];             /* before and after, to the next change */
    double p50[2], p;        /* ns; p as tested, alpha being shared among the stages */
    uint32_t example[2];     /* the last row before, the first after */
};
struct spans_changes { struct spans_change *v; size_t n, stages, few; }; /* stages looked at, and too few spans */
struct spans_changes *spans_changes(const struct spans *);
void spans_changes_free(struct spans_changes *);

/* ---- clusters of like units ---- */

struct spans_trait { uint32_t key, value; size_t in, of, elsewhere, of_others; double p; };
struct spans_cluster {
    size_t n;
    uint32_t medoid;         /* unit */
    double *typical;         /* per stage, ns: the median; NaN: no unit has it */
    double length;           /* ns, median of the units */
    struct spans_trait *traits;
    size_t n_traits;
};
struct spans_clusters {
    struct spans_cluster *v;
    size_t n;                /* 0 or 1: nothing is claimed */
    uint32_t *stages;        /* names, in the order of time */
    size_t n_stages, units;
    uint8_t *of;             /* per unit of the kind: its cluster */
    uint32_t *unit;          /* the units of the kind */
    double silhouette, chance;          /* chance: how often as good a partition comes of units without clusters */
};
/* Of the units of the commonest kind (service and name). */
struct spans_clusters *spans_clusters(const struct spans *);
void spans_clusters_free(struct spans_clusters *);

/* ---- attributes that explain durations ---- */

/* Units with the value took longer in the stage than the others: Mann & Whitney's test, corrected for all values and
 * stages (Holm), and at least 5 % between the medians. */
struct spans_factor {
    uint32_t key, value, stage;         /* texts; stage 0: the whole unit */
    size_t n, others;
    double typical, others_typical, p;  /* ns: medians */
    uint32_t example[SPANS_EXAMPLES];   /* units */
};
struct spans_factors { struct spans_factor *v; size_t n, units; };
/* Of the units of the commonest kind; the likeliest first. The choice has all keys. */
struct spans_factors *spans_factors(const struct spans *);
void spans_factors_free(struct spans_factors *);

/* ---- critical paths ---- */

enum { SPANS_QUEUE = -1, SPANS_ENVELOPE = -2 };
/* In time order; they cover the unit, the time in its queue included, and do not overlap. */
struct spans_section { int64_t begin_ns, end_ns; int32_t row; };  /* or SPANS_QUEUE, SPANS_ENVELOPE */
struct spans_sections { struct spans_section *v; size_t n, cap; };
void spans_path(const struct spans *, uint32_t unit, struct spans_sections *out);

struct spans_cause {
    uint32_t service, name;
    int row;                 /* 0, SPANS_QUEUE or SPANS_ENVELOPE */
    size_t spans, units;     /* that it is on the path of */
    int64_t path;            /* ns on paths, of its own */
    int64_t drag, half;      /* by how much units were shorter if it took no time; if it took half of it */
    uint32_t example;        /* the unit in which it is longest */
    int64_t example_ns;
};
struct spans_causes { struct spans_cause *v; size_t n, units; int64_t total; };
/* Over all units; the largest first. */
struct spans_causes *spans_causes(const struct spans *);
void spans_causes_free(struct spans_causes *);

#endif
