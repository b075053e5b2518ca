/* The end of building: rows get their order, their grids and their names, and the store is written. */
#include <stdio.h>
#include <stdlib.h>

#include "base/text.h"
#include "state/builder.h"
#include "state/cell.h"

/* A row on its way to the disk. */
struct row {
    struct state_disk_row disk;
    const struct series *series;
    uint32_t cells, buckets; /* of the grid: done so far */
};

/* A file on its way there, by name. */
struct file_row {
    struct file_access *access;
    uint32_t name;
};

struct writing {
    struct state_builder *b;
    int64_t begin, end;
    VEC(struct row) rows;
    VEC(struct state_disk_code) codes;
    struct strings names;
    uint32_t *blocks;
    int64_t *sums;
    uint32_t n_sums;
    VEC(uint32_t) grid;
    struct state_disk_table tables[STATE_TABLES];
    VEC(struct state_disk_head) heads;
    VEC(struct state_disk_late) late;
    VEC(struct state_disk_file) files;
    VEC(uint32_t) through;
    struct series none; /* of rows that have no entries of their own */
    struct tile_list tiles;
    struct builder_gaps gaps;
};

/* ---- names --------------------------------------------------------------------------------------------------------------------- */

static uint32_t intern(struct writing *w, const char *s)
{
    return strings_intern(&w->names, s, strlen(s));
}

static uint32_t intern_string(struct writing *w, uint32_t string)
{
    const char *const *strings;
    return string < kernel_tracker_strings(w->b->tracker, &strings) ? intern(w, strings[string]) : 0;
}

static uint32_t intern_number(struct writing *w, uint32_t number)
{
    char text[16];
    snprintf(text, sizeof text, "%u", number);
    return intern(w, text);
}

static uint32_t lock_name(struct writing *w, const struct builder_lock *l)
{
    char text[48];
    if (l->tgid >= 0)
        snprintf(text, sizeof text, "%d:0x%llx", l->tgid, (unsigned long long)l->address);
    else
        snprintf(text, sizeof text, "0x%llx", (unsigned long long)l->address);
    return intern(w, text);
}

static uint32_t code_name(struct writing *w, const struct builder_code *c)
{
    uint32_t name = 0;
    switch (c->kind) {
    case CODE_STRING: return intern_string(w, c->ref);
    case CODE_IRQ: name = intern_string(w, kernel_tracker_irq_name(w->b->tracker, c->ref)); return name ? name : intern_number(w, c->ref);
    case CODE_VECTOR: return builder_vector_name(c->ref) ? intern(w, builder_vector_name(c->ref)) : intern_number(w, c->ref);
    case CODE_LOCK: return lock_name(w, &w->b->locks.v[c->ref]);
    case CODE_OTHER_LOCKS: return intern(w, "others");
    default: return 0;
    }
}

static void name_codes(struct writing *w)
{
    for (size_t i = 0; i < w->b->codes.n; i++) {
        const struct builder_code *c = &w->b->codes.v[i];
        vec_push(&w->codes, ((struct state_disk_code){.name = code_name(w, c), .cpu = c->cpu, .value = c->value}));
    }
}

static uint32_t disk_name(struct writing *w, uint32_t dev)
{
    uint32_t name = intern_string(w, kernel_tracker_disk_name(w->b->tracker, dev));
    char text[32];
    snprintf(text, sizeof text, "%u,%u", dev >> 20, dev & 0xfffff); /* as the kernel numbers devices */
    return name ? name : intern(w, text);
}

/* ---- rows ---------------------------------------------------------------------------------------------------------------------- */

/* Takes the series as it is: it gets no more entries. */
static struct state_disk_row *add_row(struct writing *w, uint8_t kind, int32_t number, uint32_t name, uint8_t lead, struct series *s)
{
    series_finish(&w->b->pool, s);
    vec_push(&w->rows, ((struct row){{.number = number, .kind = kind, .name = name, .lead = lead, .thread = -1}, s}));
    return &w->rows.v[w->rows.n - 1].disk;
}

