/* Opens what a user names on the command line, builds the stores it needs in one pass, and hands them out.
 * An experiment is a set of hosts analysed together; a host has one kernel trace (of one or more recorded pieces) and possibly user-space traces. */
#ifndef WEFT_INDEX_INDEX_H
#define WEFT_INDEX_INDEX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "ctf/ctf.h"

struct graph; struct flow_store; struct state_store; struct clock_net; struct clock_options; struct progress;

struct index_options {
    const char *store;       /* --store DIR, or NULL: `.weft` in each trace, where it can be written, else below the user's cache directory */
    bool stores;             /* graphs, flows and states are needed: build what is missing or stale */
    bool force;              /* build again */
    unsigned threads;        /* 0: as many as CPUs */
    struct progress *progress; /* or NULL */
};

struct index_host {
    const char *name;        /* unique in the experiment ("solo", "solo#2") */
    struct ctf_trace *trace; /* the kernel trace, or the only one */
    const char *store_dir;
    bool is_kernel;
    bool built;              /* the stores were built now, not found */
    int64_t begin, end;      /* ns, host's clock */
    uint64_t events, lost_events; /* events: known when indexed */
    const struct graph *graph;        /* NULL unless stores were asked for and it is a kernel trace */
    const struct flow_store *flows;   /* likewise, and so the states */
    const struct state_store *states;
    uint64_t fingerprint;
};

struct experiment;
/* args: TRACE arguments as in DESIGN section 2 (`DIR`, `NAME=DIR`; `net://` is refused with a message until live reading exists). */
int experiment_open(const char *const *args, size_t n, const struct index_options *, struct experiment **out, struct err *e);
void experiment_close(struct experiment *);
size_t experiment_hosts(const struct experiment *, const struct index_host **out);
/* All traces as sources of a merge, kernel and user space, in the order found. */
size_t experiment_sources(const struct experiment *, const struct ctf_source **out);
/* Clock maps of all hosts: from the store when its key fits, else from the flows. Needs stores. Host numbers as in experiment_hosts. */
int experiment_sync(struct experiment *, const struct clock_options *, const struct clock_net **out, struct err *e);
/* What was wrong with the input, one line each, "HOST: …". */
size_t experiment_problems(const struct experiment *, const struct ctf_problem **out);

/* Checks every store file below the traces named; calls `report` per file (problem NULL when sound). Returns ERR_FORMAT when any is damaged. */
int index_verify(const char *const *args, size_t n, const char *store, void (*report)(void *arg, const char *file, const char *problem), void *arg, struct err *e);

#endif
