/* SPDX-License-Identifier: MIT */
/* Latencies of an experiment: analyses, names, and the table. */
#include "views/latencies.h"
#include "views/list.h"
#include "views/order.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

static const struct {
    int kind;
    const char *suffix, *name;
} analyses[] = {
    {STATE_LATENCY_SYSCALL, "org.eclipse.tracecompass.analysis.os.linux.latency.syscall", "System Call Latency"},
    {STATE_LATENCY_SCHED, "org.eclipse.tracecompass.analysis.os.linux.core.swslatency.sws",
        "Scheduler Wakeup to Scheduler Switch Latency"},
    {STATE_LATENCY_IRQ, "lttng.analysis.irq", "IRQ Analysis"},
    {STATE_LATENCY_SOFTIRQ, "weft.softirq", "Soft IRQ Latency"},
    {STATE_LATENCY_LOCK, "lttng.analysis.futex", "Futex Contention Analysis"},
    {STATE_LATENCY_DISK_WAIT, "weft.disk.wait", "Disk Wait Queue"},
    {STATE_LATENCY_DISK_DRIVER, "weft.disk.exec", "Disk Exec Queue"}};
enum { ANALYSES = sizeof analyses / sizeof *analyses };

struct cache {
    struct latency_names *kinds[STATE_LATENCY_KINDS];
};

bool latency_present(const struct views *x, int kind)
{
    for (size_t i = 0; i < x->n_hosts; i++)
        if (x->hosts[i].states && state_latencies(x->hosts[i].states, kind))
            return true;
    return false;
}

size_t latency_members(struct views *x)
{
    size_t n = 0;
    for (size_t i = 0; i < ANALYSES; i++)
        n += latency_present(x, analyses[i].kind);
    return n;
}

void latency_member(struct views *x, size_t member, const char **suffix, const char **name)
{
    for (size_t i = 0; i < ANALYSES; i++)
        if (latency_present(x, analyses[i].kind) && member-- == 0) {
            *suffix = analyses[i].suffix;
            *name = analyses[i].name;
            return;
        }
}

void latency_analysis(int kind, const char **suffix, const char **name)
{
    for (size_t i = 0; i < ANALYSES; i++)
        if (analyses[i].kind == kind) {
            *suffix = analyses[i].suffix;
            *name = analyses[i].name;
        }
}

int latency_kind(const struct view *self, const struct tsp_query *q)
{
    for (size_t i = 0; i < ANALYSES; i++)
        if (q->member && !strcmp(q->member, analyses[i].suffix))
            return analyses[i].kind;
    return self->kind;
}

bool latency_has_data(const struct view *self, struct views *x)
{
    return latency_members(x) > 0;
}

size_t latency_find(const struct views *x, size_t host, int kind, int64_t t)
{
    const struct view_host *h = &x->hosts[host];
    return h->states ? state_latency_find(h->states, kind, view_to_host(h, t)) : 0;
}

/* ---- names ---- */

static size_t count(const struct views *x, size_t host, int kind)
{
    return x->hosts[host].states ? state_latencies(x->hosts[host].states, kind) : 0;
}

static void *make(struct views *x)
{
    return mem_zalloc(sizeof(struct cache));
}

/* Name as shown; latencies without one are shown under a default. */
static const char *shown_name(const char *name)
{
    return name && *name ? name : "All threads";
}

static struct latency_names *make_kind(const struct views *x, int kind)
{
    struct latency_names *l = mem_zalloc(sizeof *l);
    VEC(struct latency_name) names = {0};
    l->first_name = mem_alloc(sizeof *l->first_name * (x->n_hosts + 1));
    for (size_t h = 0; h < x->n_hosts; h++) {
        const struct state_store *s = x->hosts[h].states;
        l->first_name[h] = names.n;
        for (size_t i = 0; s && i < state_latency_names(s, kind); i++)
            vec_push(&names, ((struct latency_name){h, shown_name(state_latency_name(s, kind, i))}));
    }
    l->first_name[x->n_hosts] = l->n_names = names.n;
    l->names = names.v;
    return l;
}

const struct latency_names *latency_names(struct views *x, int kind)
{
    struct cache *all = view_cache(x, &view_latency_table, make);
    pthread_mutex_lock(&x->lock);
    struct latency_names *l = all->kinds[kind];
    if (!l)
        l = all->kinds[kind] = make_kind(x, kind);
    pthread_mutex_unlock(&x->lock);
    return l;
}

static void close_cache(struct views *x, void *cache)
{
    struct cache *all = cache;
    for (int k = 0; k < STATE_LATENCY_KINDS; k++) {
        struct latency_names *l = all->kinds[k];
        if (l) {
            free(l->first_name);
            free(l->names);
            free(l);
        }
    }
    free(all);
}

/* ---- the table ---- */

#define COLUMNS_OF_ALL \
    {0, "Start Time", "Begin", "TIMESTAMP"}, {1, "End Time", "End", "TIMESTAMP"}, {2, "Duration", "ns", "DURATION"}, \
        {3, "Name", "System call, lock, interrupt, request or thread", "STRING"}, {4, "Host", "Machine", "STRING"}, \
        {5, "TID", "Thread", "NUMBER"}, \
    { \
        6, "CPU", "CPU", "NUMBER" \
    }
