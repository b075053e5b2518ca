/* State System Explorer: everything that the state stores hold, attribute by attribute, as it is stored. */
#include <stdio.h>
#include <stdlib.h>

#include "views/attributes.h"
#include "views/state_rows.h"
#include "views/list.h"

static bool has_data(const struct view *self, struct views *x)
{
    for (size_t i = 0; i < x->n_hosts; i++)
        if (x->hosts[i].states)
            return true;
    return false;
}

static void *find_attributes(struct views *x)
{
    struct attributes *t = mem_zalloc(sizeof *t);
    attributes_fill(t, x);
    return t;
}

static void close_attributes(struct views *x, void *cache)
{
    attributes_fini(cache);
    free(cache);
}

static const struct attributes *attributes_of(struct views *x)
{
    return view_cache(x, &view_state_system, find_attributes);
}

/* The attribute with index i has the id first_id + i. */
static int64_t first_id(const struct views *x)
{
    return x->last_thread + 1;
}

static const struct attribute *attribute_of(const struct views *x, const struct attributes *t, int64_t id)
{
    int64_t i = id - first_id(x);
    return i >= 0 && i < (int64_t)t->v.n ? &t->v.v[i] : NULL;
}

/* ---- tree ---- */

static void tree(const struct view *self, struct views *x, const struct tsp_query *q, struct tsp_answer *answer)
{
    static const struct tsp_header headers[] = {
        {"Attribute", "What has a state", "STRING"}, {"Name", "Of threads and interrupts", "STRING"}};
    const struct attributes *t = attributes_of(x);
    tsp_begin_tree(answer, headers, 2, 2);
    for (size_t i = 0; i < t->v.n && !tsp_full(answer); i++) {
        const struct attribute *a = &t->v.v[i];
        const char *labels[2] = {a->label, a->name};
        const struct view_host *h = &x->hosts[a->host];
        int64_t begin, end;
        state_span(h->states, &begin, &end);
        tsp_write_entry(answer,
            &(struct tsp_entry){.id = first_id(x) + (int64_t)i,
                .parent = a->parent < 0 ? -1 : first_id(x) + a->parent,
                .labels = labels,
                .n_labels = 2,
                .time_graph = true,
                .start = i ? view_to_reference(h, begin) : x->data.begin, /* what clients count from */
                .end = view_to_reference(h, end),
                .has_data = a->view != ATTRIBUTE_GROUP,
                .host_id = h->id});
    }
    tsp_end_tree(answer);
}

/* ---- states ---- */

static const char *const value_keys[VIEW_PALETTE] = {"Value 0", "Value 1", "Value 2", "Value 3", "Value 4", "Value 5",
    "Value 6", "Value 7", "Value 8", "Value 9", "Value 10", "Value 11"};

static void show_number(struct view_shown *out, int64_t n)
{
    snprintf(out->text, sizeof out->text, "%lld", (long long)n);
    out->label = out->text;
    out->style_key = value_keys[(uint64_t)n % VIEW_PALETTE];
}

static int64_t tid_of(const struct view_host *h, int32_t row)
{
    struct graph_row t;
    if (row >= h->threads)
        return -1;
    graph_row(h->index->graph, row, &t);
    return t.tid;
}

/* Nothing for what the attribute does not have at the time. */
static void show_value(const struct view_host *h, size_t row, enum attribute_view view, const struct state_interval *iv,
    struct view_shown *out)
{
    int32_t cpu = iv->cpu;
    if (view == ATTRIBUTE_CPU_OF_THREAD && cpu < 0 &&
        state_may_have_cpu(iv->value)) /* an interval of the thread that was not sampled */
        cpu = state_thread_cpu(h->states, row, iv->begin, -1);
    switch (view) {
    case ATTRIBUTE_STATUS: out->label = out->style_key = view_state_key(iv->value); break;
    case ATTRIBUTE_CALL:
        if (iv->value == STATE_SYSCALL) {
            out->label = iv->name ? iv->name : "";
            out->style_key = view_state_key(STATE_SYSCALL);
        }
        break;
    case ATTRIBUTE_AMOUNT:
        if (iv->value != STATE_NONE)
            show_number(out, iv->amount);
        break;
    default:
        if (view == ATTRIBUTE_THREAD ? iv->thread >= 0 : cpu >= 0)
            show_number(out, view == ATTRIBUTE_THREAD ? tid_of(h, iv->thread) : cpu);
        else if (view != ATTRIBUTE_CPU_OF_THREAD && iv->value == STATE_UNKNOWN)
            out->label = out->style_key = view_state_key(STATE_UNKNOWN);
    }
}

static void show(struct views *x, const struct view_state_row *row, const struct state_interval *iv,
    bool with_properties, struct view_shown *out)
{
    const struct view_host *h = &x->hosts[row->host];
    show_value(h, row->row, (enum attribute_view)row->view, iv, out);
    if (!with_properties || !out->style_key)
        return;
    view_add_property(out, "value", out->label);
    view_add_property(out, "host", h->index->name);
    view_add_property(out, "attribute", attribute_of(x, attributes_of(x), row->entry)->label);
}

