/* Thread Status: what every thread of every host did over time. Rows: hosts, below them processes and their threads as
 * parents and children. */
#include <stdlib.h>
#include <string.h>

#include "base/search.h"
#include "views/list.h"
#include "views/looks.h"
#include "views/sampling.h"
#include "views/tips.h"

/* ---- who is whose child ---- */

/* Of one host, by row: the row of the parent entry, or -1 (the host); all rows by tid and begin; and in the order in
 * which they are seen when all are unfolded, so that a client can show the first ones while the others arrive. */
struct family {
    int32_t *parents, *order, *seen;
    struct graph_row *rows;
    int32_t n;
};

static bool has_data(const struct view *self, const struct view_host *h)
{
    return h->states && h->index->graph && h->threads;
}

static int by_tid_and_begin(const void *pa, const void *pb, void *arg)
{
    const struct graph_row *rows = arg, *a = &rows[*(const int32_t *)pa], *b = &rows[*(const int32_t *)pb];
    if (a->tid != b->tid)
        return a->tid < b->tid ? -1 : 1;
    if (a->idle_cpu != b->idle_cpu)
        return a->idle_cpu < b->idle_cpu ? -1 : 1;
    return a->begin < b->begin ? -1 : a->begin > b->begin;
}

/* The life of `tid` at t; when none is known to be there, the next one that was not born after t. -1: none. */
static int32_t life_at(const struct family *f, int32_t tid, int64_t t)
{
    int32_t found = -1;
    size_t n = (size_t)f->n, first = search_first(i, 0, n, f->rows[f->order[i]].tid >= tid);
    for (size_t i = first; i < n && f->rows[f->order[i]].tid == tid; i++) {
        const struct graph_row *r = &f->rows[f->order[i]];
        if (r->begin <= t && t <= r->end)
            found = f->order[i];
        else if (r->begin > t)
            return found < 0 && !r->born ? f->order[i] : found;
    }
    return found;
}

static int32_t parent_of(const struct family *f, int32_t row)
{
    const struct graph_row *r = &f->rows[row];
    if (r->tid <= 0)
        return -1;
    if (r->tgid > 0 && r->tgid != r->tid)
        return life_at(f, r->tgid, r->begin);
    if (r->parent_row >= 0 && r->parent_row < f->n) {
        const struct graph_row *p = &f->rows[r->parent_row];
        int32_t leader = p->tgid > 0 && p->tgid != p->tid ? life_at(f, p->tgid, r->begin) : -1;
        return leader >= 0 ? leader : p->tid > 0 ? r->parent_row : -1;
    }
    return r->ppid > 0 ? life_at(f, r->ppid, r->begin) : -1;
}

/* Traces may claim anything, circles too: the entry that would close one belongs to the host. */
static void break_circles(struct family *f)
{
    enum { NEW, ON_THE_WAY, DONE };
    uint8_t *seen = mem_zalloc((size_t)f->n + 1);
    for (int32_t i = 0; i < f->n; i++) {
        int32_t r = i, last = -1;
        while (r >= 0 && seen[r] == NEW) {
            seen[r] = ON_THE_WAY;
            last = r;
            r = f->parents[r];
        }
        if (r >= 0 && seen[r] == ON_THE_WAY)
            f->parents[last] = -1;
        for (r = i; r >= 0 && seen[r] == ON_THE_WAY; r = f->parents[r])
            seen[r] = DONE;
    }
    free(seen);
}

/* Every parent before its children, brothers by tid and begin. */
static void find_order_seen(struct family *f)
{
    int32_t *first = mem_zalloc(((size_t)f->n + 1) * sizeof *first),
            *next = mem_zalloc(((size_t)f->n + 1) * sizeof *next);
    for (int32_t i = 0; i <= f->n; i++)
        first[i] = -1;
    for (int32_t i = f->n; i-- > 0;) { /* first[n]: of the host itself */
        int32_t row = f->order[i], parent = f->parents[row] >= 0 ? f->parents[row] : f->n;
        next[row] = first[parent];
        first[parent] = row;
    }
    for (int32_t row = first[f->n], n = 0; row >= 0;) {
        f->seen[n++] = row;
        if (first[row] >= 0) {
            row = first[row];
            continue;
        }
        while (row >= 0 && next[row] < 0)
            row = f->parents[row];
        row = row >= 0 ? next[row] : -1;
    }
    free(first);
    free(next);
}

