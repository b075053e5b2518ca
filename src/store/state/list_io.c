/* SPDX-License-Identifier: MIT */
/* Bytes that a thread read, or wrote, at given times: the sum of all files that it used, and of bytes moved
 * without a file. */
#include "state/list.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "state/sums.h"
#include "state/thread_io.h"

/* Row of a thread: its own counter, which is number 0, and its files. */
struct thread_io {
    const struct state_store *s;
    const struct list_row *row;
    uint32_t n_rows;
};

static struct thread_io thread_io(const struct state_store *s, const struct list_row *r)
{
    return (struct thread_io){s, r, r->n_files + 1};
}

static int way_of(const struct list_row *r)
{
    return r->kind - STATE_COUNTER_ROWS - STATE_IO_READ;
}

/* Returns the row itself, or one of its files. */
static const struct list_row *part_of(const struct thread_io *x, uint32_t i)
{
    const struct list_row *r = x->row;
    return i ? list_row_of(x->s, STATE_FILE_ROWS, r->files[i - 1]) : r;
}

static int64_t first_of(const struct thread_io *x, uint32_t i)
{
    const struct list_row *r = part_of(x, i);
    return r->n ? r->places->first : INT64_MAX;
}

static const struct state_chunk *chunk_of(const struct state_store *s, const struct list_place *p)
{
    return s->parts[p->part].chunk;
}

/* ---- steps ---- */

/* End of the place's last use that moved something, for any file contents. */
static int64_t last_step(const struct state_store *s, const struct list_place *p, int way)
{
    int64_t end = state_thread_io_last(chunk_of(s, p), p->row, way);
    return end > INT64_MIN ? end : p->first;
}

static int64_t first_step(const struct state_store *s, const struct list_place *p, int way)
{
    int64_t end = state_thread_io_step(chunk_of(s, p), p->row, way, p->first).end;
    return end == INT64_MAX ? p->first : end;
}

static struct io_step file_step(const struct state_store *s, const struct list_row *r, int way, int64_t t)
{
    const struct list_place *p = state_list_place_at(r, t);
    struct io_step x = {INT64_MIN, INT64_MAX};
    size_t i = p ? (size_t)(p - r->places) : 0;
    int64_t moved = p ? p->moved[way] : 0;
    if (p)
        x = state_thread_io_step(chunk_of(s, p), p->row, way, t);
    if (x.begin == INT64_MIN && i && p[-1].moved[way]) {
        size_t last = search_first(k, 0, i, r->places[k].moved[way] >= p[-1].moved[way]);
        x.begin = last_step(s, &r->places[last], way);
    }
    size_t next = x.end < INT64_MAX ? r->n : search_first(k, p ? i + 1 : 0, r->n, r->places[k].moved[way] > moved);
    if (next < r->n)
        x.end = first_step(s, &r->places[next], way);
    return x;
}

static struct io_step own_step(const struct state_store *s, const struct list_row *r, int64_t t)
{
    const struct list_place *p = state_list_place_at(r, t);
    if (!p)
        return (struct io_step){INT64_MIN, r->places->first};
    struct io_step x = state_thread_io_step(chunk_of(s, p), p->row, 0, t);
    x.end = x.end < p->next ? x.end : p->next;
    return x;
}

static struct io_step step_of(const struct thread_io *x, uint32_t i, int64_t t)
{
    const struct list_row *r = part_of(x, i);
    struct io_step step = i ? file_step(x->s, r, way_of(x->row), t) : own_step(x->s, r, t);
    step.begin = step.begin < t ? step.begin : t; /* bounded for any file contents */
    step.end = step.end > t ? step.end : INT64_MAX;
    return step;
}

/* ---- values ---- */

