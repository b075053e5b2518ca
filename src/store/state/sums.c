/* SPDX-License-Identifier: MIT */
/* Counters at given times. CPU time is the sum of durations of entries; bytes of files are the sum of bytes of entries.
 * The store has the sum before each block; the sum within the block is computed from its cells. */
#include "state/sums.h"

static inline bool is_thread(const struct state_chunk *s, uint64_t thread)
{
    return thread < s->first[STATE_THREAD + 1];
}

static inline bool counts(const struct state_chunk *s, const struct state_disk_row *r, uint64_t number)
{
    if (r->kind == STATE_THREAD)
        return number < s->n_codes && state_running(s->disk_codes[number].value);
    return is_thread(s, number - 1) && !s->rows[number - 1].idle;
}

/* Position of a sum: at entry `entry` of cell `cell`, which is in force in [begin, end); the time spent before it. */
struct running_sum {
    enum sum_of of;
    uint32_t cell;
    size_t entry;
    int64_t begin, end;
    uint64_t sum;
    uint64_t reported; /* part of `sum` in values written before */
    bool counts;
};

/* Time spent in entries [from, to) of a cell. Rows of threads and CPUs have no pairs. */
static uint64_t spent(const struct state_chunk *s, const struct state_disk_row *r, const struct state_disk_cell *c,
    size_t from, size_t to)
{
    uint64_t sum = 0, begin = (uint64_t)cell_plain_begin(c, from);
    to = to < cell_plain_n(c) ? to : cell_plain_n(c);
    for (size_t i = from; i < to; i++) {
        uint64_t end = (uint64_t)cell_plain_end(c, i);
        sum += counts(s, r, (uint64_t)cell_plain_number(c, i)) ? end - begin : 0;
        begin = end;
    }
    return sum;
}

/* Bytes moved in these entries. */
static uint64_t bytes_moved(enum sum_of way, const struct state_disk_cell *c, size_t from, size_t to)
{
    int64_t numbers[STATE_CELL_ENTRIES];
    uint64_t sum = 0;
    if (from == to)
        return 0;
    size_t n = cell_take_numbers(c, numbers);
    for (size_t i = from; i < n && i < to; i++)
        sum += state_file_bytes(numbers[i], way);
    return sum;
}

enum { ALL = STATE_CELL_ENTRIES };

static inline uint64_t summed(const struct state_chunk *s, const struct state_disk_row *r, enum sum_of of,
    const struct state_disk_cell *c, size_t from, size_t to)
{
    return of == SUM_TIME ? spent(s, r, c, from, to) : bytes_moved(of, c, from, to);
}

/* Advances to an entry of cell `at`, from the position of the time before or from the nearer end of the block. */
static void sum_up_to(const struct state_chunk *s, const struct state_disk_row *r, const struct state_disk_cell *c,
    uint32_t at, const struct cell_entry *e, struct running_sum *g)
{
    uint32_t block = at / STATE_CELLS, first = block * STATE_CELLS, behind = first + STATE_CELLS;
    bool on = g->cell / STATE_CELLS == block && (g->cell < at || (g->cell == at && g->entry <= e->i));
    uint32_t from = on ? g->cell : first;
    if (behind - at < at - from && behind < r->n_cells) {
        g->sum = (uint64_t)*sum_of_block(s, r, g->of, block + 1);
        for (uint32_t i = behind - 1; i > at; i--)
            g->sum -= summed(s, r, g->of, row_cell(s, r, i), 0, ALL);
        g->sum -= summed(s, r, g->of, c, e->i, ALL);
    } else {
        size_t k = on ? g->entry : 0;
        if (!on)
            g->sum = (uint64_t)*sum_of_block(s, r, g->of, block);
        for (uint32_t i = from; i < at; i++, k = 0)
            g->sum += summed(s, r, g->of, row_cell(s, r, i), k, ALL);
        g->sum += summed(s, r, g->of, c, k, e->i);
    }
    g->cell = at;
    g->entry = e->i;
    g->begin = e->begin;
    g->end = at + 1 == r->n_cells && e->i + 1 == e->n ? INT64_MAX : e->end;
    g->counts = g->of == SUM_TIME && counts(s, r, (uint64_t)e->number);
}

/* Writes the values of the first of the times, and of those in the same entry. Returns their number. */
static inline size_t report(struct running_sum *g, const int64_t *times, size_t n, int64_t *values)
{
    size_t k = 0;
    if (g->of != SUM_TIME) {
        values[0] = (int64_t)((uint64_t)values[0] + g->sum - g->reported);
        g->reported = g->sum;
        k = row_gallop(times, n, g->end);
        return k ? k : 1;
    }
    do
        values[k] = (int64_t)(g->sum + (g->counts ? (uint64_t)times[k] - (uint64_t)g->begin : 0));
    while (++k < n && times[k] < g->end);
    return k;
}

enum { BATCH = 32, FEW = 4 }; /* sums processed at once */

/* Finds the cell of each time, and prefetches the cells between it and the nearer end of its block. */
static void prepare(const struct state_chunk *s, const struct state_disk_row *r, enum sum_of of, const int64_t *times,
    size_t n, struct row_bracket *brackets)
{
    for (size_t j = 0; j < n && r->n_grid; j++)
        __builtin_prefetch(row_bucket(s, r, times[j]));
    for (size_t j = 0; j < n; j++) {
        brackets[j] = row_bracket(s, r, times[j]);
        uint32_t at = brackets[j].at, k = at % STATE_CELLS, first = at - k;
        bool back = k > STATE_CELLS / 2;
        for (uint32_t i = back ? at : first; i <= (back ? first + STATE_CELLS - 1 : at) && i < r->n_cells; i++)
            __builtin_prefetch(row_cell(s, r, i));
        __builtin_prefetch(sum_of_block(s, r, of, at / STATE_CELLS));
    }
}

/* Looks less far ahead if the last few times needed few entries. */
void state_sum_values(const struct state_chunk *s, const struct state_disk_row *r, enum sum_of of, const int64_t *times,
    size_t n, int64_t *values)
{
    struct running_sum g = {.of = of, .cell = UINT32_MAX};
    struct row_bracket brackets[BATCH];
    size_t most = FEW;
    for (size_t k = 0, j; k < n; k += j) {
        size_t m = n - k < most ? n - k : most, needed = 0;
        prepare(s, r, of, times + k, m, brackets);
        for (j = 0; j < m; j += report(&g, times + k + j, n - k - j, values + k + j), needed++) {
            int64_t t = times[k + j];
            const struct state_disk_cell *c = row_settle(s, r, row_cell(s, r, brackets[j].at), &brackets[j], t);
            struct cell_entry e = of == SUM_TIME ? cell_plain_at(c, t) : cell_at(c, t);
            sum_up_to(s, r, c, brackets[j].at, &e, &g);
        }
        most = needed * 2 > m ? BATCH : FEW;
    }
}

int64_t state_row_value(const struct state_chunk *s, const struct state_disk_row *r, int64_t t)
{
    if (!r->n_cells || t < r->first)
        return 0;
    struct row_bracket b = row_bracket(s, r, t);
    const struct state_disk_cell *c = row_settle(s, r, row_cell(s, r, b.at), &b, t);
    return cell_at(c, t).number;
}
