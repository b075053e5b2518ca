/* SPDX-License-Identifier: MIT */
/* Private to state: what was in force in a row at a given time; for sample.c and sums.c. A grid leads from the time to
 * the few cells around it, so that the length of the trace does not count.
 *
 * Grid, blocks and cells are as the file has them: nobody has checked them. So each step bounds what it reads: a cell
 * lies in the table, a grid's item in its row. */
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
/* Where cell i ends. */
static inline int64_t row_cell_end(const struct state_disk_row *r, const struct state_disk_cell *c, uint32_t i)
{
    return i + 1 < r->n_cells ? cell_end(c) : r->end;
}
/* Is it an entry that is in force at t, not something outside? */
static inline bool row_has(const struct state_disk_row *r, int64_t t)
{
    return r->n_cells && t >= r->first && t < r->end;
}

/* Where a time leads: the cell in force is one of [lo, hi]; `at`, one of them, is most likely it. */
struct row_bracket { uint32_t lo, hi, at; };
static inline const uint32_t *row_bucket(const struct state_chunk *s, const struct state_disk_row *r, int64_t t)
{
    uint64_t bucket = ((uint64_t)t - (uint64_t)r->first) >> r->shift;
    return &s->grid[r->first_grid + (bucket < r->n_grid ? bucket : r->n_grid - 1u)];
}
/* t is in an entry (row_has). */
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
/* Is t before (-1), in (0) or behind (1) cell b->at, as far as the bracket goes? */
static inline int row_compare(const struct state_disk_row *r, const struct state_disk_cell *c,
    const struct row_bracket *b, int64_t t)
{
    return t < c->base ? -(b->at > b->lo) : t >= row_cell_end(r, c, b->at) && b->at < b->hi;
}
/* Moves `at` to the cell in force; c: the cell where it is. Returns the cell found. */
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

/* Is out[found] another interval than the one before it? The span's last instant may still be in that one. */
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

/* First of the n times that is >= t. */
static inline size_t row_first_from(const int64_t *times, size_t n, int64_t t)
{
    return search_first(i, 0, n, times[i] >= t);
}
/* The same, where it is near the begin as a rule. */
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