static void add_threads(struct writing *w)
{
    const struct kernel_thread *threads;
    size_t n = kernel_tracker_threads(w->b->tracker, &threads);
    if (n)
        builder_thread(w->b, (int32_t)n - 1);
    for (size_t i = 0; i < n; i++) {
        struct builder_thread *t = &w->b->threads.v[i];
        struct state_disk_row *r = add_row(w, STATE_THREAD, (int32_t)i, intern_string(w, threads[i].name), STATE_UNKNOWN, &t->series);
        r->idle = t->idle;
        r->begin = threads[i].born ? threads[i].begin : INT64_MIN;
        r->end = threads[i].died ? threads[i].end : INT64_MAX;
    }
}

static void add_cpus(struct writing *w)
{
    char text[32];
    for (size_t i = 0; i < w->b->cpus.n; i++) {
        struct builder_cpu *c = &w->b->cpus.v[i];
        snprintf(text, sizeof text, "CPU %zu", i);
        uint8_t kinds[2] = {STATE_CPU, STATE_CPU_THREAD};
        for (int k = 0; k < 2; k++) {
            struct state_disk_row *r = add_row(w, kinds[k], (int32_t)i, intern(w, text), STATE_UNKNOWN, k ? &c->thread : &c->state);
            r->begin = INT64_MIN;
            r->end = INT64_MAX;
        }
    }
}

static void add_pages(struct writing *w)
{
    const struct kernel_thread *threads;
    size_t n = kernel_tracker_threads(w->b->tracker, &threads);
    struct builder_amounts *pages = &w->b->amounts[BUILDER_PAGES];
    for (size_t i = 0; i < pages->v.n; i++) {
        uint32_t slot = pages->v.v[i].slot;
        uint32_t name = !slot ? intern(w, "total") : slot <= n ? intern_string(w, threads[slot - 1].name) : 0;
        add_row(w, STATE_COUNTER_ROWS + STATE_MEMORY, (int32_t)slot - 1, name, 0, &pages->v.v[i].series);
    }
}

static void add_exits(struct writing *w)
{
    const struct kernel_thread *threads;
    size_t n = kernel_tracker_threads(w->b->tracker, &threads);
    struct builder_amounts *all = &w->b->amounts[BUILDER_KVM_EXITS];
    for (size_t i = 0; i < all->v.n; i++) {
        uint32_t row = all->v.v[i].slot;
        add_row(w, STATE_COUNTER_ROWS + STATE_KVM_EXITS, (int32_t)row, row < n ? intern_string(w, threads[row].name) : 0, 0,
            &all->v.v[i].series);
    }
}

static uint32_t file_label(struct writing *w, const struct file_name *n)
{
    const struct kernel_thread *threads;
    char text[64];
    if (n->fd < 0) {
        struct text name = {.fd = -1};
        text_printf(&name, "%s%s", files_path(w->b, n), n->before_loss ? " (before events were lost)" : "");
        uint32_t number = intern(w, text_cstr(&name));
        text_fini(&name);
        return number;
    }
    const struct kernel_thread *t = (size_t)n->thread < kernel_tracker_threads(w->b->tracker, &threads) ? &threads[n->thread] : NULL;
    const char *comm = t ? w->names.v[intern_string(w, t->name)] : "";
    snprintf(text, sizeof text, "fd %d of %.20s (%d)", n->fd, comm, n->process);
    return intern(w, text);
}

/* Sorted by name, then thread. */
static int by_name(const void *a, const void *b, void *writing)
{
    const struct file_row *x = a, *y = b;
    const struct writing *w = writing;
    int order = strcmp(w->names.v[x->name], w->names.v[y->name]);
    return order ? order : x->access->thread < y->access->thread ? -1 : x->access->thread > y->access->thread;
}

