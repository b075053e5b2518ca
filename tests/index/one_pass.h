/* SPDX-License-Identifier: MIT */
/* What one pass over a trace says, up to some time: the rooms' own builders and stores, without chunks. */
#ifndef WEFT_TESTS_INDEX_ONE_PASS_H
#define WEFT_TESTS_INDEX_ONE_PASS_H

#include "ctf/ctf.h"
#include "flow/flow.h"
#include "graph/graph.h"
#include "stack/stack.h"
#include "state/state.h"

struct one_pass {
    struct graph *graph;         /* and these two: of a kernel trace; else NULL */
    struct flow_store *flows;
    struct state_store *states;
    struct stack_store *stacks;  /* of others */
    uint64_t events, lost_events;
    int64_t begin, end;          /* of the first and the last event */
};
/* Of what happened before `until`. False: nothing did. Whatever goes wrong fails the test. */
bool one_pass_build(struct one_pass *, struct ctf_trace *, int64_t until);
void one_pass_free(struct one_pass *);

#endif