/* Which CPU a thread had at the times: as long as the CPU was its own, and blanks between. */
static size_t sample_cpus(
    const struct state_store *s, size_t thread, const int64_t *times, size_t n, struct state_interval *out)
{
    struct state_interval *own = mem_alloc((n + 1) * sizeof *own);
    size_t n_own = state_sample(s, STATE_THREAD, thread, times, n, own), k = 0, found = 0;
    int32_t near = -1;
    int64_t begin, end;
    state_span(s, &begin, &end);
    for (size_t i = 0; i < n && n_own; i++) {
        int64_t t = times[i] - (times[i] == end && end > begin); /* the last instant counts as the one before */
        struct state_interval *x = &out[found];
        if (t < begin || t > end || (found && t < x[-1].end))
            continue;
        while (k + 1 < n_own && own[k].end <= t)
            k++;
        int32_t cpu = state_may_have_cpu(own[k].value) ? state_thread_cpu(s, thread, t, near) : -1;
        *x = own[k];
        if (cpu >= 0)
            state_at(s, STATE_CPU_THREAD, (size_t)state_find_row(s, STATE_CPU_THREAD, cpu), t, x);
        near = cpu >= 0 ? cpu : near;
        x->cpu = cpu;
        x->value = cpu >= 0 ? STATE_ACTIVE : STATE_NONE;
        if (found && x->begin < x[-1].end)
            x->begin = x[-1].end;
        found++;
    }
    free(own);
    return found;
}

static void states(const struct view *self, struct views *x, const struct tsp_query *q, struct tsp_answer *answer)
{
    const struct attributes *t = attributes_of(x);
    struct view_sampler s = view_begin_sampling(x, q, answer, show);
    size_t n = q->has_items ? q->n_items : t->v.n;
    for (size_t i = 0; i < n; i++) {
        int64_t id = q->has_items ? q->items[i] : first_id(x) + (int64_t)i;
        const struct attribute *a = attribute_of(x, t, id);
        if (!a || a->view == ATTRIBUTE_GROUP)
            continue;
        struct view_state_row row = {id, a->host, a->kind, a->row, (int)a->view};
        if (!view_sample_row_by(&s, &row, a->view == ATTRIBUTE_CPU_OF_THREAD ? sample_cpus : NULL))
            break;
    }
    view_end_sampling(&s);
}

/* ---- tooltip, style ---- */

static void write_value(struct tsp_answer *answer, const struct view_host *h, const struct attribute *a, int64_t t)
{
    struct state_interval iv;
    struct view_shown shown;
    int64_t at = view_sample_time(h, t);
    shown.label = shown.style_key = NULL;
    if (a->view == ATTRIBUTE_CPU_OF_THREAD ? !sample_cpus(h->states, a->row, &at, 1, &iv)
                                           : !state_at(h->states, a->kind, a->row, at, &iv))
        return;
    show_value(h, a->row, a->view, &iv, &shown);
    tsp_write_tip(answer, "Value", shown.label ? shown.label : "");
    view_write_span(answer, view_to_reference(h, iv.begin), view_to_reference(h, iv.end));
}

static void tooltip(const struct view *self, struct views *x, const struct tsp_query *q, struct tsp_answer *answer)
{
    int64_t entry, t;
    const struct attributes *all = attributes_of(x);
    const struct attribute *a = view_tooltip_target(q, &entry, &t) ? attribute_of(x, all, entry) : NULL;
    json_begin_object(&answer->json);
    if (a) {
        const struct view_host *h = &x->hosts[a->host];
        tsp_write_tip(answer, "Attribute path", attribute_path(all, a, q->http->arena));
        if (a->view != ATTRIBUTE_GROUP)
            write_value(answer, h, a, t);
        view_write_clock_error(answer, h, t);
    }
    json_end_object(&answer->json);
}

static void style(const struct view *self, struct views *x, const struct tsp_query *q, struct tsp_answer *answer)
{
    tsp_begin_styles(answer);
    view_write_state_styles(answer, ~0u);
    for (int i = 0; i < VIEW_PALETTE; i++)
        tsp_write_style(answer, value_keys[i], NULL, view_palette[i], 0.75, -1, value_keys[i]);
    tsp_end_styles(answer);
}

const struct view view_state_system = {
    .provider = {.id = "org.eclipse.tracecompass.internal.tmf.core.statesystem.provider.StateSystemDataProvider",
        .name = "State System Explorer",
        .description = "Every state and counter that is stored, as it is stored",
        .type = "TIME_GRAPH"},
    .has_data = has_data,
    .tree = tree,
    .states = states,
    .arrows = view_no_arrows,
    .tooltip = tooltip,
    .style = style,
    .close = close_attributes,
};
