/* SPDX-License-Identifier: MIT */
/* Thread Status: states of every thread of every host over time. Rows: hosts, below them processes and their threads as
 * parents and children. */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "views/list.h"
#include "views/looks.h"
#include "views/sampling.h"
#include "views/thread_arrows.h"
#include "views/thread_family.h"
#include "views/tips.h"

static bool is_shown(const struct view_host *h)
{
    return h->states && h->index->graph;
}

static bool has_data(const struct view *self, const struct view_host *h)
{
    return is_shown(h) && h->threads;
}

static void *find_families(struct views *x)
{
    struct thread_family *families = mem_zalloc((x->n_hosts + 1) * sizeof *families);
    for (size_t i = 0; i < x->n_hosts; i++)
        if (is_shown(&x->hosts[i]))
            thread_family_init(&families[i], &x->hosts[i]);
    return families;
}

static void close_families(struct views *x, void *cache)
{
    struct thread_family *families = cache;
    for (size_t i = 0; i < x->n_hosts; i++)
        thread_family_fini(&families[i]);
    free(families);
}

/* ---- filter of active threads ---- */

/* Parameter active_thread_filter or isFiltered: true, or a list of CPUs. */
static json_t *active_filter(const struct tsp_query *q)
{
    json_t *v = json_object_get(q->parameters, "active_thread_filter");
    if (json_is_true(v) || (json_is_array(v) && json_array_size(v)))
        return v;
    v = json_object_get(q->parameters, "isFiltered");
    return json_is_true(v) ? v : NULL;
}

static bool is_active(const struct state_interval *iv)
{
    return iv->value == STATE_USERMODE || iv->value == STATE_SYSCALL || iv->value == STATE_INTERRUPTED ||
        iv->value == STATE_WAIT_FOR_CPU;
}

/* Returns whether the thread ran, or was ready to, within [begin, end] of its host's clock. Such states are never far
 * apart. */
static bool was_active(const struct state_store *s, size_t row, int64_t begin, int64_t end)
{
    enum { BATCH = 16 };
    struct state_interval batch[BATCH];
    for (;;) {
        size_t n = state_range(s, STATE_THREAD, row, begin, end, batch, BATCH);
        for (size_t i = 0; i < n; i++)
            if (is_active(&batch[i]))
                return true;
        if (n < BATCH || batch[n - 1].end <= begin)
            return false;
        begin = batch[n - 1].end;
    }
}

/* Marks threads that had one of the CPUs within [begin, end]. */
static void mark_on_cpus(
    const struct tsp_query *q, const struct view_host *h, json_t *cpus, int64_t begin, int64_t end, bool *chosen)
{
    enum { BATCH = 256 };
    struct state_interval batch[BATCH];
    json_t *cpu;
    size_t k;
    json_array_foreach (cpus, k, cpu) {
        json_int_t number = json_is_integer(cpu) ? json_integer_value(cpu) : -1;
        int64_t row = number >= 0 && number < INT32_MAX ? state_find_row(h->states, STATE_CPU_THREAD, (int32_t)number)
                                                        : -1;
        size_t n = BATCH;
        for (int64_t t = begin; row >= 0 && n == BATCH && !http_gone(q->http); t = batch[n - 1].end) {
            n = state_range(h->states, STATE_CPU_THREAD, (size_t)row, t, end, batch, BATCH);
            for (size_t i = 0; i < n; i++)
                if (batch[i].thread >= 0 && batch[i].thread < h->threads)
                    chosen[batch[i].thread] = true;
            if (!n || batch[n - 1].end <= t)
                break;
        }
    }
}

/* Chooses the rows of the tree; NULL: all. Parents stay with their children. */
static bool *choose_rows(const struct tsp_query *q, const struct view_host *h, const struct thread_family *f)
{
    json_t *filter = active_filter(q);
    if (!filter)
        return NULL;
    bool *chosen = arena_new(q->http->arena, bool, (size_t)f->n + 1);
    int64_t begin = view_to_host(h, q->begin), end = view_to_host(h, q->end);
    if (json_is_array(filter))
        mark_on_cpus(q, h, filter, begin, end, chosen);
    for (int32_t i = 0; !json_is_array(filter) && i < f->n && !http_gone(q->http); i++)
        chosen[i] = f->rows[i].idle_cpu < 0 && was_active(h->states, (size_t)i, begin, end);
    for (int32_t i = 0; i < f->n; i++)
        for (int32_t p = f->parents[i]; chosen[i] && p >= 0 && !chosen[p]; p = f->parents[p])
            chosen[p] = true;
    return chosen;
}

/* ---- tree ---- */

