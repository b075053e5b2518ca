/* SPDX-License-Identifier: MIT */
/* Resources Status: CPUs and interrupts of every host over time. Rows: hosts; their CPUs, each with its current thread,
 * its frequency if it was recorded, and its interrupts; interrupts over all CPUs. */
#include <stdio.h>

#include "views/list.h"
#include "views/rows.h"

enum {
    FREQUENCY = STATE_COUNTER_ROWS + STATE_CPU_FREQUENCY,
    LEVELS = 10,
    FREQUENCY_TEXT = 32,
};

static bool has_data(const struct view *self, const struct view_host *h)
{
    return h->states && state_rows(h->states, STATE_CPU);
}

/* ---- rows: `number` is the CPU or the interrupt; `own` is the highest frequency by host, in kHz ---- */

static const char *irq_label(struct view_rows *t, const struct state_row *r, int32_t number, bool soft)
{
    if (number >= STATE_IPI)
        return arena_printf(&t->arena, "IPI %s", r->name);
    return arena_printf(&t->arena, "%s %d %s", soft ? "SoftIRQ" : "IRQ", number, r->name);
}

/* Adds interrupts below `parent`: of one CPU, or over all (cpu < 0). The group appears with its first member. */
static void add_irqs(
    struct view_rows *t, size_t host, const struct state_store *s, int kind, int32_t cpu, int64_t parent)
{
    bool soft = kind == STATE_CPU_SOFTIRQ || kind == STATE_SOFTIRQ_VECTOR;
    int64_t group = VIEW_NO_PARENT;
    for (size_t i = 0; i < state_rows(s, kind); i++) {
        struct state_row r;
        state_row(s, kind, i, &r);
        if (cpu >= 0 && (uint32_t)r.number >> 16 != (uint32_t)cpu)
            continue;
        if (group == VIEW_NO_PARENT)
            group = view_add_group(t, parent, host, soft ? "SoftIRQs" : "IRQs");
        int32_t number = cpu >= 0 ? r.number & 0xffff : r.number;
        /* the name may become known later; interrupts without a number on the host have a name only */
        uint64_t key = number >= STATE_IPI ? view_key(r.name, 0) : view_key_number(number);
        const char *label = irq_label(t, &r, number, soft);
        view_add_row(t, (struct view_row){group, host, label, kind, i, number, .key = key});
    }
}

/* Adds the row of a CPU's frequency. Heights show the ratio to the highest frequency of the host's CPUs. */
static void add_frequency(
    struct view_rows *t, size_t host, const struct state_store *s, size_t row, int32_t cpu, int64_t parent)
{
    enum { BATCH = 256 };
    struct state_interval batch[BATCH];
    int64_t at = INT64_MIN, *most_khz = &((int64_t *)t->own)[host];
    for (size_t n = BATCH; n == BATCH; at = n ? batch[n - 1].end : at) {
        n = state_range(s, FREQUENCY, row, at, INT64_MAX, batch, BATCH);
        for (size_t i = 0; i < n; i++)
            *most_khz = batch[i].amount > *most_khz ? batch[i].amount : *most_khz;
    }
    const char *label = arena_printf(&t->arena, "CPU %d Frequency", cpu);
    view_add_row(t, (struct view_row){parent, host, label, FREQUENCY, row, cpu});
}

static void add_cpu(struct view_rows *t, size_t host, const struct state_store *s, size_t row, int64_t root)
{
    struct state_row r;
    state_row(s, STATE_CPU, row, &r);
    const char *label = arena_printf(&t->arena, "CPU %d States", r.number);
    int64_t cpu = view_add_row(t, (struct view_row){root, host, label, STATE_CPU, row, r.number}),
            threads = state_find_row(s, STATE_CPU_THREAD, r.number), frequency = state_find_row(s, FREQUENCY, r.number);
    label = arena_printf(&t->arena, "CPU %d Threads", r.number);
    if (threads >= 0)
        view_add_row(t, (struct view_row){cpu, host, label, STATE_CPU_THREAD, (size_t)threads, r.number});
    if (frequency >= 0)
        add_frequency(t, host, s, (size_t)frequency, r.number, cpu);
    add_irqs(t, host, s, STATE_CPU_IRQ, r.number, cpu);
    add_irqs(t, host, s, STATE_CPU_SOFTIRQ, r.number, cpu);
}

