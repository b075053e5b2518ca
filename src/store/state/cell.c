/* SPDX-License-Identifier: MIT */
/* Cells of pairs: a number, then 0 or 1. */
#include "state/cell.h"

enum { LOW = 63, HIGH_SHIFT = 6, HIGH_MASK = 3, HALF_SHIFT = 2 };

struct state_cell_pairs state_cell_pairs(const struct state_disk_cell *c)
{
    return (struct state_cell_pairs){
        .n = (uint8_t)((c->time_width >> HIGH_SHIFT | c->number_width >> HIGH_SHIFT << HALF_SHIFT) + 1),
        .time_width = c->time_width & LOW,
        .number_width = c->number_width & LOW,
        .duration_width = c->n & LOW,
        .rests = c->n & STATE_RESTS,
    };
}

void state_cell_pairs_head(struct state_disk_cell *c, const struct state_cell_pairs *p)
{
    unsigned n = p->n - 1u;
    c->n = (uint8_t)(STATE_PAIRED | (p->rests ? STATE_RESTS : 0) | p->duration_width);
    c->time_width = (uint8_t)((n & HIGH_MASK) << HIGH_SHIFT | p->time_width);
    c->number_width = (uint8_t)(n >> HALF_SHIFT << HIGH_SHIFT | p->number_width);
}

static inline const uint8_t *numbers_of(const struct state_disk_cell *c, const struct state_cell_pairs *p)
{
    return cell_packed(c) + pack_bytes(p->n, p->time_width);
}

static inline const uint8_t *durations_of(const struct state_disk_cell *c, const struct state_cell_pairs *p)
{
    return numbers_of(c, p) + pack_bytes(p->n, p->number_width);
}

/* ---- single entries ---- */

/* Pair of entries: begin of the first, begin of the second, end. */
struct cell_pair {
    int64_t begin, middle, end;
    uint64_t number;
};

static inline struct cell_pair cell_pair_at(const struct state_disk_cell *c, const struct state_cell_pairs *p, size_t i)
{
    int64_t begin = cell_begin_of(c, i, p->time_width);
    return (struct cell_pair){
        .begin = begin,
        .middle = (int64_t)((uint64_t)begin + pack_get(durations_of(c, p), i, p->duration_width)),
        .end = cell_time(c, i, p->time_width),
        .number = pack_get(numbers_of(c, p), i, p->number_width),
    };
}

/* Branchless, since branches could not be predicted. */
static inline struct cell_entry entry_of(
    const struct cell_pair *x, const struct state_cell_pairs *p, size_t i, bool second)
{
    int64_t both = -(int64_t)second;
    return (struct cell_entry){
        .i = 2 * i + second,
        .n = 2 * (size_t)p->n,
        .begin = x->begin ^ ((x->begin ^ x->middle) & both),
        .end = x->middle ^ ((x->middle ^ x->end) & both),
        .number = second ? (int64_t)(x->number & p->rests) : (int64_t)(x->number >> p->rests),
    };
}

struct cell_entry state_cell_pairs_entry(const struct state_disk_cell *c, size_t i)
{
    struct state_cell_pairs p = state_cell_pairs(c);
    struct cell_pair x = cell_pair_at(c, &p, i / 2);
    return entry_of(&x, &p, i / 2, i % 2);
}

struct cell_entry state_cell_pairs_at(const struct state_disk_cell *c, int64_t t)
{
    struct state_cell_pairs p = state_cell_pairs(c);
    size_t i = cell_search(cell_packed(c), p.n, p.time_width, (uint64_t)t - (uint64_t)c->base);
    struct cell_pair x = cell_pair_at(c, &p, i);
    return entry_of(&x, &p, i, t >= x.middle);
}

/* ---- whole cells ---- */

int64_t state_cell_pairs_end(const struct state_disk_cell *c)
{
    struct state_cell_pairs p = state_cell_pairs(c);
    return cell_time(c, p.n - 1u, p.time_width);
}

void state_cell_pairs_times(const struct state_disk_cell *c, int64_t times[STATE_CELL_ENTRIES + 1])
{
    struct state_cell_pairs p = state_cell_pairs(c);
    int64_t ends[STATE_CELL], durations[STATE_CELL];
    state_pack_take(cell_packed(c), p.n, p.time_width, c->base, ends);
    state_pack_take(durations_of(c, &p), p.n, p.duration_width, 0, durations);
    times[0] = c->base;
    for (size_t i = 0; i < p.n; i++) {
        times[2 * i + 1] = (int64_t)((uint64_t)times[2 * i] + (uint64_t)durations[i]);
        times[2 * i + 2] = ends[i];
    }
}

size_t state_cell_pairs_numbers(const struct state_disk_cell *c, int64_t numbers[STATE_CELL_ENTRIES])
{
    struct state_cell_pairs p = state_cell_pairs(c);
    int64_t packed[STATE_CELL];
    state_pack_take(numbers_of(c, &p), p.n, p.number_width, 0, packed);
    for (size_t i = 0; i < p.n; i++) {
        numbers[2 * i] = (int64_t)((uint64_t)packed[i] >> p.rests);
        numbers[2 * i + 1] = (int64_t)((uint64_t)packed[i] & p.rests);
    }
    return 2 * (size_t)p.n;
}
