#include "tsp/latencies.h"

#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/mem.h"

static const struct {
    int kind;
    const char *suffix, *name;
} analyses[] = {{STATE_LATENCY_SYSCALL, "org.eclipse.tracecompass.analysis.os.linux.latency.syscall", "System Call Latency"},
    {STATE_LATENCY_SCHED, "org.eclipse.tracecompass.analysis.os.linux.core.swslatency.sws", "Scheduler Wakeup to Scheduler Switch Latency"},
    {STATE_LATENCY_IRQ, "lttng.analysis.irq", "IRQ Analysis"}, {STATE_LATENCY_SOFTIRQ, "weft.softirq", "Soft IRQ Latency"}};
enum { ANALYSES = sizeof analyses / sizeof *analyses };

struct kept {
    struct latencies *kinds[STATE_LATENCY_KINDS];
};

static bool present(const struct tsp_experiment *x, int kind)
{
    for (size_t i = 0; i < x->n_hosts; i++)
        if (x->hosts[i].states && state_latencies(x->hosts[i].states, kind))
            return true;
    return false;
}

size_t latency_members(struct tsp_experiment *x)
{
    size_t n = 0;
    for (size_t i = 0; i < ANALYSES; i++)
        n += present(x, analyses[i].kind);
    return n;
}

void latency_member(struct tsp_experiment *x, size_t member, const char **suffix, const char **name)
{
    for (size_t i = 0; i < ANALYSES; i++)
        if (present(x, analyses[i].kind) && member-- == 0) {
            *suffix = analyses[i].suffix;
            *name = analyses[i].name;
            return;
        }
}

int latency_kind(const struct tsp_query *q)
{
    for (size_t i = 0; i < ANALYSES; i++)
        if (q->member && !strcmp(q->member, analyses[i].suffix))
            return analyses[i].kind;
    return STATE_LATENCY_SYSCALL;
}

bool latency_has_data(struct tsp_experiment *x)
{
    return latency_members(x) > 0;
}

void latency_get(const struct tsp_experiment *x, int kind, uint64_t order, struct state_latency *out, size_t *host)
{
    *host = (size_t)(order >> 40);
    const struct tsp_host *h = &x->hosts[*host];
    state_latency(h->states, kind, (size_t)(order & ((UINT64_C(1) << 40) - 1)), out);
    out->begin = tsp_to_reference(h, out->begin);
    out->end = tsp_to_reference(h, out->end);
}

static int64_t begin_at(const struct tsp_experiment *x, const struct latencies *l, int kind, size_t i)
{
    struct state_latency v;
    size_t host;
    latency_get(x, kind, l->order[i], &v, &host);
    return v.begin;
}

size_t latency_find(const struct tsp_experiment *x, const struct latencies *l, int kind, int64_t t)
{
    size_t lo = 0, hi = l->n;
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        if (begin_at(x, l, kind, mid) >= t)
            hi = mid;
        else
            lo = mid + 1;
    }
    return lo;
}

/* Each host's latencies are in order already: a merge of few runs. */
static void merge_hosts(const struct tsp_experiment *x, struct latencies *l, int kind)
{
    size_t *next = mem_zalloc(sizeof *next * (x->n_hosts + 1));
    int64_t *heads = mem_alloc(sizeof *heads * (x->n_hosts + 1));
    for (size_t i = 0; i < x->n_hosts; i++)
        heads[i] = INT64_MAX;
    for (size_t i = 0, n; i < x->n_hosts; i++)
        if (x->hosts[i].states && (n = state_latencies(x->hosts[i].states, kind))) {
            struct state_latency v;
            state_latency(x->hosts[i].states, kind, 0, &v);
            heads[i] = tsp_to_reference(&x->hosts[i], v.begin);
        }
    for (size_t done = 0; done < l->n; done++) {
        size_t best = 0;
        for (size_t i = 1; i < x->n_hosts; i++)
            if (heads[i] < heads[best])
                best = i;
        l->order[done] = (uint64_t)best << 40 | next[best];
        struct state_latency v;
        if (++next[best] < state_latencies(x->hosts[best].states, kind)) {
            state_latency(x->hosts[best].states, kind, next[best], &v);
            heads[best] = tsp_to_reference(&x->hosts[best], v.begin);
        } else {
            heads[best] = INT64_MAX;
        }
    }
    free(next);
    free(heads);
}