static void add(const struct view *self, const struct views *x, size_t host, struct view_rows *t)
{
    const struct state_store *s = x->hosts[host].states;
    if (!t->own)
        t->own = arena_new(&t->arena, int64_t, x->n_hosts);
    if (!has_data(self, &x->hosts[host]))
        return;
    int64_t root = view_add_group(t, VIEW_NO_PARENT, host, x->hosts[host].index->name);
    for (size_t i = 0; i < state_rows(s, STATE_CPU); i++)
        add_cpu(t, host, s, i, root);
    for (size_t i = 0; i < state_rows(s, FREQUENCY); i++) { /* CPUs without events, recorded by others */
        struct state_row r;
        state_row(s, FREQUENCY, i, &r);
        if (state_find_row(s, STATE_CPU, r.number) < 0)
            add_frequency(t, host, s, i, r.number, root);
    }
    add_irqs(t, host, s, STATE_IRQ_LINE, -1, root);
    add_irqs(t, host, s, STATE_SOFTIRQ_VECTOR, -1, root);
}

static bool is_cpu_row(const struct view_row *r)
{
    return r->kind == STATE_CPU || r->kind == STATE_CPU_THREAD || r->kind == FREQUENCY;
}

static int32_t cpu_of(const struct view_row *r, const struct state_interval *iv, const struct state_store *s)
{
    struct state_row of;
    if (is_cpu_row(r))
        return (int32_t)r->number;
    if (r->kind != STATE_CPU_IRQ && r->kind != STATE_CPU_SOFTIRQ)
        return iv->cpu;
    state_row(s, r->kind, r->row, &of);
    return (int32_t)((uint32_t)of.number >> 16);
}

static void describe(const struct views *x, const struct view_rows *t, const struct view_row *r, struct arena *a,
    struct view_row_entry *e)
{
    bool hard = r->kind == STATE_CPU_IRQ || r->kind == STATE_IRQ_LINE;
    e->meta[0] = (struct tsp_meta){.key = is_cpu_row(r) ? "cpu" : hard ? "irq" : "softirq", .number = r->number};
    e->entry.n_meta = r->kind != VIEW_NO_STATES;
}

/* ---- states ---- */

/* Colours distinguish threads; a thread has the same colour on all CPUs. */
static const char *const thread_keys[VIEW_PALETTE] = {"Thread 0", "Thread 1", "Thread 2", "Thread 3", "Thread 4",
    "Thread 5", "Thread 6", "Thread 7", "Thread 8", "Thread 9", "Thread 10", "Thread 11"};

/* Keys by share of the highest frequency: "Frequency 1" up to a tenth of it, … "Frequency 10". */
static const char *const frequency_keys[LEVELS] = {"Frequency 1", "Frequency 2", "Frequency 3", "Frequency 4",
    "Frequency 5", "Frequency 6", "Frequency 7", "Frequency 8", "Frequency 9", "Frequency 10"};

static const char *frequency_style(int64_t khz, int64_t most)
{
    double level = most > 0 ? (double)khz / (double)most * LEVELS : 0;
    return frequency_keys[level <= 1 ? 0 : level >= LEVELS ? LEVELS - 1 : (int)(level - 1e-9)];
}

static const char *frequency_text(int64_t khz, char out[FREQUENCY_TEXT])
{
    bool giga = khz >= 1000000;
    snprintf(out, FREQUENCY_TEXT, "%.7g %s", (double)khz / (giga ? 1e6 : 1e3), giga ? "GHz" : "MHz");
    return out;
}

