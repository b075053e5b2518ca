#include "cli/spans_kernel.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/order.h"
#include "base/search.h"
#include "cli/traces.h"
#include "path/path.h"
#include "show/show.h"

const char *const cli_why_names[WHY_COUNT] = {
    "running", "preempted", "disk", "network", "timer", "blocked", "other span", "not known"};

/* That process has a span then, by the clock of its machine. */
struct owner {
    int32_t host, process;
    int64_t begin_ns, end_ns;
    uint64_t span;
};
struct cli_kernel {
    struct experiment *experiment;
    struct cli_clocks clocks;
    struct path_local_host *hosts;
    size_t n;
    struct path_local *local;
    VEC(struct owner) owners; /* by machine and process */
};

/* ---- opening ---- */

static int open_hosts(struct cli_kernel *k, struct err *e)
{
    const struct index_host *hosts;
    const struct clock_net *net;
    k->n = experiment_hosts(k->experiment, &hosts);
    int rc = cli_relate(k->experiment, &k->clocks, &net, e);
    if (rc)
        return rc;
    k->hosts = mem_zalloc((k->n + 1) * sizeof *k->hosts);
    for (size_t i = 0; i < k->n; i++)
        k->hosts[i] = (struct path_local_host){
            hosts[i].name, hosts[i].graph, hosts[i].flows, net ? clock_net_map(net, i) : NULL};
    k->local = path_local_new(k->hosts, k->n);
    return 0;
}

int cli_kernel_open(const struct cli_list *traces, const char *store, struct cli_kernel **out, struct err *e)
{
    struct cli_kernel *k = mem_zalloc(sizeof *k);
    struct index_options o = {.store = store, .stores = true};
    int rc = cli_clocks_parse(&k->clocks, e);
    rc = rc ? rc : cli_open_traces((char **)(uintptr_t)traces->v, traces->n, &o, &k->experiment, e);
    rc = rc ? rc : open_hosts(k, e);
    if (rc) {
        cli_kernel_close(k);
        return rc;
    }
    *out = k;
    return 0;
}

void cli_kernel_close(struct cli_kernel *k)
{
    if (!k)
        return;
    path_local_free(k->local);
    free(k->hosts);
    vec_free(&k->owners);
    experiment_close(k->experiment);
    cli_clocks_fini(&k->clocks);
    free(k);
}

const struct experiment *cli_kernel_experiment(const struct cli_kernel *k)
{
    return k->experiment;
}

/* ---- whose span ---- */

/* False: the span says no process, or of a machine that is not among the traces. */
static bool find_process(
    const struct cli_kernel *k, const struct spans *s, const struct spans_row *r, int32_t *host, int32_t *process)
{
    uint32_t said = spans_own_value(s, r, CLI_KERNEL_HOST), pid = spans_own_value(s, r, CLI_KERNEL_PROCESS);
    if (!said || !pid)
        return false;
    char *end;
    long n = strtol(spans_text(s, pid), &end, 10);
    if (*end || n <= 0 || n > INT32_MAX)
        return false;
    for (size_t i = 0; i < k->n; i++)
        if (spans_is_host(k->hosts[i].name, spans_text(s, said))) {
            *host = (int32_t)i;
            *process = (int32_t)n;
            return true;
        }
    return false;
}

static int by_process(const void *x, const void *y)
{
    const struct owner *a = x, *b = y;
    return order_of(a->host, b->host) ?: order_of(a->process, b->process) ?: order_of(a->begin_ns, b->begin_ns);
}

void cli_kernel_know(struct cli_kernel *k, const struct spans *s)
{
    const struct spans_row *rows;
    size_t n = spans_rows(s, &rows);
    for (size_t i = 0; i < n; i++) {
        struct owner o = {.begin_ns = rows[i].begin_ns, .end_ns = rows[i].end_ns, .span = rows[i].id};
        if (find_process(k, s, rows + i, &o.host, &o.process))
            vec_push(&k->owners, o);
    }
    if (k->owners.n)
        qsort(k->owners.v, k->owners.n, sizeof *k->owners.v, by_process);
}

