/* SPDX-License-Identifier: MIT */
/* Flame Graph: time of threads of user-space traces, with calls along one path summed. Its x axis is an amount of time
 * in ns, from 0. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "views/call_tree.h"
#include "views/durations.h"
#include "views/list.h"
#include "views/tips.h"

/* ---- trees of calls ---- */

enum { MOST_KEPT = 4 };
/* Trees of a range, by place and thread, each made on first use. A request for a picture needs them row by row, and a
 * picture takes several requests. */
struct flame {
    int64_t begin, end; /* reference clock; INT64_MIN and INT64_MAX: the whole trace, which stays cached */
    struct call_tree ***of;
    unsigned refs; /* requests that use it */
    uint64_t used;
};
struct graphs {
    size_t n, *threads; /* n: places; threads: number by place */
    uint64_t uses;
    VEC(struct flame *) v;
};

static void free_graph(const struct graphs *all, struct flame *g)
{
    for (size_t i = 0; i < all->n; i++) {
        for (size_t t = 0; t < all->threads[i]; t++)
            call_tree_free(g->of[i][t]);
        free(g->of[i]);
    }
    free(g->of);
    free(g);
}

static void *make_graphs(struct views *x)
{
    const struct stacks *all = stacks_of(x);
    struct graphs *g = mem_zalloc(sizeof *g);
    g->n = all->n;
    g->threads = mem_zalloc(sizeof *g->threads * (g->n + 1));
    for (size_t i = 0; i < g->n; i++)
        g->threads[i] = stack_threads(all->v[i].s);
    return g;
}

/* Closes all trees without use of the places, which may be freed by now. */
static void close_graphs(struct views *x, void *cache)
{
    struct graphs *all = cache;
    for (size_t i = 0; i < all->v.n; i++)
        free_graph(all, all->v.v[i]);
    vec_free(&all->v);
    free(all->threads);
    free(all);
}

static bool is_whole(const struct flame *g)
{
    return g->begin == INT64_MIN && g->end == INT64_MAX;
}

/* Drops unused trees, except the `left` most recently used. Requires the lock. */
static void let_go(struct graphs *all, size_t left)
{
    for (;;) {
        size_t n = 0, oldest = SIZE_MAX;
        for (size_t i = 0; i < all->v.n; i++) {
            const struct flame *g = all->v.v[i];
            if (is_whole(g))
                continue;
            n++;
            if (!g->refs && (oldest == SIZE_MAX || g->used < all->v.v[oldest]->used))
                oldest = i;
        }
        if (n <= left || oldest == SIZE_MAX)
            return;
        free_graph(all, all->v.v[oldest]);
        all->v.v[oldest] = all->v.v[--all->v.n];
    }
}

static void give_memory(struct views *x, void *cache)
{
    let_go(cache, 0);
}

/* Requires the lock. */
static struct flame *find_graph(struct graphs *all, int64_t begin, int64_t end)
{
    for (size_t i = 0; i < all->v.n; i++)
        if (all->v.v[i]->begin == begin && all->v.v[i]->end == end)
            return all->v.v[i];
    let_go(all, MOST_KEPT - 1);
    struct flame *g = mem_zalloc(sizeof *g);
    g->begin = begin;
    g->end = end;
    g->of = mem_zalloc(sizeof *g->of * (all->n + 1));
    for (size_t i = 0; i < all->n; i++)
        g->of[i] = mem_zalloc(sizeof **g->of * (all->threads[i] + 1));
    vec_push(&all->v, g);
    return g;
}

/* Range of a request: the whole trace, or parameter selection_range: [begin, end]. */
struct wanted {
    struct views *x;
    const struct tsp_query *q;
    struct tsp_answer *answer;
    struct flame *graph;
};

static bool to_time(json_t *v, int64_t *out)
{
    *out = json_is_integer(v) ? json_integer_value(v) : 0;
    return json_is_integer(v);
}

/* The caller ends it with let_be. */
static struct wanted wanted(struct views *x, const struct tsp_query *q, struct tsp_answer *answer)
{
    struct wanted w = {.x = x, .q = q, .answer = answer};
    json_t *range = json_object_get(q->parameters, "selection_range");
    int64_t a, b;
    bool part = json_array_size(range) == 2 && to_time(json_array_get(range, 0), &a) &&
        to_time(json_array_get(range, 1), &b);
    struct graphs *all = view_cache(x, &view_flame_graph, make_graphs);
    pthread_mutex_lock(&x->lock);
    w.graph = part ? find_graph(all, a < b ? a : b, a < b ? b : a) : find_graph(all, INT64_MIN, INT64_MAX);
    w.graph->refs++;
    w.graph->used = ++all->uses;
    pthread_mutex_unlock(&x->lock);
    return w;
}

