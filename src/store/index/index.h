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
    bool stores;             /* they are needed: build what is missing or stale */
    bool states;             /* with stores: the states are opened too, which say what to draw */
    bool whole;              /* what memory does not suffice for is not left out: the opening fails, ERR_NOMEM */
    bool user_space;         /* with stores: those of user-space traces too; then a kernel trace is not needed */
    bool force;              /* build again */
    bool join;               /* make few chunks of many small ones */
    uint64_t memory;         /* bytes that building may take, of all traces together; 0: a quarter of the machine's */
    uint64_t keep_ns;        /* chunks that end so long before the recording does are forgotten; 0: none */
    unsigned threads;        /* 0: as many as CPUs */
    struct progress *progress; /* or NULL */
    /* Or NULL. Called while traces are indexed, by several threads: so many more events of the trace were read; least
     * and greatest time so far (host's clock). */
    void (*tell)(void *arg, const struct ctf_trace *, uint64_t events, int64_t begin, int64_t end);
    void *tell_arg;
    /* Or NULL. Of the trace only what was recorded within [*begin, *end] counts (host's clock), which are INT64_MIN and
     * INT64_MAX before: as if the tracer had been started then, and stopped. */
    void (*within)(void *arg, const struct ctf_trace *, int64_t *begin, int64_t *end);
    void *within_arg;
    bool (*stop)(void *arg); /* or NULL. Asked while traces are read; true: ERR_CANCELLED */
    void *stop_arg;
};

/* What one session recorded of a boot of a machine. Boots of one machine share its name; other machines, and other
 * sessions of the same boot, have other names ("solo", "solo#2"). */
struct index_host {
    const char *name;
    const char *own_name;    /* the same without the number that it has because others are called so */
    const char *clock_name;  /* of its clock, unique in the experiment: the name, of later boots "solo@2" */
    uint64_t key;            /* hash of machine, boot and session: the same wherever it is opened, whatever else is */
    uint64_t user_key;       /* of what its user-space traces tell, whether a kernel trace is there or not */
    bool key_has_begin;      /* the trace has no UUID: its begin tells it from other sessions (a cut has another key) */
    struct ctf_trace *trace; /* the kernel trace, or the only one */
    const char *store_dir;
    bool is_kernel;
    bool built;              /* the stores were built now, not found */
    int64_t begin, end;      /* ns, host's clock */
    int64_t until;           /* as of its trace */
    int64_t sealed_from, sealed_until; /* what was recorded between them stays as it is; the same: nothing */
    uint64_t events, lost_events; /* events: known when indexed */
    const struct graph *graph;        /* NULL unless stores were asked for and it is a kernel trace */
    const struct flow_store *flows;   /* likewise */
    const struct state_store *states; /* likewise, and they were asked for */
    struct index_types *types;
    struct index_rows *rows;          /* whose its rows are */
};

/* A trace of the experiment: a host's kernel trace, or one of its user-space traces. */
struct index_trace {
    struct ctf_trace *trace;
    int32_t host;            /* the machine it was recorded on */
    uint64_t key;            /* which of the traces of its host it is, likewise; that of the host: its kernel trace */
    bool is_kernel, built;
    int64_t from, until;     /* what was recorded within counts (index_options.within) */
    const struct index_types *types; /* how many events of each class; NULL without stores */
    /* Of user-space traces only, when their stores were asked for and could be had: */
    const char *store_dir;
    const struct stack_store *stacks;
};

