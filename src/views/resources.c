/* Resources Status: what the CPUs and the interrupts of every host did over time. Rows: hosts; their CPUs, each with
 * the thread that has it, its frequency where that is told, and its interrupts; interrupts over all CPUs. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "views/state_rows.h"
#include "views/list.h"

enum {
    NO_STATES = STATE_KINDS,
    FREQUENCY = STATE_COUNTER_ROWS + STATE_CPU_FREQUENCY,
    LEVELS = 10,
    FREQUENCY_TEXT = 32,
    ROOT = -1
};

/* ---- entries ---- */

/* kind NO_STATES: a host or a group. parent: index of the entry. */
struct row {
    int64_t parent;
    size_t host;
    int kind;
    size_t row;
    int32_t number;
    const char *label;
};
/* The entry with index i has the id first + i. */
struct rows {
    VEC(struct row) v;
    int64_t first;
    int64_t *most_khz; /* by host */
    struct arena labels;
};

static bool has_data(const struct view *self, struct views *x)
{
    for (size_t i = 0; i < x->n_hosts; i++)
        if (x->hosts[i].states && state_rows(x->hosts[i].states, STATE_CPU))
            return true;
    return false;
}

static int64_t add(struct rows *t, struct row row)
{
    vec_push(&t->v, row);
    return (int64_t)t->v.n - 1;
}

static const char *irq_label(struct rows *t, const struct state_row *r, int32_t number, bool soft)
{
    if (number >= STATE_IPI)
        return arena_printf(&t->labels, "IPI %s", r->name);
    return arena_printf(&t->labels, "%s %d %s", soft ? "SoftIRQ" : "IRQ", number, r->name);
}

/* Interrupts below `parent`: those of one CPU, or over all (cpu < 0). The group appears with its first member. */
static void add_irqs(struct rows *t, size_t host, const struct state_store *s, int kind, int32_t cpu, int64_t parent)
{
    bool soft = kind == STATE_CPU_SOFTIRQ || kind == STATE_SOFTIRQ_VECTOR;
    int64_t group = ROOT;
    for (size_t i = 0; i < state_rows(s, kind); i++) {
        struct state_row r;
        state_row(s, kind, i, &r);
        if (cpu >= 0 && (uint32_t)r.number >> 16 != (uint32_t)cpu)
            continue;
        if (group == ROOT)
            group = add(t, (struct row){parent, host, NO_STATES, 0, cpu, soft ? "SoftIRQs" : "IRQs"});
        int32_t number = cpu >= 0 ? r.number & 0xffff : r.number;
        add(t, (struct row){group, host, kind, i, number, irq_label(t, &r, number, soft)});
    }
}

/* Heights tell how the frequency compares with the highest that a CPU of the host had. */
static void add_frequency(
    struct rows *t, size_t host, const struct state_store *s, size_t row, int32_t cpu, int64_t parent)
{
    enum { BATCH = 256 };
    struct state_interval batch[BATCH];
    int64_t at = INT64_MIN;
    for (size_t n = BATCH; n == BATCH; at = n ? batch[n - 1].end : at) {
        n = state_range(s, FREQUENCY, row, at, INT64_MAX, batch, BATCH);
        for (size_t i = 0; i < n; i++)
            t->most_khz[host] = batch[i].amount > t->most_khz[host] ? batch[i].amount : t->most_khz[host];
    }
    add(t, (struct row){parent, host, FREQUENCY, row, cpu, arena_printf(&t->labels, "CPU %d Frequency", cpu)});
}

