/* SPDX-License-Identifier: MIT */
/* Rows of the host: their states at given times, from chunk to chunk. */
#include "state/list.h"

#include "state/lines.h"
#include "state/row.h"
#include "state/sample.h"

/* ---- rows ---- */

size_t state_rows(const struct state_store *s, int kind)
{
    return state_is_line(kind) ? state_line_rows(s, kind) : list_kind_of(s, kind)->n;
}

void state_row(const struct state_store *s, int kind, size_t i, struct state_row *out)
{
    if (state_is_line(kind)) {
        state_line_row(s, kind, i, out);
        return;
    }
    const struct list_row *r = list_row_of(s, kind, i);
    *out = (struct state_row){.kind = r->kind,
        .number = r->number,
        .name = r->name,
        .intervals = r->entries,
        .begin = r->begin,
        .end = r->end,
        .thread = kind == STATE_FUTEX_USER ? r->thread : -1,
        .waits = r->waits};
}

int64_t state_find_row(const struct state_store *s, int kind, int32_t number)
{
    if (state_is_line(kind))
        return state_line_find(s, kind, number);
    const struct list_kind *k = list_kind_of(s, kind);
    size_t lo = search_first(i, 0, k->n, k->v[i].number >= number);
    return lo < k->n && k->v[lo].number == number ? (int64_t)lo : -1;
}

/* ---- entries ---- */

const struct list_place *state_list_place_at(const struct list_row *r, int64_t t)
{
    size_t behind = search_first(i, 0, r->n, r->places[i].first > t);
    return behind ? &r->places[behind - 1] : NULL;
}

/* Sets threads and rows of futexes to the host's numbers. */
static void set_host(const struct state_part *p, int kind, struct state_interval *out)
{
    out->thread = state_host_row(p, out->thread);
    if ((kind == STATE_FUTEX_WAITS || kind == STATE_FUTEX_WAKES) && out->name)
        out->amount = p->users[out->amount];
}

/* Time until which the row's state is known: a state open at the end is known in the next chunk, unless that is
 * missing. */
static int64_t known_until(const struct list_row *r, const struct list_place *p)
{
    int64_t end = list_place_end(r, p);
    return p->until < end ? p->until : end;
}

static void set_value(uint8_t value, int64_t begin, int64_t end, struct state_interval *out)
{
    *out = (struct state_interval){.begin = begin, .end = end, .value = value, .thread = -1, .cpu = -1};
}

/* Sets the state before the first entry and outside the row's life. */
static void set_outside(const struct state_store *s, const struct list_row *r, int64_t t, struct state_interval *out)
{
    int64_t first = r->n ? r->places->first : INT64_MAX;
    if (t < r->begin)
        set_value(STATE_NONE, s->begin, r->begin, out);
    else if (t < first && t < r->end)
        set_value(r->lead, r->begin, first < r->end ? first : r->end, out);
    else
        set_value(STATE_NONE, r->end, s->end, out);
}

static void plain_at(const struct state_store *s, const struct list_row *r, int64_t t, struct state_interval *out)
{
    const struct list_place *p = t < r->end ? state_list_place_at(r, t) : NULL;
    if (!p) {
        set_outside(s, r, t, out);
        return;
    }
    int64_t end = list_place_end(r, p), until = known_until(r, p);
    if (t >= until) {
        set_value(STATE_UNKNOWN, until, end, out);
        return;
    }
    const struct state_part *part = &s->parts[p->part];
    state_sample_entry(part->chunk, p->row, t, out);
    out->end = out->end < until ? out->end : until;
    set_host(part, r->kind, out);
    if (__builtin_expect(out->begin > t || out->end <= t || out->begin < p->first, 0))
        set_value(STATE_UNKNOWN, t, end, out);
}

void state_list_row_at(const struct state_store *s, const struct list_row *r, int64_t t, struct state_interval *out)
{
    t -= t == s->end && t > s->begin;
    if (state_is_thread_io(r->kind)) {
        state_list_io_sample(s, r, &t, 1, out);
        return;
    }
    plain_at(s, r, t, out);
    if (r->kind == STATE_CPU && sample_shows_thread(out)) {
        struct state_interval doing;
        plain_at(s, list_row_of(s, STATE_THREAD, (size_t)out->thread), t, &doing);
        state_sample_compose(&doing, out);
    }
}

bool state_at(const struct state_store *s, int kind, size_t row, int64_t t, struct state_interval *out)
{
    if (t < s->begin || t > s->end)
        return false;
    if (state_is_line(kind))
        state_line_at(s, kind, row, t, out);
    else
        state_list_row_at(s, list_row_of(s, kind, row), t, out);
    return true;
}

int32_t state_thread_cpu(const struct state_store *s, size_t row, int64_t t, int32_t near)
{
    struct state_interval at;
    const struct list_kind *cpus = list_kind_of(s, STATE_CPU_THREAD);
    int64_t found = near < 0 ? -1 : state_find_row(s, STATE_CPU_THREAD, near);
    size_t from = found < 0 ? 0 : (size_t)found;
    for (size_t i = 0; i < cpus->n; i++) {
        const struct list_row *cpu = &cpus->v[(from + i) % cpus->n];
        plain_at(s, cpu, t, &at);
        if (at.thread >= 0 && (size_t)at.thread == row)
            return cpu->number;
    }
    return -1;
}

