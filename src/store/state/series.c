/* SPDX-License-Identifier: MIT */
#include "state/series.h"

#include <stdlib.h>
#include <string.h>

#include "base/search.h"
#include "state/cell.h"

/* Room for n bytes, and 8 more, at position `n`, which the caller then advances. */
static uint8_t *series_bytes_room(struct series_bytes *b, size_t n)
{
    if (b->n % SERIES_CHUNK + n + 8 > SERIES_CHUNK || !b->chunks.n)
        b->n = b->chunks.n * (uint64_t)SERIES_CHUNK;
    if (b->n == b->chunks.n * (uint64_t)SERIES_CHUNK)
        vec_push(&b->chunks, mem_map(SERIES_CHUNK));
    return b->chunks.v[b->n / SERIES_CHUNK] + b->n % SERIES_CHUNK;
}

static void series_bytes_fini(struct series_bytes *b)
{
    for (size_t i = 0; i < b->chunks.n; i++)
        mem_unmap(b->chunks.v[i], SERIES_CHUNK);
    vec_free(&b->chunks);
    b->n = 0;
}

/* ---- rows ---- */

void state_series_pool_init(struct series_pool *p, struct store_place place, uint64_t key)
{
    struct store_writer *to = store_create_at(place, "states", STATE_VERSION, key, STATE_SECTIONS);
    store_begin(to, "cells", sizeof(struct state_disk_cell));
    *p = (struct series_pool){.cells = {.to = to, .buffer = mem_alloc(SERIES_CELLS * sizeof *p->cells.buffer)}};
}

/* Room for the cells of a block. */
static struct state_disk_cell *cells_room(struct series_cells *c)
{
    if (c->buffered + STATE_CELLS > SERIES_CELLS) {
        store_append(c->to, c->buffer, c->buffered);
        c->buffered = 0;
    }
    return c->buffer + c->buffered;
}

int state_series_pool_finish(struct series_pool *p, struct err *e)
{
    struct series_cells *c = &p->cells;
    const void *items;
    store_append(c->to, c->buffer, c->buffered);
    c->buffered = 0;
    int rc = store_look_back(c->to, &c->file, &items, e);
    c->v = items;
    return rc;
}

void state_series_pool_fini(struct series_pool *p)
{
    vec_free(&p->blocks);
    vec_free(&p->sums);
    store_abort(p->cells.to);
    free(p->cells.buffer);
    file_map_close(&p->cells.file);
    series_bytes_fini(&p->bytes);
    for (int i = 0; i < SERIES_FLAGS; i++)
        vec_free(&p->flags[i]);
}

void state_series_fini(struct series *s)
{
    free(s->v);
    s->v = NULL;
}

/* Adds the time or bytes of the first n entries, which are over. */
static void sum_up(const struct series_pool *p, struct series *s, size_t n)
{
    if (s->sum == SERIES_BYTES) {
        for (size_t i = 0; i < n; i++)
            for (int way = 0; way < STATE_WAYS; way++)
                s->before[way] += (int64_t)state_file_bytes(s->v[i].number, way);
        return;
    }
    const uint8_t *flags = p->flags[s->sum].v;
    for (size_t i = 0; i < n; i++)
        if (flags[s->v[i].number])
            s->before[0] = (int64_t)((uint64_t)s->before[0] + ns_between(s->v[i].time, s->v[i + 1].time));
}

void state_series_sums_before(const struct series_pool *p, const struct series *s, size_t n, int64_t sums[STATE_WAYS])
{
    struct series at = *s;
    if (s->sum != SERIES_NO_SUM)
        sum_up(p, &at, n);
    memcpy(sums, at.before, sizeof at.before);
}

static bool fits(struct state_disk_cell *cell, size_t n, uint64_t ns, uint64_t bits)
{
    cell->time_width = pack_width(ns);
    cell->number_width = pack_width(bits);
    return pack_bytes(n, cell->time_width) + pack_bytes(n, cell->number_width) <= sizeof cell->packed;
}