static void add_cpus(struct rows *t, size_t host, const struct state_store *s, int64_t root)
{
    for (size_t i = 0; i < state_rows(s, STATE_CPU); i++) {
        struct state_row r;
        state_row(s, STATE_CPU, i, &r);
        int64_t cpu = add(
            t, (struct row){root, host, STATE_CPU, i, r.number, arena_printf(&t->labels, "CPU %d States", r.number)});
        int64_t threads = state_find_row(s, STATE_CPU_THREAD, r.number);
        if (threads >= 0)
            add(t,
                (struct row){cpu, host, STATE_CPU_THREAD, (size_t)threads, r.number,
                    arena_printf(&t->labels, "CPU %d Threads", r.number)});
        int64_t frequency = state_find_row(s, FREQUENCY, r.number);
        if (frequency >= 0)
            add_frequency(t, host, s, (size_t)frequency, r.number, cpu);
        add_irqs(t, host, s, STATE_CPU_IRQ, r.number, cpu);
        add_irqs(t, host, s, STATE_CPU_SOFTIRQ, r.number, cpu);
    }
    for (size_t i = 0; i < state_rows(s, FREQUENCY); i++) { /* told by others, of CPUs that have no events */
        struct state_row r;
        state_row(s, FREQUENCY, i, &r);
        if (state_find_row(s, STATE_CPU, r.number) < 0)
            add_frequency(t, host, s, i, r.number, root);
    }
}

static void *find_rows(struct views *x)
{
    struct rows *t = mem_zalloc(sizeof *t);
    t->first = x->last_thread + 1;
    t->most_khz = arena_new(&t->labels, int64_t, x->n_hosts);
    for (size_t i = 0; i < x->n_hosts; i++) {
        const struct state_store *s = x->hosts[i].states;
        if (!s || !state_rows(s, STATE_CPU))
            continue;
        int64_t root = add(t, (struct row){ROOT, i, NO_STATES, 0, -1, x->hosts[i].index->name});
        add_cpus(t, i, s, root);
        add_irqs(t, i, s, STATE_IRQ_LINE, -1, root);
        add_irqs(t, i, s, STATE_SOFTIRQ_VECTOR, -1, root);
    }
    return t;
}

static void close_rows(struct views *x, void *cache)
{
    struct rows *t = cache;
    vec_free(&t->v);
    arena_fini(&t->labels);
    free(t);
}

static const struct rows *rows_of(struct views *x)
{
    return view_cache(x, &view_resources, find_rows);
}

static const struct row *row_of(const struct rows *t, int64_t id)
{
    return id >= t->first && id - t->first < (int64_t)t->v.n ? &t->v.v[id - t->first] : NULL;
}

static bool is_cpu_row(const struct row *r)
{
    return r->kind == STATE_CPU || r->kind == STATE_CPU_THREAD || r->kind == FREQUENCY;
}

static int32_t cpu_of(const struct row *r, const struct state_interval *iv, const struct state_store *s)
{
    struct state_row of;
    if (is_cpu_row(r))
        return r->number;
    if (r->kind != STATE_CPU_IRQ && r->kind != STATE_CPU_SOFTIRQ)
        return iv->cpu;
    state_row(s, r->kind, r->row, &of);
    return (int32_t)((uint32_t)of.number >> 16);
}

/* ---- tree ---- */

static void write_row(const struct views *x, const struct rows *t, size_t i, struct tsp_answer *answer)
{
    const struct row *r = &t->v.v[i];
    const struct view_host *h = &x->hosts[r->host];
    bool numbered = r->kind != NO_STATES;
    int64_t begin, end;
    state_span(h->states, &begin, &end);
    struct tsp_meta meta = {is_cpu_row(r)                           ? "cpu"
            : r->kind == STATE_CPU_IRQ || r->kind == STATE_IRQ_LINE ? "irq"
                                                                    : "softirq",
        NULL, r->number};
    tsp_write_entry(answer,
        &(struct tsp_entry){.id = t->first + (int64_t)i,
            .parent = r->parent == ROOT ? -1 : t->first + r->parent,
            .labels = &r->label,
            .n_labels = 1,
            .time_graph = true,
            .start = i ? view_to_reference(h, begin) : x->data.begin, /* what clients count from */
            .end = view_to_reference(h, end),
            .has_data = numbered,
            .host_id = h->id,
            .meta = &meta,
            .n_meta = numbered});
}

