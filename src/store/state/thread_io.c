/* SPDX-License-Identifier: MIT */
/* Bytes that a thread read, or wrote, at given times: the sum of all files that it used, and of bytes moved without a
 * file. */
#include "state/thread_io.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "state/sums.h"

static int way_of(const struct state_disk_row *r)
{
    return r->kind - STATE_COUNTER_ROWS - STATE_IO_READ;
}

/* Row of the i-th file through which the thread moved bytes. */
static const struct state_disk_row *file_of(const struct state_chunk *s, const struct state_disk_row *r, uint32_t i)
{
    return &s->rows[s->first[STATE_FILE_ROWS] + s->through[r->first_file + i]];
}

size_t thread_io_entries(const struct state_chunk *s, const struct state_disk_row *r)
{
    size_t n = r->n;
    for (uint32_t i = 0; i < r->n_files; i++)
        n += file_of(s, r, i)->n;
    return n;
}

/* ---- steps: changes of the sum ---- */

/* Row of a file, and an entry of it. */
struct file_cursor {
    const struct state_chunk *s;
    const struct state_disk_row *row;
    int way;
    uint32_t cell;
    size_t entry;
    int64_t begin, end; /* bounds of the entry */
};

/* Moves to the entry in force at t. Before the row's first entry it moves to that, but nothing is in force until it
 * begins. */
static void find(struct file_cursor *x, int64_t t)
{
    const struct state_disk_row *r = x->row;
    bool before = t < r->first;
    int64_t at = before ? r->first : t;
    struct row_bracket b = row_bracket(x->s, r, at);
    const struct state_disk_cell *c = row_settle(x->s, r, row_cell(x->s, r, b.at), &b, at);
    struct cell_entry e = cell_at(c, at);
    x->cell = b.at;
    x->entry = e.i;
    x->begin = before ? INT64_MIN : e.begin;
    x->end = before ? r->first : b.at + 1 == r->n_cells && e.i + 1 == e.n ? INT64_MAX : e.end;
}

static uint64_t sum_before(const struct file_cursor *x, uint32_t block)
{
    return (uint64_t)*sum_of_block(x->s, x->row, (enum sum_of)x->way, block);
}

/* First of blocks [lo, hi) before which more than `sum` was moved, or hi. */
static uint32_t first_beyond(const struct file_cursor *x, uint32_t lo, uint32_t hi, uint64_t sum)
{
    return (uint32_t)search_first(i, lo, hi, sum_before(x, (uint32_t)i) > sum);
}

/* End of the last use that moved something before an entry, in its block. INT64_MIN: none did. */
static int64_t last_end(const struct file_cursor *x, uint32_t cell, size_t entry)
{
    for (uint32_t i = cell + 1; i-- > cell / STATE_CELLS * STATE_CELLS;) {
        const struct state_disk_cell *c = row_cell(x->s, x->row, i);
        for (size_t k = i == cell ? entry : cell_n(c); k-- > 0;) {
            struct cell_entry e = cell_entry(c, k);
            if (state_file_bytes(e.number, x->way))
                return e.end;
        }
    }
    return INT64_MIN;
}

/* End of the first such use from that entry on, in its block. INT64_MAX: none does. */
static int64_t first_end(const struct file_cursor *x, uint32_t cell, size_t entry)
{
    uint32_t behind = (cell / STATE_CELLS + 1) * STATE_CELLS, n = x->row->n_cells;
    for (uint32_t i = cell; i < behind && i < n; i++, entry = 0) {
        const struct state_disk_cell *c = row_cell(x->s, x->row, i);
        bool goes_on = x->row->flags & STATE_ROW_GOES;
        size_t last = cell_n(c) - (i + 1 == n && !goes_on); /* the row's last entry does not end */
        for (size_t k = entry; k < last; k++) {
            struct cell_entry e = cell_entry(c, k);
            if (state_file_bytes(e.number, x->way))
                return i + 1 == n && k + 1 == e.n ? x->row->end : e.end;
        }
    }
    return INT64_MAX;
}

static int64_t step_before(const struct file_cursor *x)
{
    uint32_t block = x->cell / STATE_CELLS;
    int64_t end = last_end(x, x->cell, x->entry);
    uint64_t sum = sum_before(x, block);
    if (end > INT64_MIN || !block || !sum)
        return end;
    uint32_t last = (first_beyond(x, 1, block, sum - 1) - 1) * STATE_CELLS + STATE_CELLS - 1;
    return last_end(x, last, cell_n(row_cell(x->s, x->row, last)));
}

static int64_t step_behind(const struct file_cursor *x)
{
    uint32_t next = x->cell / STATE_CELLS + 1, blocks = (x->row->n_cells - 1) / STATE_CELLS + 1;
    int64_t end = first_end(x, x->cell, x->entry);
    if (end < INT64_MAX || next >= blocks)
        return end;
    return first_end(x, (first_beyond(x, next + 1, blocks, sum_before(x, next)) - 1) * STATE_CELLS, 0);
}