/* Part of the tree. containers: number of the first entry of the machine's containers; -1: the tree has none. */
struct tree_part {
    const struct views *x;
    const struct tsp_query *q;
    const struct thread_family *f;
    size_t host;
    int64_t containers;
};

static int64_t entry_of_container(const struct tree_part *t, int32_t container)
{
    return t->containers >= 0 && container >= 0 ? view_id(t->x, (size_t)(t->containers + container))
                                                : view_id(t->x, t->host);
}

/* Entry above a row: the parent's, unless the parent is in another container. */
static int64_t entry_above(const struct tree_part *t, int32_t row)
{
    int32_t parent = t->f->parents[row], container = t->f->rows[row].container;
    bool elsewhere = parent < 0 || (t->containers >= 0 && t->f->rows[parent].container != container);
    return elsewhere ? entry_of_container(t, container) : t->x->hosts[t->host].first_thread + parent;
}

/* Writes the containers of the chosen threads. */
static void write_containers(const struct tree_part *t, const bool *chosen, struct tsp_answer *answer)
{
    const struct view_host *h = &t->x->hosts[t->host];
    const struct graph_container *of;
    size_t n = graph_containers(h->index->graph, &of);
    bool *used = arena_new(t->q->http->arena, bool, n + 1);
    for (int32_t row = 0; row < t->f->n; row++)
        if (t->f->rows[row].container >= 0 && (!chosen || chosen[row]))
            used[t->f->rows[row].container] = true;
    for (size_t i = 0; i < n && !tsp_full(answer); i++)
        if (used[i])
            tsp_write_entry(answer,
                &(struct tsp_entry){.id = entry_of_container(t, (int32_t)i),
                    .parent = view_id(t->x, t->host),
                    .key = view_key_container(h, (int32_t)i),
                    .labels = (const char *const[]){of[i].name, "", "", ""},
                    .n_labels = 4,
                    .time_graph = true,
                    .start = t->x->data.begin,
                    .end = t->x->data.end,
                    .host_id = h->id,
                    .container = of[i].name});
}

static void write_thread(const struct tree_part *t, int32_t row, struct tsp_answer *answer)
{
    const struct tsp_query *q = t->q;
    const struct thread_family *f = t->f;
    const struct view_host *h = &t->x->hosts[t->host];
    const struct graph_row *r = &f->rows[row];
    struct arena *a = q->http->arena;
    int32_t parent = f->parents[row], ptid = parent >= 0 ? f->rows[parent].tid : r->ppid > 0 ? r->ppid : -1;
    struct tsp_meta meta[3] = {{.key = "execName", .text = r->name}};
    struct state_row life = {.begin = r->begin, .end = r->end};
    size_t n = 1;
    if ((size_t)row < state_rows(h->states, STATE_THREAD)) /* begins with the trace if no birth was recorded */
        state_row(h->states, STATE_THREAD, (size_t)row, &life);
    if (r->tgid >= 0)
        meta[n++] = (struct tsp_meta){.key = "PID", .number = r->tgid};
    if (ptid >= 0)
        meta[n++] = (struct tsp_meta){.key = "PTID", .number = ptid};
    const char *labels[4] = {r->name, arena_printf(a, "%d", r->tid), r->tgid >= 0 ? arena_printf(a, "%d", r->tgid) : "",
        ptid >= 0 ? arena_printf(a, "%d", ptid) : ""};
    tsp_write_entry(answer,
        &(struct tsp_entry){.id = h->first_thread + row,
            .parent = entry_above(t, row),
            .labels = labels,
            .n_labels = 4,
            .time_graph = true,
            .start = view_to_reference(h, life.begin),
            .end = view_to_reference(h, life.end),
            .has_data = true,
            .host_id = h->id,
            .has_tid = true,
            .tid = r->tid,
            .container = view_container(h, r->container),
            .meta = meta,
            .n_meta = n});
}

static void tree(const struct view *self, struct views *x, const struct tsp_query *q, struct tsp_answer *answer)
{
    const struct thread_family *families = view_cache(x, self, find_families);
    int64_t next = (int64_t)x->n_hosts;
    for (size_t i = 0; i < x->n_hosts && view_goes_on(q, answer); i++) {
        const struct view_host *h = &x->hosts[i];
        const struct thread_family *f = &families[i];
        const char *labels[4] = {h->index->name, "", "", ""};
        if (!is_shown(h))
            continue;
        bool *chosen = choose_rows(q, h, f);
        tsp_write_entry(answer,
            &(struct tsp_entry){.id = view_id(x, i),
                .parent = -1,
                .key = h->index->key,
                .labels = labels,
                .n_labels = 4,
                .time_graph = true,
                .start = x->data.begin,
                .end = x->data.end,
                .host_id = h->id});
        const struct tree_part t = {x, q, f, i, view_by_container(q) ? next : -1};
        const struct graph_container *of;
        next += (int64_t)graph_containers(h->index->graph, &of);
        if (view_by_container(q))
            write_containers(&t, chosen, answer);
        for (int32_t k = 0; k < f->n && !tsp_full(answer); k++)
            if (!chosen || chosen[f->seen[k]])
                write_thread(&t, f->seen[k], answer);
    }
}

