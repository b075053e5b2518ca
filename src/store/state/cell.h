/* SPDX-License-Identifier: MIT */
/* Private to state: reading a cell (format.h). For any contents, all reads are inside the cell or the FILE_SPARE_BYTES
 * behind the last section. */
#ifndef WEFT_STATE_CELL_H
#define WEFT_STATE_CELL_H

#include "state/format.h"

/* Entry i of the n entries of a cell. The last one of a row's last cell ends with the row, whatever `end` is. */
struct cell_entry { size_t i, n; int64_t begin, end, number; };

/* Packed values; the time of value i: base plus its value. */
static inline const uint8_t *cell_packed(const struct state_disk_cell *c)
{
    return (const uint8_t *)c + offsetof(struct state_disk_cell, packed);
}
static inline int64_t cell_time(const struct state_disk_cell *c, size_t i, uint8_t width)
{
    return (int64_t)((uint64_t)c->base + pack_get(cell_packed(c), i, width));
}
/* Begin of the entry that ends at value i. */
static inline int64_t cell_begin_of(const struct state_disk_cell *c, size_t i, uint8_t width)
{
    uint64_t since = pack_get(cell_packed(c), i - (i > 0), width);
    return (int64_t)((uint64_t)c->base + (since & -(uint64_t)(i > 0)));
}
/* Last of n entries that begins at or before `since`, counted from the first's begin. Branchless, since branches could
 * not be predicted. */
static inline size_t cell_search(const uint8_t *packed, size_t n, uint8_t width, uint64_t since)
{
    size_t i = 0;
#pragma GCC unroll 4
    for (size_t step = STATE_CELL / 2; step; step /= 2)
        i += (size_t)((i + step < n) & (pack_get(packed, i + step - 1, width) <= since)) * step;
    return i;
}

/* ---- plain cells: entry by entry ---- */

static inline size_t cell_plain_n(const struct state_disk_cell *c) { return (c->n - 1u) % STATE_CELL + 1; }
/* Numbers; behind the cell if the widths are invalid. */
static inline const uint8_t *cell_plain_numbers(const struct state_disk_cell *c)
{
    return cell_packed(c) + pack_bytes(cell_plain_n(c), c->time_width);
}
static inline int64_t cell_unfolded(uint64_t v) { return (int64_t)(v >> 1 ^ -(v & 1)); }
static inline int64_t cell_plain_number(const struct state_disk_cell *c, size_t i)
{
    uint64_t v = pack_get(cell_plain_numbers(c), i, c->number_width & ~STATE_FOLDED);
    return __builtin_expect(c->number_width & STATE_FOLDED, 0) ? cell_unfolded(v) : (int64_t)v;
}
/* End of entry i; its begin. */
static inline int64_t cell_plain_end(const struct state_disk_cell *c, size_t i)
{
    return cell_time(c, i, c->time_width);
}
static inline int64_t cell_plain_begin(const struct state_disk_cell *c, size_t i)
{
    return cell_begin_of(c, i, c->time_width);
}
static inline struct cell_entry cell_plain_entry(const struct state_disk_cell *c, size_t i)
{
    return (struct cell_entry){i, cell_plain_n(c), cell_plain_begin(c, i), cell_plain_end(c, i),
        cell_plain_number(c, i)};
}
/* The last entry that begins at or before t, which is not before the first. */
static inline size_t cell_plain_find(const struct state_disk_cell *c, int64_t t)
{
    return cell_search(cell_packed(c), cell_plain_n(c), c->time_width, (uint64_t)t - (uint64_t)c->base);
}
static inline struct cell_entry cell_plain_at(const struct state_disk_cell *c, int64_t t)
{
    return cell_plain_entry(c, cell_plain_find(c, t));
}

/* ---- paired cells: a number, and then 0 or 1 (cell.c) ---- */

/* The head of a paired cell, unpacked. On disk `n` holds STATE_PAIRED, STATE_RESTS and, in its low 6 bits,
 * duration_width. The low 6 bits of time_width and number_width are the widths; their high 2 bits are n - 1, the lower
 * half in time_width. */
struct state_cell_pairs { uint8_t n, time_width, number_width, duration_width; bool rests; };
static inline bool cell_is_paired(const struct state_disk_cell *c) { return __builtin_expect(c->n & STATE_PAIRED, 0); }
struct state_cell_pairs state_cell_pairs(const struct state_disk_cell *);
void state_cell_pairs_head(struct state_disk_cell *, const struct state_cell_pairs *);
struct cell_entry state_cell_pairs_entry(const struct state_disk_cell *, size_t i);
struct cell_entry state_cell_pairs_at(const struct state_disk_cell *, int64_t t);
int64_t state_cell_pairs_end(const struct state_disk_cell *);
void state_cell_pairs_times(const struct state_disk_cell *, int64_t times[STATE_CELL_ENTRIES + 1]);
size_t state_cell_pairs_numbers(const struct state_disk_cell *, int64_t numbers[STATE_CELL_ENTRIES]);

/* ---- cells of both kinds ---- */

static inline size_t cell_n(const struct state_disk_cell *c)
{
    return cell_is_paired(c) ? 2 * (size_t)state_cell_pairs(c).n : cell_plain_n(c);
}
static inline struct cell_entry cell_entry(const struct state_disk_cell *c, size_t i)
{
    return cell_is_paired(c) ? state_cell_pairs_entry(c, i) : cell_plain_entry(c, i);
}
/* The last entry that begins at or before t, which is not before the first. */
static inline struct cell_entry cell_at(const struct state_disk_cell *c, int64_t t)
{
    return cell_is_paired(c) ? state_cell_pairs_at(c, t) : cell_plain_at(c, t);
}
/* End of the cell. */
static inline int64_t cell_end(const struct state_disk_cell *c)
{
    return cell_is_paired(c) ? state_cell_pairs_end(c) : cell_plain_end(c, cell_plain_n(c) - 1);
}
/* Reads the numbers of all n entries. Returns n. */
static inline size_t cell_take_numbers(const struct state_disk_cell *c, int64_t numbers[STATE_CELL_ENTRIES])
{
    if (cell_is_paired(c))
        return state_cell_pairs_numbers(c, numbers);
    size_t n = cell_plain_n(c);
    state_pack_take(cell_plain_numbers(c), n, c->number_width & ~STATE_FOLDED, 0, numbers);
    for (size_t i = 0; i < n && c->number_width & STATE_FOLDED; i++)
        numbers[i] = cell_unfolded((uint64_t)numbers[i]);
    return n;
}
/* Reads their times, too, followed by the cell's end. */
static inline size_t cell_take(const struct state_disk_cell *c, int64_t times[STATE_CELL_ENTRIES + 1],
    int64_t numbers[STATE_CELL_ENTRIES])
{
    size_t n = cell_take_numbers(c, numbers);
    if (cell_is_paired(c)) {
        state_cell_pairs_times(c, times);
        return n;
    }
    times[0] = c->base;
    state_pack_take(cell_packed(c), n, c->time_width, c->base, times + 1);
    return n;
}

#endif
