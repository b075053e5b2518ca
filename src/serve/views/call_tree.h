/* SPDX-License-Identifier: MIT */
/* Private to views: what a thread spent its time in, call paths added up and laid out side by side: a flame graph. */
#ifndef WEFT_VIEWS_CALL_TREE_H
#define WEFT_VIEWS_CALL_TREE_H

#include "views/stacks.h"

enum { CALL_TREE_NONE = UINT32_MAX };
/* All calls of one function along one path from the outermost function. */
struct call_node {
    uint32_t function, parent, depth;    /* parent: a node before this one, or CALL_TREE_NONE */
    uint64_t calls;
    int64_t total, below, least, most;   /* ns; below: in the calls it made */
    int64_t begin;                       /* where it is drawn: from begin to begin + total */
};
struct call_tree {
    struct call_node *nodes;             /* by depth, then begin */
    size_t n, *first;                    /* first: of each depth; one more than depths */
    size_t depths;
    int64_t total;                       /* of all outermost calls */
};
/* Of a thread's calls, as far as they lie within [begin, end] of the host's clock. Both ends of a call need not have
 * been seen. */
struct call_tree *call_tree_new(const struct stack_store *, size_t thread, int64_t begin, int64_t end);
void call_tree_free(struct call_tree *);
/* The first node of that depth that ends after `at`; first[depth + 1] when there is none. */
size_t call_tree_find(const struct call_tree *, size_t depth, size_t from, int64_t at);

#endif
