/* SPDX-License-Identifier: MIT */
/* Analyses of many spans: tables, stages, outliers, differences, clusters and critical paths.
 *
 * Spans are gathered (spans_add), then settled once: they become rows by trace and end, parts of one another, and
 * units. Nothing changes afterwards.
 *
 * A unit is analysed as one piece of work: a request, a pilot job. It is a tree of spans that overlap their parents. A
 * span that begins only after its parent's end begins a unit of its own, since it waited in a queue meanwhile. Several
 * such spans may be stages of one job: pilot jobs report stages one after the other, without a span around them. These
 * are one unit below an envelope, which is synthetic: nobody recorded it. Stages belong together if an attribute says
 * so, or if each begins when the one before ends.
 *
 * Begins that were truncated to the second are repaired where the previous stage ended within that second: the stage
 * began at that end.
 *
 * Machines' clocks differ. Where times of a client and a server span contradict each other, the server span is moved
 * into the client's. All spans below it with the same clock move, too (as in Jaeger's clock skew adjuster). */
#ifndef WEFT_SPAN_ANALYSIS_H
#define WEFT_SPAN_ANALYSIS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "span/span.h"

/* Least number of a kind for a claim; below it, only the numbers are reported. */
enum { SPANS_FEW = 8 };

struct spans;
/* Attributes to keep: names in `keys` (NULL ends them), or all. "host", "site", "entry" and "client" stand for the
 * several attribute names in use for them. */
struct spans_choice {
    const char *const *keys;
    bool all_keys;
    const char *group;       /* attribute that tells units apart; NULL: the usual ones */
    bool as_recorded;        /* repair of begins is off */
};
struct spans *spans_new(const struct spans_choice *);
/* Restricts spans added from now on to those that match the query's trace, service, name and time. */
void spans_only(struct spans *, const struct span_query *);
void spans_add(struct spans *, const struct span *);
/* Add the spans of a file or a store. span_told: spans skipped by the reader of the file. */
int spans_add_file(struct spans *, const char *path, struct span_told *, struct err *);
int spans_add_store(struct spans *, const char *directory, const struct span_query *, struct err *);
void spans_settle(struct spans *);
void spans_free(struct spans *);

/* Row of a span. Ids are big-endian numbers. Rows are grouped by trace and ordered by end; traces are ordered by first
 * begin. */
struct spans_row {
    uint64_t id, parent_id;  /* parent_id 0: none */
    int64_t begin_ns, end_ns, recorded_ns;  /* repaired begin; end; recorded begin */
    int64_t shift_ns;        /* added to begin and end, because the machine's clock contradicts its caller's */
    uint32_t trace, name, service, origin, unit;
    uint32_t fact, facts;
    int32_t parent;          /* row that it is a part of; -1: root of a unit, or stage below an envelope */
    uint8_t status, life, kind;             /* enum span_status, enum span_life, enum span_kind */
    bool follows;            /* a link marks it as following only: its parent does not wait for it */
    bool cut;                /* begin truncated to the second: the true one is up to 1 s later */
};
struct spans_trace { uint8_t id[SPAN_TRACE_BYTES]; uint32_t row, rows; };
struct spans_unit {
    int64_t begin_ns, end_ns;
    uint32_t trace, name, service;
    int32_t root;            /* -1: an envelope; `name` is that of its service */
    int32_t after;           /* the parent, since whose end it waited; -1: not known */
    uint32_t member, members;           /* rows, by end: spans_member(member …) */
    bool guessed;            /* grouped by the times of its stages, not by an attribute */
};
/* Findings and repairs of spans_settle. */
struct spans_told {
    size_t repaired, cut;    /* begins */
    size_t doubtful;         /* stages that could also belong to another unit */
    size_t circles;          /* spans that were their own ancestors */
    size_t orphans;          /* spans whose parent is missing */
    size_t skewed;           /* server spans moved into their clients' */
    int64_t skew_most_ns;    /* largest move */
    size_t doubles;          /* repeated spans */
};
size_t spans_rows(const struct spans *, const struct spans_row **);
size_t spans_traces(const struct spans *, const struct spans_trace **);
size_t spans_units(const struct spans *, const struct spans_unit **);
const uint32_t *spans_members(const struct spans *, const struct spans_unit *);
const struct spans_told *spans_told(const struct spans *);
/* Notes for users: file, or NULL; sentence; remedy; the remedy of `weft spans`, or NULL; number of spans; whether spans
 * are missing. Texts lie in the arena. Append notes on a file that was read; on spans after spans_settle. */
