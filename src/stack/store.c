/* The stack store: opening, checking, reading. */
#include <stdlib.h>

#include "base/mem.h"
#include "base/search.h"
#include "stack/tiles.h"

/* ---- checking ---- */
/* All that a file claims. What leads from one table to another is copied to memory, so that it stays as it was
 * checked. */

static const char *names_defect(const struct stack_store *s)
{
    const char *what = store_names_defect(s->text, s->n_text, s->names, s->n_names);
    if (what)
        return what;
    for (size_t i = 0; i < s->n_processes; i++)
        if (s->processes[i].name >= s->n_names || s->processes[i].pid < -1)
            return "a process makes no sense";
    for (size_t i = 0; i < s->n_functions; i++)
        if (s->functions[i].name >= s->n_names || s->functions[i].process >= s->n_processes)
            return "a function makes no sense";
    return NULL;
}

static const char *thread_defect(const struct stack_store *s, const struct stack_disk_thread *t)
{
    if (t->begin > t->end || t->tid < -1 || t->cpu < -1 || t->rows > STACK_MOST_LEVELS)
        return "a thread makes no sense";
    for (uint32_t i = 0; i < t->names; i++) {
        const struct stack_disk_rename *r = &s->renames[t->first_name + i];
        if (r->name >= s->n_names || (i && r->time < r[-1].time))
            return "a thread's names are out of order";
    }
    for (uint64_t i = 1; i < t->values; i++)
        if (s->memory[t->first_value + i].time <= s->memory[t->first_value + i - 1].time)
            return "a thread's memory is out of order";
    return NULL;
}

static const char *threads_defect(const struct stack_store *s)
{
    uint64_t row = 0, rename = 0, value = 0;
    for (size_t i = 0; i < s->n_threads; i++) {
        const struct stack_disk_thread *t = &s->threads[i];
        if (t->process >= s->n_processes || (i && t->process < t[-1].process))
            return "threads out of order";
        if (t->first_row != row || t->rows > s->n_rows - row || t->first_name != rename ||
            t->names > s->n_renames - rename || t->first_value != value || t->values > s->n_memory - value)
            return "what belongs to a thread lies outside its table";
        row += t->rows;
        rename += t->names;
        value += t->values;
        const char *what = thread_defect(s, t);
        if (what)
            return what;
    }
    return row != s->n_rows || rename != s->n_renames || value != s->n_memory ? "something belongs to no thread" : NULL;
}

/* The calls of a row follow each other. */
static const char *row_defect(const struct stack_store *s, const struct stack_disk_row *r, size_t *longs)
{
    int64_t last = s->totals->begin;
    for (uint64_t i = r->first_call; i < r->first_call + r->calls; i++) {
        const struct stack_disk_call *c = &s->calls[i];
        int64_t duration = c->duration;
        if (c->duration == STACK_LONG) {
            if (*longs >= s->n_longs || s->longs[*longs].call != i || s->longs[*longs].duration < STACK_LONG)
                return "the duration of a long call is missing";
            duration = s->longs[(*longs)++].duration;
        }
        if (c->begin < last || __builtin_add_overflow(c->begin, duration, &last) || last > s->totals->end)
            return "calls out of order";
        enum stack_how how = stack_how_of(c);
        if (how == STACK_NOTHING || (how != STACK_UNKNOWN && c->what >> STACK_HOW_BITS >= s->n_functions))
            return "a call of no function";
    }
    return NULL;
}

static const char *rows_defect(const struct stack_store *s)
{
    uint64_t call = 0;
    size_t longs = 0;
    for (size_t i = 0; i < s->n_rows; i++) {
        const struct stack_disk_row *r = &s->rows[i];
        if (r->first_call != call || !r->calls || r->calls > s->n_calls - call)
            return "a row's calls lie outside the table";
        const char *what = row_defect(s, r, &longs);
        if (what)
            return what;
        call += r->calls;
    }
    return call != s->n_calls || longs != s->n_longs ? "calls that belong to no row" : NULL;
}