static void add_files(struct writing *w)
{
    struct file_access *accesses;
    size_t n = files_accesses(w->b, &accesses), kept = 0;
    struct file_row *rows = mem_alloc((n + 1) * sizeof *rows);
    for (size_t i = 0; i < n; i++)
        if (accesses[i].series.n || accesses[i].series.closed)
            rows[kept++] = (struct file_row){&accesses[i], file_label(w, files_name(w->b, &accesses[i]))};
    if (kept)
        qsort_r(rows, kept, sizeof *rows, by_name, w);
    for (size_t i = 0; i < kept; i++) {
        struct file_access *a = rows[i].access;
        add_row(w, STATE_FILE_ROWS, (int32_t)i, rows[i].name, 0, &a->series);
        vec_push(&w->files, ((struct state_disk_file){{a->moved[0], a->moved[1]}, a->thread, 0}));
    }
    free(rows);
}

/* What threads moved in one way: what they moved through no file, and through which files the rest. */
static void add_moved(struct writing *w, int way)
{
    const struct kernel_thread *threads;
    struct builder_amounts *own = &w->b->amounts[BUILDER_IO_READ + way];
    size_t n = kernel_tracker_threads(w->b->tracker, &threads);
    uint32_t *next = mem_zalloc((n + 1) * sizeof *next), at = (uint32_t)w->through.n;
    for (size_t i = 0; i < w->files.n; i++)
        next[w->files.v[i].thread] += w->files.v[i].moved[way] > 0;
    for (size_t row = 0; row < n; row++) {
        uint32_t place = row < own->place.n ? own->place.v[row] : 0, files = next[row];
        next[row] = at;
        if (!place && !files)
            continue;
        struct state_disk_row *r = add_row(w, (uint8_t)(STATE_COUNTER_ROWS + STATE_IO_READ + way), (int32_t)row,
            intern_string(w, threads[row].name), 0, place ? &own->v.v[place - 1].series : &w->none);
        r->first_file = at;
        r->n_files = files;
        at += files;
    }
    vec_reserve(&w->through, at - w->through.n);
    for (size_t i = 0; i < w->files.n; i++)
        if (w->files.v[i].moved[way])
            w->through.v[next[w->files.v[i].thread]++] = (uint32_t)i;
    w->through.n = at;
    free(next);
}

static void add_request(void *arg, int32_t number, uint32_t dev, struct series *s)
{
    struct writing *w = arg;
    add_row(w, STATE_REQUEST_ROWS, number, disk_name(w, dev), 0, s);
}

static void add_cpu_counters(struct writing *w)
{
    const char *const *names;
    uint32_t n = (uint32_t)kernel_tracker_counters(w->b->tracker, &names);
    struct builder_amounts *all = &w->b->amounts[BUILDER_CPU_COUNTERS];
    for (size_t i = 0; i < all->v.n; i++) {
        uint32_t slot = all->v.v[i].slot, number = slot / n * STATE_CPU_COUNTERS + slot % n;
        add_row(w, STATE_COUNTER_ROWS + STATE_CPU_COUNTER, (int32_t)number, intern(w, names[slot % n]), 0, &all->v.v[i].series);
    }
}

static void add_frequencies(struct writing *w)
{
    struct builder_amounts *all = &w->b->amounts[BUILDER_FREQUENCIES];
    char text[32];
    for (size_t i = 0; i < all->v.n; i++) {
        snprintf(text, sizeof text, "CPU %u", all->v.v[i].slot);
        add_row(w, STATE_COUNTER_ROWS + STATE_CPU_FREQUENCY, (int32_t)all->v.v[i].slot, intern(w, text), 0, &all->v.v[i].series);
    }
}

static void add_lanes(struct writing *w, uint8_t kind, struct builder_lanes *l)
{
    for (size_t i = 0; i < l->v.n; i++)
        add_row(w, kind, (int32_t)i, intern_number(w, (uint32_t)i), STATE_NONE, &l->v.v[i]);
}

