/* Private to state: reading a cell (format.h). Whatever it says, what is read lies in it or in the STATE_SPARE bytes behind its begin. */
#ifndef WEFT_STATE_CELL_H
#define WEFT_STATE_CELL_H

#include "state/format.h"

static inline size_t cell_n(const struct state_disk_cell *c) { return (c->n - 1u) % STATE_CELL + 1; }
/* The packed values, and what is behind them when widths make no sense. */
static inline const uint8_t *cell_packed(const struct state_disk_cell *c) { return (const uint8_t *)c + offsetof(struct state_disk_cell, packed); }
static inline const uint8_t *cell_numbers(const struct state_disk_cell *c) { return cell_packed(c) + pack_bytes(cell_n(c), c->time_width); }
static inline int64_t cell_unfolded(uint64_t v) { return (int64_t)(v >> 1 ^ -(v & 1)); }
static inline int64_t cell_number(const struct state_disk_cell *c, size_t i)
{
    uint64_t v = pack_get(cell_numbers(c), i, c->number_width & ~STATE_FOLDED);
    return __builtin_expect(c->number_width & STATE_FOLDED, 0) ? cell_unfolded(v) : (int64_t)v;
}
/* Where entry i ends, and where it begins. */
static inline int64_t cell_end(const struct state_disk_cell *c, size_t i)
{
    return (int64_t)((uint64_t)c->base + pack_get(cell_packed(c), i, c->time_width));
}
static inline int64_t cell_begin(const struct state_disk_cell *c, size_t i)
{
    uint64_t since = pack_get(cell_packed(c), i - (i > 0), c->time_width);
    return (int64_t)((uint64_t)c->base + (since & -(uint64_t)(i > 0)));
}
/* The last entry that begins at or before t, which is not before the first. Without branches: nobody could foretell them. */
static inline size_t cell_find(const struct state_disk_cell *c, int64_t t)
{
    uint64_t since = (uint64_t)t - (uint64_t)c->base;
    const uint8_t *packed = cell_packed(c), width = c->time_width;
    size_t n = cell_n(c), i = 0;
#pragma GCC unroll 4
    for (size_t step = STATE_CELL / 2; step; step /= 2)
        i += (size_t)((i + step < n) & (pack_get(packed, i + step - 1, width) <= since)) * step;
    return i;
}
/* All n entries' times and numbers, and behind the times the cell's end. Returns n. */
static inline size_t cell_take(const struct state_disk_cell *c, int64_t times[STATE_CELL + 1], int64_t numbers[STATE_CELL])
{
    size_t n = cell_n(c);
    times[0] = c->base;
    pack_take(cell_packed(c), n, c->time_width, c->base, times + 1);
    pack_take(cell_numbers(c), n, c->number_width & ~STATE_FOLDED, 0, numbers);
    for (size_t i = 0; i < n && c->number_width & STATE_FOLDED; i++)
        numbers[i] = cell_unfolded((uint64_t)numbers[i]);
    return n;
}

#endif