/* Least and most are calls of the tile, which makes sense of them. */
static const char *figures_defect(const struct stack_store *s, uint64_t tile, uint64_t calls)
{
    for (uint64_t i = s->tiles[tile]; i < s->tiles[tile + 1]; i++) {
        const struct stack_disk_figures *f = &s->figures[i];
        if (f->function >= s->n_functions || !f->n || f->n > calls || f->least >= calls || f->most >= calls)
            return "figures that make no sense";
    }
    return NULL;
}

static const char *row_tiles_defect(const struct stack_store *s, uint64_t calls, uint64_t *tile)
{
    const char *what = NULL;
    for (int level = 0; level < tile_levels(calls); level++) {
        uint64_t size = tile_size(level);
        for (uint64_t first = 0; !what && first < calls; first += size, ++*tile)
            what = figures_defect(s, *tile, calls - first < size ? calls - first : size);
    }
    return what;
}

/* WHOLE calls before each tile are counted again: rows of tables are numbered by them. */
static const char *whole_defect(const struct stack_store *s, const struct stack_disk_row *r, uint64_t *at)
{
    uint64_t n = 0;
    for (uint64_t i = 0; i < r->calls; i++) {
        if (i % TILE_ITEMS == 0 && s->whole[(*at)++] != n)
            return "calls are counted wrong";
        n += stack_how_of(&s->calls[r->first_call + i]) == STACK_WHOLE;
    }
    return NULL;
}

static const char *tiles_defect(const struct stack_store *s)
{
    uint64_t tiles = 0, finest = 0, tile = 0, at = 0;
    for (size_t i = 0; i < s->n_rows; i++) {
        tiles += tile_total(s->rows[i].calls);
        finest += tile_count(s->rows[i].calls, 0);
    }
    if (s->n_tiles != tiles + 1 || s->n_whole != finest || s->tiles[0] != 0 || s->tiles[tiles] != s->n_figures)
        return "tiles are missing";
    for (uint64_t i = 0; i < tiles; i++)
        if (s->tiles[i] > s->tiles[i + 1])
            return "tiles out of order";
    const char *what = NULL;
    for (size_t i = 0; !what && i < s->n_rows; i++) {
        what = row_tiles_defect(s, s->rows[i].calls, &tile);
        what = what ? what : whole_defect(s, &s->rows[i], &at);
    }
    return what;
}

/* NULL, or what is wrong with the file. */
static const char *stack_defect(const struct stack_store *s)
{
    int64_t lasts;
    const char *what = names_defect(s);
    if (s->totals->end >= s->totals->begin && __builtin_sub_overflow(s->totals->end, s->totals->begin, &lasts))
        what = "the trace lasts too long";
    what = what ? what : threads_defect(s);
    what = what ? what : rows_defect(s);
    what = what ? what : tiles_defect(s);
    for (size_t i = 0; !what && i < s->n_losses; i++)
        if (s->losses[i].end < s->losses[i].begin || (i && s->losses[i].begin < s->losses[i - 1].begin))
            what = "losses out of order";
    return what;
}

/* ---- opening ---- */

static void read_sections(struct stack_store *s, size_t *n_totals)
{
    s->totals = store_section_kept(s->file, "totals", sizeof *s->totals, n_totals);
    s->text = store_section_kept(s->file, "text", 1, &s->n_text);
    s->names = store_section_kept(s->file, "names", sizeof *s->names, &s->n_names);
    s->processes = store_section_kept(s->file, "processes", sizeof *s->processes, &s->n_processes);
    s->threads = store_section_kept(s->file, "threads", sizeof *s->threads, &s->n_threads);
    s->renames = store_section_kept(s->file, "renames", sizeof *s->renames, &s->n_renames);
    s->rows = store_section_kept(s->file, "rows", sizeof *s->rows, &s->n_rows);
    s->functions = store_section_kept(s->file, "functions", sizeof *s->functions, &s->n_functions);
    s->calls = store_section(s->file, "calls", sizeof *s->calls, &s->n_calls);
    s->longs = store_section(s->file, "longs", sizeof *s->longs, &s->n_longs);
    s->tiles = store_section_kept(s->file, "tiles", sizeof *s->tiles, &s->n_tiles);
    s->figures = store_section(s->file, "figures", sizeof *s->figures, &s->n_figures);
    s->whole = store_section_kept(s->file, "whole", sizeof *s->whole, &s->n_whole);
    s->memory = store_section(s->file, "memory", sizeof *s->memory, &s->n_memory);
    s->losses = store_section(s->file, "losses", sizeof *s->losses, &s->n_losses);
}

