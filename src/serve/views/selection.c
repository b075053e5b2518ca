/* SPDX-License-Identifier: MIT */
/* Figures of a range: threads and machines by state and bytes, CPUs, devices. The cost of an answer depends on what it
 * shows, not on the range, since the stores have sums. */
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/mem.h"
#include "base/order.h"
#include "views/durations.h"
#include "views/rates.h"

enum { MOST_AMOUNTS = 9, MOST_NAMES = 3 };
/* Column after those that name the row. key: of its number in the entry's metadata. */
struct amount {
    const char *key;
    bool is_time; /* ns; else bytes */
};
struct table {
    size_t names; /* number of columns that name the row */
    const struct amount *amounts;
    size_t n;
};

static void write_line(const struct table *t, const struct tsp_query *q, struct tsp_answer *answer, struct tsp_entry e,
    const char *const *names, const int64_t *values)
{
    struct arena *a = q->http->arena;
    const char *labels[MOST_NAMES + MOST_AMOUNTS];
    struct tsp_meta meta[MOST_AMOUNTS];
    for (size_t i = 0; i < t->names; i++)
        labels[i] = names[i];
    for (size_t i = 0; i < t->n; i++) {
        labels[t->names + i] = !values[i] ? ""
            : t->amounts[i].is_time       ? durations_text(a, (double)values[i])
                                          : arena_printf(a, "%lld", (long long)values[i]);
        meta[i] = (struct tsp_meta){.key = t->amounts[i].key, .number = values[i]};
    }
    e.labels = labels;
    e.n_labels = t->names + t->n;
    e.meta = meta;
    e.n_meta = t->n;
    e.has_data = true;
    tsp_write_entry(answer, &e);
}

static struct tsp_entry machine(const struct views *x, size_t host)
{
    const struct view_host *h = &x->hosts[host];
    return (struct tsp_entry){.id = view_id(x, host), .parent = -1, .key = h->index->key, .host_id = h->id};
}

/* Range on the host's clock, unbounded where it reaches an end of the experiment. */
static struct graph_choice range_of(const struct views *x, const struct view_host *h, const struct tsp_query *q)
{
    return (struct graph_choice){.idle = true,
        .begin = q->begin <= x->data.begin ? INT64_MIN : view_to_host(h, q->begin),
        .end = q->end >= x->data.end ? INT64_MAX : view_to_host(h, q->end)};
}

static bool has_graph(const struct view *self, const struct view_host *h)
{
    return h->index->graph != NULL;
}

/* ---- threads ---- */

enum { OTHER = 6, READ, WRITTEN, THREAD_AMOUNTS };
/* States as in `weft threads`. */
static const int shown[OTHER] = {
    GRAPH_RUNNING, GRAPH_PREEMPTED, GRAPH_BLOCKED, GRAPH_TIMER, GRAPH_NETWORK, GRAPH_BLOCK_DEVICE};
static const struct amount thread_amounts[THREAD_AMOUNTS] = {{"running", true}, {"preempted", true}, {"blocked", true},
    {"timer", true}, {"network", true}, {"block-device", true}, {"other", true}, {"read", false}, {"written", false}};
static const struct table thread_table = {3, thread_amounts, THREAD_AMOUNTS};

struct thread_line {
    struct graph_row is;
    int64_t values[THREAD_AMOUNTS];
};

/* Figures of a thread; false: the thread did not exist in the range. */
static bool find_thread(const struct view_host *h, const struct tsp_query *q, const struct graph_choice *range,
    int32_t row, struct thread_line *out)
{
    struct graph_time t;
    if (!graph_row_time(h->index->graph, row, range, &t) || t.row.idle_cpu >= 0)
        return false;
    int64_t *v = out->values;
    out->is = t.row;
    v[OTHER] = t.end - t.begin;
    for (size_t i = 0; i < OTHER; i++) {
        v[i] = t.totals[shown[i]];
        v[OTHER] -= v[i];
    }
    for (int i = READ; h->states && i <= WRITTEN; i++) {
        int kind = i == READ ? STATE_IO_READ : STATE_IO_WRITTEN;
        v[i] = rates_growth(
            h, kind, state_find_counter(h->states, kind, row), q->begin - (q->begin > INT64_MIN), q->end);
    }
    return true;
}

