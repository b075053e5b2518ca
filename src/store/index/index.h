/* SPDX-License-Identifier: MIT */
/* Opens what a user names on the command line, builds the stores it needs in one pass, and hands them out.
 * An experiment is a set of hosts analysed together; a host has one kernel trace (of one or more recorded pieces) and
 * possibly user-space traces. */
#ifndef WEFT_INDEX_INDEX_H
#define WEFT_INDEX_INDEX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "clock/clock.h"
#include "ctf/ctf.h"

struct arena;
struct index_types; struct index_rows; struct graph; struct flow_store; struct state_store; struct stack_store;
struct clock_net; struct clock_options; struct clock_kept; struct progress;

struct index_options {
    const char *store;       /* --store DIR; NULL: `.weft` in each trace, else (not writable) in the user's cache */
    bool stores;             /* stores are needed: missing or stale ones are built */
    bool states;             /* with stores: states, which say what to draw, are opened too */
    bool whole;              /* opening fails with ERR_NOMEM where memory does not suffice; otherwise parts are left
                              * out */
    bool user_space;         /* with stores: those of user-space traces too; a kernel trace is not needed then */
    bool force;              /* build again */
    bool join;               /* make few chunks of many small ones */
    uint64_t memory;         /* limit in bytes for building all traces together; 0: a quarter of the machine's memory */
    uint64_t keep_ns;        /* age, before the recording's end, of chunks to drop; 0: none are dropped */
    unsigned threads;        /* 0: as many as CPUs */
    struct progress *progress; /* NULL: none */
    /* Progress callback, or NULL. Called while traces are indexed, by several threads. events: events of the trace read
     * since the last call. begin, end: least and greatest time so far (host's clock). */
    void (*tell)(void *arg, const struct ctf_trace *, uint64_t events, int64_t begin, int64_t end);
    void *tell_arg;
    /* Time range callback, or NULL. Only what the trace recorded within [*begin, *end] counts (host's clock), as if the
     * tracer had been started and stopped then. Before the call they are INT64_MIN and INT64_MAX. */
    void (*within)(void *arg, const struct ctf_trace *, int64_t *begin, int64_t *end);
    void *within_arg;
    bool (*stop)(void *arg); /* NULL, or polled while traces are read; true: ERR_CANCELLED */
    void *stop_arg;
};

/* Recording of one boot of a machine by one session. Boots of one machine share its name. Other machines, and other
 * sessions of the same boot, have other names ("solo", "solo#2"). */
struct index_host {
    const char *name;
    const char *own_name;    /* name without the number that tells it from others of that name */
    const char *clock_name;  /* name of its clock, unique in the experiment: the name; for later boots "solo@2" */
    uint64_t key;            /* hash of machine, boot and session; independent of place and of the other traces
                              * opened */
    uint64_t user_key;       /* key of its user-space traces, the same with and without a kernel trace */
    bool key_has_begin;      /* the trace has no UUID: its begin tells it from other sessions (a cut has another key) */
    struct ctf_trace *trace; /* the kernel trace, or the only one */
    const char *store_dir;
    bool is_kernel;
    bool built;              /* the stores were built now, not found */
    int64_t begin, end;      /* ns, host's clock */
    int64_t until;           /* see `until` of its trace */
    int64_t sealed_from, sealed_until; /* range whose recording is final; empty if both are equal */
    uint64_t events, lost_events; /* events: known when indexed */
    const struct graph *graph;        /* NULL unless stores were asked for and it is a kernel trace */
    const struct flow_store *flows;   /* NULL as for `graph` */
    const struct state_store *states; /* NULL as for `graph`, or if states were not asked for */
    struct index_types *types;
    struct index_rows *rows;          /* registry of its rows */
};

/* A trace of the experiment: a host's kernel trace, or one of its user-space traces. */
struct index_trace {
    struct ctf_trace *trace;
    int32_t host;            /* the machine it was recorded on */
    uint64_t key;            /* key within its host, independent of place; for a kernel trace the host's key */
    bool is_kernel, built;
    int64_t from, until;     /* recording that counts (index_options.within) */
    const struct index_types *types; /* counts of events by class; NULL without stores */
    /* User-space traces only; set if their stores were asked for and available: */
    const char *store_dir;
    const struct stack_store *stacks;
};

