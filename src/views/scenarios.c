/* Scenarios: calls of futex that wait or wake, and interrupt handlers, in lanes: as many are taken as go on at once.
 * Rows: hosts, what goes on, lanes. */
#include <stdlib.h>

#include "base/mem.h"
#include "views/list.h"
#include "views/futex_calls.h"

enum { NONE = -1, NO_LANES = STATE_KINDS };
static const char handler_cut[] = "IRQ without an end";

/* ---- entries ---- */

/* kind NO_LANES: a host; lane NONE: a group. parent: index of the entry, NONE. */
struct row {
    int64_t parent, lane;
    size_t host;
    int kind;
};
/* The entry with index i has the id first + i. */
struct rows {
    VEC(struct row) v;
    int64_t first;
};

static const int futex_kinds[] = {STATE_FUTEX_WAITS, STATE_FUTEX_WAKES, NO_LANES},
                 irq_kinds[] = {STATE_IRQ_HANDLERS, NO_LANES};

static const char *group_name(int kind)
{
    return kind == STATE_FUTEX_WAITS ? "Futex wait/lock"
        : kind == STATE_FUTEX_WAKES  ? "Futex wake/unlock"
                                     : "IRQ handlers";
}

static size_t lanes_of(const struct view_host *h, int kind)
{
    return h->states ? state_rows(h->states, kind) : 0;
}

static bool any(const struct views *x, const int *kinds)
{
    for (size_t i = 0; i < x->n_hosts; i++)
        for (const int *k = kinds; *k != NO_LANES; k++)
            if (lanes_of(&x->hosts[i], *k))
                return true;
    return false;
}
static bool has_futexes(const struct view *self, struct views *x)
{
    return any(x, futex_kinds);
}
static bool has_irqs(const struct view *self, struct views *x)
{
    return any(x, irq_kinds);
}

static int64_t add(struct rows *t, struct row row)
{
    vec_push(&t->v, row);
    return (int64_t)t->v.n - 1;
}

static struct rows *find_rows(const struct views *x, const int *kinds)
{
    struct rows *t = mem_zalloc(sizeof *t);
    t->first = x->last_thread + 1;
    for (size_t i = 0; i < x->n_hosts; i++) {
        int64_t root = NONE;
        for (const int *k = kinds; *k != NO_LANES; k++) {
            size_t n = lanes_of(&x->hosts[i], *k);
            if (n && root == NONE)
                root = add(t, (struct row){NONE, NONE, i, NO_LANES});
            int64_t group = n ? add(t, (struct row){root, NONE, i, *k}) : NONE;
            for (size_t lane = 0; lane < n; lane++)
                add(t, (struct row){group, (int64_t)lane, i, *k});
        }
    }
    return t;
}
static void *find_futexes(struct views *x)
{
    return find_rows(x, futex_kinds);
}
static void *find_irqs(struct views *x)
{
    return find_rows(x, irq_kinds);
}

static void close_rows(struct views *x, void *cache)
{
    struct rows *t = cache;
    vec_free(&t->v);
    free(t);
}

static const struct row *row_of(const struct rows *t, int64_t id)
{
    return id >= t->first && id - t->first < (int64_t)t->v.n ? &t->v.v[id - t->first] : NULL;
}

/* ---- tree ---- */

static void write_row(const struct views *x, const struct rows *t, size_t i, struct arena *a, struct tsp_answer *answer)
{
    const struct row *r = &t->v.v[i];
    const struct view_host *h = &x->hosts[r->host];
    const char *label = r->kind == NO_LANES ? h->index->name
        : r->lane < 0                       ? group_name(r->kind)
                                            : arena_printf(a, "%lld", (long long)r->lane);
    int64_t begin, end;
    state_span(h->states, &begin, &end);
    tsp_write_entry(answer,
        &(struct tsp_entry){.id = t->first + (int64_t)i,
            .parent = r->parent == NONE ? -1 : t->first + r->parent,
            .labels = &label,
            .n_labels = 1,
            .time_graph = true,
            .start = i ? view_to_reference(h, begin) : x->data.begin, /* what clients count from */
            .end = view_to_reference(h, end),
            .has_data = r->lane >= 0,
            .host_id = h->id});
}

static void tree(const struct view *self, struct views *x, const struct tsp_query *q, struct tsp_answer *answer,
    const struct rows *t)
{
    static const struct tsp_header headers[] = {
        {"Scenario", "What goes on at once, each in the first free lane", "STRING"}};
    tsp_begin_tree(answer, headers, 1, -1);
    for (size_t i = 0; i < t->v.n && !tsp_full(answer); i++)
        write_row(x, t, i, q->http->arena, answer);
    tsp_end_tree(answer);
}

/* ---- states ---- */

static void show_irq(
    const struct view_host *h, const struct state_interval *iv, bool with_properties, struct view_shown *out)
{
    out->style_key = iv->value == STATE_IRQ && iv->cut ? handler_cut : view_state_key(iv->value);
    out->label = iv->name;
    if (!with_properties || !out->style_key)
        return;
    view_add_property(out, "state", out->style_key);
    view_add_property(out, "host", h->index->name);
    view_add_property(out, "interrupt", iv->name);
    if (iv->cpu >= 0)
        view_add_number(out, "cpu", iv->cpu);
}

