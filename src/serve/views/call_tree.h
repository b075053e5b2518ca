/* SPDX-License-Identifier: MIT */
/* Private to views: a thread's time by call path, summed and laid out side by side: a flame graph. */
#ifndef WEFT_VIEWS_CALL_TREE_H
#define WEFT_VIEWS_CALL_TREE_H

#include "views/stacks.h"

enum { CALL_TREE_NONE = UINT32_MAX };
/* Calls of one function along one path from the outermost function. */
struct call_node {
    uint32_t function, parent, depth;    /* parent: a node before this one, or CALL_TREE_NONE */
    uint64_t calls;
    int64_t total, below, least, most;   /* ns; below: in the calls it made */
    int64_t begin;                       /* position in the picture: begin to begin + total */
};
struct call_tree {
    struct call_node *nodes;             /* order: depth, then begin */
    size_t n, *first;                    /* first: first node by depth; depths + 1 items */
    size_t depths;
    int64_t total;                       /* sum of all outermost calls */
};
/* Returns the tree of a thread's calls, cut to [begin, end] of the host's clock. Also counts calls whose begin or end
 * was not recorded. */
struct call_tree *call_tree_new(const struct stack_store *, size_t thread, int64_t begin, int64_t end);
void call_tree_free(struct call_tree *);
/* Number of the first node of that depth that ends after `at`; first[depth + 1] if none does. */
size_t call_tree_find(const struct call_tree *, size_t depth, size_t from, int64_t at);

#endif
