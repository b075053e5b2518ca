/* SPDX-License-Identifier: MIT */
/* Builds the store of a trace in one pass, as an index does. Shared by the tests and the bench of `state`. */
#ifndef WEFT_TESTS_STATE_FIXTURE_H
#define WEFT_TESTS_STATE_FIXTURE_H

#include "ctf/ctf.h"
#include "kernel/kernel.h"
#include "state/state.h"

struct fixture {
    struct ctf_group *groups;
    size_t n_groups;
    struct ctf_schemas *schemas;
    struct ctf_trace *trace;
    struct kernel_binding *binding;
    struct kernel_tracker *tracker;
    struct state_store *store;
    int64_t begin, end;          /* times of the first and last event */
    uint64_t events, bytes;      /* size of the store */
    double pass_ns, write_ns, open_ns;
    double tracker_ns;           /* duration of the pass without states, if requested (`compare`) */
};
/* Finds one kernel trace below `dir`, builds its store at `path` and opens it. */
int fixture_open(struct fixture *, const char *dir, const char *path, bool compare, struct err *e);
void fixture_close(struct fixture *);

#endif