/* Least times in a state: threads that reach one of them are listed. */
struct threshold {
    int64_t least[OTHER];
    bool all;
};

static int largest_first(const void *a, const void *b)
{
    return order_of(*(const int64_t *)b, *(const int64_t *)a);
}

/* Finds the thresholds. For each state, the `most` threads of all machines that were in it longest are listed, and
 * those with the same time as the last of these. */
static void find_threshold(const struct views *x, const struct tsp_query *q, size_t most, struct threshold *out)
{
    int64_t *times[OTHER], threads = 0;
    size_t n[OTHER] = {0};
    for (size_t i = 0; i < x->n_hosts; i++)
        threads += x->hosts[i].threads;
    for (size_t s = 0; s < OTHER; s++)
        times[s] = mem_alloc((size_t)(threads + 1) * sizeof *times[s]);
    for (size_t i = 0; i < x->n_hosts; i++) {
        const struct view_host *h = &x->hosts[i];
        struct graph_choice range = range_of(x, h, q);
        struct thread_line l;
        for (int32_t row = 0; row < h->threads && (row % 64 || !http_gone(q->http)); row++) {
            if (!find_thread(h, q, &range, row, &l))
                continue;
            for (size_t s = 0; s < OTHER; s++)
                if (l.values[s] > 0)
                    times[s][n[s]++] = l.values[s];
        }
    }
    for (size_t s = 0; s < OTHER; s++) {
        if (n[s])
            qsort(times[s], n[s], sizeof *times[s], largest_first);
        out->least[s] = n[s] > most ? times[s][most - 1] : 1;
        free(times[s]);
    }
}

static bool is_told(const struct threshold *t, const struct thread_line *l)
{
    bool told = t->all;
    for (size_t s = 0; s < OTHER && !told; s++)
        told = l->values[s] >= t->least[s];
    return told;
}

static void write_threads(const struct views *x, size_t host, const struct tsp_query *q, const struct threshold *only,
    struct tsp_answer *answer)
{
    const struct view_host *h = &x->hosts[host];
    struct arena *a = q->http->arena;
    struct graph_choice range = range_of(x, h, q);
    struct thread_line *lines = arena_new(a, struct thread_line, (size_t)h->threads + 1);
    bool *there = arena_new(a, bool, (size_t)h->threads + 1);
    int64_t all[THREAD_AMOUNTS] = {0};
    for (int32_t row = 0; row < h->threads && (row % 64 || view_goes_on(q, answer)); row++) {
        there[row] = find_thread(h, q, &range, row, &lines[row]);
        for (size_t i = 0; i < THREAD_AMOUNTS; i++)
            all[i] += lines[row].values[i];
    }
    struct tsp_entry e = machine(x, host);
    write_line(&thread_table, q, answer, e, (const char *const[]){h->index->name, "", ""}, all);
    e.parent = e.id;
    e.key = 0;
    e.has_tid = true;
    for (int32_t row = 0; row < h->threads && (row % 64 || view_goes_on(q, answer)); row++) {
        const struct graph_row *t = &lines[row].is;
        if (!there[row] || !is_told(only, &lines[row]))
            continue;
        e.id = h->first_thread + row;
        e.tid = t->tid;
        e.container = view_container(h, t->container);
        write_line(&thread_table, q, answer, e,
            (const char *const[]){t->name, arena_printf(a, "%d", t->tid), arena_printf(a, "%d", t->tgid)},
            lines[row].values);
    }
}

