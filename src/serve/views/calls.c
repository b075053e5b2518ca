/* SPDX-License-Identifier: MIT */
/* Calls of functions as latencies: a table of all calls, and durations over time. */
#include <stdlib.h>

#include "views/durations.h"
#include "views/order.h"
#include "views/stacks.h"

#define ANALYSIS ":org.eclipse.linuxtools.lttng2.ust.analysis.callstack"
#define NAME "LTTng-UST CallStack - "

/* ---- the table ---- */

enum { START, END, DURATION, FUNCTION, HOST, TID, PID, DEPTH };
static const struct tsp_column columns[] = {{START, "Start Time", "Entry", "TIMESTAMP"},
    {END, "End Time", "Exit", "TIMESTAMP"}, {DURATION, "Duration", "ns", "DURATION"},
    {FUNCTION, "Name", "Function", "STRING"}, {HOST, "Host", "Machine", "STRING"}, {TID, "TID", "Thread", "NUMBER"},
    {PID, "PID", "Process", "NUMBER"}, {DEPTH, "Depth", "1: the outermost function", "NUMBER"}};

/* Line of the table: a call, from all rows of all traces, whose entry and exit were recorded. Order: begin on the
 * reference clock. */
struct row {
    const struct stacks_trace *trace;
    size_t number; /* number in the trace */
};
struct lines {
    const struct views *x;
    struct row *rows;
    struct row_order order;
};

static void whole_call(const struct row *r, size_t i, struct stack_call *out)
{
    const struct stack_store *s = r->trace->s;
    stack_call(s, r->number, stack_whole_at(s, r->number, i), out);
}

static int64_t begin_of(void *arg, size_t row, size_t i)
{
    const struct lines *l = arg;
    struct stack_call c;
    whole_call(&l->rows[row], i, &c);
    return view_to_reference(&l->x->hosts[l->rows[row].trace->host], c.begin);
}

static size_t before(void *arg, size_t row, int64_t t)
{
    const struct lines *l = arg;
    const struct row *r = &l->rows[row];
    return stack_whole_before(r->trace->s, r->number, stacks_begun(l->x, r->trace, r->number, 0, t));
}

static const struct row *line(struct lines *l, size_t number, struct stack_call *out)
{
    size_t i;
    const struct row *r = &l->rows[order_at(&l->order, number, &i)];
    whole_call(r, i, out);
    return r;
}

static void put_number(struct text *out, int64_t n)
{
    if (n >= 0)
        text_i64(out, n);
}

static void cell(void *arg, size_t number, size_t column, struct text *out)
{
    struct lines *l = arg;
    struct stack_call c;
    struct stack_function f;
    struct stack_thread t;
    struct stack_process d;
    const struct row *r = line(l, number, &c);
    const struct stacks_trace *of = r->trace;
    const struct view_host *h = &l->x->hosts[of->host];
    stack_function(of->s, c.function, &f);
    stack_thread(of->s, of->row_threads[r->number], &t);
    stack_process(of->s, t.process, &d);
    switch (column) {
    case START: text_i64(out, view_to_reference(h, c.begin)); break;
    case END: text_i64(out, view_to_reference(h, c.end)); break;
    case DURATION: text_i64(out, c.end - c.begin); break;
    case FUNCTION: text_puts(out, f.name); break;
    case HOST: text_puts(out, h->index->name); break;
    case TID: put_number(out, t.tid); break;
    case PID: put_number(out, d.pid); break;
    default: text_u64(out, r->number - t.first_row + 1);
    }
}

static int64_t time_of(void *arg, size_t number)
{
    struct lines *l = arg;
    struct stack_call c;
    const struct row *r = line(l, number, &c);
    return view_to_reference(&l->x->hosts[r->trace->host], c.begin);
}

static void table(const struct view *self, struct views *x, const struct tsp_query *q, struct tsp_table *t)
{
    const struct stacks *all = stacks_of(x);
    struct arena *a = q->http->arena;
    struct lines *l = arena_new(a, struct lines, 1);
    size_t rows = 0;
    for (size_t i = 0; i < all->n; i++)
        rows += stack_rows(all->v[i].s);
    l->x = x;
    l->rows = arena_new(a, struct row, rows + 1);
    l->order = (struct row_order){.arg = l, .time = begin_of, .before = before};
    l->order.rows = arena_new(a, struct order_row, rows + 1);
    for (size_t i = 0; i < all->n; i++)
        for (size_t row = 0; row < stack_rows(all->v[i].s); row++) {
            const struct stack_store *s = all->v[i].s;
            l->rows[l->order.n_rows] = (struct row){&all->v[i], row};
            l->order.rows[l->order.n_rows++].n = stack_whole_before(s, row, stack_calls(s, row));
        }
    t->rows = order_size(&l->order);
    t->arg = l;
    t->cell = cell;
    t->time = time_of;
}

/* ---- durations over time ---- */

/* Entries: processes, numbered as in the flame chart, and after all rows the functions of each trace. */
static int64_t first_function(const struct stacks *all, size_t trace)
{
    const struct stacks_trace *last = &all->v[all->n - 1];
    int64_t id = last->first_row + (int64_t)stack_rows(last->s);
    for (size_t i = 0; i < trace; i++)
        id += (int64_t)stack_functions(all->v[i].s);
    return id;
}

