/* SPDX-License-Identifier: MIT */
/* Counters and files of the host, from chunk to chunk. Counters accumulate over chunks. */
#include "state/list.h"

#include "state/sums.h"

/* ---- CPU time ---- */

static int64_t time_at(const struct state_store *s, const struct list_place *p, int64_t t)
{
    int64_t sum = 0;
    t = p->row->flags & STATE_ROW_GOES && p->row->end < t ? p->row->end : t;
    if (t >= p->first)
        sum_values(s->parts[p->part].chunk, p->row, SUM_TIME, &t, 1, &sum);
    return sum;
}

/* The times are from the place's first entry on and before the next one's. */
static void place_times(
    const struct state_store *s, const struct list_place *p, const int64_t *times, size_t n, int64_t *values)
{
    size_t within = p->row->flags & STATE_ROW_GOES ? row_first_from(times, n, p->row->end) : n;
    sum_values(s->parts[p->part].chunk, p->row, SUM_TIME, times, within, values);
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
        const struct list_place *p = list_place_at(r, times[i]);
        m = row_first_from(times + i, behind - i, p->next);
        place_times(s, p, times + i, m, values + i);
    }
    if (i == n)
        return;
    int64_t all = time_at(s, &r->places[r->n - 1], r->end);
    for (; i < n; i++)
        values[i] = all;
}

/* ---- further counters ---- */

void list_counter_values(
    const struct state_store *s, int row_kind, size_t row, const int64_t *times, size_t n, int64_t *values)
{
    const struct list_row *r = list_row_of(s, row_kind, row);
    if (row_kind < STATE_COUNTER_ROWS) {
        cpu_time(s, r, times, n, values);
        return;
    }
    if (state_is_thread_io(r->kind)) {
        struct io_source io = list_io_source(s, r);
        io.ask(&io, times, n, values, NULL);
        return;
    }
    const struct list_place *p = NULL;
    for (size_t k = 0; k < n; k++) {
        p = list_place_from(r, p, times[k]);
        values[k] = p ? row_value(s->parts[p->part].chunk, p->row, times[k]) : 0;
    }
}

/* ---- files ---- */

size_t list_file_count(const struct state_store *s)
{
    return list_kind_of(s, STATE_FILE_ROWS)->n;
}

void list_file(const struct state_store *s, size_t i, struct state_file *out)
{
    const struct list_row *r = list_row_of(s, STATE_FILE_ROWS, i);
    *out = (struct state_file){r->name, r->thread, r->bytes[STATE_WAY_READ], r->bytes[STATE_WAY_WRITTEN]};
}