/* Looks of the call, named by its futex. */
static void show_futex(
    const struct view_host *h, const struct state_interval *iv, bool with_properties, struct view_shown *out)
{
    struct state_interval call;
    if (iv->value != STATE_FUTEX_WAIT && iv->value != STATE_FUTEX_WAKE) {
        out->style_key = view_state_key(iv->value);
        return;
    }
    if (!state_at(h->states, STATE_FUTEX_USER, (size_t)iv->amount, iv->begin, &call))
        return;
    futex_show(h, (size_t)iv->amount, &call, with_properties, out);
    out->label = iv->name;
}

static void show(struct views *x, const struct view_state_row *row, const struct state_interval *iv,
    bool with_properties, struct view_shown *out)
{
    (row->kind == STATE_IRQ_HANDLERS ? show_irq : show_futex)(&x->hosts[row->host], iv, with_properties, out);
}

static void states(const struct view *self, struct views *x, const struct tsp_query *q, struct tsp_answer *answer,
    const struct rows *t)
{
    struct view_sampler s = view_begin_sampling(x, q, answer, show);
    size_t n = q->has_items ? q->n_items : t->v.n;
    for (size_t i = 0; i < n; i++) {
        int64_t id = q->has_items ? q->items[i] : t->first + (int64_t)i;
        const struct row *r = row_of(t, id);
        if (r && r->lane >= 0 && !view_sample_row(&s, &(struct view_state_row){id, r->host, r->kind, (size_t)r->lane}))
            break;
    }
    view_end_sampling(&s);
}

/* ---- tooltip, style ---- */

static void write_irq(
    struct tsp_answer *answer, const struct tsp_query *q, const struct view_host *h, const struct state_interval *iv)
{
    tsp_write_tip(answer, "State", iv->cut ? handler_cut : view_state_key(STATE_IRQ));
    if (iv->name)
        tsp_write_tip(answer, "Interrupt", iv->name);
    if (iv->cpu >= 0)
        tsp_write_tip(answer, "CPU", arena_printf(q->http->arena, "%d", iv->cpu));
    view_write_span(answer, view_to_reference(h, iv->begin), view_to_reference(h, iv->end));
}

static void tooltip(const struct view *self, struct views *x, const struct tsp_query *q, struct tsp_answer *answer,
    const struct rows *rows)
{
    int64_t entry, t;
    struct state_interval iv;
    const struct row *r = view_tooltip_target(q, &entry, &t) ? row_of(rows, entry) : NULL;
    json_begin_object(&answer->json);
    if (r) {
        const struct view_host *h = &x->hosts[r->host];
        tsp_write_tip(answer, "Host", h->index->name);
        if (r->lane >= 0 && state_at(h->states, r->kind, (size_t)r->lane, view_sample_time(h, t), &iv)) {
            if (iv.value == STATE_IRQ)
                write_irq(answer, q, h, &iv);
            else if (iv.value == STATE_FUTEX_WAIT || iv.value == STATE_FUTEX_WAKE)
                futex_write_call(answer, h, (size_t)iv.amount, iv.begin);
        }
        view_write_clock_error(answer, h, t);
    }
    json_end_object(&answer->json);
}

static void futex_style(const struct view *self, struct views *x, const struct tsp_query *q, struct tsp_answer *answer)
{
    tsp_begin_styles(answer);
    futex_write_styles(answer);
    tsp_end_styles(answer);
}
static void irq_style(const struct view *self, struct views *x, const struct tsp_query *q, struct tsp_answer *answer)
{
    tsp_begin_styles(answer);
    view_write_state_styles(answer, VIEW_STATE(IRQ) | VIEW_STATE(UNKNOWN));
    tsp_write_style(answer, handler_cut, NULL, LOOK_STOLEN, 1, -1, handler_cut);
    tsp_end_styles(answer);
}

/* ---- the two ---- */

#define OPERATION(what, operation, provider, find) \
    static void what##_##operation( \
        const struct view *self, struct views *x, const struct tsp_query *q, struct tsp_answer *answer) \
    { \
        operation(self, x, q, answer, view_cache(x, &provider, find)); \
    }
OPERATION(futex, tree, view_futex_scenarios, find_futexes)
OPERATION(futex, states, view_futex_scenarios, find_futexes)
OPERATION(futex, tooltip, view_futex_scenarios, find_futexes)
OPERATION(irq, tree, view_irq_scenarios, find_irqs)
OPERATION(irq, states, view_irq_scenarios, find_irqs)
OPERATION(irq, tooltip, view_irq_scenarios, find_irqs)

const struct view view_futex_scenarios = {
    .provider = {.id = "lttng2.kernel.core.futex.scenarios",
        .name = "Futex Contention Analysis: Scenarios",
        .description = "How many threads wait for futexes at once, how many wake others",
        .type = "TIME_GRAPH"},
    .has_data = has_futexes,
    .tree = futex_tree,
    .states = futex_states,
    .arrows = view_no_arrows,
    .tooltip = futex_tooltip,
    .style = futex_style,
    .close = close_rows,
};
const struct view view_irq_scenarios = {
    .provider = {.id = "xml.scenarios",
        .name = "IRQ Analysis: Scenarios",
        .description = "How many interrupts are handled at once",
        .type = "TIME_GRAPH"},
    .has_data = has_irqs,
    .tree = irq_tree,
    .states = irq_states,
    .arrows = view_no_arrows,
    .tooltip = irq_tooltip,
    .style = irq_style,
    .close = close_rows,
};