static void let_be(struct wanted *w)
{
    pthread_mutex_lock(&w->x->lock);
    w->graph->refs--;
    pthread_mutex_unlock(&w->x->lock);
}

/* Tree of a thread, valid until let_be. */
static const struct call_tree *graph_of(struct wanted *w, const struct stacks_trace *p, size_t thread)
{
    const struct view_host *h = &w->x->hosts[p->host];
    struct flame *g = w->graph;
    struct call_tree **kept = &g->of[p - stacks_of(w->x)->v][thread], *made = NULL;
    pthread_mutex_lock(&w->x->lock);
    bool missing = !*kept;
    pthread_mutex_unlock(&w->x->lock);
    if (missing) /* outside the lock, since it takes long */
        made = is_whole(g) ? call_tree_new(p->s, thread, INT64_MIN, INT64_MAX)
                           : call_tree_new(p->s, thread, view_to_host(h, g->begin), view_to_host(h, g->end));
    pthread_mutex_lock(&w->x->lock);
    if (!*kept) {
        *kept = made;
        made = NULL;
    }
    const struct call_tree *t = *kept;
    pthread_mutex_unlock(&w->x->lock);
    call_tree_free(made);
    return t;
}

/* ---- tree ---- */

static int64_t largest(struct wanted *w)
{
    const struct stacks *all = stacks_of(w->x);
    int64_t most = 0;
    for (size_t i = 0; i < all->n; i++)
        for (size_t t = 0; t < stack_threads(all->v[i].s) && !http_gone(w->q->http); t++) {
            int64_t total = graph_of(w, &all->v[i], t)->total;
            most = total > most ? total : most;
        }
    return most;
}

static void write_levels(const struct stacks_tree *tree, const struct stacks_trace *p, size_t thread)
{
    const struct call_tree *g = graph_of(tree->arg, p, thread);
    struct stack_thread t;
    stack_thread(p->s, thread, &t);
    for (size_t depth = 0; depth < g->depths && !tsp_full(tree->answer); depth++) {
        const char *labels[3] = {arena_printf(tree->q->http->arena, "%zu", depth + 1), "", ""};
        tsp_write_entry(tree->answer,
            &(struct tsp_entry){.id = p->first_row + t.first_row + (int64_t)depth,
                .parent = p->first_thread + (int64_t)thread,
                .labels = labels,
                .n_labels = 3,
                .time_graph = true,
                .start = 0,
                .end = g->total,
                .has_data = true,
                .host_id = tree->x->hosts[p->host].id,
                .has_tid = t.tid >= 0,
                .tid = t.tid});
    }
}

static void tree(const struct view *self, struct views *x, const struct tsp_query *q, struct tsp_answer *answer)
{
    struct wanted w = wanted(x, q, answer);
    tsp_begin_tree(answer, stacks_headers, 3, -1);
    stacks_write_tree(&(struct stacks_tree){.x = x,
        .q = q,
        .answer = answer,
        .shown = stacks_calls_shown,
        .time_graph = true,
        .amounts = true,
        .most = largest(&w),
        .below = write_levels,
        .arg = &w});
    tsp_end_tree(answer);
    let_be(&w);
}

/* ---- states ---- */

static int tags_of(const struct tsp_query *q, const struct call_node *n, const struct stack_function *f)
{
    char address[24], duration[24], depth[16];
    snprintf(address, sizeof address, "0x%" PRIx64, f->address);
    snprintf(duration, sizeof duration, "%" PRId64, n->total);
    snprintf(depth, sizeof depth, "%u", n->depth + 1);
    const struct tsp_property properties[] = {
        {"label", f->name}, {"function", f->name}, {"address", address}, {"duration", duration}, {"depth", depth}};
    return tsp_filter_tags(q, properties, sizeof properties / sizeof *properties);
}

static void write_node(const struct wanted *w, const struct stacks_trace *p, const struct call_node *n)
{
    struct stack_function f;
    stack_function(p->s, n->function, &f);
    struct tsp_state state = {
        n->begin, n->begin + n->total, f.name, stacks_style(f.name), w->q->filter ? tags_of(w->q, n, &f) : 0};
    if (state.tags & 4)
        state.label = state.style_key = NULL;
    tsp_write_state(w->answer, &state);
}