static void find_family(struct family *f, const struct view_host *h)
{
    f->n = h->threads;
    f->rows = mem_zalloc(((size_t)f->n + 1) * sizeof *f->rows);
    f->parents = mem_zalloc(((size_t)f->n + 1) * sizeof *f->parents);
    f->order = mem_zalloc(((size_t)f->n + 1) * sizeof *f->order);
    f->seen = mem_zalloc(((size_t)f->n + 1) * sizeof *f->seen);
    for (int32_t i = 0; i < f->n; i++) {
        graph_row(h->index->graph, i, &f->rows[i]);
        f->order[i] = i;
    }
    qsort_r(f->order, (size_t)f->n, sizeof *f->order, by_tid_and_begin, f->rows);
    for (int32_t i = 0; i < f->n; i++)
        f->parents[i] = parent_of(f, i);
    break_circles(f);
    find_order_seen(f);
}

static void *find_families(struct views *x)
{
    struct family *families = mem_zalloc((x->n_hosts + 1) * sizeof *families);
    for (size_t i = 0; i < x->n_hosts; i++)
        if (shown(&x->hosts[i]))
            find_family(&families[i], &x->hosts[i]);
    return families;
}

static void close_families(struct views *x, void *cache)
{
    struct family *families = cache;
    for (size_t i = 0; i < x->n_hosts; i++) {
        free(families[i].rows);
        free(families[i].parents);
        free(families[i].order);
        free(families[i].seen);
    }
    free(families);
}

/* ---- only those that did something ---- */

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

/* Did the thread run or want to within [begin, end] of its host's clock? Such states are never far apart. */
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

/* Marks the threads that had one of the CPUs within [begin, end]. */
static void mark_on_cpus(
    const struct tsp_query *q, const struct view_host *h, json_t *cpus, int64_t begin, int64_t end, bool *keep)
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
                    keep[batch[i].thread] = true;
            if (!n || batch[n - 1].end <= t)
                break;
        }
    }
}

/* Which rows the tree shows; NULL: all. Parents stay with their children. */
static bool *choose_rows(const struct tsp_query *q, const struct view_host *h, const struct family *f)
{
    json_t *filter = active_filter(q);
    if (!filter)
        return NULL;
    bool *keep = arena_new(q->http->arena, bool, (size_t)f->n + 1);
    int64_t begin = view_to_host(h, q->begin), end = view_to_host(h, q->end);
    if (json_is_array(filter))
        mark_on_cpus(q, h, filter, begin, end, keep);
    for (int32_t i = 0; !json_is_array(filter) && i < f->n && !http_gone(q->http); i++)
        keep[i] = f->rows[i].idle_cpu < 0 && was_active(h->states, (size_t)i, begin, end);
    for (int32_t i = 0; i < f->n; i++)
        for (int32_t p = f->parents[i]; keep[i] && p >= 0 && !keep[p]; p = f->parents[p])
            keep[p] = true;
    return keep;
}

/* ---- tree ---- */

static int64_t root_id(const struct views *x, size_t host)
{
    return x->last_thread + 1 + (int64_t)host;
}

static void write_thread(const struct views *x, const struct tsp_query *q, size_t host, const struct family *f,
    int32_t row, struct tsp_answer *answer)
{
    const struct view_host *h = &x->hosts[host];
    const struct graph_row *r = &f->rows[row];
    struct arena *a = q->http->arena;
    int32_t parent = f->parents[row], ptid = parent >= 0 ? f->rows[parent].tid : r->ppid > 0 ? r->ppid : -1;
    struct tsp_meta meta[3] = {{"execName", r->name, 0}};
    struct state_row life = {.begin = r->begin, .end = r->end};
    size_t n = 1;
    if ((size_t)row <
        state_rows(h->states, STATE_THREAD)) /* from the trace's begin on, when it was not seen to be born */
        state_row(h->states, STATE_THREAD, (size_t)row, &life);
    if (r->tgid >= 0)
        meta[n++] = (struct tsp_meta){"PID", NULL, r->tgid};
    if (ptid >= 0)
        meta[n++] = (struct tsp_meta){"PTID", NULL, ptid};
    const char *labels[4] = {r->name, arena_printf(a, "%d", r->tid), r->tgid >= 0 ? arena_printf(a, "%d", r->tgid) : "",
        ptid >= 0 ? arena_printf(a, "%d", ptid) : ""};
    tsp_write_entry(answer,
        &(struct tsp_entry){.id = h->first_thread + row,
            .parent = parent >= 0 ? h->first_thread + parent : root_id(x, host),
            .labels = labels,
            .n_labels = 4,
            .time_graph = true,
            .start = view_to_reference(h, life.begin),
            .end = view_to_reference(h, life.end),
            .has_data = true,
            .host_id = h->id,
            .has_tid = true,
            .tid = r->tid,
            .meta = meta,
            .n_meta = n});
}

