/* SPDX-License-Identifier: MIT */
/* Result of one pass over a trace, up to some time: the rooms' own builders and stores, without chunks. */
#ifndef WEFT_TESTS_INDEX_ONE_PASS_H
#define WEFT_TESTS_INDEX_ONE_PASS_H

#include "ctf/ctf.h"
#include "flow/flow.h"
#include "graph/graph.h"
#include "stack/stack.h"
#include "state/state.h"

struct one_pass {
    struct graph *graph;         /* kernel traces; else NULL (as the next two) */
    struct flow_store *flows;
    struct state_store *states;
    struct stack_store *stacks;  /* user-space traces */
    uint64_t events, lost_events;
    int64_t begin, end;          /* times of the first and the last event */
};
/* Builds the stores of all data before `until`. False: there are none. Any failure fails the test. */
bool one_pass_build(struct one_pass *, struct ctf_trace *, int64_t until);
void one_pass_free(struct one_pass *);

#endif