static void threads_tree(const struct view *self, struct views *x, const struct tsp_query *q, struct tsp_answer *answer)
{
    json_t *most = json_object_get(q->parameters, "most");
    struct threshold only = {.all = !json_is_integer(most) || json_integer_value(most) <= 0};
    if (!only.all)
        find_threshold(x, q, (size_t)json_integer_value(most), &only);
    for (size_t i = 0; i < x->n_hosts && view_goes_on(q, answer); i++)
        if (x->hosts[i].index->graph)
            write_threads(x, i, q, &only, answer);
}

/* ---- containers ---- */

static const struct table container_table = {2, thread_amounts, THREAD_AMOUNTS};

static bool has_containers(const struct view *self, const struct view_host *h)
{
    const struct graph_container *of;
    return h->index->graph && graph_containers(h->index->graph, &of);
}

struct container_line {
    int64_t threads;
    int64_t values[THREAD_AMOUNTS];
};

static void write_container(const struct tsp_query *q, struct tsp_answer *answer, struct tsp_entry e, const char *name,
    const struct container_line *l)
{
    write_line(&container_table, q, answer, e,
        (const char *const[]){name, arena_printf(q->http->arena, "%lld", (long long)l->threads)}, l->values);
}

static void add_line(struct container_line *to, const struct thread_line *l)
{
    to->threads++;
    for (size_t i = 0; i < THREAD_AMOUNTS; i++)
        to->values[i] += l->values[i];
}

/* Writes containers. The last one of `lines` is for threads in no container. *id: id of the first entry; then the next
 * free id. */
static void write_containers(
    const struct views *x, size_t host, const struct tsp_query *q, struct tsp_answer *answer, int64_t *id)
{
    const struct view_host *h = &x->hosts[host];
    struct graph_choice range = range_of(x, h, q);
    const struct graph_container *of;
    size_t n = graph_containers(h->index->graph, &of);
    struct container_line *lines = arena_new(q->http->arena, struct container_line, n + 1), all = {0};
    struct thread_line l;
    for (int32_t row = 0; row < h->threads && (row % 64 || view_goes_on(q, answer)); row++) {
        if (!find_thread(h, q, &range, row, &l))
            continue;
        add_line(&lines[l.is.container >= 0 ? (size_t)l.is.container : n], &l);
        add_line(&all, &l);
    }
    struct tsp_entry e = machine(x, host);
    write_container(q, answer, e, h->index->name, &all);
    e.parent = e.id;
    for (size_t i = 0; i <= n; i++) {
        int32_t container = i < n ? (int32_t)i : GRAPH_NO_CONTAINER;
        e.id = *id + (int64_t)i;
        e.key = view_key_container(h, container);
        e.container = view_container(h, container);
        if (lines[i].threads)
            write_container(q, answer, e, i < n ? of[i].name : "(no container)", &lines[i]);
    }
    *id += (int64_t)n + 1;
}

static void containers_tree(
    const struct view *self, struct views *x, const struct tsp_query *q, struct tsp_answer *answer)
{
    int64_t id = view_id(x, x->n_hosts);
    for (size_t i = 0; i < x->n_hosts && view_goes_on(q, answer); i++)
        if (has_containers(self, &x->hosts[i]))
            write_containers(x, i, q, answer, &id);
}

/* ---- CPUs ---- */

enum { BUSY, IDLE, UNKNOWN, CPU_AMOUNTS };
static const struct amount cpu_amounts[CPU_AMOUNTS] = {{"busy", true}, {"idle", true}, {"unknown", true}};
static const struct table cpu_table = {1, cpu_amounts, CPU_AMOUNTS};

/* Sum of a CPU's unknown time, in order of time. */
struct unknown {
    const struct state_store *s;
    size_t row;
    int64_t done, end, sum;
};