/* Writes the boxes at the requested amounts, and blanks between them. */
static void write_row(struct wanted *w, const struct stacks_trace *p, size_t row, int64_t entry)
{
    struct stack_thread t;
    size_t thread = p->row_threads[row];
    stack_thread(p->s, thread, &t);
    const struct call_tree *g = graph_of(w, p, thread);
    size_t depth = row - t.first_row, at = 0;
    int64_t next = 0; /* least amount not yet written */
    tsp_begin_row(w->answer, entry);
    for (size_t i = 0; depth < g->depths && i < w->q->n_times; i++) {
        int64_t amount = w->q->times[i] == g->total && g->total ? g->total - 1 : w->q->times[i];
        if (amount < next || amount >= g->total)
            continue;
        at = call_tree_find(g, depth, at, amount);
        const struct call_node *n = at < g->first[depth + 1] ? &g->nodes[at] : NULL;
        if (n && n->begin <= amount) {
            write_node(w, p, n);
            next = n->begin + n->total;
            continue;
        }
        int64_t since = at > g->first[depth] ? g->nodes[at - 1].begin + g->nodes[at - 1].total : 0;
        next = n ? n->begin : g->total;
        tsp_write_state(w->answer, &(struct tsp_state){.start = since, .end = next});
    }
    tsp_end_row(w->answer);
}

static void states(const struct view *self, struct views *x, const struct tsp_query *q, struct tsp_answer *answer)
{
    const struct stacks *all = stacks_of(x);
    struct wanted w = wanted(x, q, answer);
    tsp_begin_rows(answer);
    size_t row;
    int64_t id;
    for (size_t i = 0; view_next_item(q, answer, &i, &id);) {
        const struct stacks_trace *p = stacks_row(all, id, &row);
        if (p)
            write_row(&w, p, row, id);
    }
    tsp_end_rows(answer);
    let_be(&w);
}

/* ---- tooltip ---- */

static void write_tooltip(
    const struct wanted *w, const struct stacks_trace *p, const struct call_node *n, int64_t total)
{
    struct arena *a = w->q->http->arena;
    struct stack_function f;
    stack_function(p->s, n->function, &f);
    tsp_write_tip(w->answer, "Function", f.name);
    tsp_write_tip(w->answer, "Address", arena_printf(a, "0x%" PRIx64, f.address));
    tsp_write_tip(w->answer, "Depth", arena_printf(a, "%u", n->depth + 1));
    tsp_write_tip(w->answer, "Calls", arena_printf(a, "%" PRIu64, n->calls));
    tsp_write_tip(w->answer, "Total", durations_text(a, (double)n->total));
    tsp_write_tip(
        w->answer, "Share", arena_printf(a, "%.1f %%", total > 0 ? 100.0 * (double)n->total / (double)total : 0.0));
    tsp_write_tip(w->answer, "Self Time", durations_text(a, (double)(n->total - n->below)));
    tsp_write_tip(w->answer, "Average", durations_text(a, (double)n->total / (double)n->calls));
    tsp_write_tip(w->answer, "Minimum", durations_text(a, (double)n->least));
    tsp_write_tip(w->answer, "Maximum", durations_text(a, (double)n->most));
}

static void tooltip(const struct view *self, struct views *x, const struct tsp_query *q, struct tsp_answer *answer)
{
    struct wanted w = wanted(x, q, answer);
    int64_t entry, amount;
    size_t row;
    tsp_begin_tooltip(answer);
    const struct stacks_trace *p = view_tooltip_target(q, &entry, &amount) ? stacks_row(stacks_of(x), entry, &row)
                                                                           : NULL;
    if (p) {
        struct stack_thread t;
        size_t thread = p->row_threads[row];
        stack_thread(p->s, thread, &t);
        const struct call_tree *g = graph_of(&w, p, thread);
        size_t depth = row - t.first_row, at = depth < g->depths ? call_tree_find(g, depth, 0, amount) : 0;
        if (depth < g->depths && at < g->first[depth + 1] && g->nodes[at].begin <= amount)
            write_tooltip(&w, p, &g->nodes[at], g->total);
    }
    tsp_end_tooltip(answer);
    let_be(&w);
}

static void style(const struct view *self, struct views *x, const struct tsp_query *q, struct tsp_answer *answer)
{
    tsp_begin_styles(answer);
    stacks_write_styles(answer);
    tsp_end_styles(answer);
}

/* Members, whose analysis is part of the id, as clients expect. */
static size_t members(struct views *x)
{
    return 1;
}
static void member(struct views *x, size_t i, const char **suffix, const char **name)
{
    *suffix = "org.eclipse.tracecompass.lttng2.ust.core.analysis.callstack";
    *name = "LTTng-UST CallStack";
}

const struct view view_flame_graph = {
    .provider = {.id = "org.eclipse.tracecompass.analysis.profiling.core.flamegraph",
        .family = STACKS_FAMILY,
        .name = "Flame Graph",
        .description = "The functions that threads of user space spent their time in, calls along one path added up",
        .type = "GANTT_CHART"},
    .has_data = stacks_have_calls,
    .members = members,
    .member = member,
    .tree = tree,
    .states = states,
    .tooltip = tooltip,
    .style = style,
    .give_memory = give_memory,
    .close = close_graphs,
};
