#include "views/latencies.h"
#include "views/list.h"

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

struct kept {
    struct latencies *kinds[STATE_LATENCY_KINDS];
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

int latency_kind(const struct tsp_query *q)
{
    for (size_t i = 0; i < ANALYSES; i++)
        if (q->member && !strcmp(q->member, analyses[i].suffix))
            return analyses[i].kind;
    return STATE_LATENCY_SYSCALL;
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

/* ---- the order of all ---- */

static size_t count(const struct views *x, size_t host, int kind)
{
    return x->hosts[host].states ? state_latencies(x->hosts[host].states, kind) : 0;
}

static int64_t begin_of(const struct views *x, size_t host, int kind, size_t i)
{
    struct state_latency v;
    state_latency(x->hosts[host].states, kind, i, &v);
    return view_to_reference(&x->hosts[host], v.begin);
}

/* First one of the host that begins at or after t as begin_of() gives it: maps there and back may differ by rounding.
 */
static size_t lower(const struct views *x, size_t host, int kind, int64_t t)
{
    size_t i = latency_find(x, host, kind, t), n = count(x, host, kind);
    while (i > 0 && begin_of(x, host, kind, i - 1) >= t)
        i--;
    while (i < n && begin_of(x, host, kind, i) < t)
        i++;
    return i;
}

void latency_cursor_init(struct latency_cursor *c, const struct views *x, int kind, struct arena *a)
{
    *c = (struct latency_cursor){
        .x = x, .kind = kind, .place = SIZE_MAX, .next = arena_alloc(a, sizeof *c->next * (x->n_hosts + 1))};
}

static size_t before(const struct latency_cursor *c, int64_t t, size_t *next)
{
    size_t n = 0;
    for (size_t h = 0; h < c->x->n_hosts; h++)
        n += next[h] = lower(c->x, h, c->kind, t);
    return n;
}

/* The latest time before which no more than `place` begin; then those that begin at it, host after host. */
static void seek(struct latency_cursor *c, size_t place)
{
    int64_t lo = INT64_MAX, hi = INT64_MIN;
    for (size_t h = 0; h < c->x->n_hosts; h++) {
        size_t n = count(c->x, h, c->kind);
        if (!n)
            continue;
        int64_t first = begin_of(c->x, h, c->kind, 0), last = begin_of(c->x, h, c->kind, n - 1);
        lo = first < lo ? first : lo;
        hi = last > hi ? last : hi;
    }
    while (lo < hi) {
        int64_t mid = (int64_t)((uint64_t)lo + ((uint64_t)hi - (uint64_t)lo) / 2 + 1);
        if (before(c, mid, c->next) <= place)
            lo = mid;
        else
            hi = mid - 1;
    }
    size_t left = place - before(c, lo, c->next);
    for (size_t h = 0; h < c->x->n_hosts && left; h++) {
        size_t n = count(c->x, h, c->kind), same = 0;
        while (same < left && c->next[h] + same < n && begin_of(c->x, h, c->kind, c->next[h] + same) == lo)
            same++;
        c->next[h] += same;
        left -= same;
    }
}

/* The host whose latency comes next. */
static size_t head(const struct latency_cursor *c)
{
    size_t best = 0;
    int64_t earliest = INT64_MAX;
    for (size_t h = 0; h < c->x->n_hosts; h++)
        if (c->next[h] < count(c->x, h, c->kind)) {
            int64_t t = begin_of(c->x, h, c->kind, c->next[h]);
            if (t < earliest) {
                earliest = t;
                best = h;
            }
        }
    return best;
}

/* The host whose latency came last. */
static size_t tail(const struct latency_cursor *c)
{
    size_t best = 0;
    int64_t latest = INT64_MIN;
    for (size_t h = 0; h < c->x->n_hosts; h++)
        if (c->next[h]) {
            int64_t t = begin_of(c->x, h, c->kind, c->next[h] - 1);
            if (t >= latest) {
                latest = t;
                best = h;
            }
        }
    return best;
}

void latency_at(struct latency_cursor *c, size_t place, struct state_latency *out)
{
    if (place != c->place) {
        if (c->place != SIZE_MAX && place == c->place + 1) {
            c->next[c->host]++;
            c->host = head(c);
        } else if (c->place != SIZE_MAX && place + 1 == c->place) {
            c->next[c->host = tail(c)]--;
        } else {
            seek(c, place);
            c->host = head(c);
        }
        c->place = place;
    }
    const struct view_host *h = &c->x->hosts[c->host];
    state_latency(h->states, c->kind, c->next[c->host], out);
    c->duration = out->end - out->begin;
    out->begin = view_to_reference(h, out->begin);
    out->end = view_to_reference(h, out->end);
}

/* ---- what is kept ---- */

static void *make(struct views *x)
{
    return mem_zalloc(sizeof(struct kept));
}

/* Latencies that are not told apart by a name have one all the same: people see it. */
static const char *shown_name(const char *name)
{
    return name && *name ? name : "All threads";
}

static struct latencies *make_kind(const struct views *x, int kind)
{
    struct latencies *l = mem_zalloc(sizeof *l);
    VEC(struct latency_name) names = {0};
    l->first_name = mem_alloc(sizeof *l->first_name * (x->n_hosts + 1));
    for (size_t h = 0; h < x->n_hosts; h++) {
        const struct state_store *s = x->hosts[h].states;
        l->n += count(x, h, kind);
        l->first_name[h] = names.n;
        for (size_t i = 0; s && i < state_latency_names(s, kind); i++)
            vec_push(&names, ((struct latency_name){h, shown_name(state_latency_name(s, kind, i))}));
    }
    l->first_name[x->n_hosts] = l->n_names = names.n;
    l->names = names.v;
    return l;
}

const struct latencies *latencies_of(struct views *x, int kind)
{
    struct kept *kept = view_cache(x, &view_latency_table, make);
    pthread_mutex_lock(&x->lock);
    struct latencies *l = kept->kinds[kind];
    if (!l)
        l = kept->kinds[kind] = make_kind(x, kind);
    pthread_mutex_unlock(&x->lock);
    return l;
}

static void close_kept(struct views *x, void *cache)
{
    struct kept *kept = cache;
    for (int k = 0; k < STATE_LATENCY_KINDS; k++) {
        struct latencies *l = kept->kinds[k];
        if (l) {
            free(l->first_name);
            free(l->names);
            free(l);
        }
    }
    free(kept);
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
    bool returns = kind == STATE_LATENCY_SYSCALL || kind == STATE_LATENCY_LOCK; /* waits for locks are system calls */
    *n = sizeof calls / sizeof *calls - !(is_request || returns);
    return is_request ? requests : calls;
}

static void cell(void *arg, size_t row, size_t column, struct text *out)
{
    struct latency_cursor *c = arg;
    struct state_latency v;
    latency_at(c, row, &v);
    const struct view_host *h = &c->x->hosts[c->host];
    struct graph_row t = {.tid = -1, .name = ""};
    if ((column == 3 || column == 5) && v.thread >= 0 && v.thread < h->threads)
        graph_row(h->index->graph, v.thread, &t);
    switch (column) {
    case 0: text_i64(out, v.begin); break;
    case 1: text_i64(out, v.end); break;
    case 2: text_i64(out, c->duration); break;
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
    struct state_latency v;
    latency_at(arg, row, &v);
    return v.begin;
}

static void table_columns(
    const struct view *self, struct views *x, const struct tsp_query *q, struct tsp_answer *answer)
{
    size_t n;
    const struct tsp_column *columns = columns_of(latency_kind(q), &n);
    tsp_table_columns(answer, columns, n);
}

static void table_lines(const struct view *self, struct views *x, const struct tsp_query *q, struct tsp_answer *answer)
{
    struct latency_cursor c;
    latency_cursor_init(&c, x, latency_kind(q), q->http->arena);
    struct tsp_table t = {.rows = latencies_of(x, c.kind)->n, .arg = &c, .cell = cell, .time = time_of};
    t.columns = columns_of(c.kind, &t.n_columns);
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
    .close = close_kept,
};