static const char *style_of(int kind, const struct state_interval *iv, const struct graph_row *thread)
{
    switch (kind) {
    case STATE_CPU_THREAD:
        return thread
            ? thread->idle_cpu >= 0 ? view_state_key(STATE_IDLE) : thread_keys[(uint32_t)thread->tid % VIEW_PALETTE]
            : view_state_key(iv->value);
    case STATE_CPU_SOFTIRQ:
    case STATE_SOFTIRQ_VECTOR: return view_state_key(iv->value == STATE_ACTIVE ? STATE_SOFTIRQ : iv->value);
    case STATE_CPU_IRQ:
    case STATE_IRQ_LINE: return view_state_key(iv->value == STATE_ACTIVE ? STATE_IRQ : iv->value);
    default: return view_state_key(iv->value);
    }
}

static bool find_thread(const struct view_host *h, const struct state_interval *iv, struct graph_row *out)
{
    if (iv->thread < 0 || iv->thread >= h->threads)
        return false;
    graph_row_then(h->index->graph, iv->thread, iv->begin, iv->end, out);
    return true;
}

static void show_frequency(
    const struct view_sampler *s, const struct view_row *row, const struct state_interval *iv, struct view_shown *out)
{
    const int64_t *most_khz = s->rows->own;
    if (iv->value == STATE_NONE)
        return;
    out->style_key = frequency_style(iv->amount, most_khz[row->host]);
    out->label = frequency_text(iv->amount, out->text);
    if (!s->q->filter)
        return;
    view_add_property(out, "state", "Frequency");
    view_add_property(out, "host", s->x->hosts[row->host].index->name);
    view_add_number(out, "cpu", row->number);
    view_add_number(out, "kHz", iv->amount);
}

static void show(
    const struct view_sampler *s, const struct view_row *row, const struct state_interval *iv, struct view_shown *out)
{
    const struct view_host *h = &s->x->hosts[row->host];
    struct graph_row thread;
    if (row->kind == FREQUENCY) {
        show_frequency(s, row, iv, out);
        return;
    }
    bool has_thread = find_thread(h, iv, &thread);
    out->style_key = style_of(row->kind, iv, has_thread ? &thread : NULL);
    out->label = row->kind != STATE_CPU_THREAD ? iv->name : has_thread && thread.idle_cpu < 0 ? thread.name : NULL;
    if (!s->q->filter || !out->style_key)
        return;
    int32_t cpu = cpu_of(row, iv, h->states);
    view_add_property(out, "state", row->kind == STATE_CPU_THREAD ? "Thread" : out->style_key);
    view_add_property(out, "host", h->index->name);
    if (row->kind == STATE_CPU && iv->value == STATE_SYSCALL)
        view_add_property(out, "System call", iv->name);
    if (!is_cpu_row(row))
        view_add_property(out, "interrupt", row->label);
    if (cpu >= 0)
        view_add_number(out, "cpu", cpu);
    if (has_thread) {
        view_add_property(out, "process", thread.name);
        view_add_number(out, "thread", thread.tid);
        view_add_number(out, "tid", thread.tid);
        view_add_property(out, "container", view_container(h, thread.container));
    }
}

/* ---- tooltip, styles ---- */

static void write_state(struct tsp_answer *answer, const struct view_pointed *p, const struct state_interval *iv)
{
    struct graph_row thread;
    int kind = p->row->kind;
    bool has_thread = find_thread(p->host, iv, &thread);
    const char *key = style_of(kind, iv, has_thread ? &thread : NULL);
    if (!key)
        return;
    if (kind != STATE_CPU_THREAD || !has_thread || thread.idle_cpu >= 0)
        tsp_write_tip(answer, "State", key);
    if (iv->name)
        tsp_write_tip(answer, iv->value == STATE_SYSCALL ? "System call" : "Interrupt", iv->name);
    int32_t cpu = cpu_of(p->row, iv, p->host->states);
    if (cpu >= 0)
        view_write_number(answer, "CPU", cpu);
    view_write_thread(answer, p->host, iv->thread, p->t, "Process", "TID");
    view_write_interval(answer, p->host, iv);
}

