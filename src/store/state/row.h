/* SPDX-License-Identifier: MIT */
/* Private to state: the entry of a row in force at a given time; for sample.c and sums.c. A grid leads from the time to
 * the few cells around it, so the cost does not depend on the length of the trace.
 *
 * Grid, blocks and cells are unchecked file contents, so each step bounds what it reads: a cell lies in the table, a
 * grid's item in its row. */
#ifndef WEFT_STATE_ROW_H
#define WEFT_STATE_ROW_H

#include "state/cell.h"
#include "state/reader.h"

/* Cell i of the row, i < n_cells. */
static inline const struct state_disk_cell *row_cell(const struct state_chunk *s, const struct state_disk_row *r,
    uint32_t i)
{
    static const struct state_disk_cell none;
    uint64_t at = (uint64_t)s->blocks[r->first_block + i / STATE_CELLS] + i % STATE_CELLS;
    return __builtin_expect(at < s->n_cells, 1) ? &s->cells[at] : &none;
}
/* End of cell i. */
static inline int64_t row_cell_end(const struct state_disk_row *r, const struct state_disk_cell *c, uint32_t i)
{
    return i + 1 < r->n_cells ? cell_end(c) : r->end;
}
/* Returns whether t is in an entry, not outside of the row's. */
static inline bool row_has(const struct state_disk_row *r, int64_t t)
{
    return r->n_cells && t >= r->first && t < r->end;
}

/* Bracket of a time: the cell in force is one of [lo, hi]; most likely it is `at`, one of them. */
struct row_bracket { uint32_t lo, hi, at; };
static inline const uint32_t *row_bucket(const struct state_chunk *s, const struct state_disk_row *r, int64_t t)
{
    uint64_t bucket = ((uint64_t)t - (uint64_t)r->first) >> r->shift;
    return &s->grid[r->first_grid + (bucket < r->n_grid ? bucket : r->n_grid - 1u)];
}
/* t must be in an entry (row_has). */
static inline struct row_bracket row_bracket(const struct state_chunk *s, const struct state_disk_row *r, int64_t t)
{
    struct row_bracket b = {0, r->n_cells - 1, 0};
    if (!r->n_grid)
        return b;
    uint64_t since = (uint64_t)t - (uint64_t)r->first;
    const uint32_t *grid = row_bucket(s, r, t);
    if ((since >> r->shift) + 1 < r->n_grid)
        b.hi = grid[1] < b.hi ? grid[1] : b.hi;
    b.lo = *grid < b.hi ? *grid : b.hi;
    b.at = b.hi - b.lo < 2 ? b.lo + ((b.hi - b.lo) & (uint32_t)(since << 1 >> r->shift & 1)) : b.lo + (b.hi - b.lo) / 2;
    return b;
}
/* Compares t with cell b->at: before (-1), in (0) or behind (1) it, as far as the bracket reaches. */
static inline int row_compare(const struct state_disk_row *r, const struct state_disk_cell *c,
    const struct row_bracket *b, int64_t t)
{
    return t < c->base ? -(b->at > b->lo) : t >= row_cell_end(r, c, b->at) && b->at < b->hi;
}
/* Moves `at` to the cell in force and returns it; c: the cell at `at`. */
static inline const struct state_disk_cell *row_settle(const struct state_chunk *s, const struct state_disk_row *r,
    const struct state_disk_cell *c, struct row_bracket *b, int64_t t)
{
    for (int where; b->lo < b->hi && (where = row_compare(r, c, b, t)) != 0; c = row_cell(s, r, b->at)) {
        if (where < 0)
            b->hi = b->at - 1;
        else
            b->lo = b->at + 1;
        b->at = b->lo + (b->hi - b->lo) / 2;
    }
    return c;
}

/* Returns whether out[found] is another interval than the one before it. The span's last instant may still be in that
 * one. */
static inline bool row_is_next(struct state_interval *out, size_t found)
{
    if (!found)
        return true;
    if (out[found].begin <= out[found - 1].begin)
        return false;
    if (out[found].begin < out[found - 1].end)
        out[found].begin = out[found - 1].end;
    return true;
}

/* First of the n times that is >= t. Most ranges are all before it, or all behind. */
static inline size_t row_first_from(const int64_t *times, size_t n, int64_t t)
{
    if (!n || times[n - 1] < t)
        return n;
    if (times[0] >= t)
        return 0;
    return search_first(i, 0, n, times[i] >= t);
}
/* First of the n times that is >= t; faster near the begin. */
static inline size_t row_gallop(const int64_t *times, size_t n, int64_t t)
{
    size_t from = 0, step = 1;
    while (from + step <= n && times[from + step - 1] < t) {
        from += step;
        step *= 2;
    }
    return from + row_first_from(times + from, n - from < step ? n - from : step, t);
}

#endif
