/* SPDX-License-Identifier: MIT */
/* State store: a list of chunks read as one. A single chunk is read directly. */
#include <stdlib.h>

#include "base/chunks.h"
#include "base/mem.h"
#include "state/lines.h"
#include "state/list.h"

enum { MOST_CHUNKS = 1 << 20 };

void state_close(struct state_store *s)
{
    if (!s)
        return;
    list_fini(s);
    for (size_t i = 0; i < s->n; i++) {
        state_chunk_close(s->parts[i].chunk);
        free(s->parts[i].users);
    }
    chunk_rows_free(s->rows);
    free(s->parts);
    free(s);
}

static int damaged(const char *path, const char *what, struct err *e)
{
    return err_set(e, ERR_FORMAT, "%s: %s", path, what);
}

static int open_part(const struct chunk *c, struct state_part *p, struct err *e)
{
    int rc = state_chunk_open(c->path, c->in, &p->chunk, e);
    if (rc || !c->rows)
        return rc;
    size_t n = state_chunk_rows(p->chunk, STATE_THREAD);
    if (c->n_rows != n)
        return damaged(c->path, "it has other threads than the host's list of threads says", e);
    return 0;
}

int state_open_list(const struct chunk *v, size_t n, struct state_store **out, struct err *e)
{
    *out = NULL;
    if (!n || n > MOST_CHUNKS)
        return err_set(e, ERR_LIMIT, "%s: a state store of %zu chunks; from 1 to %d can be read together",
            n ? v->path : "", n, MOST_CHUNKS);
    struct state_store *s = mem_zalloc(sizeof *s);
    s->parts = mem_zalloc(n * sizeof *s->parts);
    s->rows = chunk_rows_new(v, n);
    int rc = 0;
    while (!rc && s->n < n) {
        struct state_part *p = &s->parts[s->n];
        p->begin = v[s->n].begin;
        p->end = v[s->n].end;
        p->rows = v[s->n].rows ? chunk_rows_of(s->rows, s->n) : NULL;
        rc = open_part(&v[s->n], p, e);
        s->n++;
    }
    size_t part = 0;
    const char *what = rc || (n == 1 && !v->rows) ? NULL : list_join(s, v, &part);
    if (what)
        rc = damaged(v[part].path, what, e);
    if (rc) {
        state_close(s);
        return rc;
    }
    *out = s;
    return 0;
}

int state_open(const char *path, struct state_store **out, struct err *e)
{
    struct chunk one = {.path = path, .begin = INT64_MIN, .end = INT64_MAX};
    return state_open_list(&one, 1, out, e);
}

int state_intact(const struct state_store *s, struct err *e)
{
    int rc = 0;
    for (size_t i = 0; i < s->n && !rc; i++)
        rc = state_chunk_intact(s->parts[i].chunk, e);
    return rc;
}

void state_populate(const struct state_store *s)
{
    for (size_t i = 0; i < s->n; i++)
        state_chunk_populate(s->parts[i].chunk);
}

void state_span(const struct state_store *s, int64_t *begin, int64_t *end)
{
    if (state_is_single(s)) {
        state_chunk_span(s->parts->chunk, begin, end);
        return;
    }
    *begin = s->begin;
    *end = s->end;
}

/* ---- rows ---- */

size_t state_rows(const struct state_store *s, int kind)
{
    return state_is_single(s) ? state_chunk_rows(s->parts->chunk, kind) : list_rows(s, kind);
}

void state_row(const struct state_store *s, int kind, size_t i, struct state_row *out)
{
    if (state_is_single(s))
        state_chunk_row(s->parts->chunk, kind, i, out);
    else
        list_row(s, kind, i, out);
}

int64_t state_find_row(const struct state_store *s, int kind, int32_t number)
{
    return state_is_single(s) ? state_chunk_find_row(s->parts->chunk, kind, number) : list_find_row(s, kind, number);
}

/* ---- states ---- */

bool state_at(const struct state_store *s, int kind, size_t row, int64_t t, struct state_interval *out)
{
    return state_is_single(s) ? state_chunk_at(s->parts->chunk, kind, row, t, out) : list_at(s, kind, row, t, out);
}

size_t state_sample(
    const struct state_store *s, int kind, size_t row, const int64_t *times, size_t n, struct state_interval *out)
{
    return state_is_single(s) ? state_chunk_sample(s->parts->chunk, kind, row, times, n, out)
                              : list_sample(s, kind, row, times, n, out);
}