static void tree(const struct view *self, struct views *x, const struct tsp_query *q, struct tsp_answer *answer)
{
    static const struct tsp_header headers[] = {{"Process", "Name of the thread", "STRING"},
        {"TID", "Number of the thread", "NUMBER"}, {"PID", "Number of its process", "NUMBER"},
        {"PTID", "Number of the thread above it: its process, or the process that made it", "NUMBER"}};
    const struct family *families = view_cache(x, &view_thread_status, find_families);
    tsp_begin_tree(answer, headers, 4, -1);
    for (size_t i = 0; i < x->n_hosts && !tsp_full(answer) && !http_gone(q->http); i++) {
        const struct view_host *h = &x->hosts[i];
        const struct family *f = &families[i];
        const char *labels[4] = {h->index->name, "", "", ""};
        if (!shown(h))
            continue;
        bool *keep = choose_rows(q, h, f);
        tsp_write_entry(answer,
            &(struct tsp_entry){.id = root_id(x, i),
                .parent = -1,
                .labels = labels,
                .n_labels = 4,
                .time_graph = true,
                .start = x->data.begin,
                .end = x->data.end,
                .host_id = h->id});
        for (int32_t k = 0; k < f->n && !tsp_full(answer); k++)
            if (!keep || keep[f->seen[k]])
                write_thread(x, q, i, f, f->seen[k], answer);
    }
    tsp_end_tree(answer);
}

/* ---- states ---- */

/* An idle thread that does not run waits for nothing: its row is blank there. */
static const char *style_of(const struct view_host *h, size_t row, int value)
{
    struct graph_row r;
    if (value == STATE_WAIT_FOR_CPU && (graph_row(h->index->graph, (int32_t)row, &r), r.idle_cpu >= 0))
        return NULL;
    return view_state_key(value);
}

static void show(struct views *x, const struct view_state_row *row, const struct state_interval *iv,
    bool with_properties, struct view_shown *out)
{
    const struct view_host *h = &x->hosts[row->host];
    out->style_key = style_of(h, row->row, iv->value);
    out->label = iv->value == STATE_SYSCALL ? iv->name : NULL;
    if (!with_properties || !out->style_key)
        return;
    struct graph_row r;
    graph_row(h->index->graph, (int32_t)row->row, &r);
    view_add_property(out, "state", out->style_key);
    view_add_property(out, "host", h->index->name);
    view_add_property(out, "process", r.name);
    view_add_property(out, "System call", out->label);
    view_add_number(out, "thread", r.tid);
    view_add_number(out, "tid", r.tid);
    if (r.tgid >= 0)
        view_add_number(out, "pid", r.tgid);
    int32_t cpu = state_may_have_cpu(iv->value) ? state_thread_cpu(h->states, row->row, iv->begin, -1) : -1;
    if (cpu >= 0)
        view_add_number(out, "cpu", cpu);
}