static void add_futexes(struct writing *w)
{
    struct state_builder *b = w->b;
    for (size_t i = 0; i < b->futex_users.n; i++) {
        struct builder_futex_user *u = &b->futex_users.v[i];
        struct state_disk_row *r = add_row(w, STATE_FUTEX_USER, (int32_t)i, w->codes.v[u->code].name, STATE_NONE, &u->series);
        r->thread = u->thread;
        r->waits = u->waits;
    }
    add_lanes(w, STATE_FUTEX_WAITS, &b->futex_waits);
    add_lanes(w, STATE_FUTEX_WAKES, &b->futex_wakes);
    add_lanes(w, STATE_IRQ_HANDLERS, &b->irq_handlers);
}

static void add_others(struct writing *w)
{
    struct state_builder *b = w->b;
    for (size_t i = 0; i < b->irqs.n; i++) {
        struct builder_irq *q = &b->irqs.v[i];
        add_row(w, q->kind, q->number, w->codes.v[q->code].name, STATE_NONE, &q->series);
    }
    for (size_t i = 0; i < b->disks.n; i++)
        for (int k = 0; k < 2; k++)
            add_row(w, (uint8_t)(STATE_COUNTER_ROWS + STATE_DISK_READ + k), (int32_t)i, disk_name(w, b->disks.v[i].id), 0,
                &b->disks.v[i].series[k]);
    for (size_t i = 0; i < b->nets.n; i++)
        for (int k = 0; k < 2; k++)
            add_row(w, (uint8_t)(STATE_COUNTER_ROWS + STATE_NET_SENT + k), (int32_t)i, intern_string(w, b->nets.v[i].id), 0,
                &b->nets.v[i].series[k]);
    add_futexes(w);
    add_pages(w);
    add_cpu_counters(w);
    add_frequencies(w);
    add_files(w);
    for (int way = 0; way < STATE_WAYS; way++)
        add_moved(w, way);
    builder_each_request(b, add_request, w);
    add_exits(w);
    for (size_t i = 0; i < w->rows.n; i++) {
        struct state_disk_row *r = &w->rows.v[i].disk;
        if (r->kind != STATE_THREAD && r->kind != STATE_CPU && r->kind != STATE_CPU_THREAD) {
            r->begin = INT64_MIN;
            r->end = INT64_MAX;
        }
    }
}

static int by_kind_and_number(const void *a, const void *b)
{
    const struct state_disk_row *x = &((const struct row *)a)->disk, *y = &((const struct row *)b)->disk;
    if (x->kind != y->kind)
        return x->kind < y->kind ? -1 : 1;
    return x->number < y->number ? -1 : x->number > y->number;
}

/* Blocks by row, in the order of rows; each row's come in order of time. Their cells stay where they are: near what happened at the same time. */
static void place_blocks(struct writing *w)
{
    const struct series_pool *p = &w->b->pool;
    struct place { /* of a row's next block, and of its sums */
        uint32_t block, sum;
        uint8_t told, kept;
    } *next = mem_zalloc((p->ids + 2) * sizeof *next);
    const int64_t *sums = p->sums.v;
    uint32_t at = 0;
    for (size_t i = 0; i < w->rows.n; i++) {
        struct row *r = &w->rows.v[i];
        struct place *x = &next[r->series->id];
        r->disk.n = r->series->closed;
        r->disk.n_cells = r->series->cells;
        r->disk.first_block = at;
        *x = (struct place){at, w->n_sums, (uint8_t)series_sums(r->series), (uint8_t)state_block_sums(r->disk.kind)};
        uint32_t blocks = (r->disk.n_cells + STATE_CELLS - 1) / STATE_CELLS;
        at += blocks;
        w->n_sums += blocks * x->kept;
    }
    w->blocks = mem_alloc((p->blocks.n + 1) * sizeof *w->blocks);
    w->sums = mem_zalloc((w->n_sums + (size_t)1) * sizeof *w->sums);
    for (size_t i = 0; i < p->blocks.n; i++) {
        struct place *x = &next[p->blocks.v[i].id];
        w->blocks[x->block++] = p->blocks.v[i].cell;
        for (int k = 0; k < x->told; k++) /* idle threads tell none: all theirs are 0 */
            w->sums[x->sum + k] = *sums++;
        x->sum += x->kept;
    }
    free(next);
}

