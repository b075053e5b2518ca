/* Calls of functions as latencies: every one in a table, and over time. */
#include <stdlib.h>

#include "views/call_order.h"
#include "views/figures.h"
#include "views/list.h"

#define ANALYSIS ":org.eclipse.linuxtools.lttng2.ust.analysis.callstack"
#define NAME "LTTng-UST CallStack - "

/* ---- the table ---- */

enum { START, END, DURATION, FUNCTION, HOST, TID, PID, DEPTH };
static const struct tsp_column columns[] = {{START, "Start Time", "Entry", "TIMESTAMP"},
    {END, "End Time", "Exit", "TIMESTAMP"}, {DURATION, "Duration", "ns", "DURATION"},
    {FUNCTION, "Name", "Function", "STRING"}, {HOST, "Host", "Machine", "STRING"}, {TID, "TID", "Thread", "NUMBER"},
    {PID, "PID", "Process", "NUMBER"}, {DEPTH, "Depth", "1: the outermost function", "NUMBER"}};
enum { COLUMNS = sizeof columns / sizeof *columns };

static void put_number(struct text *out, int64_t n)
{
    if (n >= 0)
        text_i64(out, n);
}

static void cell(void *arg, size_t line, size_t column, struct text *out)
{
    struct call_order *o = arg;
    struct stack_call c;
    struct stack_function f;
    struct stack_thread t;
    struct stack_process d;
    const struct call_row *r = call_order_at(o, line, &c);
    const struct view_host *h = &o->x->hosts[r->p->host];
    stack_function(r->p->s, c.function, &f);
    stack_thread(r->p->s, r->p->row_threads[r->row], &t);
    stack_process(r->p->s, t.process, &d);
    switch (column) {
    case START: text_i64(out, view_to_reference(h, c.begin)); break;
    case END: text_i64(out, view_to_reference(h, c.end)); break;
    case DURATION: text_i64(out, c.end - c.begin); break;
    case FUNCTION: text_puts(out, f.name); break;
    case HOST: text_puts(out, h->index->name); break;
    case TID: put_number(out, t.tid); break;
    case PID: put_number(out, d.pid); break;
    default: text_u64(out, r->row - t.first_row + 1);
    }
}

static int64_t time_of(void *arg, size_t line)
{
    struct call_order *o = arg;
    struct stack_call c;
    const struct call_row *r = call_order_at(o, line, &c);
    return view_to_reference(&o->x->hosts[r->p->host], c.begin);
}

static void table_columns(
    const struct view *self, struct views *x, const struct tsp_query *q, struct tsp_answer *answer)
{
    tsp_table_columns(answer, columns, COLUMNS);
}

static void table_lines(const struct view *self, struct views *x, const struct tsp_query *q, struct tsp_answer *answer)
{
    struct call_order o;
    call_order_init(&o, x, q->http->arena);
    struct tsp_table t = {
        .columns = columns, .n_columns = COLUMNS, .rows = o.n, .arg = &o, .cell = cell, .time = time_of};
    tsp_table_lines(answer, &t, q);
}

/* ---- durations over time ---- */

/* Entries: processes, as the flame chart numbers them, and behind all rows the functions of each trace. */
static int64_t first_function(const struct stacks *all, size_t place)
{
    const struct stacks_trace *last = &all->v[all->n - 1];
    int64_t id = last->first_row + (int64_t)stack_rows(last->s);
    for (size_t i = 0; i < place; i++)
        id += (int64_t)stack_functions(all->v[i].s);
    return id;
}

