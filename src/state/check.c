/* Checks all that a file claims, so that no reader needs to. */
#include "state/format.h"

static bool good_width(uint8_t width)
{
    return width <= STATE_MOST_WIDTH || width == 64;
}

static bool good_place(const struct state_store *s, uint64_t position, uint64_t bytes)
{
    return position <= s->n_bytes && bytes <= s->n_bytes - position;
}

/* ---- names and codes ------------------------------------------------------------------------------------------------------------- */

static const char *names_defect(const struct state_store *s)
{
    if (!s->n_text || s->text[s->n_text - 1] || !s->n_names)
        return "the names are cut off";
    for (size_t i = 0; i < s->n_names; i++)
        if (s->names[i] >= s->n_text)
            return "a name lies outside the text";
    if (s->text[s->names[0]])
        return "the empty name is not empty";
    if (s->n_codes < STATE_VALUES)
        return "codes are missing";
    for (size_t i = 0; i < s->n_codes; i++) {
        const struct state_disk_code *c = &s->disk_codes[i];
        if (c->value >= STATE_VALUES || c->name >= s->n_names || c->cpu < -1 || (i < STATE_VALUES && c->value != i))
            return "a code makes no sense";
    }
    return NULL;
}

/* ---- rows ---------------------------------------------------------------------------------------------------------------------- */

static bool good_kind(uint8_t kind)
{
    return kind < STATE_KINDS || (kind > STATE_COUNTER_ROWS + STATE_CPU_TIME && kind < STATE_ROW_KINDS);
}

static const char *rows_defect(struct state_store *s)
{
    uint64_t block = 0, grid = 0;
    int kind = 0;
    for (size_t i = 0; i < s->n_rows; i++) {
        const struct state_disk_row *r = &s->rows[i];
        if (!good_kind(r->kind) || r->kind < (i ? r[-1].kind : 0) || (i && r->kind == r[-1].kind && r->number <= r[-1].number))
            return "rows out of order";
        for (; kind <= r->kind; kind++)
            s->first[kind] = i;
        if (r->kind == STATE_THREAD ? r->number < 0 || (size_t)r->number != i : r->number < 0 && r->kind < STATE_COUNTER_ROWS)
            return "a row's number makes no sense";
        if (r->begin > r->end || r->begin < s->totals->begin || r->end > s->totals->end || r->lead >= STATE_VALUES ||
            r->name >= s->n_names || r->idle > 1 || r->shift > 63)
            return "a row makes no sense";
        uint64_t blocks = r->n / STATE_BLOCK + (r->n % STATE_BLOCK != 0);
        if (r->first_block != block || blocks > s->n_blocks - block || r->n >= UINT32_MAX || r->first_grid != grid ||
            r->n_grid > s->n_grid - grid)
            return "a row's entries lie outside the table";
        block += blocks;
        grid += r->n_grid;
    }
    for (; kind <= STATE_ROW_KINDS; kind++)
        s->first[kind] = s->n_rows;
    return block != s->n_blocks || grid != s->n_grid ? "entries that belong to no row" : NULL;
}

/* ---- entries ------------------------------------------------------------------------------------------------------------------- */

/* A row while its entries are read. */
struct reading {
    const struct state_store *s;
    const struct state_disk_row *row;
    int64_t time, number; /* of the entry before */
    uint64_t i;           /* the entry */
    int64_t sum;
    uint64_t bucket; /* of the grid, next to be checked */
};

static bool good_number(const struct reading *g, int64_t number)
{
    size_t threads = g->s->first[STATE_THREAD + 1];
    if (number < 0)
        return false;
    switch (g->row->kind) {
    case STATE_CPU: return number & 1 ? (uint64_t)number >> 1 < threads : (uint64_t)number >> 1 < g->s->n_codes;
    case STATE_CPU_THREAD: return (uint64_t)number <= threads;
    default: return g->row->kind < STATE_COUNTER_ROWS ? (uint64_t)number < g->s->n_codes : number >= g->number || !g->i;
    }
}

static bool counts(const struct reading *g)
{
    if (g->row->kind == STATE_THREAD)
        return !g->row->idle && state_running(g->s->disk_codes[g->number].value);
    return g->row->kind == STATE_CPU_THREAD && g->number && !g->s->rows[g->number - 1].idle;
}

/* Buckets that begin before this entry's time hold the entry before. */
static bool good_grid(struct reading *g, uint64_t since_first)
{
    const uint32_t *grid = g->s->grid + g->row->first_grid;
    for (; g->bucket < g->row->n_grid && g->bucket << g->row->shift < since_first; g->bucket++)
        if (grid[g->bucket] != g->i - 1)
            return false;
    return true;
}

static const char *block_defect(struct reading *g, const struct state_disk_block *b, size_t n)
{
    const struct state_store *s = g->s;
    if (b->n != n || !good_width(b->time_width) || !good_width(b->number_width))
        return "a block of entries makes no sense";
    size_t time_bytes = pack_bytes(n, b->time_width);
    if (!good_place(s, b->position, time_bytes + pack_bytes(n, b->number_width)))
        return "a block's entries lie outside the file";
    if (b->base < g->row->begin || b->base > g->row->end || (g->i && b->base <= g->time))
        return "entries out of order";
    const uint8_t *times = s->bytes + b->position, *numbers = times + time_bytes;
    uint64_t room = (uint64_t)g->row->end - (uint64_t)b->base, before = 0;
    int64_t first = s->blocks[g->row->first_block].base;
    for (size_t i = 0; i < n; i++) {
        uint64_t d = pack_get(times, i, b->time_width);
        int64_t number = (int64_t)((uint64_t)b->least + pack_get(numbers, i, b->number_width));
        if (i ? d <= before || d > room : d != 0)
            return "entries out of order";
        if (!good_number(g, number))
            return "an entry's number makes no sense";
        int64_t time = (int64_t)((uint64_t)b->base + d);
        if (g->i && counts(g))
            g->sum += time - g->time;
        if (!i && b->before != g->sum)
            return "sums that do not add up";
        if (g->i && !good_grid(g, (uint64_t)time - (uint64_t)first))
            return "the grid does not fit the entries";
        before = d;
        g->time = time;
        g->number = number;
        g->i++;
    }
    return NULL;
}