/* A host as it is named among others. */
struct index_named {
    const char *wanted;      /* own_name */
    int64_t begin, end;      /* ns, its clock */
    const uint8_t *boot;     /* id of the boot, 16 bytes; NULL: not told */
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
int experiment_open(const char *const *args, size_t n, const struct index_options *, struct experiment **out,
    struct err *e);
void experiment_close(struct experiment *);
/* Makes one chunk of some small ones, in the files only, as `join` does of all: the experiment goes on with the files
 * that it has open, and is used by others meanwhile; one such call at a time. *joined: something was; there may be more
 * to join. Nothing is done where somebody else builds just now, or the stores are those of other files meanwhile.
 * Options as those that it was opened with, and `stop`. */
int experiment_join(struct experiment *, const struct index_options *, bool *joined, struct err *e);
/* ERR_LOST when a file of a trace, or a store, was cut off (or could not be read) since it was opened: what was
 * computed from the experiment then must not be shown. To be asked after computing, before showing. The experiment must
 * be opened anew: stores that were cut off are built again then. */
int experiment_intact(const struct experiment *, struct err *e);
size_t experiment_hosts(const struct experiment *, const struct index_host **out);
/* All traces as sources of a merge, kernel and user space, in the order found. */
size_t experiment_sources(const struct experiment *, const struct ctf_source **out);
/* The same traces, by number of source. */
size_t experiment_traces(const struct experiment *, const struct index_trace **out);
/* The directory that a person would name for a trace, as a real path: without what the tracer adds below it (kernel,
 * ust/uid/1000/64-bit, archives and their pieces). Traces of one machine's session have the same. */
const char *index_trace_dir(struct arena *, const struct ctf_group *);
/* The host that a source was recorded on. */
int32_t experiment_source_host(const struct experiment *, size_t source);
/* Clock maps of all hosts: from the store when its key fits, else from the flows. Needs stores. Host numbers as in
 * experiment_hosts. */
int experiment_sync(struct experiment *, const struct clock_options *, const struct clock_net **out, struct err *e);

/* The messages of a host's flows. */
struct index_sync_host {
    const struct flow_store *flows;       /* or NULL */
    struct clock_source all, sealed;      /* what there is; what stays as it is when more comes */
};
struct index_sync {
    const struct index_sync_host *hosts;
    size_t n;
    double prior_ppm;                     /* what is found is kept for: that of the net or a wider one */
    const struct clock_kept *kept;        /* for the same prior or a wider one; or NULL */
    const size_t *host_of;                /* by source of `kept`: the host that still has it, or SIZE_MAX */
    const char *path; uint64_t key;       /* where it is kept from now on; NULL: nowhere */
    size_t looked_at;                     /* set: how many pairs of hosts have a flow in common and were looked at */
};
/* Solves a net of these hosts: every packet that two of them have in common is a message. What is kept is not looked
 * for again; where that is all, no store is read. */
int index_sync_flows(struct clock_net *, struct index_sync *, struct err *e);

/* A host whose trace may lie elsewhere: what its clock is found by. Borrows. */
struct index_far_host {
    const char *name;                     /* clock_name */
    int64_t begin, end;                   /* ns, the host's clock */
    int64_t sealed_until;                 /* what was recorded before stays; INT64_MIN: nothing does */
    /* The trace's clock: those of one machine in one boot have the same name, uuid and freq. freq 0: not known. */
    struct index_far_clock {
        const char *name;                 /* "" where it is not known */
        uint8_t uuid[16];
        uint64_t freq, offset;            /* Hz, cycles */
        int64_t offset_s;
    } clock;
    const struct flow_store *flows;       /* what it has in common with the others (flow_extract), or all; or NULL */
    size_t before;                        /* its number in the net given as `before`; SIZE_MAX: not in it */
};
/* All of it but `flows`. */
struct index_far_host index_far_host_of(const struct index_host *);
/* Clocks of hosts in the order of an experiment of them all: to the last bit what experiment_sync finds there. Nothing
 * is kept. Any contents are safe, as long as stores were checked (flow_extract).
 * before: or NULL: clocks found earlier, of other hosts as well. A pair that involves a host without flows keeps what
 * they say of it. */
int index_sync_far(const struct index_far_host *, size_t n, const struct clock_options *,
    const struct clock_net *before, struct clock_net **out, struct err *e);
/* A hash of what its stores are made of: another one when there is more to read. */
uint64_t index_host_hash(const struct index_host *);

/* What was found wrong and stopped nothing; sorted by kind, then host. */
enum index_note_kind {
    INDEX_NOTE_LEFT_OUT,     /* a trace that could not be opened, or not be indexed */
    INDEX_NOTE_TWICE,        /* given more than once */
    INDEX_NOTE_INPUT,        /* something of a trace could not be read */
    INDEX_NOTE_ODD,          /* something of a trace is odd, but it was all read */
    INDEX_NOTE_STORE,        /* a store was damaged, and built again */
    INDEX_NOTE_CALLS,        /* calls or memory of user space that are incomplete; known when stores were asked for */
    INDEX_NOTE_LOST,         /* lost while recording; known when stores were asked for */
    INDEX_NOTE_CLOCK,        /* a host that is not on the clock of the others; known after experiment_sync */
    INDEX_NOTE_REFERENCE     /* times are by another clock than was asked for: experiment_note_reference */
};
struct index_note {
    uint8_t kind;
    const char *host;        /* or the argument that was given */
    const char *file;        /* or NULL */
    const char *what;        /* the end of `text` */
    const char *text;        /* "HOST: FILE: what" */
    uint64_t count;          /* so many times */
};
size_t experiment_notes(const struct experiment *, const struct index_note **out);
const char *index_note_advice(int kind); /* what to do about it */
/* A note if times are not by the clock of the host `wanted`, but by that of `used`. After experiment_sync, if there is
 * one. */
void experiment_note_reference(struct experiment *, const char *wanted, const char *used);
/* Is something of what was given damaged or missing, so that answers lack it? What the tracer lost does not count. */
bool experiment_partial(const struct experiment *);
/* Events in all stores that are open. */
uint64_t experiment_stored_events(const struct experiment *);

/* ---- how many events of each class ---- */

/* Classes that a trace has events of. */
size_t index_types(const struct index_types *);
/* The class, which lives as long as the trace, and how many events of it there are in all. */
const struct ctf_event_class *index_type(const struct index_types *, size_t i, uint64_t *events);
/* counts[i]: events of class i from begin to end, both included, by the trace's own clock. Reads some 100 000 events at
 * most, whatever the range. */
int index_types_count(const struct index_types *, int64_t begin, int64_t end, uint64_t *counts, struct err *e);

/* ---- what the stores know besides events; times by the host's clock ---- */

/* The interval [begin, end) in which a thread, or nobody, has a CPU. row: the thread's, -1 nobody that is known. */
struct index_occupant { int64_t begin, end; int32_t row; };
/* From the states; the row alone from the graph. false, -1: not known. */
bool index_occupant_at(const struct index_host *, int32_t cpu, int64_t t, struct index_occupant *out);
int32_t index_occupant_row(const struct index_host *, int32_t cpu, int64_t t);
/* The ids of a row's thread, at t. */
bool index_thread(const struct index_host *, int32_t row, int64_t t, int32_t *tid, int32_t *tgid);
/* By what others know a row of the graph, for ever: below 2^52, never 0, no other row's of the host. */
uint64_t index_row_id(const struct index_host *, int32_t row);
/* The row with that id, or -1. O(log rows) */
int32_t index_row_find(const struct index_host *, uint64_t id);
/* About how many events of the kernel trace lie before t; false: not known. */
bool index_events_before(const struct index_host *, int64_t t, uint64_t *out);

struct index_finding {       /* borrowed for the call */
    const char *host, *file; /* file: the directory when nothing has been built */
    int code;                /* 0: sound; ERR_STALE: made from other data; ERR_NOTFOUND: not there; else damaged */
    const char *problem;     /* NULL when sound */
};
/* Checks every store file of an experiment that was opened without stores. Returns ERR_FORMAT when any is damaged,
 * ERR_NOTFOUND when there is none. */
int experiment_verify(struct experiment *, void (*report)(void *arg, const struct index_finding *), void *arg,
    struct err *e);

#endif