static void tree(const struct view *self, struct views *x, const struct tsp_query *q, struct tsp_answer *answer)
{
    static const struct tsp_header headers[] = {{"Resource", "CPU, interrupt line or software interrupt", "STRING"}};
    const struct rows *t = rows_of(x);
    tsp_begin_tree(answer, headers, 1, 2);
    for (size_t i = 0; i < t->v.n && !tsp_full(answer); i++)
        write_row(x, t, i, answer);
    tsp_end_tree(answer);
}

/* ---- states ---- */

/* Threads are told apart by colour; one has the same colour on all CPUs. */
static const char *const thread_keys[VIEW_PALETTE] = {"Thread 0", "Thread 1", "Thread 2", "Thread 3", "Thread 4",
    "Thread 5", "Thread 6", "Thread 7", "Thread 8", "Thread 9", "Thread 10", "Thread 11"};

/* By share of the highest: "Frequency 1" up to a tenth of it, … "Frequency 10". */
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

static const char *style_of(
    const struct view_host *h, int kind, const struct state_interval *iv, struct graph_row *thread)
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
    graph_row(h->index->graph, iv->thread, out);
    return true;
}

static void show_frequency(struct views *x, const struct view_state_row *row, const struct state_interval *iv,
    bool with_properties, struct view_shown *out)
{
    const struct rows *t = rows_of(x);
    if (iv->value == STATE_NONE)
        return;
    out->style_key = frequency_style(iv->amount, t->most_khz[row->host]);
    out->label = frequency_text(iv->amount, out->text);
    if (!with_properties)
        return;
    view_add_property(out, "state", "Frequency");
    view_add_property(out, "host", x->hosts[row->host].index->name);
    view_add_number(out, "cpu", row_of(t, row->entry)->number);
    view_add_number(out, "kHz", iv->amount);
}

static void show(struct views *x, const struct view_state_row *row, const struct state_interval *iv,
    bool with_properties, struct view_shown *out)
{
    const struct view_host *h = &x->hosts[row->host];
    struct graph_row thread;
    if (row->kind == FREQUENCY) {
        show_frequency(x, row, iv, with_properties, out);
        return;
    }
    bool has_thread = find_thread(h, iv, &thread);
    out->style_key = style_of(h, row->kind, iv, has_thread ? &thread : NULL);
    out->label = row->kind != STATE_CPU_THREAD ? iv->name : has_thread && thread.idle_cpu < 0 ? thread.name : NULL;
    if (!with_properties || !out->style_key)
        return;
    const struct row *r = row_of(rows_of(x), row->entry);
    int32_t cpu = cpu_of(r, iv, h->states);
    view_add_property(out, "state", row->kind == STATE_CPU_THREAD ? "Thread" : out->style_key);
    view_add_property(out, "host", h->index->name);
    if (row->kind == STATE_CPU && iv->value == STATE_SYSCALL)
        view_add_property(out, "System call", iv->name);
    if (!is_cpu_row(r))
        view_add_property(out, "interrupt", r->label);
    if (cpu >= 0)
        view_add_number(out, "cpu", cpu);
    if (has_thread) {
        view_add_property(out, "process", thread.name);
        view_add_number(out, "thread", thread.tid);
        view_add_number(out, "tid", thread.tid);
    }
}

static void states(const struct view *self, struct views *x, const struct tsp_query *q, struct tsp_answer *answer)
{
    const struct rows *t = rows_of(x);
    struct view_sampler s = view_begin_sampling(x, q, answer, show);
    size_t n = q->has_items ? q->n_items : t->v.n;
    for (size_t i = 0; i < n; i++) {
        int64_t id = q->has_items ? q->items[i] : t->first + (int64_t)i;
        const struct row *r = row_of(t, id);
        if (r && r->kind != NO_STATES && !view_sample_row(&s, &(struct view_state_row){id, r->host, r->kind, r->row}))
            break;
    }
    view_end_sampling(&s);
}

/* ---- tooltip ---- */