size_t state_range(const struct state_store *s, int kind, size_t row, int64_t begin, int64_t end,
    struct state_interval *out, size_t max)
{
    const struct state_chunk *c = state_is_single(s) ? s->parts->chunk : NULL;
    int64_t first, last;
    state_span(s, &first, &last);
    int64_t t = begin > first ? begin : first;
    end = end < last ? end : last;
    if (state_is_line(kind))
        return state_line_range(c ? &c->by_cpu : &s->by_cpu, kind, row, t, end, out, max);
    if (state_is_thread_io(kind)) {
        struct io_source io = c ? thread_io_source(c, state_disk_row(c, kind, row))
                                : list_io_source(s, list_row_of(s, kind, row));
        return t < last ? thread_io_range(&io, t, end < last ? end : last - 1, out, max) : 0;
    }
    size_t n = 0;
    while (n < max && t <= end && t < last) {
        state_at(s, kind, row, t, &out[n]);
        t = out[n++].end;
    }
    return n;
}

int32_t state_thread_cpu(const struct state_store *s, size_t row, int64_t t, int32_t near)
{
    return state_is_single(s) ? state_chunk_thread_cpu(s->parts->chunk, row, t, near)
                              : list_thread_cpu(s, row, t, near);
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
    if (state_is_single(s)) {
        const struct state_disk_row *r = state_disk_row(s->parts->chunk, of.kind, of.row);
        *out = (struct state_counter){.number = r->number, .name = state_name(s->parts->chunk, r->name)};
    } else {
        const struct list_row *r = list_row_of(s, of.kind, of.row);
        *out = (struct state_counter){.number = r->number, .name = r->name};
    }
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
    if (state_is_single(s))
        state_chunk_counter_values(s->parts->chunk, of.kind, of.row, times, n, values);
    else
        list_counter_values(s, of.kind, of.row, times, n, values);
}

int64_t state_counter_least(const struct state_store *s, int kind, size_t i)
{
    if (!state_may_fall(STATE_COUNTER_ROWS + kind))
        return 0;
    return state_is_single(s) ? state_disk_row(s->parts->chunk, STATE_COUNTER_ROWS + kind, i)->least
                              : list_row_of(s, STATE_COUNTER_ROWS + kind, i)->least;
}

/* ---- files ---- */

size_t state_files(const struct state_store *s)
{
    return state_is_single(s) ? state_chunk_files(s->parts->chunk) : list_file_count(s);
}

void state_file(const struct state_store *s, size_t i, struct state_file *out)
{
    if (state_is_single(s))
        state_chunk_file(s->parts->chunk, i, out);
    else
        list_file(s, i, out);
}

/* ---- events, losses ---- */

void state_event_counts(const struct state_store *s, const int64_t *times, size_t n, uint64_t *counts, bool *exact)
{
    if (state_is_single(s))
        state_chunk_event_counts(s->parts->chunk, times, n, counts, exact);
    else
        list_event_counts(s, times, n, counts, exact);
}

uint64_t state_events(const struct state_store *s)
{
    return state_is_single(s) ? state_chunk_events(s->parts->chunk) : list_events(s);
}

size_t state_losses(const struct state_store *s)
{
    return state_is_single(s) ? state_chunk_losses(s->parts->chunk) : list_losses(s);
}

void state_loss(const struct state_store *s, size_t i, struct state_loss *out)
{
    if (state_is_single(s))
        state_chunk_loss(s->parts->chunk, i, out);
    else
        list_loss(s, i, out);
}

/* ---- latencies ---- */

size_t state_latencies(const struct state_store *s, int kind)
{
    return state_is_single(s) ? state_chunk_latencies(s->parts->chunk, kind) : list_latencies(s, kind);
}

void state_latency(const struct state_store *s, int kind, size_t i, struct state_latency *out)
{
    if (state_is_single(s))
        state_chunk_latency(s->parts->chunk, kind, i, out);
    else
        list_latency(s, kind, i, out);
}

size_t state_latency_find(const struct state_store *s, int kind, int64_t t)
{
    return state_is_single(s) ? state_chunk_latency_find(s->parts->chunk, kind, t) : list_latency_find(s, kind, t);
}

size_t state_latency_names(const struct state_store *s, int kind)
{
    return state_is_single(s) ? state_chunk_latency_names(s->parts->chunk, kind) : list_latency_names(s, kind);
}

const char *state_latency_name(const struct state_store *s, int kind, size_t name)
{
    return state_is_single(s) ? state_chunk_latency_name(s->parts->chunk, kind, name)
                              : list_latency_name(s, kind, name);
}

void state_latency_figures(const struct state_store *s, int kind, size_t first, size_t end, struct figures *out)
{
    if (state_is_single(s))
        state_chunk_latency_figures(s->parts->chunk, kind, first, end, out);
    else
        list_latency_figures(s, kind, first, end, out);
}

void state_latency_histogram(
    const struct state_store *s, int kind, size_t first, size_t end, int64_t width, size_t n, uint64_t *counts)
{
    if (state_is_single(s))
        state_chunk_latency_histogram(s->parts->chunk, kind, first, end, width, n, counts);
    else
        list_latency_histogram(s, kind, first, end, width, n, counts);
}