struct io_step thread_io_step(const struct state_chunk *s, const struct state_disk_row *r, int way, int64_t t)
{
    struct file_cursor at = {.s = s, .row = r, .way = way};
    find(&at, t);
    bool own = r->kind != STATE_FILE_ROWS;
    struct io_step x = {own ? at.begin : step_before(&at), own ? at.end : step_behind(&at)};
    x.begin = x.begin < t ? x.begin : t; /* bounded for any file contents */
    x.end = x.end > t ? x.end : INT64_MAX;
    return x;
}

int64_t thread_io_last(const struct state_chunk *s, const struct state_disk_row *r, int way)
{
    struct file_cursor x = {.s = s, .row = r, .way = way};
    find(&x, INT64_MAX);
    if (r->flags & STATE_ROW_GOES && state_file_bytes(cell_entry(row_cell(s, r, x.cell), x.entry).number, way))
        return r->end;
    return step_before(&x);
}

/* ---- use by use ---- */

static void fill_index(struct io_query *q)
{
    uint64_t span = (uint64_t)q->times[q->n - 1] - (uint64_t)q->times[0];
    while (span >> q->shift >= q->n)
        q->shift++;
    size_t stretches = (size_t)(span >> q->shift) + 1;
    q->first = mem_alloc(stretches * sizeof *q->first);
    for (size_t i = 0, k = 0; k < stretches; k++) {
        while (((uint64_t)q->times[i] - (uint64_t)q->times[0]) >> q->shift < k)
            i++;
        q->first[k] = (uint32_t)i;
    }
}

void io_query_fini(struct io_query *q)
{
    free(q->first);
}

/* Index of the first time that is not before t; t is behind the first of all, and not behind the last. */
static inline size_t index_of(struct io_query *q, int64_t t)
{
    if (!q->first)
        fill_index(q);
    size_t i = q->first[((uint64_t)t - (uint64_t)q->times[0]) >> q->shift];
    return i + row_gallop(q->times + i, q->n - i, t);
}

size_t io_query_from(struct io_query *q, int64_t t)
{
    return t <= q->times[q->n - 1] ? index_of(q, t) : q->n;
}

static inline void show_use(struct io_query *q, int64_t end, uint64_t bytes)
{
    size_t i = index_of(q, end);
    q->bytes[i] = (int64_t)((uint64_t)q->bytes[i] + bytes);
    if (q->around) {
        q->around[i].begin = end > q->around[i].begin ? end : q->around[i].begin;
        q->around[i - 1].end = end < q->around[i - 1].end ? end : q->around[i - 1].end;
    }
}

/* Adds all uses that end behind `first`, and not behind `last`, from x on. Returns the bytes. */
static uint64_t show_uses(const struct file_cursor *x, struct io_query *q, int64_t first, int64_t last)
{
    int64_t times[STATE_CELL_ENTRIES + 1], numbers[STATE_CELL_ENTRIES];
    uint64_t sum = 0;
    for (uint32_t i = x->cell; i < x->row->n_cells; i++) {
        const struct state_disk_cell *c = row_cell(x->s, x->row, i);
        if (i + STATE_CELLS < x->row->n_cells)
            __builtin_prefetch(row_cell(x->s, x->row, i + STATE_CELLS));
        if (c->base >= last)
            break;
        size_t n = cell_take(c, times, numbers) - (i + 1 == x->row->n_cells); /* the row's last entry does not end */
        for (size_t k = 0; k < n; k++) {
            uint64_t bytes = state_file_bytes(numbers[k], x->way);
            if (!bytes || times[k + 1] <= first || times[k + 1] > last)
                continue;
            show_use(q, times[k + 1], bytes);
            sum += bytes;
        }
    }
    return sum;
}

/* Bracket of the cells in force at t. */
static struct row_bracket cells_at(const struct file_cursor *x, int64_t t)
{
    return t > x->row->first ? row_bracket(x->s, x->row, t) : (struct row_bracket){0, 0, 0};
}

bool thread_io_show(const struct state_chunk *s, const struct state_disk_row *file, int way, struct io_query *q,
    size_t from, size_t to, uint64_t *bytes)
{
    struct file_cursor x = {.s = s, .row = file, .way = way};
    int64_t first = q->times[from ? from - 1 : 0];
    x.cell = cells_at(&x, first).lo;
    if (cells_at(&x, q->times[to - 1]).hi - x.cell > 2 * (to - from))
        return false;
    *bytes = show_uses(&x, q, first, q->times[q->n - 1]);
    return true;
}

/* ---- row and files together ---- */

/* Cuts the intervals around the times to the steps of one row: where its steps are the nearest to the times. */
static void cut(const struct state_chunk *s, const struct state_disk_row *r, int way, const int64_t *times, size_t n,
    struct state_interval *out)
{
    for (size_t k = 0, to; k < n; k = to) {
        struct io_step x = thread_io_step(s, r, way, times[k]);
        to = k + row_gallop(times + k, n - k, x.end);
        out[k].begin = x.begin > out[k].begin ? x.begin : out[k].begin;
        out[to - 1].end = x.end < out[to - 1].end ? x.end : out[to - 1].end;
    }
}

