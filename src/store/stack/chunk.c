/* SPDX-License-Identifier: MIT */
/* File of stacks: opening and complete validation. References between tables are copied to memory, so that they stay as
 * checked. */
#include <stdlib.h>

#include "base/chunks.h"
#include "base/mem.h"
#include "base/search.h"
#include "stack/tiles.h"

/* ---- checking ---- */
static const char *names_defect(const struct stack_chunk *s)
{
    const char *what = store_names_defect(s->text, s->n_text, s->names, s->n_names);
    if (what)
        return what;
    for (size_t i = 0; i < s->n_processes; i++)
        if (s->processes[i].name >= s->n_names || s->processes[i].pid < -1)
            return "a process makes no sense";
    for (size_t i = 0; i < s->n_streams; i++)
        if (s->streams[i].name >= s->n_names || s->streams[i].cpu < -1)
            return "a stream makes no sense";
    for (size_t i = 0; i < s->n_libraries; i++)
        if (s->libraries[i].path >= s->n_names || s->libraries[i].process >= s->n_processes ||
            s->libraries[i].begin >= s->libraries[i].end)
            return "a library makes no sense";
    for (size_t i = 0; i < s->n_functions; i++)
        if (s->functions[i].name >= s->n_names || s->functions[i].process >= s->n_processes)
            return "a function makes no sense";
    return NULL;
}

