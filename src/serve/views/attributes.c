/* SPDX-License-Identifier: MIT */
/* Attributes of an experiment: threads, CPUs, interrupts, devices and memory of each host. */
#include "views/attributes.h"

#include "base/map.h"

struct filling {
    struct view_rows *rows;
    size_t number; /* number of the host */
    const struct view_host *host;
    const struct state_store *s;
};

static int64_t add(struct filling *f, int64_t parent, const char *label, const char *name, enum attribute attribute,
    int kind, size_t row)
{
    return view_add_row(f->rows, (struct view_row){parent, f->number, label, kind, row, attribute, name});
}

/* Sets the key of a row that represents a thread. The key differs for other threads with the same tid. */
static int64_t of_thread(struct filling *f, int64_t added, int32_t thread)
{
    f->rows->v.v[added].key = view_key_thread(f->host, thread);
    return added;
}

static int64_t add_group(struct filling *f, int64_t parent, const char *label, const char *name)
{
    return add(f, parent, label, name, ATTRIBUTE_GROUP, VIEW_NO_STATES, 0);
}

static const char *number(struct filling *f, int64_t n)
{
    return arena_printf(&f->rows->arena, "%lld", (long long)n);
}

/* Adds a counter, if the store has it. */
static void add_counter(struct filling *f, int64_t parent, const char *label, int kind, int32_t n)
{
    int64_t row = state_find_counter(f->s, kind, n);
    if (row >= 0)
        add(f, parent, label, "", ATTRIBUTE_AMOUNT, STATE_COUNTER_ROWS + kind, (size_t)row);
}

/* ---- threads, CPUs ---- */

static void add_threads(struct filling *f, int64_t root)
{
    int64_t threads = add_group(f, root, "Threads", "");
    for (size_t i = 0; i < state_rows(f->s, STATE_THREAD) && i < (size_t)f->host->threads; i++) {
        struct graph_row t;
        graph_row(f->host->index->graph, (int32_t)i, &t);
        int64_t thread = of_thread(f, add_group(f, threads, number(f, t.tid), t.name), (int32_t)i);
        add(f, thread, "Status", "", ATTRIBUTE_STATUS, STATE_THREAD, i);
        add(f, thread, "System_call", "", ATTRIBUTE_CALL, STATE_THREAD, i);
        add(f, thread, "Current_cpu", "", ATTRIBUTE_CPU_OF_THREAD, STATE_THREAD, i);
        add_counter(f, thread, "Memory", STATE_MEMORY, (int32_t)i);
        add_counter(f, thread, "Bytes_read", STATE_IO_READ, (int32_t)i);
        add_counter(f, thread, "Bytes_written", STATE_IO_WRITTEN, (int32_t)i);
        add_counter(f, thread, "KVM_exits", STATE_KVM_EXITS, (int32_t)i);
    }
}

/* Adds interrupts of one CPU, or over all (cpu < 0). The group appears with its first member. */
static void add_irqs(struct filling *f, int64_t parent, const char *label, int kind, int32_t cpu)
{
    int64_t group = -1;
    for (size_t i = 0; i < state_rows(f->s, kind); i++) {
        struct state_row r;
        state_row(f->s, kind, i, &r);
        if (cpu >= 0 && (uint32_t)r.number >> 16 != (uint32_t)cpu)
            continue;
        if (group < 0)
            group = add_group(f, parent, label, "");
        int32_t n = cpu >= 0 ? r.number & 0xffff : r.number;
        bool numbered = n < STATE_IPI;
        add(f, group, numbered ? number(f, n) : r.name, numbered ? r.name : "",
            cpu >= 0 ? ATTRIBUTE_STATUS : ATTRIBUTE_CPU, kind, i);
    }
}

static void add_cpu_counters(struct filling *f, int64_t parent, int32_t cpu)
{
    int64_t group = -1;
    for (size_t i = 0; i < state_counters(f->s, STATE_CPU_COUNTER); i++) {
        struct state_counter c;
        state_counter(f->s, STATE_CPU_COUNTER, i, &c);
        if (c.number / STATE_CPU_COUNTERS != cpu)
            continue;
        if (group < 0)
            group = add_group(f, parent, "Counters", "");
        add(f, group, c.name, "", ATTRIBUTE_AMOUNT, STATE_COUNTER_ROWS + STATE_CPU_COUNTER, i);
    }
}

