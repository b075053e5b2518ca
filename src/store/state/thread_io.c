/* SPDX-License-Identifier: MIT */
/* Bytes that a thread read, or wrote, in the rows of one chunk: steps of a row, and single uses of a file. */
#include "state/thread_io.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "state/sums.h"

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

struct io_step state_thread_io_step(const struct state_chunk *s, const struct state_disk_row *r, int way, int64_t t)
{
    struct file_cursor at = {.s = s, .row = r, .way = way};
    find(&at, t);
    bool own = r->kind != STATE_FILE_ROWS;
    struct io_step x = {own ? at.begin : step_before(&at), own ? at.end : step_behind(&at)};
    x.begin = x.begin < t ? x.begin : t; /* bounded for any file contents */
    x.end = x.end > t ? x.end : INT64_MAX;
    return x;
}

int64_t state_thread_io_last(const struct state_chunk *s, const struct state_disk_row *r, int way)
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

void state_io_query_fini(struct io_query *q)
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

size_t state_io_query_from(struct io_query *q, int64_t t)
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

bool state_thread_io_show(const struct state_chunk *s, const struct state_disk_row *file, int way, struct io_query *q,
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