/* Cuts the intervals around times [from, to) to the steps of one row. */
static void cut(const struct thread_io *x, uint32_t row, struct io_query *q, size_t from, size_t to)
{
    for (size_t k = from, next; k < to; k = next) {
        struct io_step step = step_of(x, row, q->times[k]);
        struct state_interval *at = &q->around[k], *last;
        next = k + row_gallop(q->times + k, to - k, step.end);
        last = &q->around[next - 1];
        at->begin = step.begin > at->begin ? step.begin : at->begin;
        last->end = step.end < last->end ? step.end : last->end;
    }
}

/* Adds to each time the increase of the file's sum since the time before. */
struct file_sum {
    const struct state_store *s;
    int way;
    int64_t *more;     /* one per time */
    uint64_t reported; /* bytes reported so far */
};

static void report(struct file_sum *f, struct io_query *q, size_t i, uint64_t sum)
{
    q->bytes[i] = (int64_t)((uint64_t)q->bytes[i] + sum - f->reported);
    f->reported = sum;
}

/* Bytes moved before the place's chunk. */
static uint64_t sum_before(const struct file_sum *f, const struct list_place *p)
{
    return (uint64_t)p->moved[f->way] - (uint64_t)state_disk_file(chunk_of(f->s, p), p->row)->counted[f->way];
}

/* Times [i, i + m) are in the place. sum: bytes moved before. Few uses are added one by one (returns true); otherwise
 * the sum is read at each time. */
static bool add_place(
    struct file_sum *f, const struct list_place *p, uint64_t sum, struct io_query *q, size_t i, size_t m)
{
    const struct state_chunk *c = chunk_of(f->s, p);
    uint64_t shown;
    bool one_by_one = state_thread_io_show(c, p->row, f->way, q, i, i + m, &shown);
    size_t asked = !one_by_one ? m : i ? 0 : 1;
    if (asked) {
        memset(f->more, 0, asked * sizeof *f->more);
        state_sum_values(c, p->row, (enum sum_of)f->way, q->times + i, asked, f->more);
    }
    for (size_t k = 0; k < asked; k++)
        report(f, q, i + k, sum += (uint64_t)f->more[k]);
    if (!asked)
        report(f, q, i, sum);
    f->reported += one_by_one ? shown : 0;
    return one_by_one;
}

/* Cuts at steps where uses are not added one by one: around the first and the last of the times; where something was
 * moved between two places; and around all times of a place with many uses. */
static void add_file(const struct thread_io *x, uint32_t row, struct io_query *q, int64_t *more)
{
    const struct list_row *r = part_of(x, row);
    struct file_sum f = {.s = x->s, .way = way_of(x->row), .more = more};
    size_t i = row_first_from(q->times, q->n, r->places->first), m;
    if (q->around && !i)
        cut(x, row, q, 0, 1);
    for (const struct list_place *p = NULL; i < q->n; i += m) {
        p = list_place_from(r, p, q->times[i]);
        uint64_t sum = sum_before(&f, p);
        bool between = i && sum != f.reported;
        m = (p->next == INT64_MAX ? q->n : state_io_query_from(q, p->next)) - i; /* the last place has no end */
        bool shown = add_place(&f, p, sum, q, i, m);
        if (!q->around)
            continue;
        if (i && (between || !shown))
            cut(x, row, q, i - 1, i);
        if (between || !shown)
            cut(x, row, q, i, shown ? i + 1 : i + m);
    }
    if (q->around)
        cut(x, row, q, q->n - 1, q->n);
}

/* Computes the bytes up to each of the (ascending) times. If `around` is given, cuts its intervals to the steps next to
 * the times. */