/* What readers look up by row. */
static void find_rows(struct stack_store *s)
{
    uint64_t tile = 0, finest = 0;
    s->first_tile = mem_alloc(sizeof *s->first_tile * (s->n_rows + 1));
    s->first_finest = mem_alloc(sizeof *s->first_finest * (s->n_rows + 1));
    s->has_below = mem_alloc(sizeof *s->has_below * (s->n_rows + 1));
    for (size_t i = 0; i < s->n_rows; i++) {
        s->first_tile[i] = tile;
        s->first_finest[i] = finest;
        tile += tile_total(s->rows[i].calls);
        finest += tile_count(s->rows[i].calls, 0);
    }
    for (size_t i = 0; i < s->n_threads; i++)
        for (uint32_t k = 0; k < s->threads[i].rows; k++)
            s->has_below[s->threads[i].first_row + k] = k + 1 < s->threads[i].rows;
}

int stack_open(const char *path, struct stack_store **out, struct err *e)
{
    struct stack_store *s = mem_zalloc(sizeof *s);
    int rc = store_open(path, "stacks", STACK_VERSION, NULL, &s->file, e);
    if (rc) {
        free(s);
        return rc;
    }
    size_t n_totals;
    read_sections(s, &n_totals);
    const char *what = n_totals == 1 ? stack_defect(s) : "no totals";
    if (what) {
        rc = err_set(e, ERR_FORMAT, "%s: %s", path, what);
        stack_close(s);
        return rc;
    }
    s->first_thread = mem_zalloc(sizeof *s->first_thread * (s->n_processes + 1));
    for (size_t i = 0; i < s->n_threads; i++)
        s->first_thread[s->threads[i].process + 1]++;
    for (size_t i = 0; i < s->n_processes; i++)
        s->first_thread[i + 1] += s->first_thread[i];
    find_rows(s);
    *out = s;
    return 0;
}

int stack_intact(const struct stack_store *s, struct err *e)
{
    return store_intact(s->file, e);
}

void stack_close(struct stack_store *s)
{
    if (!s)
        return;
    free(s->first_thread);
    free(s->first_tile);
    free(s->first_finest);
    free(s->has_below);
    store_close(s->file);
    free(s);
}

/* ---- processes, threads, functions ---- */

const struct stack_totals *stack_totals(const struct stack_store *s)
{
    return s->totals;
}

size_t stack_processes(const struct stack_store *s)
{
    return s->n_processes;
}

void stack_process(const struct stack_store *s, size_t i, struct stack_process *out)
{
    const struct stack_disk_process *p = &s->processes[i];
    *out = (struct stack_process){
        p->pid, stack_text(s, p->name), s->first_thread[i], s->first_thread[i + 1] - s->first_thread[i]};
}

size_t stack_threads(const struct stack_store *s)
{
    return s->n_threads;
}

void stack_thread(const struct stack_store *s, size_t i, struct stack_thread *out)
{
    const struct stack_disk_thread *t = &s->threads[i];
    *out = (struct stack_thread){.tid = t->tid,
        .cpu = t->cpu,
        .process = t->process,
        .first_row = t->first_row,
        .rows = t->rows,
        .name = t->names ? stack_text(s, s->renames[t->first_name + t->names - 1].name) : "",
        .begin = t->begin,
        .end = t->end,
        .has_memory = t->values > 0};
}

const char *stack_thread_name(const struct stack_store *s, size_t thread, int64_t t)
{
    const struct stack_disk_thread *d = &s->threads[thread];
    uint32_t i = d->names;
    while (i > 1 && s->renames[d->first_name + i - 1].time > t)
        i--;
    return i ? stack_text(s, s->renames[d->first_name + i - 1].name) : "";
}

size_t stack_functions(const struct stack_store *s)
{
    return s->n_functions;
}