struct spans_note { const char *file, *what, *advice, *hint; uint64_t count; bool lacks; };
struct spans_notes { struct spans_note *v; size_t n, cap; };
void spans_note_file(const char *path, const struct span_told *, struct arena *, struct spans_notes *);
void spans_note_settled(const struct spans *, struct arena *, struct spans_notes *);
const char *spans_text(const struct spans *, uint32_t text);
/* Returns the text of an attribute (one of the choice's keys); 0: absent. For a row: its own or its process'. For a
 * trace: the first that any row has, in O(rows). */
uint32_t spans_own_value(const struct spans *, const struct spans_row *, const char *key);
uint32_t spans_trace_value(const struct spans *, const struct spans_trace *, const char *key);
static inline int64_t spans_duration(const struct spans_row *r) { return r->end_ns - r->begin_ns; }
void spans_write_id(struct text *, uint64_t id);
/* Identity of the process that made a row, from the keys of the choice. Absent: texts NULL, numbers 0. */
#define SPANS_PROCESS_KEYS "host", "host.boot_id", "process.pid", "thread.id", "weft.pid_namespace", \
    "weft.monotonic_start_ns", "weft.monotonic_end_ns"
struct spans_process { const char *host, *boot; int64_t pid, tid, pid_namespace, monotonic_begin, monotonic_end; };
struct spans_process spans_process(const struct spans *, const struct spans_row *);

/* ---- stages: all spans of one service and name, divided by attributes ---- */

enum { SPANS_BY = 4, SPANS_EXAMPLES = 3 };
struct spans_by { const char *keys[SPANS_BY]; size_t n; };
struct spans_stage {
    uint32_t service, name, by[SPANS_BY];   /* texts; 0: absent */
    size_t n, errors, cut;
    double least, p50, p90, p99, most, mean;    /* ns */
    int64_t total, self;     /* ns; self: time in which none of its parts ran */
    double share;            /* share of the self time of all stages with the same `by` */
};
struct spans_group {
    uint32_t by[SPANS_BY];
    size_t units, waited;    /* waited: units whose time in the queue is known */
    int64_t total, queue;    /* ns of all units; ns in the queue */
    int64_t useful;          /* ns within spans named `main`; -1: no such spans */
};
struct spans_stages { struct spans_stage *v; struct spans_group *groups; size_t n, n_groups; };
/* Returns stages in order of time (median place within units), and groups by name. */
struct spans_stages *spans_stages(const struct spans *, const struct spans_by *, const char *main);
void spans_stages_free(struct spans_stages *);

/* ---- outliers ---- */

enum spans_oddity { SPANS_SLOW, SPANS_FAST, SPANS_MISSING, SPANS_EXTRA, SPANS_REORDERED, SPANS_FAILED, SPANS_NO_END,
    SPANS_ODDITIES };
const char *spans_oddity_name(enum spans_oddity);
struct spans_outlier {
    enum spans_oddity what;
    uint32_t unit, service, name;
    int32_t row;             /* -1: a missing stage */
    size_t n;                /* number of spans of the stage, or units of the kind, compared with */
    double typical, z, p; /* ns; distance from it in robust spreads, of logarithms; corrected for all stages tested */
};
struct spans_outliers {
    struct spans_outlier *v;
    size_t n;
    size_t looked, few;      /* spans compared; spans of stages with too few for a claim */
};
/* Returns the least likely first, then by time. */
struct spans_outliers *spans_outliers(const struct spans *, const struct spans_by *);
void spans_outliers_free(struct spans_outliers *);

/* ---- two sides, and changes over time ---- */