static const char *thread_defect(const struct stack_chunk *s, const struct stack_disk_thread *t)
{
    if (t->begin > t->end || t->tid < -1 || t->cpu < -1 || t->rows > STACK_MOST_LEVELS ||
        (t->tid < 0 ? t->stream >= s->n_streams : t->stream != STACK_NO_STREAM))
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

static const char *threads_defect(const struct stack_chunk *s)
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
static const char *row_defect(struct stack_chunk *s, const struct stack_disk_row *r, size_t *longs)
{
    int64_t last = INT64_MIN;
    for (uint64_t i = r->first_call; i < r->first_call + r->calls; i++) {
        const struct stack_disk_call *c = &s->calls[i];
        int64_t duration = c->duration;
        if (c->duration == STACK_LONG) {
            if (*longs >= s->n_longs || s->longs[*longs].call != i || s->longs[*longs].duration < STACK_LONG)
                return "the duration of a long call is missing";
            duration = s->longs[(*longs)++].duration;
        }
        if (c->begin < last || __builtin_add_overflow(c->begin, duration, &last))
            return "calls out of order";
        enum stack_how how = stack_how_of(c);
        if (how == STACK_NOTHING || (how != STACK_UNKNOWN && c->what >> STACK_HOW_BITS >= s->n_functions))
            return "a call of no function";
    }
    if (r->calls && s->calls[r->first_call].begin < s->begin)
        s->begin = s->calls[r->first_call].begin;
    s->end = last > s->end ? last : s->end;
    return NULL;
}

static const char *rows_defect(struct stack_chunk *s)
{
    uint64_t call = 0;
    size_t longs = 0;
    for (size_t i = 0; i < s->n_rows; i++) {
        const struct stack_disk_row *r = &s->rows[i];
        if (r->first_call != call || r->calls > s->n_calls - call)
            return "a row's calls lie outside the table";
        const char *what = row_defect(s, r, &longs);
        if (what)
            return what;
        call += r->calls;
    }
    return call != s->n_calls || longs != s->n_longs ? "calls that belong to no row" : NULL;
}

/* Least and most are calls of the tile, which makes sense of them. */
static const char *figures_defect(const struct stack_chunk *s, uint64_t tile, uint64_t calls)
{
    for (uint64_t i = s->tiles[tile]; i < s->tiles[tile + 1]; i++) {
        const struct stack_disk_figures *f = &s->figures[i];
        if (f->function >= s->n_functions || !f->n || f->n > calls || f->least >= calls || f->most >= calls)
            return "figures that make no sense";
    }
    return NULL;
}

static const char *row_tiles_defect(const struct stack_chunk *s, uint64_t calls, uint64_t *tile)
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
static const char *whole_defect(const struct stack_chunk *s, const struct stack_disk_row *r, uint64_t *at)
{
    uint64_t n = 0;
    for (uint64_t i = 0; i < r->calls; i++) {
        if (i % TILE_ITEMS == 0 && s->whole[(*at)++] != n)
            return "calls are counted wrong";
        n += stack_how_of(&s->calls[r->first_call + i]) == STACK_WHOLE;
    }
    return NULL;
}

static const char *tiles_defect(const struct stack_chunk *s)
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

/* Returns the defect of the file, or NULL. */
static const char *chunk_defect(struct stack_chunk *s)
{
    const char *what = names_defect(s);
    what = what ? what : threads_defect(s);
    what = what ? what : rows_defect(s);
    what = what ? what : tiles_defect(s);
    for (size_t i = 0; !what && i < s->n_losses; i++)
        if (s->losses[i].end < s->losses[i].begin)
            what = "a loss ends before it begins";
    return what;
}

/* ---- opening ---- */

static void read_sections(struct stack_chunk *s, size_t *n_totals)
{
    s->totals = store_section_kept(s->file, "totals", sizeof *s->totals, n_totals);
    s->text = store_section_kept(s->file, "text", 1, &s->n_text);
    s->names = store_section_kept(s->file, "names", sizeof *s->names, &s->n_names);
    s->processes = store_section_kept(s->file, "processes", sizeof *s->processes, &s->n_processes);
    s->threads = store_section_kept(s->file, "threads", sizeof *s->threads, &s->n_threads);
    s->streams = store_section_kept(s->file, "streams", sizeof *s->streams, &s->n_streams);
    s->renames = store_section_kept(s->file, "renames", sizeof *s->renames, &s->n_renames);
    s->rows = store_section_kept(s->file, "rows", sizeof *s->rows, &s->n_rows);
    s->functions = store_section_kept(s->file, "functions", sizeof *s->functions, &s->n_functions);
    s->libraries = store_section_kept(s->file, "libraries", sizeof *s->libraries, &s->n_libraries);
    s->calls = store_section(s->file, "calls", sizeof *s->calls, &s->n_calls);
    s->longs = store_section(s->file, "longs", sizeof *s->longs, &s->n_longs);
    s->tiles = store_section_kept(s->file, "tiles", sizeof *s->tiles, &s->n_tiles);
    s->figures = store_section(s->file, "figures", sizeof *s->figures, &s->n_figures);
    s->whole = store_section_kept(s->file, "whole", sizeof *s->whole, &s->n_whole);
    s->memory = store_section(s->file, "memory", sizeof *s->memory, &s->n_memory);
    s->losses = store_section_kept(s->file, "losses", sizeof *s->losses, &s->n_losses);
}

void stack_chunk_find_rows(struct stack_chunk *s)
{
    uint64_t tile = 0, finest = 0;
    s->first_tile = mem_alloc(sizeof *s->first_tile * (s->n_rows + 1));
    s->first_finest = mem_alloc(sizeof *s->first_finest * (s->n_rows + 1));
    s->has_below = mem_zalloc(sizeof *s->has_below * (s->n_rows + 1));
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

int stack_chunk_open(struct stack_chunk *s, const struct chunk *of, struct err *e)
{
    size_t n_totals;
    *s = (struct stack_chunk){0};
    int rc = store_open_from(of->in, of->path, "stacks", STACK_VERSION, &s->file, e);
    if (rc)
        return rc;
    read_sections(s, &n_totals);
    if (n_totals == 1) {
        s->begin = s->totals->begin;
        s->end = s->totals->end;
    }
    const char *what = n_totals == 1 ? chunk_defect(s) : "no totals";
    if (what)
        return err_set(e, ERR_FORMAT, "%s: %s", of->path, what);
    stack_chunk_find_rows(s);
    s->function_of = mem_zalloc(sizeof *s->function_of * (s->n_functions + 1));
    return 0;
}

void stack_chunk_close(struct stack_chunk *s)
{
    free(s->first_tile);
    free(s->first_finest);
    free(s->has_below);
    free(s->function_of);
    if (s->file)
        store_close(s->file);
}

int64_t stack_long_duration(const struct stack_chunk *s, uint64_t call)
{
    size_t lo = search_first(i, 0, s->n_longs, s->longs[i].call >= call);
    return lo < s->n_longs ? s->longs[lo].duration : 0;
}