/* state_pack_put writes beyond its numbers, but within the cell, and before the head is written. */
static void fill(
    struct state_disk_cell *cell, size_t n, const int64_t *ends, const int64_t *numbers, size_t stride, int64_t base)
{
    uint8_t time_width = cell->time_width, number_width = cell->number_width, *to = (uint8_t *)cell;
    memset(cell, 0, sizeof *cell);
    state_pack_put(to, ends, stride, n, base, time_width);
    state_pack_put(to + pack_bytes(n, time_width), numbers, stride, n, 0, number_width);
    cell->n = (uint8_t)n;
    cell->time_width = time_width;
    cell->number_width = number_width;
    cell->base = base;
}

/* Fills one cell with the first of n entries; with fewer than the maximum if numbers are wide or below 0, or no entry
 * follows. */
static size_t fill_some(struct state_disk_cell *cell, const struct series_entry *v, size_t n, bool more)
{
    int64_t numbers[STATE_CELL], ends[STATE_CELL];
    uint64_t bits[STATE_CELL]; /* bits that occur in the numbers up to this one */
    size_t most = n < STATE_CELL ? n : STATE_CELL;
    bool folded = false;
    for (size_t i = 0; i < most; i++) {
        numbers[i] = v[i].number;
        ends[i] = v[i + 1 < n || more ? i + 1 : i].time;
        bits[i] = (uint64_t)numbers[i] | (i ? bits[i - 1] : 0);
        folded |= numbers[i] < 0;
    }
    for (size_t i = 0; i < most && folded; i++) {
        numbers[i] = (int64_t)((uint64_t)v[i].number << 1 ^ (uint64_t)(v[i].number >> 63));
        bits[i] = (uint64_t)numbers[i] | (i ? bits[i - 1] : 0);
    }
    /* Greatest number of entries that fit. */
    size_t least = search_first(i, 2, most + 1, !fits(cell, i, ns_between(v[0].time, ends[i - 1]), bits[i - 1])) - 1;
    fits(cell, least, ns_between(v[0].time, ends[least - 1]), bits[least - 1]);
    fill(cell, least, ends, numbers, 1, v[0].time);
    cell->number_width |= folded ? STATE_FOLDED : 0;
    return least;
}

/* Fills one cell with the first of n entries. `more`: another follows the n-th. Returns the number of entries used. */
static size_t fill_cell(struct state_disk_cell *cell, const struct series_entry *v, size_t n, bool more)
{
    uint64_t bits = 0;
    if (n + more <= STATE_CELL)
        return fill_some(cell, v, n, more);
    for (size_t i = 0; i < STATE_CELL; i++)
        bits |= (uint64_t)v[i].number;
    if ((int64_t)bits < 0 || !fits(cell, STATE_CELL, ns_between(v[0].time, v[STATE_CELL].time), bits))
        return fill_some(cell, v, n, more);
    fill(cell, STATE_CELL, &v[1].time, &v[0].number, sizeof *v / sizeof(int64_t), v[0].time);
    return STATE_CELL;
}

/* ---- pairs ---- */

static bool is_rest(const struct series_entry *v)
{
    return (uint64_t)v->number <= 1;
}

static bool is_pair(const struct series_entry *v)
{
    return v->number >= 0 && is_rest(v + 1);
}

static inline uint8_t bits_of(uint64_t v)
{
    return (uint8_t)(64 - __builtin_clzll(v | 1));
}

/* Widths of pairs are never 0: pairs last, and an idle one does not follow another. */
static inline bool pairs_fit(
    struct state_cell_pairs *p, size_t n, uint64_t ns, uint64_t number_bits, uint64_t duration_bits)
{
    p->n = (uint8_t)n;
    p->time_width = bits_of(ns);
    p->number_width = bits_of(number_bits);
    p->duration_width = bits_of(duration_bits);
    size_t bytes = pack_bytes(n, p->time_width) + pack_bytes(n, p->number_width) + pack_bytes(n, p->duration_width);
    return (bytes <= STATE_CELL_PACKED) & (p->time_width <= PACK_MOST_WIDTH) & (p->number_width <= PACK_MOST_WIDTH);
}