/* A host as it is named among others. */
struct index_named {
    const char *wanted;      /* own_name */
    int64_t begin, end;      /* ns, its clock */
    const uint8_t *boot;     /* id of the boot, 16 bytes; NULL: unknown */
    bool is_kernel;
    const char *name, *clock_name; /* set: unless borrowed from `wanted`, in the arena */
};
/* Names hosts as one experiment of them all does: those of one name that are surely boots of one machine (other ids,
 * one after the other) share a name, the others are numbered in this order. Those with a kernel trace come first, in
 * order of time. O(n log n) */
void index_name_hosts(struct arena *, struct index_named *, size_t n);

struct experiment;
/* args: TRACE arguments as in DESIGN section 2 (`DIR`, `NAME=DIR`; `net://` is refused with a message until live
 * reading exists). A directory given twice counts once, pieces of one trace given one by one are one trace, whatever
 * their order. */
int index_experiment_open(const char *const *args, size_t n, const struct index_options *, struct experiment **out,
    struct err *e);
void index_experiment_close(struct experiment *);
/* Joins some small chunks into one, in the files only (see `join`). The experiment continues with the files that it has
 * open, and others may use it meanwhile. One such call at a time. *joined: chunks were joined; there may be more to
 * join. Does nothing while somebody else builds, or if the stores have been replaced by those of other files. Options
 * as at opening, and `stop`. */
int index_experiment_join(struct experiment *, const struct index_options *, bool *joined, struct err *e);
/* Returns ERR_LOST if a file of a trace, or a store, became shorter or unreadable since it was opened. Results computed
 * from the experiment since then must not be shown. To be called after computing, before showing. The experiment must
 * be opened anew; this builds shortened stores again. */
int index_experiment_intact(const struct experiment *, struct err *e);
size_t index_experiment_hosts(const struct experiment *, const struct index_host **out);
/* Returns all traces, kernel and user space, as sources of a merge, in the order found. */
size_t index_experiment_sources(const struct experiment *, const struct ctf_source **out);
/* Returns the same traces, by number of source. */
size_t index_experiment_traces(const struct experiment *, const struct index_trace **out);
/* Returns the directory that a person would name for a trace, as a real path: without the parts that the tracer adds
 * below it (kernel, ust/uid/1000/64-bit, archives and their pieces). Traces of one machine's session have the same. */
const char *index_trace_dir(struct arena *, const struct ctf_group *);
/* The host that a source was recorded on. */
int32_t index_experiment_source_host(const struct experiment *, size_t source);
/* Clock maps of all hosts: from the store when its key fits, else from the flows. Needs stores. Host numbers as in
 * index_experiment_hosts. */
int index_experiment_sync(struct experiment *, const struct clock_options *, const struct clock_net **out,
    struct err *e);

/* The messages of a host's flows. */
struct index_sync_host {
    const struct flow_store *flows;       /* NULL: none */
    struct clock_source all, sealed;      /* all messages; those that are final */
};
struct index_sync {
    const struct index_sync_host *hosts;
    size_t n;
    double prior_ppm;                     /* prior: that of the net, or wider; results are stored for it */
    const struct clock_kept *kept;        /* stored results for the same prior or a wider one; or NULL */
    const size_t *host_of;                /* host by source of `kept`; SIZE_MAX: its host is gone */
    const char *path; uint64_t key;       /* file for the results; NULL: not stored */
    size_t looked_at;                     /* set: number of pairs of hosts with a common flow that were searched */
};
/* Solves a net of these hosts: each packet that two of them have in common is a message. Stored results are not
 * searched for again; if they are complete, no store is read. */
int index_sync_flows(struct clock_net *, struct index_sync *, struct err *e);

/* Host whose trace may lie elsewhere, with the data that its clock needs. Borrows. */
struct index_far_host {
    const char *name;                     /* clock_name */
    int64_t begin, end;                   /* ns, the host's clock */
    int64_t sealed_until;                 /* end of the part that is final; INT64_MIN: none */
    /* The trace's clock: those of one machine in one boot have the same name, uuid and freq. freq 0: not known. */
    struct index_far_clock {
        const char *name;                 /* "" where it is not known */
        uint8_t uuid[16];
        uint64_t freq, offset;            /* Hz, cycles */
        int64_t offset_s;
    } clock;
    const struct flow_store *flows;       /* flows in common with the others (flow_extract), or all; or NULL */
    size_t before;                        /* its number in the net given as `before`; SIZE_MAX: absent */
};
/* Returns all fields but `flows`. */
struct index_far_host index_far_host_of(const struct index_host *);
/* Computes clocks of hosts in the order of an experiment of them all: exactly those that index_experiment_sync finds
 * there. Nothing is stored. Any contents are safe, as long as stores were checked (flow_extract).
 * before: clocks found earlier, also of other hosts; or NULL. Pairs with a host without flows keep their clocks from
 * there. */
