/* The state store: opening and what is read one by one; samples are in sample.c. */
#include <stdlib.h>

#include "base/mem.h"
#include "state/format.h"

static void read_sections(struct state_store *s, size_t *n_totals)
{
    static const uint8_t no_bytes[16];
    s->totals = store_section(s->file, "totals", sizeof *s->totals, n_totals);
    s->text = store_section(s->file, "text", 1, &s->n_text);
    s->names = store_section(s->file, "names", sizeof *s->names, &s->n_names);
    s->disk_codes = store_section(s->file, "codes", sizeof *s->disk_codes, &s->n_codes);
    s->rows = store_section(s->file, "rows", sizeof *s->rows, &s->n_rows);
    s->blocks = store_section(s->file, "blocks", sizeof *s->blocks, &s->n_blocks);
    s->grid = store_section(s->file, "grid", sizeof *s->grid, &s->n_grid);
    s->columns = store_section(s->file, "columns", sizeof *s->columns, &s->n_columns);
    s->heads = store_section(s->file, "heads", sizeof *s->heads, &s->n_heads);
    s->far = store_section(s->file, "far", sizeof *s->far, &s->n_far);
    s->losses = store_section(s->file, "losses", sizeof *s->losses, &s->n_losses);
    s->bytes = store_section(s->file, "bytes", 1, &s->n_bytes);
    if (!s->n_bytes) /* numbers of no bits are read from here */
        s->bytes = no_bytes;
}

int state_open(const char *path, struct state_store **out, struct err *e)
{
    struct state_store *s = mem_zalloc(sizeof *s);
    int rc = store_open(path, "states", STATE_VERSION, NULL, &s->file, e);
    if (rc) {
        free(s);
        return rc;
    }
    size_t n_totals;
    read_sections(s, &n_totals);
    const char *what = n_totals == 1 ? state_defect(s) : "no totals";
    if (what) {
        rc = err_set(e, ERR_FORMAT, "%s: %s", path, what);
        state_close(s);
        return rc;
    }
    s->codes = mem_alloc(s->n_codes * sizeof *s->codes);
    for (size_t i = 0; i < s->n_codes; i++) {
        const struct state_disk_code *c = &s->disk_codes[i];
        s->codes[i] = (struct state_code){c->name ? state_name(s, c->name) : NULL, c->cpu, c->value};
    }
    *out = s;
    return 0;
}

void state_close(struct state_store *s)
{
    if (!s)
        return;
    free(s->codes);
    store_close(s->file);
    free(s);
}

void state_span(const struct state_store *s, int64_t *begin, int64_t *end)
{
    *begin = s->totals->begin;
    *end = s->totals->end;
}

/* ---- rows and counters ----------------------------------------------------------------------------------------------------------- */

size_t state_rows(const struct state_store *s, int kind)
{
    return s->first[kind + 1] - s->first[kind];
}

void state_row(const struct state_store *s, int kind, size_t i, struct state_row *out)
{
    const struct state_disk_row *r = &s->rows[s->first[kind] + i];
    *out = (struct state_row){
        .kind = r->kind, .number = r->number, .name = state_name(s, r->name), .intervals = r->n, .begin = r->begin, .end = r->end};
}

int64_t state_find_row(const struct state_store *s, int kind, int32_t number)
{
    size_t lo = s->first[kind], hi = s->first[kind + 1];
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        if (s->rows[mid].number < number)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo < s->first[kind + 1] && s->rows[lo].number == number ? (int64_t)(lo - s->first[kind]) : -1;
}

size_t state_counters(const struct state_store *s, int kind)
{
    if (kind == STATE_CPU_TIME)
        return state_rows(s, STATE_THREAD) + state_rows(s, STATE_CPU_THREAD);
    return state_rows(s, STATE_COUNTER_ROWS + kind);
}