static void write_frequency(struct tsp_answer *answer, const struct tsp_query *q, const struct view_host *h,
    const struct row *r, const struct state_interval *iv)
{
    char text[FREQUENCY_TEXT];
    if (iv->value == STATE_NONE)
        return;
    tsp_write_tip(answer, "Frequency", frequency_text(iv->amount, text));
    tsp_write_tip(answer, "CPU", arena_printf(q->http->arena, "%d", r->number));
    view_write_span(answer, view_to_reference(h, iv->begin), view_to_reference(h, iv->end));
}

static void write_tooltip(
    struct tsp_answer *answer, const struct tsp_query *q, const struct view_host *h, const struct row *r, int64_t t)
{
    struct state_interval iv;
    struct graph_row thread;
    int64_t at = view_sample_time(h, t);
    if (!state_at(h->states, r->kind, r->row, at, &iv))
        return;
    if (r->kind == FREQUENCY) {
        write_frequency(answer, q, h, r, &iv);
        return;
    }
    bool has_thread = find_thread(h, &iv, &thread);
    const char *key = style_of(h, r->kind, &iv, has_thread ? &thread : NULL);
    if (!key)
        return;
    if (r->kind != STATE_CPU_THREAD || !has_thread || thread.idle_cpu >= 0)
        tsp_write_tip(answer, "State", key);
    if (iv.name)
        tsp_write_tip(answer, iv.value == STATE_SYSCALL ? "System call" : "Interrupt", iv.name);
    int32_t cpu = cpu_of(r, &iv, h->states);
    if (cpu >= 0)
        tsp_write_tip(answer, "CPU", arena_printf(q->http->arena, "%d", cpu));
    if (has_thread) {
        tsp_write_tip(answer, "Process", thread.name);
        tsp_write_tip(answer, "TID", arena_printf(q->http->arena, "%d", thread.tid));
    }
    view_write_span(answer, view_to_reference(h, iv.begin), view_to_reference(h, iv.end));
}

static void tooltip(const struct view *self, struct views *x, const struct tsp_query *q, struct tsp_answer *answer)
{
    int64_t entry, t;
    const struct row *r = view_tooltip_target(q, &entry, &t) ? row_of(rows_of(x), entry) : NULL;
    json_begin_object(&answer->json);
    if (r) {
        const struct view_host *h = &x->hosts[r->host];
        tsp_write_tip(answer, "Host", h->index->name);
        if (r->kind != NO_STATES)
            write_tooltip(answer, q, h, r, t);
        view_write_clock_error(answer, h, t);
    }
    json_end_object(&answer->json);
}

/* ---- styles, annotations ---- */

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

/* Losses of the CPU whose row this is, or of all CPUs. */
static void write_losses(
    const struct views *x, const struct tsp_query *q, const struct row *r, int64_t id, struct tsp_answer *answer)
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
    const struct rows *t = rows_of(x);
    if (!has_losses(x) || !tsp_wants_category(q, LOST_BY_CPU))
        return;
    json_key(&answer->json, LOST_BY_CPU);
    json_begin_array(&answer->json);
    for (size_t i = 0; i < t->v.n; i++)
        if (t->v.v[i].kind == STATE_CPU && tsp_wants(q, t->first + (int64_t)i))
            write_losses(x, q, &t->v.v[i], t->first + (int64_t)i, answer);
    json_end_array(&answer->json);
}

const struct view view_resources = {
    .provider =
        {.id = "org.eclipse.tracecompass.internal.analysis.os.linux.core.threadstatus.ResourcesStatusDataProvider",
            .name = "Resources Status",
            .description = "States of CPUs, the threads that have them, and interrupts",
            .type = "TIME_GRAPH"},
    .has_data = has_data,
    .tree = tree,
    .states = states,
    .arrows = view_no_arrows,
    .tooltip = tooltip,
    .style = style,
    .annotation_categories = annotation_categories,
    .annotations = annotations,
    .close = close_rows,
};