void stack_function(const struct stack_store *s, size_t i, struct stack_function *out)
{
    const struct stack_disk_function *f = &s->functions[i];
    *out = (struct stack_function){f->address, f->process, stack_text(s, f->name)};
}

/* ---- calls ---- */

size_t stack_rows(const struct stack_store *s)
{
    return s->n_rows;
}

size_t stack_calls(const struct stack_store *s, size_t row)
{
    return s->rows[row].calls;
}

int64_t stack_long_duration(const struct stack_store *s, uint64_t call)
{
    size_t lo = search_first(i, 0, s->n_longs, s->longs[i].call >= call);
    return lo < s->n_longs ? s->longs[lo].duration : 0;
}

void stack_call(const struct stack_store *s, size_t row, size_t i, struct stack_call *out)
{
    *out = stack_call_at(s, s->rows[row].first_call + i);
}

/* How many calls of the row begin at or before t; `from` is known to be too few or just right. Times ahead are mostly
 * near. */
static uint64_t begun(const struct stack_store *s, const struct stack_disk_row *r, uint64_t from, int64_t t)
{
    const struct stack_disk_call *calls = s->calls + r->first_call;
    uint64_t lo = from, hi = from, step = 1;
    while (hi < r->calls && calls[hi].begin <= t) {
        lo = hi + 1;
        hi = step < r->calls - hi ? hi + step : r->calls;
        step *= 2;
    }
    return search_first(i, lo, hi, calls[i].begin > t);
}

size_t stack_begun(const struct stack_store *s, size_t row, size_t from, int64_t t)
{
    return t == INT64_MIN ? 0 : begun(s, &s->rows[row], from, t - 1);
}

size_t stack_find(const struct stack_store *s, size_t row, int64_t t)
{
    const struct stack_disk_row *r = &s->rows[row];
    uint64_t i = begun(s, r, 0, t);
    struct stack_call c;
    while (i > 0) {
        c = stack_call_at(s, r->first_call + i - 1);
        if (c.end < t)
            break;
        i--;
    }
    return i;
}

/* The state in force at t when n calls have begun. */
static void state_of(
    const struct stack_store *s, const struct stack_disk_row *r, uint64_t n, int64_t t, struct stack_call *out)
{
    int64_t since = s->totals->begin;
    if (n) {
        *out = stack_call_at(s, r->first_call + n - 1);
        if (t < out->end)
            return;
        since = out->end;
    }
    *out = (struct stack_call){
        since, n < r->calls ? s->calls[r->first_call + n].begin : s->totals->end, 0, STACK_NOTHING};
}

bool stack_at(const struct stack_store *s, size_t row, int64_t t, struct stack_call *out)
{
    return stack_sample(s, row, &t, 1, out) > 0;
}

size_t stack_sample(const struct stack_store *s, size_t row, const int64_t *times, size_t n, struct stack_call *out)
{
    const struct stack_disk_row *r = &s->rows[row];
    const struct stack_totals *span = s->totals;
    size_t found = 0;
    uint64_t i = 0;
    for (size_t k = 0; k < n; k++) {
        if (times[k] < span->begin || times[k] > span->end)
            continue;
        int64_t t = times[k] - (times[k] == span->end && span->end > span->begin);
        if (found && t < out[found - 1].end)
            continue;
        i = begun(s, r, i, t);
        state_of(s, r, i, t, &out[found++]);
    }
    return found;
}

/* ---- memory, losses ---- */

void stack_memory(const struct stack_store *s, size_t thread, const int64_t *times, size_t n, int64_t *bytes)
{
    const struct stack_disk_thread *t = &s->threads[thread];
    const struct stack_disk_value *v = s->memory + t->first_value;
    uint64_t at = 0;
    for (size_t k = 0; k < n; k++) {
        at = search_first(i, at, t->values, v[i].time > times[k]);
        bytes[k] = at ? v[at - 1].bytes : 0;
    }
}

size_t stack_losses(const struct stack_store *s)
{
    return s->n_losses;
}

void stack_loss(const struct stack_store *s, size_t i, struct stack_loss *out)
{
    const struct stack_disk_loss *l = &s->losses[i];
    *out = (struct stack_loss){l->begin, l->end, l->count, l->cpu};
}