static const struct state_disk_cell *cell_of(const struct writing *w, const struct state_disk_row *r, uint32_t i)
{
    return series_cell(&w->b->pool, w->blocks[r->first_block + i / STATE_CELLS] + i % STATE_CELLS);
}

/* Entries lie within their row, rows within the whole, whatever the trace told of lives and times. */
static void bound_row(struct writing *w, struct state_disk_row *r)
{
    if (!r->n)
        return;
    const struct state_disk_cell *cell = cell_of(w, r, r->n_cells - 1);
    int64_t last = cell_entry(cell, cell_n(cell) - 1).begin;
    r->first = cell_of(w, r, 0)->base;
    w->begin = r->first < w->begin ? r->first : w->begin;
    w->end = last > w->end ? last : w->end;
    r->begin = r->begin > r->first ? r->first : r->begin;
    r->end = r->end < last ? last : r->end;
}

static void find_least(struct writing *w, struct state_disk_row *r)
{
    if (!state_may_fall(r->kind))
        return;
    int64_t times[STATE_CELL_ENTRIES + 1], numbers[STATE_CELL_ENTRIES];
    for (uint32_t i = 0; i < r->n_cells; i++)
        for (size_t k = cell_take(cell_of(w, r, i), times, numbers); k-- > 0;)
            r->least = numbers[k] < r->least ? numbers[k] : r->least;
}

/* So many buckets, or more than half of them: one to two for each cell where rows are drawn by the hundred, else one for two to four cells. */
static uint64_t most_buckets(const struct state_disk_row *r)
{
    bool drawn = r->kind == STATE_THREAD || r->kind == STATE_CPU || r->kind == STATE_CPU_THREAD;
    return drawn ? 2 * (uint64_t)r->n_cells : r->n_cells < 4 ? 2 : r->n_cells / 2;
}

/* The grid: for each bucket of time the cell in force at its begin. */
static void plan_grid(struct writing *w, struct state_disk_row *r)
{
    r->first_grid = w->grid.n;
    if (r->n_cells < 2)
        return;
    uint64_t span = (uint64_t)cell_of(w, r, r->n_cells - 1)->base - (uint64_t)r->first;
    while (span >> r->shift >= most_buckets(r))
        r->shift++;
    r->n_grid = (uint32_t)(span >> r->shift) + 1;
    w->grid.n += r->n_grid;
}

/* The next of the row's cells begins. */
static void add_to_grid(struct writing *w, struct row *row, uint64_t since_first)
{
    struct state_disk_row *r = &row->disk;
    uint32_t *grid = w->grid.v + r->first_grid;
    for (; row->buckets < r->n_grid && (uint64_t)row->buckets << r->shift < since_first; row->buckets++)
        grid[row->buckets] = row->cells - 1;
    row->cells++;
}

/* In the order of the file, which is read once from its begin to its end: a row's blocks lie all over it. */
static void make_grids(struct writing *w)
{
    const struct series_pool *p = &w->b->pool;
    uint32_t *row_of = mem_alloc((p->ids + 1) * sizeof *row_of);
    for (size_t i = 0; i < w->rows.n; i++)
        row_of[w->rows.v[i].series->id] = (uint32_t)i;
    vec_reserve(&w->grid, 1);
    for (size_t i = 0; i < p->blocks.n; i++) {
        const struct series_block *b = &p->blocks.v[i];
        struct row *row = &w->rows.v[row_of[b->id]];
        for (uint32_t k = 0; k < STATE_CELLS && row->cells < row->disk.n_cells; k++)
            add_to_grid(w, row, (uint64_t)series_cell(p, b->cell + k)->base - (uint64_t)row->disk.first);
    }
    for (size_t i = 0; i < w->rows.n; i++)
        add_to_grid(w, &w->rows.v[i], UINT64_MAX);
    free(row_of);
}

