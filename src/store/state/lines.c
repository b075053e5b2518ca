/* SPDX-License-Identifier: MIT */
/* Interrupts over all CPUs, computed from the rows of each. Time is divided into moments, in which no CPU changes;
 * adjacent moments with the same state are one interval. */
#include "state/lines.h"

#include <stdlib.h>

#include "base/mem.h"
#include "base/order.h"
#include "state/list.h"
#include "state/row.h"

/* ---- list of lines ---- */

static int kind_of_cpus(int kind)
{
    return kind == STATE_IRQ_LINE ? STATE_CPU_IRQ : STATE_CPU_SOFTIRQ;
}

/* Orders by line, then CPU, as rows ascend. */
static int by_line(const void *a, const void *b)
{
    const struct state_line_row *x = a, *y = b;
    return order_of(x->number & 0xffff, y->number & 0xffff) ?: order_of(x->row, y->row);
}

/* rows: rows of all CPUs; takes ownership. */
static void find_lines(struct state_lines *all, struct state_line_row *rows, size_t n)
{
    all->v = mem_alloc((n + 1) * sizeof *all->v);
    all->rows = rows;
    if (n)
        qsort(rows, n, sizeof *rows, by_line);
    for (size_t i = 0; i < n; i++) {
        int32_t number = rows[i].number & 0xffff;
        if (!all->n || all->v[all->n - 1].number != number)
            all->v[all->n++] = (struct state_line){.rows = &rows[i], .number = number};
        all->v[all->n - 1].n++;
    }
}

void state_lines_init(struct state_store *s)
{
    for (int kind = STATE_IRQ_LINE; kind <= STATE_SOFTIRQ_VECTOR; kind++) {
        int cpus = kind_of_cpus(kind);
        size_t n = list_kind_of(s, cpus)->n;
        struct state_line_row *rows = mem_alloc((n + 1) * sizeof *rows);
        for (size_t i = 0; i < n; i++)
            rows[i] = (struct state_line_row){(uint32_t)i, list_row_of(s, cpus, i)->number};
        find_lines(&s->lines[kind - STATE_IRQ_LINE], rows, n);
    }
}

void state_lines_fini(struct state_store *s)
{
    for (int i = 0; i < STATE_LINE_KINDS; i++) {
        free(s->lines[i].v);
        free(s->lines[i].rows);
    }
}

static const struct state_lines *lines_of(const struct state_store *s, int kind)
{
    return &s->lines[kind == STATE_SOFTIRQ_VECTOR];
}

size_t state_line_rows(const struct state_store *s, int kind)
{
    return lines_of(s, kind)->n;
}

void state_line_row(const struct state_store *s, int kind, size_t i, struct state_row *out)
{
    const struct state_line *line = &lines_of(s, kind)->v[i];
    *out = (struct state_row){
        .kind = (uint8_t)kind, .number = line->number, .begin = s->begin, .end = s->end, .thread = -1};
    for (size_t k = 0; k < line->n; k++) {
        const struct list_row *of_cpu = list_row_of(s, kind_of_cpus(kind), line->rows[k].row);
        out->name = of_cpu->name;
        out->intervals += of_cpu->entries;
    }
}

int64_t state_line_find(const struct state_store *s, int kind, int32_t number)
{
    const struct state_lines *all = lines_of(s, kind);
    size_t lo = search_first(i, 0, all->n, all->v[i].number >= number);
    return lo < all->n && all->v[lo].number == number ? (int64_t)lo : -1;
}

/* ---- moments ---- */

struct moment {
    int64_t begin, end;
    int64_t since, until; /* ACTIVE: duration of that CPU's interval */
    int32_t cpu;          /* ACTIVE: CPU shown; else -1 */
    uint8_t value;
};
static const struct moment nothing = {.begin = INT64_MIN, .end = INT64_MAX, .cpu = -1, .value = STATE_NONE};

/* Adds the state of one more CPU; CPUs come in order. */
static inline void add_cpu(struct moment *m, int32_t cpu, const struct state_interval *does)
{
    m->begin = does->begin > m->begin ? does->begin : m->begin;
    m->end = does->end < m->end ? does->end : m->end;
    if (does->value == STATE_ACTIVE && (m->value != STATE_ACTIVE || does->begin >= m->since)) {
        m->value = STATE_ACTIVE;
        m->cpu = cpu;
        m->since = does->begin;
        m->until = does->end;
    } else if (does->value != STATE_NONE && m->value == STATE_NONE) {
        m->value = STATE_UNKNOWN;
    }
}

/* Returns whether b continues what a showed. Whether they are adjacent is checked, too, since the file may be
 * damaged. */
static bool goes_on(const struct moment *a, const struct moment *b)
{
    return a->end == b->begin && a->value == b->value && a->cpu == b->cpu;
}

/* Returns whether an adjacent moment may show the same. False across the end of a NONE, or of the CPU's own
 * interval. */