/* Adds the unknown time in [from, until) that is not yet counted. */
static void add_unknown(struct unknown *u, int64_t from, int64_t until)
{
    enum { BATCH = 64 };
    struct state_interval iv[BATCH];
    from = from > u->done ? from : u->done;
    until = until < u->end ? until : u->end;
    for (size_t n = BATCH; n == BATCH && from < until;) {
        n = state_range(u->s, STATE_CPU_THREAD, u->row, from, until, iv, BATCH);
        for (size_t i = 0; i < n; i++) {
            int64_t a = iv[i].begin > from ? iv[i].begin : from, b = iv[i].end < until ? iv[i].end : until;
            u->sum += iv[i].value == STATE_UNKNOWN && b > a ? b - a : 0;
        }
        from = n == BATCH ? iv[n - 1].end : until;
    }
    u->done = until > u->done ? until : u->done;
}

/* Time in ns within [begin, end] with an unknown thread on the CPU: until its first known thread, and where events were
 * lost. */
static int64_t unknown_time(const struct state_store *s, int32_t cpu, int64_t begin, int64_t end)
{
    int64_t row = state_find_row(s, STATE_CPU_THREAD, cpu);
    struct unknown u = {s, (size_t)row, begin, end, 0};
    struct state_interval then;
    struct state_loss loss = {.begin = begin, .end = begin, .cpu = cpu};
    if (row < 0)
        return 0;
    for (size_t i = 0;; i++) {
        if (loss.cpu < 0 || loss.cpu == cpu) /* the loss itself, and until the thread is known again */
            add_unknown(&u, loss.begin,
                state_at(s, STATE_CPU_THREAD, u.row, loss.end, &then) && then.value == STATE_UNKNOWN ? then.end
                                                                                                     : loss.end);
        if (i == state_losses(s))
            return u.sum;
        state_loss(s, i, &loss);
    }
}

/* Figures of a CPU; false: the CPU did not exist in the range. */
static bool find_cpu(
    const struct view_host *h, const struct graph_choice *range, size_t row, int32_t *cpu, int64_t values[CPU_AMOUNTS])
{
    struct state_row r;
    int64_t times[2], grown[2];
    state_row(h->states, STATE_CPU, row, &r);
    *cpu = r.number;
    times[0] = range->begin > r.begin ? range->begin : r.begin;
    times[1] = range->end < r.end ? range->end : r.end;
    int64_t counter = state_find_counter(h->states, STATE_CPU_TIME, -1 - r.number);
    if (times[0] > times[1] || counter < 0)
        return false;
    state_counter_values(h->states, STATE_CPU_TIME, (size_t)counter, times, 2, grown);
    values[BUSY] = grown[1] - grown[0];
    values[UNKNOWN] = unknown_time(h->states, r.number, times[0], times[1]);
    values[IDLE] = times[1] - times[0] - values[BUSY] - values[UNKNOWN];
    return true;
}

static void write_cpus(
    const struct views *x, size_t host, const struct tsp_query *q, struct tsp_answer *answer, int64_t first)
{
    const struct view_host *h = &x->hosts[host];
    struct graph_choice range = range_of(x, h, q);
    size_t n = state_rows(h->states, STATE_CPU);
    int64_t all[CPU_AMOUNTS] = {0}, one[CPU_AMOUNTS];
    int32_t cpu;
    for (size_t row = 0; row < n; row++)
        if (find_cpu(h, &range, row, &cpu, one))
            for (size_t i = 0; i < CPU_AMOUNTS; i++)
                all[i] += one[i];
    struct tsp_entry e = machine(x, host);
    write_line(&cpu_table, q, answer, e, (const char *const[]){h->index->name}, all);
    e.parent = e.id;
    e.key = 0;
    for (size_t row = 0; row < n && view_goes_on(q, answer); row++) {
        if (!find_cpu(h, &range, row, &cpu, one))
            continue;
        e.id = first + (int64_t)row;
        write_line(&cpu_table, q, answer, e, (const char *const[]){arena_printf(q->http->arena, "CPU %d", cpu)}, one);
    }
}