static void add_cpus(struct filling *f, int64_t root)
{
    int64_t cpus = add_group(f, root, "CPUs", "");
    for (size_t i = 0; i < state_rows(f->s, STATE_CPU); i++) {
        struct state_row r;
        state_row(f->s, STATE_CPU, i, &r);
        int64_t cpu = add_group(f, cpus, number(f, r.number), ""),
                thread = state_find_row(f->s, STATE_CPU_THREAD, r.number);
        add(f, cpu, "Status", "", ATTRIBUTE_STATUS, STATE_CPU, i);
        if (thread >= 0)
            add(f, cpu, "Current_thread", "", ATTRIBUTE_THREAD, STATE_CPU_THREAD, (size_t)thread);
        add_counter(f, cpu, "Current_frequency", STATE_CPU_FREQUENCY, r.number);
        add_irqs(f, cpu, "IRQs", STATE_CPU_IRQ, r.number);
        add_irqs(f, cpu, "Soft_IRQs", STATE_CPU_SOFTIRQ, r.number);
        add_cpu_counters(f, cpu, r.number);
    }
}

/* ---- futexes, tracks ---- */

static void add_futexes(struct filling *f, int64_t root)
{
    struct map groups = {0}; /* name -> index */
    struct strings names = {0};
    int64_t futexes = -1;
    for (size_t i = 0; i < state_rows(f->s, STATE_FUTEX_USER); i++) {
        struct state_row r;
        struct graph_row t = {.tid = -1, .name = ""};
        bool fresh;
        state_row(f->s, STATE_FUTEX_USER, i, &r);
        if (r.thread >= 0 && r.thread < f->host->threads)
            graph_row(f->host->index->graph, r.thread, &t);
        if (futexes < 0)
            futexes = add_group(f, root, "Futexes", "");
        uint64_t *group = map_put(&groups, strings_intern(&names, r.name, strlen(r.name)), &fresh);
        if (fresh)
            *group = (uint64_t)add_group(f, futexes, r.name, "");
        of_thread(
            f, add(f, (int64_t)*group, number(f, t.tid), t.name, ATTRIBUTE_STATUS, STATE_FUTEX_USER, i), r.thread);
    }
    map_fini(&groups);
    strings_fini(&names);
}

static void add_tracks(struct filling *f, int64_t root)
{
    static const struct {
        int kind;
        const char *label;
    } kinds[] = {
        {STATE_FUTEX_WAITS, "Futex_waits"}, {STATE_FUTEX_WAKES, "Futex_wakes"}, {STATE_IRQ_HANDLERS, "IRQ_handlers"}};
    int64_t scenarios = -1;
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        size_t n = state_rows(f->s, kinds[k].kind);
        if (n && scenarios < 0)
            scenarios = add_group(f, root, "Scenarios", "");
        int64_t group = n ? add_group(f, scenarios, kinds[k].label, "") : -1;
        for (size_t i = 0; i < n; i++)
            add(f, group, number(f, (int64_t)i), "", ATTRIBUTE_STATUS, kinds[k].kind, i);
    }
}

/* ---- devices ---- */

static void add_devices(
    struct filling *f, int64_t root, const char *label, const int kinds[2], const char *const labels[2])
{
    int64_t group = -1;
    for (size_t i = 0; i < state_counters(f->s, kinds[0]); i++) {
        struct state_counter c;
        state_counter(f->s, kinds[0], i, &c);
        if (group < 0)
            group = add_group(f, root, label, "");
        int64_t device = add_group(f, group, c.name, "");
        for (int k = 0; k < 2; k++)
            add_counter(f, device, labels[k], kinds[k], c.number);
    }
}

void attributes_add(const struct view *self, const struct views *x, size_t host, struct view_rows *rows)
{
    const struct view_host *h = &x->hosts[host];
    struct filling f = {rows, host, h, h->states};
    if (!f.s)
        return;
    int64_t root = add_group(&f, VIEW_NO_PARENT, h->index->name, "");
    add_threads(&f, root);
    add_cpus(&f, root);
    add_irqs(&f, root, "IRQs", STATE_IRQ_LINE, -1);
    add_irqs(&f, root, "Soft_IRQs", STATE_SOFTIRQ_VECTOR, -1);
    add_devices(&f, root, "Disks", (const int[2]){STATE_DISK_READ, STATE_DISK_WRITE},
        (const char *const[2]){"Bytes_read", "Bytes_written"});
    add_devices(&f, root, "Network", (const int[2]){STATE_NET_SENT, STATE_NET_RECEIVED},
        (const char *const[2]){"Bytes_sent", "Bytes_received"});
    add_counter(&f, root, "Memory", STATE_MEMORY, -1);
    add_futexes(&f, root);
    add_tracks(&f, root);
}

const char *attribute_path(const struct view_rows *rows, const struct view_row *row, struct arena *a)
{
    const char *path = row->label;
    while (row->parent != VIEW_NO_PARENT) {
        row = &rows->v.v[row->parent];
        path = arena_printf(a, "%s/%s", row->label, path);
    }
    return path;
}
