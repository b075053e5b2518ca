/* SPDX-License-Identifier: MIT */
/* Statistics per stage, and per group of units. */
#include <stdlib.h>
#include <string.h>

#include "base/order.h"
#include "span/spans.h"
#include "span/statistics.h"

struct stages_making {
    const struct spans *s;
    struct spans_kinds kinds;
    double *numbers; /* durations, by kind */
};

/* Place of a stage in its units: mean distances of its begin and end from their begins. */
struct placed_stage {
    struct spans_stage stage;
    double begin, end;
    const struct spans *s;
};

static int by_texts(const struct spans *s, const uint32_t *a, const uint32_t *b)
{
    int order = 0;
    for (size_t i = 0; i < SPANS_BY && !order; i++)
        order = strcmp(spans_text(s, a[i]), spans_text(s, b[i]));
    return order;
}

static int by_place(const void *a, const void *b)
{
    const struct placed_stage *x = a, *y = b;
    return by_texts(x->s, x->stage.by, y->stage.by) ?: order_of(x->begin, y->begin) ?: order_of(x->end, y->end)
        ?: strcmp(spans_text(x->s, x->stage.name), spans_text(x->s, y->stage.name))
        ?: strcmp(spans_text(x->s, x->stage.service), spans_text(x->s, y->stage.service));
}

static void tell_quantiles(struct spans_stage *stage, double *v, size_t n)
{
    stat_sort(v, n);
    stage->least = v[0];
    stage->p50 = stat_quantile(v, n, 0.5);
    stage->p90 = stat_quantile(v, n, 0.9);
    stage->p99 = stat_quantile(v, n, 0.99);
    stage->most = v[n - 1];
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += v[i];
    stage->mean = sum / (double)n;
}

static void add_row(struct stages_making *m, struct placed_stage *p, size_t row)
{
    const struct spans_row *r = m->s->rows.v + row;
    struct spans_stage *stage = &p->stage;
    int64_t duration = spans_duration(r), from = m->s->units.v[r->unit].begin_ns;
    stage->errors += r->status == SPAN_ERROR;
    stage->cut += r->cut;
    stage->total += duration;
    stage->self += duration - (m->s->parts[row + 1] > m->s->parts[row] ? spans_covered(m->s, (uint32_t)row) : 0);
    p->begin += (double)(r->begin_ns - from) / (double)stage->n;
    p->end += (double)(r->end_ns - from) / (double)stage->n;
}

/* Makes a stage per kind, in one pass over the rows, which exceed the CPU's caches. */
static struct placed_stage *make_stages(struct stages_making *m)
{
    const size_t kinds = m->kinds.v.n;
    struct placed_stage *placed = mem_alloc((kinds + 1) * sizeof *placed);
    size_t *end = mem_alloc((kinds + 1) * sizeof *end), begin = 0;
    for (size_t k = 0; k < kinds; begin += m->kinds.v.v[k++].n) {
        const struct spans_kind *kind = m->kinds.v.v + k;
        placed[k] = (struct placed_stage){
            .stage = {.service = kind->service, .name = kind->name, .n = kind->n}, .s = m->s};
        memcpy(placed[k].stage.by, kind->by, sizeof kind->by);
        end[k] = begin;
    }
    for (size_t i = 0; i < m->s->rows.n; i++) {
        uint32_t k = m->kinds.of[i];
        m->numbers[end[k]++] = (double)spans_duration(m->s->rows.v + i);
        add_row(m, placed + k, i);
    }
    for (size_t k = 0; k < kinds; k++)
        tell_quantiles(&placed[k].stage, m->numbers + (end[k] - placed[k].stage.n), placed[k].stage.n);
    free(end);
    return placed;
}

static void make_shares(struct spans_stages *out)
{
    for (size_t i = 0, end; i < out->n; i = end) {
        int64_t self = 0;
        for (end = i; end < out->n && !memcmp(out->v[end].by, out->v[i].by, sizeof out->v[i].by); end++)
            self += out->v[end].self;
        for (size_t j = i; j < end; j++)
            out->v[j].share = self ? (double)out->v[j].self / (double)self : 0;
    }
}

/* ---- groups of units ---- */