static bool has_cpus(const struct view *self, const struct view_host *h)
{
    return h->states && state_rows(h->states, STATE_CPU);
}

static void cpus_tree(const struct view *self, struct views *x, const struct tsp_query *q, struct tsp_answer *answer)
{
    int64_t id = view_id(x, x->n_hosts);
    for (size_t i = 0; i < x->n_hosts && view_goes_on(q, answer); i++)
        if (has_cpus(self, &x->hosts[i])) {
            write_cpus(x, i, q, answer, id);
            id += (int64_t)state_rows(x->hosts[i].states, STATE_CPU);
        }
}

/* ---- devices ---- */

static const struct amount device_amounts[] = {
    {"read", false}, {"written", false}, {"sent", false}, {"received", false}};
enum { DEVICE_AMOUNTS = sizeof device_amounts / sizeof *device_amounts };
static const struct table device_table = {2, device_amounts, DEVICE_AMOUNTS};
static const int device_counters[DEVICE_AMOUNTS] = {
    STATE_DISK_READ, STATE_DISK_WRITE, STATE_NET_SENT, STATE_NET_RECEIVED};

static bool has_devices(const struct view *self, const struct view_host *h)
{
    for (size_t i = 0; i < DEVICE_AMOUNTS && h->states; i++)
        if (state_counters(h->states, device_counters[i]))
            return true;
    return false;
}

/* Number of the host's disks and interfaces, in this order. Each has two counters with the same number. */
static size_t devices(const struct view_host *h)
{
    return state_counters(h->states, STATE_DISK_READ) + state_counters(h->states, STATE_NET_SENT);
}

static struct state_counter find_device(
    const struct view_host *h, const struct tsp_query *q, size_t i, bool *is_disk, int64_t values[DEVICE_AMOUNTS])
{
    size_t disks = state_counters(h->states, STATE_DISK_READ);
    *is_disk = i < disks;
    struct state_counter c;
    state_counter(h->states, *is_disk ? STATE_DISK_READ : STATE_NET_SENT, *is_disk ? i : i - disks, &c);
    for (size_t k = 0; k < DEVICE_AMOUNTS; k++) {
        bool has = *is_disk == (k < 2);
        values[k] = has
            ? rates_growth(h, device_counters[k], state_find_counter(h->states, device_counters[k], c.number),
                  q->begin - (q->begin > INT64_MIN), q->end)
            : 0;
    }
    return c;
}

static void write_devices(
    const struct views *x, size_t host, const struct tsp_query *q, struct tsp_answer *answer, int64_t *id)
{
    const struct view_host *h = &x->hosts[host];
    int64_t all[DEVICE_AMOUNTS] = {0}, one[DEVICE_AMOUNTS];
    bool is_disk;
    for (size_t i = 0; i < devices(h); i++) {
        find_device(h, q, i, &is_disk, one);
        for (size_t k = 0; k < DEVICE_AMOUNTS; k++)
            all[k] += one[k];
    }
    struct tsp_entry e = machine(x, host);
    write_line(&device_table, q, answer, e, (const char *const[]){h->index->name, ""}, all);
    e.parent = e.id;
    for (size_t i = 0; i < devices(h) && view_goes_on(q, answer); i++) {
        struct state_counter c = find_device(h, q, i, &is_disk, one);
        const char *kind = is_disk ? "disk" : "network";
        e.id = (*id)++;
        e.key = view_key(kind, (int64_t)map_hash(c.name, strlen(c.name)));
        write_line(&device_table, q, answer, e, (const char *const[]){c.name, kind}, one);
    }
}

static void devices_tree(const struct view *self, struct views *x, const struct tsp_query *q, struct tsp_answer *answer)
{
    int64_t id = view_id(x, x->n_hosts);
    for (size_t i = 0; i < x->n_hosts && view_goes_on(q, answer); i++)
        if (has_devices(self, &x->hosts[i]))
            write_devices(x, i, q, answer, &id);
}