static void scatter_tree(const struct view *self, struct views *x, const struct tsp_query *q, struct tsp_answer *answer)
{
    const struct stacks *all = stacks_of(x);
    for (size_t i = 0; i < all->n; i++) {
        const struct stacks_trace *p = &all->v[i];
        const struct view_host *h = &x->hosts[p->host];
        for (size_t k = 0; k < stack_processes(p->s) && stack_rows(p->s); k++) {
            const char *label = stacks_process_label(q->http->arena, p, k);
            label = x->n_hosts > 1 ? arena_printf(q->http->arena, "%s/%s", h->index->name, label) : label;
            view_write_keyed(answer, h, p->first_process + (int64_t)k, -1, p->process_keys[k], label, VIEW_GROUP);
        }
        for (size_t k = 0; k < stack_functions(p->s) && !tsp_full(answer); k++) {
            struct stack_function f;
            stack_function(p->s, k, &f);
            view_write_keyed(answer, h, first_function(all, i) + (int64_t)k, p->first_process + f.process,
                stacks_function_key(&f), f.name, VIEW_DATA | VIEW_DEFAULT);
        }
    }
}

/* Finds points of the trace's requested functions, sample by sample. */
static void find_points(const struct views *x, const struct tsp_query *q, const struct stacks_trace *p,
    const bool *wanted, struct durations_points *of)
{
    size_t rows = stack_rows(p->s), functions = stack_functions(p->s);
    struct stack_extremes *extremes = arena_new(q->http->arena, struct stack_extremes, functions + 1);
    uint32_t *reached = arena_new(q->http->arena, uint32_t, functions + 1);
    size_t *at = arena_new(q->http->arena, size_t, rows + 1);
    for (size_t row = 0; row < rows; row++)
        at[row] = stacks_begun(x, p, row, 0, q->begin);
    for (size_t i = 0; i < durations_gaps(q) && !http_gone(q->http); i++) {
        int64_t end = durations_gap_end(q, i);
        size_t n = 0;
        for (size_t row = 0; row < rows; row++) {
            size_t to = stacks_begun(x, p, row, at[row], end);
            if (to > at[row])
                n = stack_extremes(p->s, row, at[row], to, extremes, reached, n);
            at[row] = to > at[row] ? to : at[row];
        }
        for (size_t k = 0; k < n; k++) {
            struct stack_extremes *found = &extremes[reached[k]];
            if (wanted[reached[k]])
                durations_add_points(&of[reached[k]], &x->hosts[p->host],
                    &(struct figures){.n = 1,
                        .least = found->least,
                        .most = found->most,
                        .least_begin = found->least_begin,
                        .most_begin = found->most_begin});
            found->any = false;
        }
    }
}

static void write_points(
    struct views *x, const struct tsp_query *q, const struct stacks_trace *p, int64_t id, struct tsp_answer *answer)
{
    size_t functions = stack_functions(p->s), n = 0;
    bool *wanted = arena_new(q->http->arena, bool, functions + 1);
    for (size_t f = 0; f < functions && q->has_items; f++)
        n += wanted[f] = tsp_wants(q, id + (int64_t)f);
    if (!n)
        return;
    struct durations_points *of = mem_zalloc(sizeof *of * functions);
    find_points(x, q, p, wanted, of);
    for (size_t f = 0; f < functions; f++) {
        struct stack_function function;
        stack_function(p->s, f, &function);
        if (wanted[f])
            durations_write_points(answer, id + (int64_t)f,
                arena_printf(q->http->arena, "%s/%s/%s", x->hosts[p->host].index->name,
                    stacks_process_label(q->http->arena, p, function.process), function.name),
                &of[f]);
        durations_free_points(&of[f]);
    }
    free(of);
}

static void scatter_xy(const struct view *self, struct views *x, const struct tsp_query *q, struct tsp_answer *answer)
{
    const struct stacks *all = stacks_of(x);
    for (size_t i = 0; i < all->n; i++)
        write_points(x, q, &all->v[i], first_function(all, i), answer);
}

const struct view view_call_table = {
    .provider =
        {.id = "org.eclipse.tracecompass.analysis.timing.core.segmentstore.SegmentStoreTableDataProvider" ANALYSIS,
            .name = NAME "Latency Table",
            .description = "Every call whose entry and exit were seen, in order of its entry",
            .type = "TABLE"},
    .has_data = stacks_have_calls,
    VIEW_COLUMNS(columns),
    .table = table,
};
const struct view view_call_scatter = {
    .provider =
        {.id = "org.eclipse.tracecompass.internal.analysis.timing.core.segmentstore.scatter.dataprovider" ANALYSIS,
            .name = NAME "Latency vs Time",
            .description = "A point per call: when it began and how long it took",
            .type = "TREE_TIME_XY"},
    .has_data = stacks_have_calls,
    VIEW_HEADERS({"Name", "Process, function", "STRING"}),
    .tree = scatter_tree,
    .title = "Latency vs Time",
    .xy = scatter_xy,
};