static void number_names(const struct tsp_experiment *x, struct latencies *l, int kind)
{
    VEC(struct latency_name) names = {0};
    l->name_of = mem_zalloc(sizeof *l->name_of * (x->n_hosts + 1));
    for (size_t i = 0; i < x->n_hosts; i++) {
        struct map seen = {0};
        size_t n = x->hosts[i].states ? state_latencies(x->hosts[i].states, kind) : 0;
        l->name_of[i] = mem_alloc(sizeof **l->name_of * (n + 1));
        for (size_t k = 0; k < n; k++) {
            struct state_latency v;
            bool fresh;
            state_latency(x->hosts[i].states, kind, k, &v);
            const char *name = v.name ? v.name : "";
            uint64_t *number = map_put(&seen, map_hash(name, strlen(name)), &fresh);
            if (fresh) {
                *number = names.n < UINT16_MAX ? names.n : UINT16_MAX;
                if (*number < UINT16_MAX)
                    vec_push(&names, ((struct latency_name){i, name}));
            }
            l->name_of[i][k] = (uint16_t)*number;
        }
        map_fini(&seen);
    }
    l->names = names.v;
    l->n_names = names.n;
}

static void *make(struct tsp_experiment *x)
{
    return mem_zalloc(sizeof(struct kept));
}

const struct latencies *latencies_of(struct tsp_experiment *x, int kind)
{
    struct kept *kept = tsp_cache(x, &tsp_latency_table, make);
    pthread_mutex_lock(&x->lock);
    struct latencies *l = kept->kinds[kind];
    if (!l) {
        l = kept->kinds[kind] = mem_zalloc(sizeof *l);
        for (size_t i = 0; i < x->n_hosts; i++)
            l->n += x->hosts[i].states ? state_latencies(x->hosts[i].states, kind) : 0;
        l->order = mem_alloc(sizeof *l->order * (l->n + 1));
        merge_hosts(x, l, kind);
        number_names(x, l, kind);
    }
    pthread_mutex_unlock(&x->lock);
    return l;
}

static void close_kept(struct tsp_experiment *x, void *cache)
{
    struct kept *kept = cache;
    for (int k = 0; k < STATE_LATENCY_KINDS; k++) {
        struct latencies *l = kept->kinds[k];
        for (size_t i = 0; l && i < x->n_hosts; i++)
            free(l->name_of[i]);
        if (l) {
            free(l->name_of);
            free(l->order);
            free(l->names);
            free(l);
        }
    }
    free(kept);
}

/* ---- the table --------------------------------------------------------------------------------------------------------------- */

static const struct tsp_column columns[] = {{0, "Start Time", "Begin", "TIMESTAMP"}, {1, "End Time", "End", "TIMESTAMP"},
    {2, "Duration", "ns", "DURATION"}, {3, "Name", "System call, thread or interrupt", "STRING"}, {4, "Host", "Machine", "STRING"},
    {5, "TID", "Thread", "NUMBER"}, {6, "CPU", "CPU", "NUMBER"}, {7, "Return value", "Of system calls", "NUMBER"}};

struct showing {
    const struct tsp_experiment *x;
    const struct latencies *l;
    int kind;
};

static void cell(void *arg, size_t row, size_t column, struct text *out)
{
    const struct showing *s = arg;
    struct state_latency v;
    size_t host;
    latency_get(s->x, s->kind, s->l->order[row], &v, &host);
    const struct tsp_host *h = &s->x->hosts[host];
    struct graph_row t = {.tid = -1};
    switch (column) {
    case 0: text_i64(out, v.begin); break;
    case 1: text_i64(out, v.end); break;
    case 2: text_i64(out, v.end - v.begin); break;
    case 3: text_puts(out, v.name ? v.name : ""); break;
    case 4: text_puts(out, h->index->name); break;
    case 5:
        if (v.thread >= 0 && v.thread < h->threads)
            graph_row(h->index->graph, v.thread, &t);
        if (t.tid >= 0)
            text_i64(out, t.tid);
        break;
    case 6:
        if (v.cpu >= 0)
            text_i64(out, v.cpu);
        break;
    default:
        if (s->kind == STATE_LATENCY_SYSCALL)
            text_i64(out, v.ret);
    }
}

static int64_t time_of(void *arg, size_t row)
{
    const struct showing *s = arg;
    return begin_at(s->x, s->l, s->kind, row);
}

static struct tsp_result table_columns(struct tsp_experiment *x, const struct tsp_query *q, struct json *j)
{
    return tsp_table_columns(columns, sizeof columns / sizeof *columns, j);
}

static struct tsp_result table_lines(struct tsp_experiment *x, const struct tsp_query *q, struct json *j)
{
    struct showing s = {x, latencies_of(x, latency_kind(q)), latency_kind(q)};
    struct tsp_table t = {
        .columns = columns, .n_columns = sizeof columns / sizeof *columns, .rows = s.l->n, .arg = &s, .cell = cell, .time = time_of};
    return tsp_table_lines(&t, q, j);
}

const struct tsp_provider tsp_latency_table = {
    .id = "org.eclipse.tracecompass.analysis.timing.core.segmentstore.SegmentStoreTableDataProvider",
    .name = "Latency Table",
    .description = "Every latency in order of its begin",
    .type = "TABLE",
    .has_data = latency_has_data,
    .members = latency_members,
    .member = latency_member,
    .columns = table_columns,
    .lines = table_lines,
    .close = close_kept,
};