static bool sample_thread(struct view_sampler *s, size_t host, int32_t row)
{
    return view_sample_row(
        s, &(struct view_state_row){s->x->hosts[host].first_thread + row, host, STATE_THREAD, (size_t)row});
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

/* ---- arrows: who ran next on a CPU ---- */

enum {
    MAX_INTERVALS = 20000 /* of a host's CPUs, all looked at; beyond that arrows are sampled */,
    LEAST_SAMPLES = 2000
};

static bool is_thread(const struct state_interval *iv)
{
    return iv->thread >= 0 && iv->value == STATE_ACTIVE;
}

/* An idle CPU does not end the succession; one of which nothing is known does. */
struct succession {
    const struct view_host *h;
    const struct tsp_query *q;
    struct tsp_answer *answer;
    struct state_interval last;
    bool known;
};

static void succeed(struct succession *s, const struct state_interval *iv)
{
    if (s->known && s->last.end > iv->begin)
        return;
    if (s->known && is_thread(iv) && s->last.thread != iv->thread) {
        int64_t begin = view_to_reference(s->h, s->last.end), end = view_to_reference(s->h, iv->begin);
        if (begin <= s->q->end && end >= s->q->begin)
            tsp_write_arrow(s->answer, begin, end, s->h->first_thread + s->last.thread, s->h->first_thread + iv->thread,
                "CPU transition");
    }
    if (is_thread(iv)) {
        s->last = *iv;
        s->known = true;
    } else if (iv->value != STATE_IDLE) {
        s->known = false;
    }
}

/* The CPU may be idle where the range begins or ends: the arrow over it comes from before and goes beyond. */
static void succeed_beyond(struct succession *s, size_t row, int64_t t, bool before)
{
    struct state_interval iv;
    if (!state_at(s->h->states, STATE_CPU_THREAD, row, t, &iv))
        return;
    if (iv.value == STATE_IDLE && !state_at(s->h->states, STATE_CPU_THREAD, row, before ? iv.begin - 1 : iv.end, &iv))
        return;
    succeed(s, &iv);
}

static void write_all_arrows(struct succession *s, size_t row, int64_t begin, int64_t end)
{
    enum { BATCH = 256 };
    struct state_interval batch[BATCH];
    succeed_beyond(s, row, begin, true);
    for (size_t n = BATCH; n == BATCH && !tsp_full(s->answer) && !http_gone(s->q->http); begin = batch[n - 1].end) {
        n = state_range(s->h->states, STATE_CPU_THREAD, row, begin, end, batch, BATCH);
        for (size_t i = 0; i < n; i++)
            succeed(s, &batch[i]);
        if (!n || batch[n - 1].end <= begin)
            break;
    }
    succeed_beyond(s, row, end, false);
}

/* The arrow that leaves each state in force at a sample. */
static void write_sampled_arrows(
    struct succession *s, size_t row, const int64_t *times, size_t n, struct state_interval *room)
{
    n = state_sample(s->h->states, STATE_CPU_THREAD, row, times, n, room);
    for (size_t i = 0; i < n; i++) {
        s->known = false;
        succeed(s, &room[i]);
        if (s->known)
            succeed_beyond(s, row, room[i].end, false);
    }
}

static int64_t *sample_times(const struct tsp_query *q, const struct view_host *h, size_t *n)
{
    *n = q->n_times > LEAST_SAMPLES ? q->n_times : LEAST_SAMPLES;
    int64_t *times = arena_new(q->http->arena, int64_t, *n);
    for (size_t i = 0; i < *n; i++) {
        uint64_t step = ((uint64_t)q->end - (uint64_t)q->begin) / (*n - 1);
        int64_t t = q->n_times > LEAST_SAMPLES ? q->times[i] : (int64_t)((uint64_t)q->begin + step * i);
        times[i] = view_sample_time(h, t);
    }
    return times;
}

static bool few_intervals(const struct view_host *h, int64_t begin, int64_t end)
{
    size_t stored = 0;
    int64_t first, last;
    struct state_row r;
    state_span(h->states, &first, &last);
    for (size_t i = 0; i < state_rows(h->states, STATE_CPU_THREAD); i++) {
        state_row(h->states, STATE_CPU_THREAD, i, &r);
        stored += r.intervals;
    }
    double share = last > first ? (double)((uint64_t)end - (uint64_t)begin) / (double)(last - first) : 1;
    return (double)stored * (share < 1 ? share : 1) <= MAX_INTERVALS;
}

static void arrows(const struct view *self, struct views *x, const struct tsp_query *q, struct tsp_answer *answer)
{
    json_begin_array(&answer->json);
    for (size_t i = 0; i < x->n_hosts && !tsp_full(answer) && !http_gone(q->http); i++) {
        const struct view_host *h = &x->hosts[i];
        size_t n = 0;
        if (!shown(h))
            continue;
        int64_t begin = view_to_host(h, q->begin), end = view_to_host(h, q->end), first, last;
        state_span(h->states, &first, &last);
        begin = begin < first ? first : begin;
        end = end > last ? last : end;
        bool all = few_intervals(h, begin, end);
        int64_t *times = all ? NULL : sample_times(q, h, &n);
        struct state_interval *room = all ? NULL : arena_new(q->http->arena, struct state_interval, n);
        for (size_t row = 0; row < state_rows(h->states, STATE_CPU_THREAD) && begin <= end; row++) {
            struct succession s = {.h = h, .q = q, .answer = answer};
            if (all)
                write_all_arrows(&s, row, begin, end);
            else
                write_sampled_arrows(&s, row, times, n, room);
        }
    }
    json_end_array(&answer->json);
}

/* ---- tooltip ---- */

/* What the thread waited for and who ended it, as the graph knows it. t: host's clock. */
static void write_cause(
    struct tsp_answer *answer, const struct tsp_query *q, const struct view_host *h, int32_t row, int64_t t)
{
    const struct graph *g = h->index->graph;
    struct graph_interval iv;
    struct graph_cause c;
    size_t i = graph_find(g, row, t + 1);
    struct graph_row r;
    graph_row(g, row, &r);
    if (i >= graph_row_intervals(g, row) || r.idle_cpu >= 0)
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
        graph_row(g, c.row, &r);
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
        tsp_write_tip(answer, "CPU", arena_printf(q->http->arena, "%d", cpu));
    if (iv.value == STATE_WAIT_FOR_CPU || iv.value == STATE_WAIT_BLOCKED || iv.value == STATE_WAIT_UNKNOWN)
        write_cause(answer, q, h, row, at);
    view_write_span(answer, view_to_reference(h, iv.begin), view_to_reference(h, iv.end));
}

static void write_thread_tooltip(struct tsp_answer *answer, const struct tsp_query *q, const struct view_host *h,
    int32_t row, const char *name, const char *tid)
{
    struct graph_row r;
    graph_row(h->index->graph, row, &r);
    tsp_write_tip(answer, name, r.name);
    tsp_write_tip(answer, tid, arena_printf(q->http->arena, "%d", r.tid));
}

static void tooltip(const struct view *self, struct views *x, const struct tsp_query *q, struct tsp_answer *answer)
{
    int64_t entry, t;
    size_t host, other;
    int32_t row, next;
    json_begin_object(&answer->json);
    if (view_tooltip_target(q, &entry, &t) && view_thread_of(x, entry, &host, &row) && shown(&x->hosts[host])) {
        const struct view_host *h = &x->hosts[host];
        tsp_write_tip(answer, "Host", h->index->name);
        if (q->element && !strcmp(q->element, "arrow") && view_thread_of(x, q->element_destination, &other, &next)) {
            write_thread_tooltip(answer, q, h, row, "From", "From TID");
            write_thread_tooltip(answer, q, &x->hosts[other], next, "To", "To TID");
            view_write_span(answer, q->element_time, q->element_time + q->element_duration);
        } else {
            write_thread_tooltip(answer, q, h, row, "Process", "TID");
            write_state_tooltip(answer, q, h, row, t);
        }
        view_write_clock_error(answer, h, t);
    }
    json_end_object(&answer->json);
}

static void style(const struct view *self, struct views *x, const struct tsp_query *q, struct tsp_answer *answer)
{
    tsp_begin_styles(answer);
    view_write_state_styles(answer,
        VIEW_STATE(USERMODE) | VIEW_STATE(SYSCALL) | VIEW_STATE(INTERRUPTED) | VIEW_STATE(WAIT_FOR_CPU) |
            VIEW_STATE(WAIT_BLOCKED) | VIEW_STATE(WAIT_UNKNOWN) | VIEW_STATE(IDLE) | VIEW_STATE(UNKNOWN));
    tsp_write_style(answer, "CPU transition", NULL, "#7d8288", 0.1, -1, "CPU transition");
    tsp_end_styles(answer);
}

const struct view view_thread_status = {
    .provider = {.id = "org.eclipse.tracecompass.internal.analysis.os.linux.core.threadstatus.ThreadStatusDataProvider",
        .name = "Thread Status",
        .description = "States of all threads over time: running, system calls, waits",
        .type = "TIME_GRAPH"},
    .has_data = has_data,
    .tree = tree,
    .states = states,
    .arrows = arrows,
    .tooltip = tooltip,
    .style = style,
    .close = close_families,
};