int index_sync_far(const struct index_far_host *, size_t n, const struct clock_options *,
    const struct clock_net *before, struct clock_net **out, struct err *e);
/* A hash of what its stores are made of: another one when there is more to read. */
uint64_t index_host_hash(const struct index_host *);

/* Findings that did not stop the opening; sorted by kind, then host. */
enum index_note_kind {
    INDEX_NOTE_LEFT_OUT,     /* a trace that could not be opened, or not be indexed */
    INDEX_NOTE_TWICE,        /* a trace given more than once */
    INDEX_NOTE_INPUT,        /* something of a trace could not be read */
    INDEX_NOTE_ODD,          /* something of a trace is odd, but it was all read */
    INDEX_NOTE_STORE,        /* a store was damaged, and built again */
    INDEX_NOTE_CALLS,        /* calls or memory of user space that are incomplete; known when stores were asked for */
    INDEX_NOTE_LOST,         /* lost while recording; known when stores were asked for */
    INDEX_NOTE_CLOCK,        /* a host that is not on the clock of the others; known after index_experiment_sync */
    INDEX_NOTE_REFERENCE     /* times are by another clock than was asked for: index_experiment_note_reference */
};
struct index_note {
    uint8_t kind;
    const char *host;        /* host, or the argument given */
    const char *file;        /* NULL: none */
    const char *what;        /* the end of `text` */
    const char *text;        /* "HOST: FILE: what" */
    uint64_t count;          /* number of occurrences */
};
size_t index_experiment_notes(const struct experiment *, const struct index_note **out);
const char *index_note_advice(int kind); /* recommended action */
/* Adds a note if times are by the clock of `used` instead of the host `wanted`. Call after index_experiment_sync, if
 * that is called at all. */
void index_experiment_note_reference(struct experiment *, const char *wanted, const char *used);
/* Returns whether something of the input is damaged or missing, so that answers are partial. Tracer losses do not
 * count. */
bool index_experiment_partial(const struct experiment *);
/* Events in all stores that are open. */
uint64_t index_experiment_stored_events(const struct experiment *);

/* ---- counts of events by class ---- */

/* Classes that a trace has events of. */
size_t index_types(const struct index_types *);
/* The class, which lives as long as the trace, and how many events of it there are in all. */
const struct ctf_event_class *index_type(const struct index_types *, size_t i, uint64_t *events);
/* counts[i]: events of class i from begin to end, both included, by the trace's own clock. Reads some 100 000 events at
 * most, whatever the range. */
int index_types_count(const struct index_types *, int64_t begin, int64_t end, uint64_t *counts, struct err *e);

/* ---- facts from stores, besides events; times by the host's clock ---- */

/* The interval [begin, end) in which a thread, or nobody, has a CPU. row: the thread's, -1 nobody that is known. */
struct index_occupant { int64_t begin, end; int32_t row; };
/* Looks in the states; for the row alone, in the graph. Returns false or -1 if unknown. */
bool index_occupant_at(const struct index_host *, int32_t cpu, int64_t t, struct index_occupant *out);
int32_t index_occupant_row(const struct index_host *, int32_t cpu, int64_t t);
/* The ids of a row's thread, at t. */
bool index_thread(const struct index_host *, int32_t row, int64_t t, int32_t *tid, int32_t *tgid);
/* Returns the permanent id of a row of the graph: below 2^52, never 0, unique within the host. */
uint64_t index_row_id(const struct index_host *, int32_t row);
/* The row with that id, or -1. O(log rows) */
int32_t index_row_find(const struct index_host *, uint64_t id);
/* Estimates the number of events of the kernel trace before t. Returns false if unknown. */
bool index_events_before(const struct index_host *, int64_t t, uint64_t *out);

struct index_finding {       /* borrowed for the call */
    const char *host, *file; /* file: the directory when nothing has been built */
    int code;                /* 0: sound; ERR_STALE: made from other data; ERR_NOTFOUND: not there; else damaged */
    const char *problem;     /* NULL when sound */
};
/* Checks every store file of an experiment that was opened without stores. Returns ERR_FORMAT when any is damaged,
 * ERR_NOTFOUND when there is none. */
int index_experiment_verify(struct experiment *, void (*report)(void *arg, const struct index_finding *), void *arg,
    struct err *e);

#endif