/* clang-format off */
#define THREAD_HEADERS \
    {"Running", "Time on a CPU", "DURATION", "running", TSP_SUM}, \
    {"Preempted", "Ready, while others had the CPU", "DURATION", "preempted", TSP_SUM}, \
    {"Blocked", "Waiting for another thread, or for what is not known", "DURATION", "blocked", TSP_SUM}, \
    {"Timer", "Waiting for a time", "DURATION", "timer", TSP_SUM}, \
    {"Network", "Waiting for a message", "DURATION", "network", TSP_SUM}, \
    {"Disk", "Waiting for a block device", "DURATION", "block-device", TSP_SUM}, \
    {"Other", "All else: interrupts, other devices, what is not known", "DURATION", "other", TSP_SUM}, \
    {"Read", "Bytes that system calls read", "BINARY_NUMBER", "read", TSP_SUM}, \
    {"Written", "Bytes that system calls wrote", "BINARY_NUMBER", "written", TSP_SUM}
/* clang-format on */
const struct view view_selection_threads = {
    .provider = {.id = "weft.selection.threads",
        .name = "Time by Thread",
        .description = "What threads and machines did within the range: time by state and cause, bytes of system calls",
        .type = "DATA_TREE"},
    .host_has_data = has_graph,
    VIEW_HEADERS({"Thread", "Machine, and its threads that were there within the range", "STRING"},
        {"TID", "Number of the thread", "STRING", "tid", TSP_FIRST},
        {"PID", "Number of its process", "STRING", "pid", TSP_FIRST}, THREAD_HEADERS),
    .tree = threads_tree,
};
const struct view view_selection_containers = {
    .provider = {.id = "weft.selection.containers",
        .name = "Time by Container",
        .description = "What threads of containers (pods) did within the range: time by state and cause, bytes",
        .type = "DATA_TREE"},
    .host_has_data = has_containers,
    VIEW_HEADERS({"Container", "Machine, its containers, and what is in none", "STRING"},
        {"Threads", "That were there within the range", "NUMBER", "threads"}, THREAD_HEADERS),
    .tree = containers_tree,
};
const struct view view_selection_cpus = {
    .provider = {.id = "weft.selection.cpus",
        .name = "Time by CPU",
        .description = "How long CPUs had work, and how long they were idle, within the range",
        .type = "DATA_TREE"},
    .host_has_data = has_cpus,
    VIEW_HEADERS({"CPU", "Machine, and its CPUs", "STRING"}, {"Busy", "Threads had it", "DURATION", "busy", TSP_SUM},
        {"Idle", "No thread had it", "DURATION", "idle", TSP_SUM},
        {"Unknown", "Before it was first seen, or lost events", "DURATION", "unknown", TSP_SUM}),
    .tree = cpus_tree,
};
const struct view view_selection_devices = {
    .provider = {.id = "weft.selection.devices",
        .name = "Bytes by Device",
        .description = "Bytes that went through disks and network interfaces within the range",
        .type = "DATA_TREE"},
    .host_has_data = has_devices,
    VIEW_HEADERS({"Device", "Machine, and its devices", "STRING"},
        {"Kind", "Disk or network interface", "STRING", "kind", TSP_FIRST},
        {"Read", "Bytes, when the request is complete", "BINARY_NUMBER", "read", TSP_SUM},
        {"Written", "Bytes, when the request is complete", "BINARY_NUMBER", "written", TSP_SUM},
        {"Sent", "Bytes that packets carried away, without their headers", "BINARY_NUMBER", "sent", TSP_SUM},
        {"Received", "Bytes that packets brought, without their headers", "BINARY_NUMBER", "received", TSP_SUM}),
    .tree = devices_tree,
};