/* ---- states ---- */

/* Style of a state. An idle thread that does not run waits for nothing: its row is blank there. */
static const char *style_of(const struct view_host *h, size_t row, int value)
{
    struct graph_row r;
    if (value == STATE_WAIT_FOR_CPU && (graph_row(h->index->graph, (int32_t)row, &r), r.idle_cpu >= 0))
        return NULL;
    return view_state_key(value);
}

static void show(
    const struct view_sampler *s, const struct view_row *row, const struct state_interval *iv, struct view_shown *out)
{
    const struct view_host *h = &s->x->hosts[row->host];
    out->style_key = style_of(h, row->row, iv->value);
    out->label = iv->value == STATE_SYSCALL ? iv->name : NULL;
    if (!s->q->filter || !out->style_key)
        return;
    struct graph_row r;
    graph_row_then(h->index->graph, (int32_t)row->row, iv->begin, iv->end, &r);
    view_add_property(out, "state", out->style_key);
    view_add_property(out, "host", h->index->name);
    view_add_property(out, "process", r.name);
    view_add_property(out, "System call", out->label);
    view_add_number(out, "thread", r.tid);
    view_add_number(out, "tid", r.tid);
    if (r.tgid >= 0)
        view_add_number(out, "pid", r.tgid);
    view_add_property(out, "container", view_container(h, r.container));
    int32_t cpu = state_may_have_cpu(iv->value) ? state_thread_cpu(h->states, row->row, iv->begin, -1) : -1;
    if (cpu >= 0)
        view_add_number(out, "cpu", cpu);
}

static bool sample_thread(const struct view_sampler *s, size_t host, int32_t row)
{
    return view_sample_row(s, s->x->hosts[host].first_thread + row,
        &(struct view_row){.host = host, .kind = STATE_THREAD, .row = (size_t)row});
}

static void states(const struct view *self, struct views *x, const struct tsp_query *q, struct tsp_answer *answer)
{
    struct view_sampler s = view_begin_sampling(x, q, answer, show);
    size_t host;
    int32_t row;
    for (size_t i = 0; q->has_items && i < q->n_items; i++)
        if (view_thread_of(x, q->items[i], &host, &row) && !sample_thread(&s, host, row))
            break;
    for (host = 0; !q->has_items && host < x->n_hosts; host++)
        for (row = 0; row < x->hosts[host].threads && sample_thread(&s, host, row); row++)
            ;
    view_end_sampling(&s);
}

/* ---- arrows ---- */

static void arrows(const struct view *self, struct views *x, const struct tsp_query *q, struct tsp_answer *answer)
{
    tsp_begin_arrows(answer);
    for (size_t i = 0; i < x->n_hosts && view_goes_on(q, answer); i++)
        if (is_shown(&x->hosts[i]))
            thread_arrows_write(&x->hosts[i], q, answer);
    tsp_end_arrows(answer);
}

/* ---- tooltip ---- */

/* Writes the object that the thread waited for and the thread that ended the wait, from the graph. t: host's clock. */
static void write_cause(
    struct tsp_answer *answer, const struct tsp_query *q, const struct view_host *h, int32_t row, int64_t t)
{
    const struct graph *g = h->index->graph;
    struct graph_interval iv;
    struct graph_cause c;
    uint64_t i = graph_find(g, row, t + 1);
    struct graph_row r;
    graph_row(g, row, &r);
    if (i == GRAPH_NO_INTERVAL || r.idle_cpu >= 0)
        return;
    graph_interval(g, row, i, &iv);
    if (iv.state == GRAPH_RUNNING || iv.state == GRAPH_UNKNOWN)
        return;
    tsp_write_tip(answer, "Cause",
        iv.detail ? arena_printf(q->http->arena, "%s: %s", graph_state_name(iv.state), iv.detail)
                  : graph_state_name(iv.state));
    if (iv.state != GRAPH_BLOCKED && iv.state != GRAPH_NETWORK)
        return;
    graph_interval_cause(g, row, i, &c);
    if (c.kind == GRAPH_CAUSE_WAKEUP && c.row >= 0 && c.row < h->threads) {
        graph_row_then(g, c.row, c.ts, c.ts, &r);
        tsp_write_tip(answer, "Woken by", arena_printf(q->http->arena, "%s (%d)", r.name, r.tid));
    } else if (c.kind == GRAPH_CAUSE_PACKET) {
        tsp_write_tip(answer, "Woken by", "a message from the network");
    } else if (c.kind == GRAPH_CAUSE_LOST) {
        tsp_write_tip(answer, "Woken by", "not known: events were lost");
    }
}

