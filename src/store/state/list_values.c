/* SPDX-License-Identifier: MIT */
/* Counters and files. Counters accumulate over chunks. */
#include "state/list.h"

#include "state/sums.h"

/* ---- CPU time ---- */

static int64_t time_at(const struct state_store *s, const struct list_place *p, int64_t t)
{
    int64_t sum = 0;
    t = p->row->flags & STATE_ROW_GOES && p->row->end < t ? p->row->end : t;
    if (t >= p->first)
        state_sum_values(s->parts[p->part].chunk, p->row, SUM_TIME, &t, 1, &sum);
    return sum;
}

/* The times are from the place's first entry on and before the next one's. */
static void place_times(
    const struct state_store *s, const struct list_place *p, const int64_t *times, size_t n, int64_t *values)
{
    size_t within = p->row->flags & STATE_ROW_GOES ? row_first_from(times, n, p->row->end) : n;
    state_sum_values(s->parts[p->part].chunk, p->row, SUM_TIME, times, within, values);
    if (within == n)
        return;
    int64_t all = time_at(s, p, p->row->end); /* the next chunk is missing */
    for (size_t k = within; k < n; k++)
        values[k] = all;
}

static void cpu_time(
    const struct state_store *s, const struct list_row *r, const int64_t *times, size_t n, int64_t *values)
{
    bool never = !r->n || r->idle;
    size_t i = never ? n : row_first_from(times, n, r->places->first),
           behind = i + row_first_from(times + i, n - i, r->end), m;
    memset(values, 0, n * sizeof *values);
    for (; i < behind; i += m) {
        const struct list_place *p = state_list_place_at(r, times[i]);
        m = row_first_from(times + i, behind - i, p->next);
        place_times(s, p, times + i, m, values + i);
    }
    if (i == n)
        return;
    int64_t all = time_at(s, &r->places[r->n - 1], r->end);
    for (; i < n; i++)
        values[i] = all;
}

/* ---- counters ---- */

/* Row that a counter is read from. CPU time has none of its own: it is read from the rows of threads, then those of
 * CPUs, which are numbered from -1 down. */
struct counter_row {
    int kind;
    size_t row;
};

static struct counter_row row_of_counter(const struct state_store *s, int kind, size_t i)
{
    size_t threads = kind == STATE_CPU_TIME ? state_rows(s, STATE_THREAD) : 0;
    if (kind != STATE_CPU_TIME)
        return (struct counter_row){STATE_COUNTER_ROWS + kind, i};
    return i < threads ? (struct counter_row){STATE_THREAD, i} : (struct counter_row){STATE_CPU_THREAD, i - threads};
}

size_t state_counters(const struct state_store *s, int kind)
{
    if (kind == STATE_CPU_TIME)
        return state_rows(s, STATE_THREAD) + state_rows(s, STATE_CPU_THREAD);
    return state_rows(s, STATE_COUNTER_ROWS + kind);
}

void state_counter(const struct state_store *s, int kind, size_t i, struct state_counter *out)
{
    struct counter_row of = row_of_counter(s, kind, i);
    const struct list_row *r = list_row_of(s, of.kind, of.row);
    *out = (struct state_counter){.number = r->number, .name = r->name};
    out->number = of.kind == STATE_CPU_THREAD ? -1 - out->number : out->number;
}

int64_t state_find_counter(const struct state_store *s, int kind, int32_t number)
{
    if (kind != STATE_CPU_TIME)
        return state_find_row(s, STATE_COUNTER_ROWS + kind, number);
    if (number >= 0)
        return state_find_row(s, STATE_THREAD, number);
    int64_t cpu = state_find_row(s, STATE_CPU_THREAD, -1 - number);
    return cpu < 0 ? -1 : cpu + (int64_t)state_rows(s, STATE_THREAD);
}

void state_counter_values(
    const struct state_store *s, int kind, size_t i, const int64_t *times, size_t n, int64_t *values)
{
    struct counter_row of = row_of_counter(s, kind, i);
    const struct list_row *r = list_row_of(s, of.kind, of.row);
    if (of.kind < STATE_COUNTER_ROWS) {
        cpu_time(s, r, times, n, values);
        return;
    }
    if (state_is_thread_io(r->kind)) {
        state_list_io_values(s, r, times, n, values);
        return;
    }
    const struct list_place *p = NULL;
    for (size_t k = 0; k < n; k++) {
        p = list_place_from(r, p, times[k]);
        values[k] = p ? state_row_value(s->parts[p->part].chunk, p->row, times[k]) : 0;
    }
}

int64_t state_counter_least(const struct state_store *s, int kind, size_t i)
{
    if (!state_may_fall(STATE_COUNTER_ROWS + kind))
        return 0;
    return list_row_of(s, STATE_COUNTER_ROWS + kind, i)->least;
}

/* ---- files ---- */

size_t state_files(const struct state_store *s)
{
    return list_kind_of(s, STATE_FILE_ROWS)->n;
}

void state_file(const struct state_store *s, size_t i, struct state_file *out)
{
    const struct list_row *r = list_row_of(s, STATE_FILE_ROWS, i);
    *out = (struct state_file){r->name, r->thread, r->bytes[STATE_WAY_READ], r->bytes[STATE_WAY_WRITTEN]};
}