static const char *entries_defect(const struct state_store *s, const struct state_disk_row *row)
{
    struct reading g = {.s = s, .row = row};
    const char *what = NULL;
    if (row->n_grid && ((row->n_grid - 1) > UINT64_MAX >> row->shift || !row->n))
        return "the grid makes no sense";
    for (uint64_t k = 0; k * STATE_BLOCK < row->n && !what; k++)
        what = block_defect(
            &g, &s->blocks[row->first_block + k], row->n - k * STATE_BLOCK < STATE_BLOCK ? row->n % STATE_BLOCK : STATE_BLOCK);
    for (; !what && g.bucket < row->n_grid; g.bucket++)
        if (s->grid[row->first_grid + g.bucket] != row->n - 1)
            what = "the grid does not fit the entries";
    return what;
}

/* ---- columns ------------------------------------------------------------------------------------------------------------------- */

static const char *heads_defect(const struct state_store *s)
{
    uint64_t next = 0;
    if (s->n_columns != STATE_COLUMNS)
        return "columns are missing";
    for (size_t c = 0; c < STATE_COLUMNS; c++) {
        const struct state_disk_column *column = &s->columns[c];
        uint64_t heads = column->n / STATE_BLOCK + (column->n % STATE_BLOCK != 0);
        if (column->first_head != next || heads > s->n_heads - next)
            return "a column lies outside the table";
        for (uint64_t i = 0; i < heads; i++) {
            uint64_t position = s->heads[next + i].position;
            uint8_t width = (uint8_t)(position >> 56);
            uint64_t left = column->n - i * STATE_BLOCK, n = left < STATE_BLOCK ? left : STATE_BLOCK;
            if (!good_width(width) || !good_place(s, position & (UINT64_MAX >> 8), pack_bytes(n, width)))
                return "a column's values lie outside the file";
        }
        next += heads;
    }
    return next != s->n_heads ? "values that belong to no column" : NULL;
}

static const char *events_defect(const struct state_store *s)
{
    uint64_t n = s->columns[STATE_COLUMN_EVENTS].n;
    int64_t before = INT64_MIN;
    if (n != s->totals->events / STATE_EVENTS_SHARE + (s->totals->events % STATE_EVENTS_SHARE != 0))
        return "the number of events does not fit";
    for (uint64_t i = 0; i < n; i++) {
        int64_t t = state_column_at(s, STATE_COLUMN_EVENTS, i);
        if (t < before || t > s->totals->last_event)
            return "events out of order";
        before = t;
    }
    return NULL;
}

static const char *latencies_defect(const struct state_store *s, int kind)
{
    size_t first = STATE_COLUMN_LATENCIES + (size_t)kind * STATE_LATENCY_COLUMNS;
    uint64_t n = s->columns[first].n;
    int64_t threads = (int64_t)s->first[STATE_THREAD + 1], before = INT64_MIN, end;
    for (size_t c = 1; c < STATE_LATENCY_COLUMNS; c++)
        if (s->columns[first + c].n != n)
            return "latencies of unequal columns";
    for (uint64_t i = 0; i < n; i++) {
        int64_t v[STATE_LATENCY_COLUMNS];
        for (size_t c = 0; c < STATE_LATENCY_COLUMNS; c++)
            v[c] = state_column_at(s, first + c, i);
        if (v[STATE_BEGIN] < before || v[STATE_DURATION] < 0 || __builtin_add_overflow(v[STATE_BEGIN], v[STATE_DURATION], &end))
            return "latencies out of order";
        if (v[STATE_RET] < 0 || (v[STATE_RET] >= STATE_RET_FAR && (uint64_t)v[STATE_RET] - STATE_RET_FAR >= s->n_far) ||
            v[STATE_LATENCY_THREAD] < -1 || v[STATE_LATENCY_THREAD] >= threads || v[STATE_LATENCY_CPU] < 0 ||
            v[STATE_LATENCY_CPU] > UINT16_MAX || v[STATE_LATENCY_CODE] < 0 || (uint64_t)v[STATE_LATENCY_CODE] >= s->n_codes)
            return "a latency makes no sense";
        before = v[STATE_BEGIN];
    }
    return NULL;
}

static const char *losses_defect(const struct state_store *s)
{
    for (size_t i = 0; i < s->n_losses; i++) {
        const struct state_disk_loss *l = &s->losses[i];
        if (l->begin > l->end || l->cpu < -1 || (i && l->begin < l[-1].begin))
            return "losses out of order";
    }
    return NULL;
}

const char *state_defect(struct state_store *s)
{
    const char *what = s->totals->begin > s->totals->end ? "it ends before it begins" : names_defect(s);
    if (!what)
        what = rows_defect(s);
    for (size_t i = 0; i < s->n_rows && !what; i++)
        what = entries_defect(s, &s->rows[i]);
    if (!what)
        what = heads_defect(s);
    if (!what)
        what = events_defect(s);
    for (int kind = 0; kind < STATE_LATENCY_KINDS && !what; kind++)
        what = latencies_defect(s, kind);
    return what ? what : losses_defect(s);
}