/* Fills one cell with as many pairs from the first of n entries as exist and fit. Returns the number of entries
 * used. */
static size_t fill_pairs(struct state_disk_cell *cell, const struct series_entry *v, size_t n, bool more)
{
    int64_t ends[STATE_CELL], numbers[STATE_CELL], durations[STATE_CELL];
    uint64_t bits = 0, duration_bits = 0; /* bits that occur in the numbers, in the durations up to this one */
    struct state_cell_pairs p = {0}, next = {0};
    for (size_t i = 0; i < STATE_CELL && 2 * i + 1 < n && is_pair(v + 2 * i); i++, p = next) {
        const struct series_entry *use = v + 2 * i, *rest = use + 1;
        numbers[i] = (int64_t)((uint64_t)use->number << 1 | (uint64_t)rest->number);
        durations[i] = (int64_t)ns_between(use->time, rest->time);
        ends[i] = rest[2 * i + 2 < n || more].time;
        bits |= (uint64_t)numbers[i];
        duration_bits |= (uint64_t)durations[i];
        next.rests = bits & 1;
        if (!pairs_fit(&next, i + 1, ns_between(v->time, ends[i]), bits >> !next.rests, duration_bits))
            break;
    }
    if (!p.n)
        return 0;
    for (size_t i = 0; i < p.n && !p.rests; i++)
        numbers[i] = (int64_t)((uint64_t)numbers[i] >> 1);
    uint8_t *to = (uint8_t *)cell;
    memset(cell, 0, sizeof *cell);
    state_pack_put(to, ends, 1, p.n, v->time, p.time_width);
    to += pack_bytes(p.n, p.time_width);
    state_pack_put(to, numbers, 1, p.n, 0, p.number_width);
    state_pack_put(to + pack_bytes(p.n, p.number_width), durations, 1, p.n, 0, p.duration_width);
    state_cell_pairs_head(cell, &p);
    cell->base = v->time;
    return 2 * (size_t)p.n;
}

/* Fills a cell of a series with pairs. A cell full of pairs is kept; if the pairs end earlier, a plain cell may hold
 * more entries. The next cell should begin with a pair. */
static size_t fill_longest(struct state_disk_cell *cell, const struct series_entry *v, size_t n, bool more)
{
    size_t paired = fill_pairs(cell, v, n, more);
    if (paired && (paired == n || (paired + 1 < n && is_pair(v + paired))))
        return paired;
    struct state_disk_cell plain;
    size_t k = fill_cell(&plain, v, n, more);
    if (k > 1 && k < n && is_rest(v + k) && !is_rest(v + k - 1))
        k = fill_cell(&plain, v, k - 1, true);
    if (k <= paired)
        return paired;
    *cell = plain;
    return k;
}

/* ---- blocks ---- */

/* Fixes entries that are too far back to change, even when entries behind them are removed. */
static void fix(struct series *s)
{
    if (s->n > s->fixed + SERIES_CHANGE)
        s->fixed = s->n - SERIES_CHANGE;
}

/* Packs entries from the first on into the cells of a block. `last`: no entry follows. Otherwise there must be enough
 * entries that some stay open. */