static void finish_rows(struct writing *w)
{
    if (w->rows.n)
        qsort(w->rows.v, w->rows.n, sizeof *w->rows.v, by_kind_and_number);
    place_blocks(w);
    for (size_t i = 0; i < w->rows.n; i++)
        bound_row(w, &w->rows.v[i].disk);
    for (size_t i = 0; i < w->rows.n; i++) {
        struct state_disk_row *r = &w->rows.v[i].disk;
        r->begin = r->begin < w->begin ? w->begin : r->begin;
        r->end = r->end > w->end ? w->end : r->end;
        r->begin = r->begin > r->end ? r->end : r->begin;
        find_least(w, r);
        plan_grid(w, r);
    }
    make_grids(w);
}

/* ---- tables -------------------------------------------------------------------------------------------------------------------- */

static void add_table(struct writing *w, int table, const struct series_table *t)
{
    w->tables[table] = (struct state_disk_table){w->heads.n, t->n};
    vec_reserve(&w->heads, t->heads.n);
    if (t->heads.n)
        memcpy(w->heads.v + w->heads.n, t->heads.v, t->heads.n * sizeof *t->heads.v);
    w->heads.n += t->heads.n;
}

/* The place of each: behind the late ones before it, and all in time that did not begin later. */
static void add_late(struct writing *w, const struct latencies *l, int kind)
{
    const struct series_table *t = &l->table;
    series_values begins;
    uint64_t block = UINT64_MAX, i = 0;
    for (size_t k = 0; k < l->late.n; k++) {
        const struct latency *x = &l->late.v[k];
        for (; i < t->n; i++) {
            if (i / STATE_BLOCK + 1 < t->heads.n && t->heads.v[i / STATE_BLOCK + 1].first <= x->begin) {
                i += STATE_BLOCK - i % STATE_BLOCK - 1; /* all of this block */
                continue;
            }
            if (i / STATE_BLOCK != block) {
                block = i / STATE_BLOCK;
                series_table_take(l->bytes, t, block, STATE_BEGIN, begins);
            }
            if (begins[i % STATE_BLOCK] > x->begin)
                break;
        }
        vec_push(&w->late,
            ((struct state_disk_late){.begin = x->begin,
                .duration = x->end - x->begin,
                .ret = x->ret,
                .place = k + i,
                .thread = x->thread,
                .cpu = x->cpu,
                .code = x->code,
                .kind = (uint8_t)kind}));
    }
}

static void finish_tables(struct state_builder *b)
{
    if (b->event_buffered)
        series_table_add(&b->pool.bytes, &b->event_times, &b->event_buffer, 1, b->event_buffered);
    b->event_buffered = 0;
    for (int kind = 0; kind < STATE_LATENCY_KINDS; kind++)
        latencies_finish(&b->latencies[kind]);
}

static void add_tables(struct writing *w)
{
    add_table(w, STATE_TABLE_EVENTS, &w->b->event_times);
    for (int kind = 0; kind < STATE_LATENCY_KINDS; kind++) {
        const struct latencies *l = &w->b->latencies[kind];
        add_late(w, l, kind);
        tiles_list(&l->tiles, &w->tiles);
        add_table(w, STATE_TABLE_LATENCIES + kind, &l->table);
    }
    vec_push(&w->tiles.first, w->tiles.figures.n); /* where the last ones end */
}

/* ---- the file ------------------------------------------------------------------------------------------------------------------ */

static int by_begin(const void *a, const void *b)
{
    const struct state_disk_loss *x = a, *y = b;
    return x->begin < y->begin ? -1 : x->begin > y->begin;
}

struct store_writer *builder_store(const struct state_builder *b)
{
    struct store_writer *s = store_create(b->path, "states", STATE_VERSION, b->fingerprint, 19);
    store_begin(s, "cells", sizeof(struct state_disk_cell));
    return s;
}

static void add_bytes(struct store_writer *s, const struct series_bytes *b)
{
    store_begin(s, "bytes", 1);
    for (uint64_t at = 0; at < b->n; at += SERIES_CHUNK)
        store_append(s, series_bytes_at(b, at), b->n - at < SERIES_CHUNK ? b->n - at : SERIES_CHUNK);
}

