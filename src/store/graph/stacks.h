/* SPDX-License-Identifier: MIT */
/* Private to graph: call stacks of rows while a chunk is built. Each stack is kept once. */
#ifndef WEFT_GRAPH_STACKS_H
#define WEFT_GRAPH_STACKS_H

#include "base/map.h"
#include "base/mem.h"
#include "graph/layout.h"
#include "kernel/kernel.h"

/* Limits of a chunk: stacks of events beyond them are only counted. */
enum { GRAPH_MOST_STACK_FRAMES = 1 << 24, GRAPH_MOST_SAMPLES = 1 << 28 };

struct graph_sampled { int32_t row; struct graph_disk_sample is; };
struct graph_stacks {
    VEC(uint64_t) frames;
    VEC(struct graph_disk_stack) stacks;
    VEC(struct graph_sampled) samples; /* in order of time */
    VEC(uint32_t) calls; /* by row: user stack + 1 at the begin of its last system call; 0: not recorded */
    struct map by_hash;
    uint64_t left_out;   /* events with a stack beyond the limits */
};

void graph_stacks_fini(struct graph_stacks *);
/* Number of the stack, + 1; 0: it is empty, or beyond the limits. */
uint32_t graph_stacks_number(struct graph_stacks *, const struct kernel_stack *);
void graph_stacks_get(const struct graph_stacks *, uint32_t number, struct kernel_stack *out); /* number: + 1 */
/* Number of sections that graph_stacks_add adds: none without samples. */
size_t graph_stacks_sections(const struct graph_stacks *);
/* Adds the sections, whose data live in the arena until the store is committed. */
void graph_stacks_add(const struct graph_stacks *, struct store_writer *, struct arena *, size_t n_rows);

#endif