static bool close_block(struct series_pool *p, struct series *s, bool last)
{
    struct state_disk_cell *cells = cells_room(&p->cells);
    uint32_t k = 0;
    size_t n = 0;
    for (; k < STATE_CELLS && n < s->n; k++) {
        size_t may = s->n - n - !last;
        n += s->pairs ? fill_longest(&cells[k], s->v + n, may, !last) : fill_cell(&cells[k], s->v + n, may, !last);
    }
    if (!last && s->n - n < SERIES_OPEN)
        return false;
    if (!s->id)
        s->id = ++p->ids;
    vec_push(&p->blocks, ((struct series_block){p->cells.n, s->id}));
    for (unsigned i = 0; i < series_sums(s); i++)
        vec_push(&p->sums, s->before[i]);
    p->cells.buffered += k;
    p->cells.n += k;
    s->cells += k;
    if (s->sum != SERIES_NO_SUM && n < s->n)
        sum_up(p, s, n);
    if (!last)
        fix(s);
    s->fixed = s->fixed > n ? (uint16_t)(s->fixed - n) : 0;
    s->past = true;
    s->closed += n;
    s->n -= (uint16_t)n;
    memmove(s->v, s->v + n, s->n * sizeof *s->v);
    return true;
}

static void widen(struct series *s)
{
    s->cap = !s->cap ? 4 : s->cap < 64 ? s->cap * 4 : s->cap < SERIES_BUFFER ? SERIES_BUFFER : SERIES_MOST;
    s->v = mem_resize(s->v, s->cap * sizeof *s->v);
}

void state_series_grow(struct series_pool *p, struct series *s)
{
    if (s->cap < SERIES_BUFFER || !close_block(p, s, false))
        widen(s);
}

void state_series_reserve(struct series *s, size_t n)
{
    while (s->cap < n)
        widen(s);
}

void state_series_take_last(struct series *s)
{
    if (s->n)
        s->last = s->v[s->n - 1];
}

void state_series_amend(struct series *s, int64_t number)
{
    fix(s);
    if (s->n == s->fixed)
        return;
    if (s->n > 1 ? s->v[s->n - 2].number == number : !s->past && number == s->lead)
        s->n--;
    else
        s->v[s->n - 1].number = number;
    state_series_take_last(s);
}

void state_series_cut(struct series *s, int64_t time)
{
    fix(s);
    while (s->n > s->fixed && s->v[s->n - 1].time >= time)
        s->n--;
    state_series_take_last(s);
}

void state_series_rename(struct series *s, int64_t time, int64_t from, int64_t to)
{
    for (size_t i = s->n; i-- > 0 && i + SERIES_RENAMED >= s->n && s->v[i].time >= time;)
        if (s->v[i].number == from)
            s->v[i].number = to;
    state_series_take_last(s);
}

void state_series_mend(struct series *s)
{
    fix(s);
    if (s->n < s->fixed + 2 || s->n < 3)
        return;
    s->v[s->n - 2] = s->v[s->n - 1];
    s->n--;
    if (s->v[s->n - 2].number == s->v[s->n - 1].number)
        s->n--;
    state_series_take_last(s);
}

void state_series_leave(struct series *s, size_t n, int64_t begin)
{
    s->last.time = begin;
    s->n = (uint16_t)n;
    s->goes_on = true;
}

void state_series_finish(struct series_pool *p, struct series *s)
{
    while (s->n)
        close_block(p, s, true);
}

/* ---- tables of columns ---- */

void state_series_table_add(
    struct series_bytes *bytes, struct series_table *t, const series_values *v, int columns, size_t n)
{
    enum { TIMES = 1 << COLUMN_LINE, LENGTHS = 1 << COLUMN_SPLIT, FEW = 1 << COLUMN_SPLIT | 1 << COLUMN_TABLE };
    static const uint8_t ways[STATE_LATENCY_COLUMNS] = {TIMES, LENGTHS, FEW, FEW, FEW, FEW};
    struct state_disk_head h = {.first = v[0][0]};
    uint8_t *to = series_bytes_room(bytes, (size_t)columns * COLUMN_MOST_BYTES);
    size_t offset = 0;
    h.position = bytes->n;
    for (int c = 0; c < columns; c++) {
        size_t taken = state_column_put(to + offset, v[c], n, c ? 0 : h.first, ways[c], &h.columns[c]);
        h.columns[c].offset = offset & ((1 << COLUMN_OFFSET_BITS) - 1);
        offset += taken;
    }
    vec_push(&t->heads, h);
    bytes->n += offset;
    t->n += n;
}