static struct spans_group *group_of(struct spans_stages *out, size_t *cap, struct map *numbers, const uint32_t *by)
{
    for (uint64_t key = map_hash(by, SPANS_BY * sizeof *by);; key++) {
        bool fresh;
        uint64_t *number = map_put(numbers, key, &fresh);
        if (fresh) {
            if (out->n_groups == *cap)
                out->groups = mem_grow(out->groups, cap, out->n_groups + 1, sizeof *out->groups);
            *number = out->n_groups;
            out->groups[out->n_groups] = (struct spans_group){.useful = -1};
            memcpy(out->groups[out->n_groups++].by, by, SPANS_BY * sizeof *by);
        } else if (memcmp(out->groups[*number].by, by, SPANS_BY * sizeof *by) != 0) {
            continue;
        }
        return out->groups + *number;
    }
}

/* Returns attributes of a unit: from the first member with a value, else from its trace, whose values the kinds
 * hold. */
static void unit_values(
    const struct stages_making *m, const struct spans_by *by, const struct spans_unit *u, uint32_t *out)
{
    const struct spans *s = m->s;
    const uint32_t *member = s->members + u->member;
    for (size_t b = 0; b < by->n; b++) {
        for (uint32_t i = 0; i < u->members && !out[b]; i++)
            out[b] = spans_own_value(s, s->rows.v + member[i], by->keys[b]);
        if (!out[b])
            out[b] = m->kinds.v.v[m->kinds.of[*member]].by[b];
    }
}

static void add_unit_to(
    struct spans_group *g, const struct spans *s, const struct spans_unit *u, uint32_t main, bool *any)
{
    int64_t useful = 0;
    g->units++;
    g->total += u->end_ns - u->begin_ns;
    if (u->after >= 0) {
        g->waited++;
        g->queue += u->begin_ns - s->rows.v[u->after].end_ns;
    }
    for (uint32_t i = 0; i < u->members; i++) {
        const struct spans_row *r = s->rows.v + s->members[u->member + i];
        if (r->name != main)
            continue;
        useful += spans_duration(r);
        *any = true;
    }
    g->useful += useful + (g->useful < 0);
}

static const struct spans *sorting; /* global, since qsort has no argument; set before sorting */

static int by_group_texts(const void *a, const void *b)
{
    return by_texts(sorting, ((const struct spans_group *)a)->by, ((const struct spans_group *)b)->by);
}

static void make_groups(struct stages_making *m, const struct spans_by *by, const char *main, struct spans_stages *out)
{
    const struct spans *s = m->s;
    struct map numbers = {0};
    size_t cap = 0;
    bool any = false;
    uint32_t main_text = UINT32_MAX;
    for (size_t i = 0; i < m->kinds.v.n && main; i++)
        if (!strcmp(spans_text(s, m->kinds.v.v[i].name), main))
            main_text = m->kinds.v.v[i].name;
    for (size_t u = 0; u < s->units.n; u++) {
        uint32_t values[SPANS_BY] = {0};
        unit_values(m, by, s->units.v + u, values);
        add_unit_to(group_of(out, &cap, &numbers, values), s, s->units.v + u, main_text, &any);
    }
    for (size_t i = 0; i < out->n_groups && !any; i++)
        out->groups[i].useful = -1;
    sorting = s;
    if (out->n_groups)
        qsort(out->groups, out->n_groups, sizeof *out->groups, by_group_texts);
    map_fini(&numbers);
}

struct spans_stages *spans_stages(const struct spans *s, const struct spans_by *by, const char *main)
{
    struct spans_stages *out = mem_zalloc(sizeof *out);
    struct stages_making m = {.s = s, .numbers = mem_alloc((s->rows.n + 1) * sizeof(double))};
    spans_kinds_make(s, by, &m.kinds);
    struct placed_stage *placed = make_stages(&m);
    if (m.kinds.v.n)
        qsort(placed, m.kinds.v.n, sizeof *placed, by_place);
    out->n = m.kinds.v.n;
    out->v = mem_alloc((out->n + 1) * sizeof *out->v);
    for (size_t k = 0; k < out->n; k++)
        out->v[k] = placed[k].stage;
    make_shares(out);
    make_groups(&m, by, main, out);
    free(placed);
    free(m.numbers);
    spans_kinds_fini(&m.kinds);
    return out;
}

void spans_stages_free(struct spans_stages *s)
{
    if (!s)
        return;
    free(s->v);
    free(s->groups);
    free(s);
}