void state_counter(const struct state_store *s, int kind, size_t i, struct state_counter *out)
{
    struct state_row r;
    size_t threads = state_rows(s, STATE_THREAD);
    if (kind != STATE_CPU_TIME)
        state_row(s, STATE_COUNTER_ROWS + kind, i, &r);
    else if (i < threads)
        state_row(s, STATE_THREAD, i, &r);
    else
        state_row(s, STATE_CPU_THREAD, i - threads, &r);
    *out = (struct state_counter){.number = kind == STATE_CPU_TIME && i >= threads ? -1 - r.number : r.number, .name = r.name};
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

/* ---- events, losses, latencies ------------------------------------------------------------------------------------------------------ */

uint64_t state_events(const struct state_store *s)
{
    return s->totals->events;
}

/* First place from `from` on whose value is >= t. */
static size_t column_search(const struct state_store *s, size_t column, size_t from, int64_t t)
{
    size_t lo = from, hi = s->columns[column].n;
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        if (state_column_at(s, column, mid) < t)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

void state_event_counts(const struct state_store *s, const int64_t *times, size_t n, uint64_t *counts, bool *exact)
{
    size_t checkpoints = s->columns[STATE_COLUMN_EVENTS].n, at = 0;
    bool all = true;
    for (size_t i = 0; i < n; i++) {
        int64_t t = times[i];
        at = column_search(s, STATE_COLUMN_EVENTS, at, t);
        if (at == 0 || t > s->totals->last_event) {
            counts[i] = at ? s->totals->events : 0;
            continue;
        }
        bool tail = at == checkpoints;
        uint64_t below = (at - 1) * STATE_EVENTS_SHARE, above = tail ? s->totals->events - 1 : at * STATE_EVENTS_SHARE;
        int64_t from = state_column_at(s, STATE_COLUMN_EVENTS, at - 1),
                to = tail ? s->totals->last_event : state_column_at(s, STATE_COLUMN_EVENTS, at);
        /* from < t <= to; events numbered below … above lie at from … to */
        double share = ((double)((uint64_t)t - (uint64_t)from)) / (double)((uint64_t)to - (uint64_t)from);
        counts[i] = below + 1 + (uint64_t)(share * (double)(above - below - (above > below)));
        all &= above <= below + 1;
    }
    if (exact)
        *exact = all;
}

size_t state_losses(const struct state_store *s)
{
    return s->n_losses;
}

void state_loss(const struct state_store *s, size_t i, struct state_loss *out)
{
    const struct state_disk_loss *l = &s->losses[i];
    *out = (struct state_loss){l->begin, l->end, l->count, l->cpu};
}

static size_t latency_column(int kind, int column)
{
    return STATE_COLUMN_LATENCIES + (size_t)kind * STATE_LATENCY_COLUMNS + (size_t)column;
}

size_t state_latencies(const struct state_store *s, int kind)
{
    return s->columns[latency_column(kind, STATE_BEGIN)].n;
}

void state_latency(const struct state_store *s, int kind, size_t i, struct state_latency *out)
{
    out->begin = state_column_at(s, latency_column(kind, STATE_BEGIN), i);
    out->end = out->begin + state_column_at(s, latency_column(kind, STATE_DURATION), i);
    int64_t ret = state_column_at(s, latency_column(kind, STATE_RET), i);
    out->ret = ret < STATE_RET_FAR ? ret - STATE_RET_BIAS : s->far[ret - STATE_RET_FAR];
    out->thread = (int32_t)state_column_at(s, latency_column(kind, STATE_LATENCY_THREAD), i);
    out->cpu = (int32_t)state_column_at(s, latency_column(kind, STATE_LATENCY_CPU), i);
    out->name = s->codes[state_column_at(s, latency_column(kind, STATE_LATENCY_CODE), i)].name;
}

size_t state_latency_find(const struct state_store *s, int kind, int64_t t)
{
    return column_search(s, latency_column(kind, STATE_BEGIN), 0, t);
}