static int64_t own_time(const struct cli_kernel *k, int32_t host, int64_t t)
{
    const struct clock_map *map = k->hosts[host].map;
    return map ? clock_from_reference(map, t) : t;
}

static int64_t joint_time(const struct cli_kernel *k, int32_t host, int64_t t)
{
    const struct clock_map *map = k->hosts[host].map;
    return map ? clock_to_reference(map, t) : t;
}

/* Is it, at that time, a process of another span than those of `mine`'s process? */
static bool is_of_another(const struct cli_kernel *k, const struct path_segment *x, int32_t tid, struct path_row mine)
{
    if (tid <= 0 || (x->row.host == mine.host && x->row.row == mine.row))
        return false;
    struct owner key = {.host = x->row.host, .process = tid, .begin_ns = INT64_MIN};
    int64_t begin = own_time(k, x->row.host, x->begin), end = own_time(k, x->row.host, x->end);
    for (size_t i = search_first(j, 0, k->owners.n, by_process(k->owners.v + j, &key) >= 0);
         i < k->owners.n && k->owners.v[i].host == key.host && k->owners.v[i].process == tid; i++)
        if (k->owners.v[i].begin_ns < end && k->owners.v[i].end_ns > begin)
            return true;
    return false;
}

/* ---- why ---- */

static enum cli_why why_of(int state)
{
    switch (state) {
    case GRAPH_RUNNING: return WHY_RUNNING;
    case GRAPH_PREEMPTED:
    case GRAPH_INTERRUPTED:
    case GRAPH_STOLEN:
    case GRAPH_HYPERVISOR: return WHY_PREEMPTED;
    case GRAPH_BLOCK_DEVICE: return WHY_DISK;
    case GRAPH_NETWORK: return WHY_NETWORK;
    case GRAPH_TIMER: return WHY_TIMER;
    case GRAPH_UNKNOWN: return WHY_UNKNOWN;
    default: return WHY_BLOCKED;
    }
}

static void add_path(
    const struct cli_kernel *k, const struct path_source *source, const struct path *p, struct cli_reasons *out)
{
    for (size_t i = 0; i < p->n_segments; i++) {
        const struct path_segment *x = p->segments + i;
        int32_t tid;
        const char *comm;
        source->row_name(source->arg, x->row, x->begin, x->end, &tid, &comm);
        out->ns[is_of_another(k, x, tid, p->start) ? WHY_OTHER_SPAN : why_of(x->state)] += x->end - x->begin;
    }
    out->traced += p->end - p->begin;
}

/* Of several lives of that number the one that was there longest meanwhile. */
static bool find_thread(
    const struct cli_kernel *k, int32_t host, int32_t process, int64_t begin, int64_t end, struct path_row *row)
{
    struct path_lives found = {0};
    char number[16];
    int64_t most = 0;
    snprintf(number, sizeof number, "%d", process);
    path_find_lives(k->local, number, k->hosts[host].name, begin, end, &found);
    for (size_t i = 0; i < found.n; i++) {
        int64_t from = found.v[i].begin > begin ? found.v[i].begin : begin,
                to = found.v[i].end < end ? found.v[i].end : end;
        if (to - from > most) {
            most = to - from;
            *row = found.v[i].row;
        }
    }
    vec_free(&found);
    return most > 0;
}

bool cli_kernel_explain(const struct cli_kernel *k, const struct spans *s, const struct spans_section *x,
    struct cli_reasons *out, struct text *sentence)
{
    const struct path_source *source = path_local_source(k->local);
    const struct spans_row *rows;
    struct path_row row;
    struct path *p;
    struct err e = {0};
    int32_t host, process;
    spans_rows(s, &rows);
    out->asked += x->end_ns - x->begin_ns;
    out->pieces++;
    if (x->row < 0 || !find_process(k, s, rows + x->row, &host, &process))
        return false;
    struct path_options o = {.begin = joint_time(k, host, x->begin_ns), .end = joint_time(k, host, x->end_ns)};
    if (!find_thread(k, host, process, o.begin, o.end, &row) || path_walk(source, row, &o, &p, &e))
        return false;
    add_path(k, source, p, out);
    out->found++;
    if (sentence)
        show_sentence(p, source, sentence);
    path_free(p);
    return true;
}