static bool tooltip(const struct view_pointed *p)
{
    const struct state_interval *iv = p->interval;
    char text[FREQUENCY_TEXT];
    tsp_write_tip(p->answer, "Host", p->host->index->name);
    if (iv && p->row->kind != FREQUENCY) {
        write_state(p->answer, p, iv);
    } else if (iv && iv->value != STATE_NONE) {
        tsp_write_tip(p->answer, "Frequency", frequency_text(iv->amount, text));
        view_write_number(p->answer, "CPU", p->row->number);
        view_write_interval(p->answer, p->host, iv);
    }
    return true;
}

static void style(const struct view *self, struct views *x, const struct tsp_query *q, struct tsp_answer *answer)
{
    tsp_begin_styles(answer);
    view_write_state_styles(answer,
        VIEW_STATE(IDLE) | VIEW_STATE(USERMODE) | VIEW_STATE(SYSCALL) | VIEW_STATE(IRQ) | VIEW_STATE(SOFTIRQ) |
            VIEW_STATE(SOFTIRQ_RAISED) | VIEW_STATE(UNKNOWN));
    for (int i = 0; i < VIEW_PALETTE; i++)
        tsp_write_style(answer, thread_keys[i], NULL, view_palette[i], 0.75, -1, thread_keys[i]);
    for (int i = 0; i < LEVELS; i++)
        tsp_write_style(answer, frequency_keys[i], NULL, LOOK_TIMER, (i + 1.0) / LEVELS, -1, frequency_keys[i]);
    tsp_end_styles(answer);
}

/* ---- lost events ---- */

#define LOST_BY_CPU "Lost events by CPU"

static bool has_losses(const struct views *x)
{
    for (size_t i = 0; i < x->n_hosts; i++)
        if (x->hosts[i].states && state_losses(x->hosts[i].states))
            return true;
    return false;
}

static void annotation_categories(
    const struct view *self, struct views *x, const struct tsp_query *q, struct tsp_answer *answer)
{
    if (has_losses(x))
        json_write_string(&answer->json, LOST_BY_CPU);
}

/* Writes losses of the row's CPU, or of all CPUs. */
static void write_losses(
    const struct views *x, const struct tsp_query *q, const struct view_row *r, int64_t id, struct tsp_answer *answer)
{
    const struct view_host *h = &x->hosts[r->host];
    for (size_t i = 0; i < state_losses(h->states) && !tsp_full(answer) && !http_gone(q->http); i++) {
        struct state_loss l;
        state_loss(h->states, i, &l);
        int64_t begin = view_to_reference(h, l.begin), end = view_to_reference(h, l.end);
        if (begin > q->end)
            break;
        if (end >= q->begin && (l.cpu < 0 || l.cpu == r->number))
            tsp_write_annotation(answer, begin, end - begin, id,
                arena_printf(q->http->arena, "%llu events lost", (unsigned long long)l.count), LOOK_STOLEN, 0.4);
    }
}

static void annotations(const struct view *self, struct views *x, const struct tsp_query *q, struct tsp_answer *answer)
{
    const struct view_rows *t = view_rows_of(x, self);
    if (!has_losses(x) || !tsp_wants_category(q, LOST_BY_CPU))
        return;
    json_key(&answer->json, LOST_BY_CPU);
    json_begin_array(&answer->json);
    for (size_t i = 0; i < t->v.n; i++)
        if (t->v.v[i].kind == STATE_CPU && tsp_wants(q, view_id(x, i)))
            write_losses(x, q, &t->v.v[i], view_id(x, i), answer);
    json_end_array(&answer->json);
}

static const struct view_row_graph graph = {.add = add, .describe = describe, .show = show, .tooltip = tooltip};

const struct view view_resources = {
    .provider =
        {.id = "org.eclipse.tracecompass.internal.analysis.os.linux.core.threadstatus.ResourcesStatusDataProvider",
            .name = "Resources Status",
            .description = "States of CPUs, the threads that have them, and interrupts",
            .type = "TIME_GRAPH"},
    .host_has_data = has_data,
    VIEW_HEADERS({"Resource", "CPU, interrupt line or software interrupt", "STRING"}),
    .expand = 2,
    VIEW_ROWS(graph),
    .style = style,
    .annotation_categories = annotation_categories,
    .annotations = annotations,
};
