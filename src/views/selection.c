/* What happened within a range, in figures: threads and machines by state and bytes, CPUs, devices. Answers cost what
 * they show, whatever the range: the stores have sums. */
#include <string.h>

#include "base/map.h"
#include "views/durations.h"
#include "views/rates.h"

enum { MOST_AMOUNTS = 9, MOST_NAMES = 3 };
/* A column behind those that name the row. key: of its number in the entry's metadata. */
struct amount {
    const char *key;
    bool is_time; /* ns; else bytes */
};
struct table {
    size_t names; /* columns that name the row */
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

/* The range by the host's clock; its ends are those of the trace where it has all of it. */
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
/* As `weft threads` shows them. */
static const int shown[OTHER] = {
    GRAPH_RUNNING, GRAPH_PREEMPTED, GRAPH_BLOCKED, GRAPH_TIMER, GRAPH_NETWORK, GRAPH_BLOCK_DEVICE};
static const struct amount thread_amounts[THREAD_AMOUNTS] = {{"running", true}, {"preempted", true}, {"blocked", true},
    {"timer", true}, {"network", true}, {"block-device", true}, {"other", true}, {"read", false}, {"written", false}};
static const struct table thread_table = {3, thread_amounts, THREAD_AMOUNTS};

struct thread_line {
    struct graph_row is;
    int64_t values[THREAD_AMOUNTS];
};

/* False: it was not there. */
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

static void write_threads(const struct views *x, size_t host, const struct tsp_query *q, struct tsp_answer *answer)
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
        if (!there[row])
            continue;
        e.id = h->first_thread + row;
        e.tid = t->tid;
        write_line(&thread_table, q, answer, e,
            (const char *const[]){t->name, arena_printf(a, "%d", t->tid), arena_printf(a, "%d", t->tgid)},
            lines[row].values);
    }
}

static void threads_tree(const struct view *self, struct views *x, const struct tsp_query *q, struct tsp_answer *answer)
{
    for (size_t i = 0; i < x->n_hosts && view_goes_on(q, answer); i++)
        if (x->hosts[i].index->graph)
            write_threads(x, i, q, answer);
}

/* ---- CPUs ---- */

enum { BUSY, IDLE, UNKNOWN, CPU_AMOUNTS };
static const struct amount cpu_amounts[CPU_AMOUNTS] = {{"busy", true}, {"idle", true}, {"unknown", true}};
static const struct table cpu_table = {1, cpu_amounts, CPU_AMOUNTS};

/* What its idle thread did tells of a CPU: it runs, or others have the CPU. False: the row is none, or was not
 * there. */
static bool find_cpu(const struct view_host *h, const struct graph_choice *range, int32_t row, struct graph_time *t,
    int64_t values[CPU_AMOUNTS])
{
    graph_row(h->index->graph, row, &t->row);
    if (t->row.idle_cpu < 0 || !graph_row_time(h->index->graph, row, range, t))
        return false;
    values[BUSY] = t->totals[GRAPH_PREEMPTED];
    values[IDLE] = t->totals[GRAPH_RUNNING];
    values[UNKNOWN] = t->end - t->begin - values[BUSY] - values[IDLE];
    return true;
}

static void write_cpus(
    const struct views *x, size_t host, const struct tsp_query *q, struct tsp_answer *answer, int64_t *id)
{
    const struct view_host *h = &x->hosts[host];
    struct graph_choice range = range_of(x, h, q);
    struct graph_time t;
    int64_t all[CPU_AMOUNTS] = {0}, one[CPU_AMOUNTS];
    for (int32_t row = 0; row < h->threads; row++)
        for (size_t i = 0; find_cpu(h, &range, row, &t, one) && i < CPU_AMOUNTS; i++)
            all[i] += one[i];
    struct tsp_entry e = machine(x, host);
    write_line(&cpu_table, q, answer, e, (const char *const[]){h->index->name}, all);
    e.parent = e.id;
    e.key = 0;
    for (int32_t row = 0; row < h->threads && (row % 64 || view_goes_on(q, answer)); row++) {
        bool there = find_cpu(h, &range, row, &t, one);
        e.id = *id;
        *id += t.row.idle_cpu >= 0; /* the same number whatever the range */
        if (!there)
            continue;
        write_line(&cpu_table, q, answer, e,
            (const char *const[]){arena_printf(q->http->arena, "CPU %d", t.row.idle_cpu)}, one);
    }
}

static void cpus_tree(const struct view *self, struct views *x, const struct tsp_query *q, struct tsp_answer *answer)
{
    int64_t id = view_id(x, x->n_hosts);
    for (size_t i = 0; i < x->n_hosts && view_goes_on(q, answer); i++)
        if (x->hosts[i].index->graph)
            write_cpus(x, i, q, answer, &id);
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

/* The disks of a host, then its interfaces: each has two counters of the same number. */
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

const struct view view_selection_threads = {
    .provider = {.id = "weft.selection.threads",
        .name = "Time by Thread",
        .description = "What threads and machines did within the range: time by state and cause, bytes of system calls",
        .type = "DATA_TREE"},
    .host_has_data = has_graph,
    VIEW_HEADERS({"Thread", "Machine, and its threads that were there within the range", "STRING"},
        {"TID", "Number of the thread", "STRING"}, {"PID", "Number of its process", "STRING"},
        {"Running", "Time on a CPU", "DURATION"}, {"Preempted", "Ready, while others had the CPU", "DURATION"},
        {"Blocked", "Waiting for another thread, or for what is not known", "DURATION"},
        {"Timer", "Waiting for a time", "DURATION"}, {"Network", "Waiting for a message", "DURATION"},
        {"Disk", "Waiting for a block device", "DURATION"},
        {"Other", "All else: interrupts, other devices, what is not known", "DURATION"},
        {"Read", "Bytes that system calls read", "BINARY_NUMBER"},
        {"Written", "Bytes that system calls wrote", "BINARY_NUMBER"}),
    .tree = threads_tree,
};
const struct view view_selection_cpus = {
    .provider = {.id = "weft.selection.cpus",
        .name = "Time by CPU",
        .description = "How long CPUs had work, and how long they were idle, within the range",
        .type = "DATA_TREE"},
    .host_has_data = has_graph,
    VIEW_HEADERS({"CPU", "Machine, and its CPUs", "STRING"}, {"Busy", "Threads had it", "DURATION"},
        {"Idle", "No thread had it", "DURATION"}, {"Unknown", "Before it was first seen, or lost events", "DURATION"}),
    .tree = cpus_tree,
};
const struct view view_selection_devices = {
    .provider = {.id = "weft.selection.devices",
        .name = "Bytes by Device",
        .description = "Bytes that went through disks and network interfaces within the range",
        .type = "DATA_TREE"},
    .host_has_data = has_devices,
    VIEW_HEADERS({"Device", "Machine, and its devices", "STRING"}, {"Kind", "Disk or network interface", "STRING"},
        {"Read", "Bytes, when the request is complete", "BINARY_NUMBER"},
        {"Written", "Bytes, when the request is complete", "BINARY_NUMBER"},
        {"Sent", "Bytes that packets carried away, without their headers", "BINARY_NUMBER"},
        {"Received", "Bytes that packets brought, without their headers", "BINARY_NUMBER"}),
    .tree = devices_tree,
};