static void ask(
    const struct thread_io *x, const int64_t *times, size_t n, int64_t *values, struct state_interval *around)
{
    const struct list_row *own = x->row;
    struct io_query q = {times, n, values, around};
    int64_t *more = mem_alloc((n + 1) * sizeof *more);
    uint64_t sum = 0;
    memset(values, 0, n * sizeof *values);
    for (uint32_t i = 1; n && i < x->n_rows; i++) {
        int64_t first = first_of(x, i);
        if (first <= times[n - 1] || (around && first < INT64_MAX && first < around[n - 1].end))
            add_file(x, i, &q, more);
    }
    for (size_t k = 0; k < n; k++)
        values[k] = (int64_t)(sum += (uint64_t)values[k]);
    const struct list_place *p = NULL;
    for (size_t k = own->n ? row_first_from(times, n, own->places->first) : n; k < n; k++) {
        p = list_place_from(own, p, times[k]);
        values[k] = (int64_t)((uint64_t)values[k] + (uint64_t)state_row_value(chunk_of(x->s, p), p->row, times[k]));
    }
    if (around && own->n)
        cut(x, 0, &q, 0, n);
    state_io_query_fini(&q);
    free(more);
}

void state_list_io_values(
    const struct state_store *s, const struct list_row *r, const int64_t *times, size_t n, int64_t *values)
{
    struct thread_io x = thread_io(s, r);
    ask(&x, times, n, values, NULL);
}

/* ---- intervals ---- */

static size_t sample(const struct thread_io *x, const int64_t *times, size_t n, struct state_interval *out)
{
    size_t found = 0;
    int64_t *values = mem_alloc((n + 1) * sizeof *values);
    for (size_t k = 0; k < n; k++)
        out[k] = (struct state_interval){.begin = x->s->begin, .end = x->s->end, .thread = -1, .cpu = -1};
    ask(x, times, n, values, out);
    for (size_t k = n; k-- > 1;)
        out[k - 1].end = out[k].end < out[k - 1].end ? out[k].end : out[k - 1].end;
    for (size_t k = 0; k < n; k++) {
        if (found && times[k] < out[found - 1].end)
            continue;
        int64_t begin = found && out[found - 1].end > out[k].begin ? out[found - 1].end : out[k].begin;
        out[found++] = (struct state_interval){.begin = begin,
            .end = out[k].end,
            .value = values[k] ? STATE_ACTIVE : STATE_NONE,
            .amount = values[k],
            .thread = -1,
            .cpu = -1};
    }
    free(values);
    return found;
}

size_t state_list_io_sample(
    const struct state_store *s, const struct list_row *r, const int64_t *times, size_t n, struct state_interval *out)
{
    struct thread_io x = thread_io(s, r);
    return sample(&x, times, n, out);
}

/* First `max` of some times, without duplicates. */
struct first_times {
    int64_t *v;
    size_t n, max;
};

static void take(struct first_times *e, int64_t t)
{
    size_t at = row_first_from(e->v, e->n, t);
    if (at == e->max || (at < e->n && e->v[at] == t))
        return;
    e->n += e->n < e->max;
    memmove(e->v + at + 1, e->v + at, (e->n - at - 1) * sizeof *e->v);
    e->v[at] = t;
}

/* Collects the steps of one row behind the first of the times, up to `end`. */
static void take_steps(const struct thread_io *x, uint32_t row, int64_t end, struct first_times *e)
{
    int64_t t = e->v[0];
    while ((t = step_of(x, row, t).end) <= end && (e->n < e->max || t < e->v[e->n - 1]))
        take(e, t);
}

size_t state_list_io_range(const struct state_store *s, const struct list_row *r, int64_t begin, int64_t end,
    struct state_interval *out, size_t max)
{
    if (!max || begin > end)
        return 0;
    const struct thread_io io = thread_io(s, r), *x = &io;
    struct first_times e = {.v = mem_alloc(max * sizeof *e.v), .n = 1, .max = max};
    e.v[0] = begin;
    for (uint32_t i = 0; i < x->n_rows; i++) {
        int64_t first = first_of(x, i);
        if (first < INT64_MAX && (e.n < max || first < e.v[e.n - 1]))
            take_steps(x, i, end, &e);
    }
    size_t n = sample(x, e.v, e.n, out);
    for (size_t i = 1; i < n; i++)
        out[i].begin = out[i - 1].end; /* bounded for any file contents */
    free(e.v);
    return n;
}