static const struct tsp_column calls[] = {COLUMNS_OF_ALL, {7, "Return value", "Of system calls", "NUMBER"}},
                               requests[] = {COLUMNS_OF_ALL, {8, "Bytes", "Size of the request", "NUMBER"}};

static const struct tsp_column *columns_of(int kind, size_t *n)
{
    bool is_request = kind == STATE_LATENCY_DISK_WAIT || kind == STATE_LATENCY_DISK_DRIVER;
    bool returns = kind == STATE_LATENCY_SYSCALL || kind == STATE_LATENCY_LOCK; /* lock waits are system calls */
    *n = sizeof calls / sizeof *calls - !(is_request || returns);
    return is_request ? requests : calls;
}

/* Rows of the table: latencies of all hosts, by begin on the reference clock. */
struct lines {
    const struct views *x;
    int kind;
    struct row_order order; /* order of rows, with a list per host */
    /* Cache of the last requested line, whose next cell is usually requested next. */
    struct {
        size_t row;
        const struct view_host *host; /* NULL: empty */
        struct state_latency latency;
    } last;
};

static int64_t begin_of(void *arg, size_t host, size_t i)
{
    const struct lines *l = arg;
    struct state_latency v;
    state_latency(l->x->hosts[host].states, l->kind, i, &v);
    return view_to_reference(&l->x->hosts[host], v.begin);
}

/* Number of the host's latencies that begin before t, as begin_of() converts it. Conversion there and back may round
 * differently. */
static size_t before(void *arg, size_t host, int64_t t)
{
    const struct lines *l = arg;
    size_t i = latency_find(l->x, host, l->kind, t), n = count(l->x, host, l->kind);
    while (i > 0 && begin_of(arg, host, i - 1) >= t)
        i--;
    while (i < n && begin_of(arg, host, i) < t)
        i++;
    return i;
}

static const struct view_host *line(struct lines *l, size_t row, struct state_latency *out)
{
    size_t i;
    if (!l->last.host || l->last.row != row) {
        l->last.row = row;
        l->last.host = &l->x->hosts[order_at(&l->order, row, &i)];
        state_latency(l->last.host->states, l->kind, i, &l->last.latency);
    }
    *out = l->last.latency;
    return l->last.host;
}

static void cell(void *arg, size_t row, size_t column, struct text *out)
{
    struct lines *l = arg;
    struct state_latency v;
    struct graph_row t = {.tid = -1, .name = ""};
    const struct view_host *h = line(l, row, &v);
    if ((column == 3 || column == 5) && v.thread >= 0 && v.thread < h->threads)
        graph_row_then(h->index->graph, v.thread, v.begin, v.end, &t);
    switch (column) {
    case 0: text_i64(out, view_to_reference(h, v.begin)); break;
    case 1: text_i64(out, view_to_reference(h, v.end)); break;
    case 2: text_i64(out, v.end - v.begin); break; /* host's clock, since drifting clocks change differences */
    case 4: text_puts(out, h->index->name); break;
    case 3: text_puts(out, v.name && *v.name ? v.name : t.name); break;
    case 5:
        if (t.tid >= 0)
            text_i64(out, t.tid);
        break;
    case 6:
        if (v.cpu >= 0)
            text_i64(out, v.cpu);
        break;
    default: text_i64(out, v.ret);
    }
}

static int64_t time_of(void *arg, size_t row)
{
    struct lines *l = arg;
    struct state_latency v;
    const struct view_host *h = line(l, row, &v);
    return view_to_reference(h, v.begin);
}

static void table_columns(
    const struct view *self, struct views *x, const struct tsp_query *q, struct tsp_answer *answer)
{
    size_t n;
    const struct tsp_column *columns = columns_of(latency_kind(self, q), &n);
    tsp_table_columns(answer, columns, n);
}

static void table_lines(const struct view *self, struct views *x, const struct tsp_query *q, struct tsp_answer *answer)
{
    struct lines l = {.x = x, .kind = latency_kind(self, q)};
    l.order = (struct row_order){.arg = &l, .time = begin_of, .before = before, .n_rows = x->n_hosts};
    l.order.rows = arena_new(q->http->arena, struct order_row, x->n_hosts + 1);
    for (size_t h = 0; h < x->n_hosts; h++)
        l.order.rows[h].n = count(x, h, l.kind);
    struct tsp_table t = {.rows = order_size(&l.order), .arg = &l, .cell = cell, .time = time_of};
    t.columns = columns_of(l.kind, &t.n_columns);
    tsp_table_lines(answer, &t, q);
}

const struct view view_latency_table = {
    .provider = {.id = "org.eclipse.tracecompass.analysis.timing.core.segmentstore.SegmentStoreTableDataProvider",
        .name = "Latency Table",
        .description = "Every latency in order of its begin",
        .type = "TABLE"},
    .has_data = latency_has_data,
    .members = latency_members,
    .member = latency_member,
    .columns = table_columns,
    .lines = table_lines,
    .close = close_cache,
};