static int commit(struct writing *w, struct err *e)
{
    struct state_builder *b = w->b;
    struct state_disk_totals totals = {w->begin, w->end, b->events, b->last_event};
    struct state_disk_row *rows = mem_alloc((w->rows.n + 1) * sizeof *rows);
    for (size_t i = 0; i < w->rows.n; i++)
        rows[i] = w->rows.v[i].disk;
    struct text_bytes {
        VEC(char) v;
    } text = {0};
    uint32_t *names = mem_alloc((w->names.n + 1) * sizeof *names);
    for (size_t i = 0; i < w->names.n; i++) {
        size_t n = strlen(w->names.v[i]) + 1;
        names[i] = (uint32_t)text.v.n;
        vec_reserve(&text.v, n);
        memcpy(text.v.v + text.v.n, w->names.v[i], n);
        text.v.n += n;
    }
    if (b->losses.n)
        qsort(b->losses.v, b->losses.n, sizeof *b->losses.v, by_begin);
    struct store_writer *s = b->pool.cells.to;
    store_add(s, "totals", &totals, sizeof totals, 1);
    store_add(s, "text", text.v.v, 1, text.v.n);
    store_add(s, "names", names, sizeof *names, w->names.n);
    store_add(s, "codes", w->codes.v, sizeof *w->codes.v, w->codes.n);
    store_add(s, "rows", rows, sizeof *rows, w->rows.n);
    store_add(s, "blocks", w->blocks, sizeof *w->blocks, b->pool.blocks.n);
    store_add(s, "sums", w->sums, sizeof *w->sums, w->n_sums);
    store_add(s, "grid", w->grid.v, sizeof *w->grid.v, w->grid.n);
    store_add(s, "tables", w->tables, sizeof *w->tables, STATE_TABLES);
    store_add(s, "heads", w->heads.v, sizeof *w->heads.v, w->heads.n);
    store_add(s, "far", b->far.v, sizeof *b->far.v, b->far.n);
    store_add(s, "late", w->late.v, sizeof *w->late.v, w->late.n);
    store_add(s, "tiles", w->tiles.first.v, sizeof *w->tiles.first.v, w->tiles.first.n);
    store_add(s, "figures", w->tiles.figures.v, sizeof *w->tiles.figures.v, w->tiles.figures.n);
    store_add(s, "losses", b->losses.v, sizeof *b->losses.v, b->losses.n);
    store_add(s, "files", w->files.v, sizeof *w->files.v, w->files.n);
    store_add(s, "through", w->through.v, sizeof *w->through.v, w->through.n);
    add_bytes(s, &b->pool.bytes);
    int rc = file_map_intact(&b->pool.cells.file, e);
    if (!rc) {
        rc = store_commit(s, e);
        b->pool.cells.to = NULL;
    }
    free(rows);
    free(names);
    vec_free(&text.v);
    return rc;
}

int state_builder_write(struct state_builder *b, int64_t begin, int64_t end, struct err *e)
{
    struct writing w = {.b = b, .begin = begin < end ? begin : end, .end = end};
    strings_intern(&w.names, "", 0);
    for (size_t i = 0; i < b->cpus.n; i++)
        builder_cpu_finish(b, &b->cpus.v[i], end);
    builder_futexes_finish(b);
    files_finish(b);
    name_codes(&w);
    finish_tables(b);
    int rc = builder_gaps_make(b, end, &w.gaps, e);
    if (!rc) {
        add_cpus(&w);
        add_threads(&w);
        add_others(&w);
        rc = series_pool_finish(&b->pool, e);
    }
    if (!rc) {
        finish_rows(&w);
        add_tables(&w);
        rc = commit(&w, e);
    }
    vec_free(&w.rows);
    vec_free(&w.codes);
    strings_fini(&w.names);
    free(w.blocks);
    free(w.sums);
    vec_free(&w.grid);
    vec_free(&w.heads);
    vec_free(&w.late);
    vec_free(&w.files);
    vec_free(&w.through);
    tile_list_fini(&w.tiles);
    builder_gaps_fini(&w.gaps);
    return rc;
}