/* ---- samples ---- */

/* Row being sampled, and its intervals so far. */
struct sampling {
    struct sample_others others; /* first: passed to the chunk */
    const struct state_store *s;
    const struct state_part *part;
    const struct list_row *row;
    struct state_interval *out;
    size_t found;
};

static void thread_at(const struct sample_others *others, int32_t thread, int64_t t, struct state_interval *out)
{
    const struct sampling *x = (const struct sampling *)others;
    plain_at(x->s, list_row_of(x->s, STATE_THREAD, (size_t)state_host_row(x->part, thread)), t, out);
}

static void sample_one_by_one(struct sampling *x, const int64_t *times, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (x->found)
            i += row_gallop(times + i, n - i, x->out[x->found - 1].end);
        if (i == n)
            break;
        state_list_row_at(x->s, x->row, times[i], &x->out[x->found]);
        x->found += row_is_next(x->out, x->found);
    }
}

/* The times are behind the place's first entry and before the next place's. The chunk knows where its entries end, but
 * not whether the last one continues. */
static void sample_place(struct sampling *x, const struct list_place *p, const int64_t *times, size_t n)
{
    const struct list_row *r = x->row;
    size_t within = row_first_from(times, n, p->row->end), before = x->found;
    x->part = &x->s->parts[p->part];
    x->found = state_sample_entries(x->part->chunk, p->row, &x->others, times, within, x->out, before);
    bool same = !x->part->rows && r->kind != STATE_FUTEX_WAITS && r->kind != STATE_FUTEX_WAKES;
    for (size_t i = same ? x->found : before; i < x->found; i++)
        set_host(x->part, r->kind, &x->out[i]);
    struct state_interval *last = x->found > before ? &x->out[x->found - 1] : NULL;
    if (last && last->end == p->row->end && known_until(r, p) != last->end)
        state_list_row_at(x->s, r, last->begin, last);
    sample_one_by_one(x, times + within, n - within);
}

static void sample_row(struct sampling *x, const int64_t *times, size_t n)
{
    const struct list_row *r = x->row;
    size_t i = row_first_from(times, n, r->n ? r->places->first : INT64_MAX),
           behind = i + row_first_from(times + i, n - i, r->end), m;
    sample_one_by_one(x, times, i);
    for (; i < behind; i += m) {
        const struct list_place *p = state_list_place_at(r, times[i]);
        m = row_first_from(times + i, behind - i, p->next);
        sample_place(x, p, times + i, m);
    }
    sample_one_by_one(x, times + i, n - i);
}

/* Chunks are validated separately: if damage makes entries of two overlap, the later one is cut or dropped. */
static size_t without_overlaps(struct state_interval *v, size_t n)
{
    size_t kept = n ? 1 : 0;
    while (kept < n && v[kept].begin >= v[kept - 1].end && v[kept].end > v[kept - 1].end)
        kept++;
    for (size_t i = kept; i < n; i++) {
        int64_t from = v[kept - 1].end;
        if (v[i].end <= from)
            continue;
        v[kept] = v[i];
        v[kept].begin = v[i].begin > from ? v[i].begin : from;
        kept++;
    }
    return kept;
}

size_t state_sample(
    const struct state_store *s, int kind, size_t row, const int64_t *times, size_t n, struct state_interval *out)
{
    if (state_is_line(kind))
        return state_line_sample(s, kind, row, times, n, out);
    struct sampling x = {.others = {thread_at}, .s = s, .row = list_row_of(s, kind, row), .out = out};
    size_t skip = row_first_from(times, n, s->begin), within = skip + row_first_from(times + skip, n - skip, s->end);
    if (state_is_thread_io(kind)) {
        x.found = state_list_io_sample(s, x.row, times + skip, within - skip, out);
    } else {
        sample_row(&x, times + skip, within - skip);
    }
    if (within < n && times[within] == s->end) {
        state_list_row_at(s, x.row, s->end, &out[x.found]);
        x.found += row_is_next(out, x.found);
    }
    return without_overlaps(out, x.found);
}

/* ---- ranges ---- */

size_t state_range(const struct state_store *s, int kind, size_t row, int64_t begin, int64_t end,
    struct state_interval *out, size_t max)
{
    const int64_t last = s->end;
    int64_t t = begin > s->begin ? begin : s->begin;
    end = end < last ? end : last;
    if (state_is_line(kind))
        return state_line_range(s, kind, row, t, end, out, max);
    if (state_is_thread_io(kind))
        return t < last ? state_list_io_range(s, list_row_of(s, kind, row), t, end < last ? end : last - 1, out, max)
                        : 0;
    size_t n = 0;
    while (n < max && t <= end && t < last) {
        state_at(s, kind, row, t, &out[n]);
        t = out[n++].end;
    }
    return n;
}
