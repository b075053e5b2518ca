/* SPDX-License-Identifier: MIT */
#include "views/call_tree.h"

#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/search.h"

struct building {
    const struct stack_store *s;
    int64_t begin, end;
    VEC(struct call_node) nodes;
    struct map children; /* (parent + 1) << 32 | function -> node + 1 */
    uint32_t *position;  /* positions of nodes that are laid out */
};

/* Counted calls of one row, in order, each with its node. */
struct counted {
    struct {
        int64_t end;
        uint32_t node;
    } * v;
    size_t n, cap;
};

static uint32_t node_of(struct building *b, uint32_t parent, uint32_t function)
{
    bool fresh;
    uint64_t *number = map_put(
        &b->children, (uint64_t)(parent + 1) << 32 | function, &fresh); /* CALL_TREE_NONE + 1 is 0 */
    if (fresh) {
        uint32_t depth = parent == CALL_TREE_NONE ? 0 : b->nodes.v[parent].depth + 1;
        vec_push(&b->nodes, ((struct call_node){.function = function, .parent = parent, .depth = depth}));
        *number = b->nodes.n;
    }
    return (uint32_t)(*number - 1);
}

static void count(struct building *b, uint32_t number, int64_t duration)
{
    struct call_node *n = &b->nodes.v[number];
    n->least = !n->calls || duration < n->least ? duration : n->least;
    n->most = duration > n->most ? duration : n->most;
    n->total += duration;
    n->calls++;
    if (n->parent != CALL_TREE_NONE)
        b->nodes.v[n->parent].below += duration;
}

/* Counts the calls of a row; `above`: those of the row above it, NULL for the outermost. */
static void count_row(struct building *b, size_t row, const struct counted *above, struct counted *out)
{
    struct stack_call c;
    size_t parent = 0;
    out->n = 0;
    for (size_t i = stack_find(b->s, row, b->begin); i < stack_calls(b->s, row); i++) {
        stack_call(b->s, row, i, &c);
        if (c.begin > b->end)
            return;
        if (c.how == STACK_UNKNOWN)
            continue;
        while (above && parent < above->n && above->v[parent].end < c.end)
            parent++;
        if (above && parent == above->n)
            return;
        int64_t from = c.begin > b->begin ? c.begin : b->begin, to = c.end < b->end ? c.end : b->end;
        uint32_t node = node_of(b, above ? above->v[parent].node : CALL_TREE_NONE, c.function);
        count(b, node, to - from);
        vec_reserve(out, 1);
        out->v[out->n].end = c.end;
        out->v[out->n++].node = node;
    }
}

/* ---- layout ---- */

static int by_position(const void *pa, const void *pb, void *arg)
{
    const struct building *b = arg;
    const struct call_node *x = &b->nodes.v[*(const uint32_t *)pa], *y = &b->nodes.v[*(const uint32_t *)pb];
    struct stack_function f, g;
    if (x->parent != y->parent)
        return b->position[x->parent] < b->position[y->parent] ? -1 : 1;
    if (x->total != y->total)
        return x->total > y->total ? -1 : 1;
    stack_function(b->s, x->function, &f);
    stack_function(b->s, y->function, &g);
    int order = strcmp(f.name, g.name);
    return order ? order : x->function < y->function ? -1 : x->function > y->function;
}

/* Places nodes of one depth side by side within their parents, the largest first. `before`: nodes of lower depths. */
static void lay_out_depth(struct building *b, uint32_t *order, size_t n, size_t before)
{
    qsort_r(order, n, sizeof *order, by_position, b);
    int64_t next = 0;
    for (size_t i = 0; i < n; i++) {
        struct call_node *node = &b->nodes.v[order[i]];
        if (node->parent != CALL_TREE_NONE && (!i || node->parent != b->nodes.v[order[i - 1]].parent))
            next = b->nodes.v[node->parent].begin;
        node->begin = next;
        next += node->total;
        b->position[order[i]] = (uint32_t)(before + i);
    }
}

static struct call_tree *lay_out(struct building *b)
{
    struct call_tree *t = mem_zalloc(sizeof *t);
    uint32_t *order = mem_alloc(sizeof *order * (b->nodes.n + 1));
    b->position = mem_alloc(sizeof *b->position * (b->nodes.n + 1));
    t->n = b->nodes.n;
    t->depths = t->n ? b->nodes.v[t->n - 1].depth + 1 : 0;
    t->first = mem_zalloc(sizeof *t->first * (t->depths + 1));
    t->nodes = mem_alloc(sizeof *t->nodes * (t->n + 1));
    for (size_t i = 0, k; i < t->n; i = k) { /* nodes are ordered by depth, as rows were counted in order */
        uint32_t depth = b->nodes.v[i].depth;
        for (k = i; k < t->n && b->nodes.v[k].depth == depth; k++)
            order[k] = (uint32_t)k;
        lay_out_depth(b, order + i, k - i, i);
        t->first[depth + 1] = k;
    }
    for (size_t i = 0; i < t->n; i++) {
        t->nodes[i] = b->nodes.v[order[i]];
        if (t->nodes[i].parent != CALL_TREE_NONE)
            t->nodes[i].parent = b->position[t->nodes[i].parent];
        t->total += t->nodes[i].depth ? 0 : t->nodes[i].total;
    }
    free(order);
    free(b->position);
    return t;
}

struct call_tree *call_tree_new(const struct stack_store *s, size_t thread, int64_t begin, int64_t end)
{
    struct building b = {.s = s, .begin = begin, .end = end};
    struct counted rows[2] = {{0}};
    struct stack_thread t;
    stack_thread(s, thread, &t);
    for (uint32_t level = 0; level < t.rows; level++)
        count_row(&b, t.first_row + level, level ? &rows[(level - 1) % 2] : NULL, &rows[level % 2]);
    struct call_tree *tree = lay_out(&b);
    free(rows[0].v);
    free(rows[1].v);
    vec_free(&b.nodes);
    map_fini(&b.children);
    return tree;
}

void call_tree_free(struct call_tree *t)
{
    if (!t)
        return;
    free(t->nodes);
    free(t->first);
    free(t);
}

size_t call_tree_find(const struct call_tree *t, size_t depth, size_t from, int64_t at)
{
    size_t first = from > t->first[depth] ? from : t->first[depth];
    return search_first(i, first, t->first[depth + 1], t->nodes[i].begin + t->nodes[i].total > at);
}