static void write_state_tooltip(
    struct tsp_answer *answer, const struct tsp_query *q, const struct view_host *h, int32_t row, int64_t t)
{
    struct state_interval iv;
    int64_t at = view_sample_time(h, t);
    if (!state_at(h->states, STATE_THREAD, (size_t)row, at, &iv) || !style_of(h, (size_t)row, iv.value))
        return;
    tsp_write_tip(answer, "State", style_of(h, (size_t)row, iv.value));
    if (iv.value == STATE_SYSCALL && iv.name)
        tsp_write_tip(answer, "System call", iv.name);
    int32_t cpu = state_thread_cpu(h->states, (size_t)row, at, -1);
    if (cpu >= 0)
        view_write_number(answer, "CPU", cpu);
    if (iv.value == STATE_WAIT_FOR_CPU || iv.value == STATE_WAIT_BLOCKED || iv.value == STATE_WAIT_UNKNOWN)
        write_cause(answer, q, h, row, at);
    view_write_interval(answer, h, &iv);
}

static void tooltip(const struct view *self, struct views *x, const struct tsp_query *q, struct tsp_answer *answer)
{
    int64_t entry, t;
    size_t host, other;
    int32_t row, next;
    tsp_begin_tooltip(answer);
    if (view_tooltip_target(q, &entry, &t) && view_thread_of(x, entry, &host, &row) && is_shown(&x->hosts[host])) {
        const struct view_host *h = &x->hosts[host];
        tsp_write_tip(answer, "Host", h->index->name);
        if (view_tooltip_of_arrow(q) && view_thread_of(x, q->element_destination, &other, &next)) {
            view_write_thread(answer, h, row, view_sample_time(h, q->element_time), "From", "From TID");
            view_write_thread(answer, &x->hosts[other], next,
                view_sample_time(&x->hosts[other], q->element_time + q->element_duration), "To", "To TID");
            view_write_span(answer, q->element_time, q->element_time + q->element_duration);
        } else {
            struct graph_row r;
            view_write_thread(answer, h, row, view_sample_time(h, t), "Process", "TID");
            graph_row(h->index->graph, row, &r);
            if (view_container(h, r.container))
                tsp_write_tip(answer, "Container", view_container(h, r.container));
            write_state_tooltip(answer, q, h, row, t);
        }
        view_write_clock_error(answer, h, t);
    }
    tsp_end_tooltip(answer);
}

static void style(const struct view *self, struct views *x, const struct tsp_query *q, struct tsp_answer *answer)
{
    tsp_begin_styles(answer);
    view_write_state_styles(answer,
        VIEW_STATE(USERMODE) | VIEW_STATE(SYSCALL) | VIEW_STATE(INTERRUPTED) | VIEW_STATE(WAIT_FOR_CPU) |
            VIEW_STATE(WAIT_BLOCKED) | VIEW_STATE(WAIT_UNKNOWN) | VIEW_STATE(IDLE) | VIEW_STATE(UNKNOWN));
    tsp_write_style(answer, THREAD_ARROW, NULL, LOOK_ARROW, 0.1, -1, THREAD_ARROW);
    tsp_end_styles(answer);
}

const struct view view_thread_status = {
    .provider = {.id = "org.eclipse.tracecompass.internal.analysis.os.linux.core.threadstatus.ThreadStatusDataProvider",
        .name = "Thread Status",
        .description = "States of all threads over time: running, system calls, waits",
        .type = "TIME_GRAPH"},
    .host_has_data = has_data,
    VIEW_HEADERS({"Process", "Name of the thread", "STRING"},
        {"TID", "Number of the thread", "NUMBER", "tid", TSP_FIRST},
        {"PID", "Number of its process", "NUMBER", "pid", TSP_FIRST},
        {"PTID", "Number of the thread above it: its process, or the process that made it", "NUMBER", "ptid",
            TSP_FIRST}),
    .tree = tree,
    .states = states,
    .arrows = arrows,
    .tooltip = tooltip,
    .style = style,
    .close = close_families,
};