static bool may_go_back(const struct moment *m)
{
    return m->value == STATE_ACTIVE ? m->begin > m->since : m->value == STATE_UNKNOWN;
}
static bool may_go_on(const struct moment *m)
{
    return m->value == STATE_ACTIVE ? m->end < m->until : m->value == STATE_UNKNOWN;
}

static void set_interval(const struct moment *m, int64_t begin, int64_t end, struct state_interval *out)
{
    *out = (struct state_interval){.begin = begin, .end = end, .value = m->value, .thread = -1, .cpu = m->cpu};
}

/* ---- sequential reading ---- */

/* Line and the states of its CPUs at the last look. */
struct line_view {
    const struct state_store *s;
    const struct state_line *line;
    int kind; /* kind of the CPUs' rows */
    struct state_interval *does;
};

static struct line_view open_view(const struct state_store *s, int kind, size_t row)
{
    const struct state_line *line = &lines_of(s, kind)->v[row];
    return (struct line_view){s, line, kind_of_cpus(kind), mem_zalloc(line->n * sizeof(struct state_interval))};
}

static int32_t cpu_of(const struct line_view *v, size_t i)
{
    return v->line->rows[i].number >> 16;
}

static struct moment look(struct line_view *v, int64_t t)
{
    struct moment m = nothing;
    for (size_t i = 0; i < v->line->n; i++) {
        struct state_interval *does = &v->does[i];
        if (t < does->begin || t >= does->end)
            state_list_row_at(v->s, list_row_of(v->s, v->kind, v->line->rows[i].row), t, does);
        add_cpu(&m, cpu_of(v, i), does);
    }
    return m;
}

static int64_t begin_of(struct line_view *v, struct moment m)
{
    while (may_go_back(&m) && m.begin > v->s->begin) {
        struct moment before = look(v, m.begin - 1);
        if (!goes_on(&before, &m))
            break;
        m = before;
    }
    return m.begin;
}

static int64_t end_of(struct line_view *v, struct moment m)
{
    while (may_go_on(&m) && m.end < v->s->end) {
        struct moment next = look(v, m.end);
        if (!goes_on(&m, &next))
            break;
        m = next;
    }
    return m.end;
}

static void interval_at(struct line_view *v, int64_t t, struct state_interval *out)
{
    struct moment m = look(v, t);
    int64_t begin = begin_of(v, m);
    set_interval(&m, begin, end_of(v, m), out);
}

void state_line_at(const struct state_store *s, int kind, size_t row, int64_t t, struct state_interval *out)
{
    struct line_view v = open_view(s, kind, row);
    interval_at(&v, t, out);
    free(v.does);
}

size_t state_line_range(const struct state_store *s, int kind, size_t row, int64_t begin, int64_t end,
    struct state_interval *out, size_t max)
{
    struct line_view v = open_view(s, kind, row);
    size_t n = 0;
    for (int64_t t = begin; n < max && t <= end && t < s->end; t = out[n++].end) {
        if (n) { /* end of the one before */
            struct moment m = look(&v, t);
            set_interval(&m, t, end_of(&v, m), &out[n]);
        } else {
            interval_at(&v, t, &out[n]);
        }
    }
    free(v.does);
    return n;
}

/* ---- sampling ---- */

enum { TOGETHER = 128 };

/* Finds the moments that contain the times, CPU by CPU. */
static void look_at_all(const struct line_view *v, const int64_t *times, size_t n, struct moment *out)
{
    struct state_interval does[TOGETHER];
    for (size_t j = 0; j < n; j++)
        out[j] = nothing;
    for (size_t i = 0; i < v->line->n; i++) {
        size_t found = state_sample(v->s, v->kind, v->line->rows[i].row, times, n, does), k = 0;
        for (size_t j = 0; j < n; j++) {
            while (k + 1 < found && does[k].end <= times[j])
                k++;
            add_cpu(&out[j], cpu_of(v, i), &does[k]);
        }
    }
}

size_t state_line_sample(
    const struct state_store *s, int kind, size_t row, const int64_t *times, size_t n, struct state_interval *out)
{
    struct line_view v = open_view(s, kind, row);
    struct moment moments[TOGETHER];
    size_t found = 0, from = row_first_from(times, n, s->begin);
    while (n > from && times[n - 1] > s->end)
        n--;
    for (size_t i = from, m; i < n; i += m) {
        m = n - i < TOGETHER ? n - i : TOGETHER;
        if (found && times[i] < out[found - 1].end) {
            m = row_first_from(times + i, n - i, out[found - 1].end);
            continue;
        }
        look_at_all(&v, times + i, m, moments);
        for (size_t j = 0; j < m; j++) {
            int64_t t = times[i + j];
            if (found && t < out[found - 1].end)
                continue;
            if (may_go_back(&moments[j]) || may_go_on(&moments[j]))
                interval_at(&v, t, &out[found]);
            else
                set_interval(&moments[j], moments[j].begin, moments[j].end, &out[found]);
            found += row_is_next(out, found);
        }
    }
    free(v.does);
    return found;
}