static void scatter_tree(const struct view *self, struct views *x, const struct tsp_query *q, struct tsp_answer *answer)
{
    const struct stacks *all = stacks_of(x);
    static const struct tsp_header header = {"Name", "Process, function", "STRING"};
    tsp_begin_tree(answer, &header, 1, -1);
    for (size_t i = 0; i < all->n; i++) {
        const struct stacks_trace *p = &all->v[i];
        const char *host = x->hosts[p->host].index->name;
        for (size_t k = 0; k < stack_processes(p->s) && stack_rows(p->s); k++) {
            const char *label = stacks_process_label(q->http->arena, p, k);
            label = x->n_hosts > 1 ? arena_printf(q->http->arena, "%s/%s", host, label) : label;
            tsp_write_entry(answer,
                &(struct tsp_entry){.id = p->first_process + (int64_t)k,
                    .parent = -1,
                    .labels = &label,
                    .n_labels = 1,
                    .xy = true,
                    .host_id = x->hosts[p->host].id});
        }
        for (size_t k = 0; k < stack_functions(p->s) && !tsp_full(answer); k++) {
            struct stack_function f;
            stack_function(p->s, k, &f);
            tsp_write_entry(answer,
                &(struct tsp_entry){.id = first_function(all, i) + (int64_t)k,
                    .parent = p->first_process + f.process,
                    .labels = &f.name,
                    .n_labels = 1,
                    .xy = true,
                    .is_default = true,
                    .has_data = true,
                    .host_id = x->hosts[p->host].id});
        }
    }
    tsp_end_tree(answer);
}

static int64_t after(int64_t t)
{
    return t < INT64_MAX ? t + 1 : t;
}

/* Points of the trace's functions, sample by sample; of those that are wanted. */
static void find_points(const struct views *x, const struct tsp_query *q, const struct stacks_trace *p,
    const bool *wanted, struct figures_points *of)
{
    size_t rows = stack_rows(p->s), functions = stack_functions(p->s), samples = q->n_times > 1 ? q->n_times - 1 : 1;
    struct stack_extremes *extremes = arena_new(q->http->arena, struct stack_extremes, functions + 1);
    uint32_t *reached = arena_new(q->http->arena, uint32_t, functions + 1);
    size_t *at = arena_new(q->http->arena, size_t, rows + 1);
    for (size_t row = 0; row < rows; row++)
        at[row] = stacks_begun(x, p, row, 0, q->begin);
    for (size_t i = 0; i < samples && !http_gone(q->http); i++) {
        int64_t end = i + 1 < samples ? q->times[i + 1] : after(q->end);
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
                figures_add_points(&of[reached[k]], &x->hosts[p->host],
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
    struct figures_points *of = mem_zalloc(sizeof *of * functions);
    find_points(x, q, p, wanted, of);
    for (size_t f = 0; f < functions; f++) {
        struct stack_function function;
        stack_function(p->s, f, &function);
        if (wanted[f])
            figures_write_points(answer, id + (int64_t)f,
                arena_printf(q->http->arena, "%s/%s/%s", x->hosts[p->host].index->name,
                    stacks_process_label(q->http->arena, p, function.process), function.name),
                &of[f]);
        figures_free_points(&of[f]);
    }
    free(of);
}

static void scatter_xy(const struct view *self, struct views *x, const struct tsp_query *q, struct tsp_answer *answer)
{
    const struct stacks *all = stacks_of(x);
    tsp_begin_xy(answer, "Latency vs Time");
    for (size_t i = 0; i < all->n; i++)
        write_points(x, q, &all->v[i], first_function(all, i), answer);
    tsp_end_xy(answer);
    tsp_end(answer, q);
}

const struct view view_call_table = {
    .provider =
        {.id = "org.eclipse.tracecompass.analysis.timing.core.segmentstore.SegmentStoreTableDataProvider" ANALYSIS,
            .name = NAME "Latency Table",
            .description = "Every call whose entry and exit were seen, in order of its entry",
            .type = "TABLE"},
    .has_data = stacks_have_calls,
    .columns = table_columns,
    .lines = table_lines,
};
const struct view view_call_scatter = {
    .provider =
        {.id = "org.eclipse.tracecompass.internal.analysis.timing.core.segmentstore.scatter.dataprovider" ANALYSIS,
            .name = NAME "Latency vs Time",
            .description = "A point per call: when it began and how long it took",
            .type = "TREE_TIME_XY"},
    .has_data = stacks_have_calls,
    .tree = scatter_tree,
    .xy = scatter_xy,
};