/* Returns the side that a row is on: 0, 1, or -1 for neither. */
typedef int spans_side(void *arg, const struct spans_row *);
struct spans_difference {
    uint32_t service, name;
    size_t n[2];
    double p50[2], p95[2];   /* ns */
    double shift, low, high; /* ns: shift from first side to second (Hodges & Lehmann), and its 95 % interval */
    double tail, tail_low, tail_high;   /* difference of the 95th percentiles (bootstrap) */
    double p;                /* Mann & Whitney, corrected for all stages (Holm); 1: too few spans */
    bool few;
    uint32_t example[2];     /* rows near the medians */
};
struct spans_differences { struct spans_difference *v; size_t n; };
struct spans_differences *spans_compare(const struct spans *, spans_side *, void *arg);
void spans_differences_free(struct spans_differences *);

struct spans_change {
    uint32_t service, name;
    int64_t at_ns;           /* begin of the first span of the new level */
    size_t n[2];             /* numbers before, and after it until the next change */
    double p50[2], p;        /* ns; p of the test, with alpha shared among the stages */
    uint32_t example[2];     /* last row before, first row after */
};
struct spans_changes { struct spans_change *v; size_t n, stages, few; }; /* stages tested; stages with too few spans */
struct spans_changes *spans_changes(const struct spans *);
void spans_changes_free(struct spans_changes *);

/* ---- clusters of like units ---- */

struct spans_trait { uint32_t key, value; size_t in, of, elsewhere, of_others; double p; };
struct spans_cluster {
    size_t n;
    uint32_t medoid;         /* unit */
    double *typical;         /* median per stage, ns; NaN: no unit has it */
    double length;           /* median of the units, ns */
    struct spans_trait *traits;
    size_t n_traits;
};
struct spans_clusters {
    struct spans_cluster *v;
    size_t n;                /* 0 or 1: no claim */
    uint32_t *stages;        /* names, in order of time */
    size_t n_stages, units;
    uint8_t *of;             /* cluster of each unit of the kind */
    uint32_t *unit;          /* units of the kind */
    double silhouette, chance;          /* chance: frequency of as good a partition among units without clusters */
};
/* Clusters the units of the commonest kind (service and name). */
struct spans_clusters *spans_clusters(const struct spans *);
void spans_clusters_free(struct spans_clusters *);

/* ---- attributes that explain durations ---- */

/* Factor: units with the value took longer in the stage than the others. Mann & Whitney's test, corrected for all
 * values and stages (Holm), and at least 5 % between the medians. */
struct spans_factor {
    uint32_t key, value, stage;         /* texts; stage 0: the whole unit */
    size_t n, others;
    double typical, others_typical, p;  /* ns: medians */
    uint32_t example[SPANS_EXAMPLES];   /* units */
};
struct spans_factors { struct spans_factor *v; size_t n, units; };
/* Returns factors for the units of the commonest kind, the likeliest first. Needs a choice with all keys. */
struct spans_factors *spans_factors(const struct spans *);
void spans_factors_free(struct spans_factors *);

/* ---- critical paths ---- */

enum { SPANS_QUEUE = -1, SPANS_ENVELOPE = -2 };
/* Sections of a unit in order of time, without overlaps; they cover the unit and its time in the queue. */
struct spans_section { int64_t begin_ns, end_ns; int32_t row; };  /* row, SPANS_QUEUE or SPANS_ENVELOPE */
struct spans_sections { struct spans_section *v; size_t n, cap; };
void spans_path(const struct spans *, uint32_t unit, struct spans_sections *out);

struct spans_cause {
    uint32_t service, name;
    int row;                 /* 0, SPANS_QUEUE or SPANS_ENVELOPE */
    size_t spans, units;     /* spans and units: those with this cause on their path */
    int64_t path;            /* ns of its own on paths */
    int64_t drag, half;      /* ns saved by all units if it took no time; if it took half */
    uint32_t example;        /* unit in which it is longest */
    int64_t example_ns;
};
struct spans_causes { struct spans_cause *v; size_t n, units; int64_t total; };
/* Returns the causes over all units, the largest first. */
struct spans_causes *spans_causes(const struct spans *);
void spans_causes_free(struct spans_causes *);

#endif
