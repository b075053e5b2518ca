/* SPDX-License-Identifier: MIT */
/* Memory Usage of user space: memory allocated by malloc and related functions and not freed, by thread, process and
 * host. */
#include "views/rates.h"
#include "views/stacks.h"
#include "views/sampling.h"

static void tree(const struct view *self, struct views *x, const struct tsp_query *q, struct tsp_answer *answer)
{
    stacks_write_tree(&(struct stacks_tree){
        .x = x, .q = q, .answer = answer, .shown = stacks_memory_shown, .xy = true, .have_data = true});
}

/* Memory of a thread at the host's times: none after its process ended, even if its number is used again. */
static void held_by(const struct stacks_trace *p, size_t thread, const int64_t *times, size_t n, int64_t *bytes)
{
    struct stack_thread t;
    struct stack_process d;
    stack_thread(p->s, thread, &t);
    stack_process(p->s, t.process, &d);
    stack_memory(p->s, thread, times, n, bytes);
    for (size_t k = 0; k < n; k++)
        if (bytes[k] && stacks_process_ended(p->lives, d.pid, t.end, times[k]))
            bytes[k] = 0;
}

enum { ALL = -1 };

/* Adds the memory of a process's (or of all) threads at the host's times. */
static void add_threads(
    const struct stacks_trace *p, int64_t process, const int64_t *times, size_t n, int64_t *bytes, double *y)
{
    for (size_t i = 0; i < stack_threads(p->s); i++) {
        struct stack_thread t;
        stack_thread(p->s, i, &t);
        if (!t.has_memory || (process != ALL && t.process != process))
            continue;
        held_by(p, i, times, n, bytes);
        for (size_t k = 0; k < n; k++)
            y[k] += (double)bytes[k];
    }
}

struct lines {
    const struct view *self;
    struct views *x;
    const struct tsp_query *q;
    struct tsp_answer *answer;
    const int64_t **times; /* times by host, on its clock; made on first use */
    int64_t *bytes;
};

static const int64_t *times_of(struct lines *l, size_t host)
{
    if (!l->times[host])
        l->times[host] = rates_times(&l->x->hosts[host], l->q, view_sample_time) + 1;
    return l->times[host];
}

static void write_line(const struct lines *l, int64_t id, const char *name, const double *y)
{
    view_write_series(l->self, l->q, l->answer, id, name, y);
}

static void write_host(struct lines *l, size_t host)
{
    const struct stacks *all = stacks_of(l->x);
    double *y = arena_new(l->q->http->arena, double, l->q->n_times);
    bool any = false;
    for (size_t i = 0; i < all->n; i++) {
        if (all->v[i].host != host || !stacks_trace_shown(&all->v[i], stacks_memory_shown))
            continue;
        add_threads(&all->v[i], ALL, times_of(l, host), l->q->n_times, l->bytes, y);
        any = true;
    }
    if (any)
        write_line(
            l, stacks_root(l->x, host), arena_printf(l->q->http->arena, "%s:total", l->x->hosts[host].index->name), y);
}

static void write_thread(struct lines *l, const struct stacks_trace *p, size_t thread, int64_t id)
{
    struct stack_thread t;
    const char *host = l->x->hosts[p->host].index->name;
    struct arena *a = l->q->http->arena;
    stack_thread(p->s, thread, &t);
    if (!t.has_memory)
        return;
    double *y = arena_new(a, double, l->q->n_times);
    held_by(p, thread, times_of(l, p->host), l->q->n_times, l->bytes);
    for (size_t k = 0; k < l->q->n_times; k++)
        y[k] = (double)l->bytes[k];
    write_line(l, id,
        t.tid >= 0 ? arena_printf(a, "%s:%d", host, t.tid) : arena_printf(a, "%s:%s", host, stacks_thread_label(a, &t)),
        y);
}

static void write_process(struct lines *l, const struct stacks_trace *p, size_t process, int64_t id)
{
    struct arena *a = l->q->http->arena;
    double *y = arena_new(a, double, l->q->n_times);
    add_threads(p, (int64_t)process, times_of(l, p->host), l->q->n_times, l->bytes, y);
    write_line(
        l, id, arena_printf(a, "%s:%s", l->x->hosts[p->host].index->name, stacks_process_label(a, p, process)), y);
}

/* Writes the totals of all hosts, and the requested series. */
static void xy(const struct view *self, struct views *x, const struct tsp_query *q, struct tsp_answer *answer)
{
    const struct stacks *all = stacks_of(x);
    struct lines l = {self, x, q, answer, arena_new(q->http->arena, const int64_t *, x->n_hosts + 1),
        arena_new(q->http->arena, int64_t, q->n_times)};
    int64_t id;
    for (size_t i = 0; i < x->n_hosts && !tsp_full(answer); i++)
        write_host(&l, i);
    for (size_t i = 0; view_next_item(q, answer, &i, &id);) {
        size_t number;
        const struct stacks_trace *p = stacks_thread(all, id, &number);
        if (p)
            write_thread(&l, p, number, id);
        else if ((p = stacks_process(all, id, &number)))
            write_process(&l, p, number, id);
    }
}

const struct view view_user_memory = {
    .provider = {.id = "org.eclipse.tracecompass.lttng2.ust.core.analysis.memory.UstMemoryUsageDataProvider",
        .family = STACKS_FAMILY,
        .name = "UST Memory Usage",
        .description = "Memory that threads of user space allocated and did not free, up to the end of their process "
                       "where a kernel trace shows it",
        .type = "TREE_TIME_XY"},
    .has_data = stacks_have_memory,
    .headers = stacks_headers,
    .n_headers = 3,
    .expand = 2,
    .tree = tree,
    .title = "Memory Usage",
    .series = {.type = "line", .y_label = "Memory", .y_unit = "B", .y_type = "BINARY_NUMBER", .merge = TSP_LEVEL},
    .xy = xy,
};