/* Cuts at steps before the first time and behind the last, unless another row has cut closer. */
static void cut_ends(struct file_cursor *x, struct io_query *q)
{
    const int64_t first = q->times[0], last = q->times[q->n - 1];
    struct state_interval *before = q->around, *behind = q->around + q->n - 1;
    find(x, first);
    if (x->begin > before->begin) {
        int64_t begin = step_before(x);
        before->begin = begin > before->begin && begin <= first ? begin : before->begin;
    }
    find(x, last);
    if (x->end < behind->end) {
        int64_t end = step_behind(x);
        behind->end = end < behind->end && end > last ? end : behind->end;
    }
}

/* Reads all uses if there are few cells between the times, otherwise only those around the times. */
static void ask_file(const struct state_chunk *s, const struct state_disk_row *file, int way, struct io_query *q)
{
    size_t before = row_first_from(q->times, q->n, file->first);
    uint64_t shown;
    if (!thread_io_show(s, file, way, q, 0, q->n, &shown)) {
        sum_values(s, file, (enum sum_of)way, q->times + before, q->n - before, q->bytes + before);
        if (q->around)
            cut(s, file, way, q->times, q->n, q->around);
        return;
    }
    if (!before)
        sum_values(s, file, (enum sum_of)way, q->times, 1, q->bytes);
    if (q->around) {
        struct file_cursor x = {.s = s, .row = file, .way = way};
        cut_ends(&x, q);
    }
}

/* Computes the values and, if requested, the steps around them. */
static void ask(const struct state_chunk *s, const struct state_disk_row *r, const int64_t *times, size_t n,
    int64_t *values, struct state_interval *around)
{
    if (!n)
        return;
    struct io_query q = {times, n, values, around};
    uint64_t sum = 0;
    memset(values, 0, n * sizeof *values);
    for (uint32_t i = 0; i < r->n_files; i++) {
        const struct state_disk_row *file = file_of(s, r, i);
        if (file->n_cells && (file->first <= times[n - 1] || (around && file->first < around[n - 1].end)))
            ask_file(s, file, way_of(r), &q);
    }
    for (size_t k = 0; k < n; k++) {
        sum += (uint64_t)values[k];
        values[k] = (int64_t)(sum + (uint64_t)row_value(s, r, times[k]));
    }
    if (around && r->n_cells)
        cut(s, r, 0, times, n, around);
    io_query_fini(&q);
}

void thread_io_values(
    const struct state_chunk *s, const struct state_disk_row *r, const int64_t *times, size_t n, int64_t *values)
{
    ask(s, r, times, n, values, NULL);
}

static void ask_chunk(
    const struct io_source *x, const int64_t *times, size_t n, int64_t *values, struct state_interval *around)
{
    ask(x->of, x->row, times, n, values, around);
}

static const struct state_disk_row *part_of(const struct io_source *x, uint32_t i)
{
    return i ? file_of(x->of, x->row, i - 1) : x->row;
}

static int64_t first_of_chunk(const struct io_source *x, uint32_t i)
{
    const struct state_disk_row *r = part_of(x, i);
    return r->n_cells ? r->first : INT64_MAX;
}

static struct io_step step_of_chunk(const struct io_source *x, uint32_t i, int64_t t)
{
    return thread_io_step(x->of, part_of(x, i), way_of(x->row), t);
}

struct io_source thread_io_source(const struct state_chunk *s, const struct state_disk_row *r)
{
    return (struct io_source){
        s, r, s->totals->begin, s->totals->end, r->n_files + 1, ask_chunk, first_of_chunk, step_of_chunk};
}

/* ---- intervals ---- */

size_t thread_io_sample(const struct io_source *x, const int64_t *times, size_t n, struct state_interval *out)
{
    size_t found = 0;
    int64_t *values = mem_alloc((n + 1) * sizeof *values);
    for (size_t k = 0; k < n; k++)
        out[k] = (struct state_interval){.begin = x->begin, .end = x->end, .thread = -1, .cpu = -1};
    x->ask(x, times, n, values, out);
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
static void take_steps(const struct io_source *x, uint32_t row, int64_t end, struct first_times *e)
{
    int64_t t = e->v[0];
    while ((t = x->step(x, row, t).end) <= end && (e->n < e->max || t < e->v[e->n - 1]))
        take(e, t);
}

size_t thread_io_range(const struct io_source *x, int64_t begin, int64_t end, struct state_interval *out, size_t max)
{
    if (!max || begin > end)
        return 0;
    struct first_times e = {.v = mem_alloc(max * sizeof *e.v), .n = 1, .max = max};
    e.v[0] = begin;
    for (uint32_t i = 0; i < x->n_rows; i++) {
        int64_t first = x->first(x, i);
        if (first < INT64_MAX && (e.n < max || first < e.v[e.n - 1]))
            take_steps(x, i, end, &e);
    }
    size_t n = thread_io_sample(x, e.v, e.n, out);
    for (size_t i = 1; i < n; i++)
        out[i].begin = out[i - 1].end; /* bounded for any file contents */
    free(e.v);
    return n;
}
