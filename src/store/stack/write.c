/* SPDX-License-Identifier: MIT */
/* The end of a chunk: orders and names processes, threads and functions, and writes the store. */
#include <stdlib.h>

#include "base/order.h"
#include "base/text.h"
#include "stack/builder.h"
#include "stack/tiles.h"

struct stack_writer {
    const struct stack_builder *b;
    struct strings strings;              /* strings of the file */
    bool *told;                          /* by owner: the file has data of it */
    uint32_t *owner_order, *owner_index; /* owner by index; index by owner */
    uint32_t *runner_order;              /* threads that the file has */
    size_t n_runners;
    uint32_t *function_index; /* by index in known */
    struct map stream_index;  /* by stream: index + 1 */
    VEC(struct stack_disk_process) processes;
    VEC(struct stack_disk_thread) threads;
    VEC(struct stack_disk_stream) streams;
    VEC(struct stack_disk_rename) renames;
    VEC(struct stack_disk_row) rows;
    VEC(struct stack_disk_function) functions;
    VEC(struct stack_disk_library) libraries;
    VEC(struct stack_disk_call) calls;
    VEC(struct stack_disk_long) longs;
    struct stack_tiles tiles;
    VEC(struct stack_disk_value) memory;
    VEC(uint32_t) names;
    struct text text;
};

static uint32_t intern(struct stack_writer *w, uint32_t string)
{
    const char *s = strings_get(&w->b->strings, string);
    return strings_intern(&w->strings, s, strlen(s));
}

/* ---- processes and threads ---- */

static void find_told(struct stack_writer *w)
{
    const struct stack_builder *b = w->b;
    w->told = mem_zalloc(sizeof *w->told * (b->owners.n + 1));
    w->runner_order = mem_alloc(sizeof *w->runner_order * (b->runners.n + 1));
    for (size_t i = 0; i < b->runners.n; i++) {
        if (!b->runners.v[i].active)
            continue;
        w->runner_order[w->n_runners++] = (uint32_t)i;
        w->told[b->runners.v[i].owner] = true;
    }
    for (size_t i = 0; i < b->known.n; i++)
        w->told[b->known.v[i].process] = true;
}

static void order(struct stack_writer *w)
{
    const struct stack_builder *b = w->b;
    uint32_t n = 0;
    find_told(w);
    w->owner_order = stack_order_owners(b);
    w->owner_index = mem_alloc(sizeof *w->owner_index * (b->owners.n + 1));
    for (size_t i = 0; i < b->owners.n; i++)
        if (w->told[w->owner_order[i]]) {
            w->owner_index[w->owner_order[i]] = n;
            w->owner_order[n++] = w->owner_order[i];
        }
    for (size_t i = 0; i < n; i++) {
        const struct stack_owner *o = &b->owners.v[w->owner_order[i]];
        vec_push(&w->processes, ((struct stack_disk_process){o->pid, intern(w, o->name)}));
    }
    qsort_r(w->runner_order, w->n_runners, sizeof *w->runner_order, stack_order_runners,
        &(struct stack_runner_order){b, w->owner_index});
}

/* ---- functions ---- */

/* Functions of one process with one name are one; so are those with one address that have none yet. */
static void add_functions(struct stack_writer *w)
{
    const struct stack_builder *b = w->b;
    struct map index_of = {0};
    struct strings labels = {0};
    struct text label = {.fd = -1};
    w->function_index = mem_alloc(sizeof *w->function_index * (b->known.n + 1));
    for (size_t i = 0; i < b->known.n; i++) {
        const struct stack_known *f = &b->known.v[i];
        bool fresh;
        label.n = 0;
        text_puts(&label, "=");
        bool named = stack_name_function(b, f, &label);
        if (!named) {
            label.n = 0;
            text_printf(&label, "%llx", (unsigned long long)f->address);
        }
        uint32_t process = w->owner_index[f->process];
        uint64_t *index = map_put(
            &index_of, (uint64_t)process << 32 | strings_intern(&labels, text_cstr(&label), label.n), &fresh);
        if (fresh) {
            uint32_t name = named ? strings_intern(&w->strings, text_cstr(&label) + 1, label.n - 1) : 0;
            vec_push(&w->functions, ((struct stack_disk_function){f->address, process, name}));
            *index = w->functions.n - 1;
        }
        w->function_index[i] = (uint32_t)*index;
    }
    map_fini(&index_of);
    strings_fini(&labels);
    text_fini(&label);
}

/* Adds libraries loaded during this chunk: functions of earlier chunks may be in them. */
static void add_libraries(struct stack_writer *w)
{
    for (size_t i = 0; i < w->processes.n; i++) {
        const struct stack_owner *o = &w->b->owners.v[w->owner_order[i]];
        for (size_t k = 0; k < o->libraries.n; k++) {
            const struct stack_library *l = &o->libraries.v[k];
            if (l->loaded)
                vec_push(&w->libraries,
                    ((struct stack_disk_library){l->begin, l->end, (uint32_t)i, intern(w, l->path), l->absolute, 0}));
        }
    }
}

/* ---- calls ---- */

static void add_series(struct stack_writer *w, const struct stack_series *s)
{
    uint64_t first = w->calls.n;
    vec_push(&w->rows, ((struct stack_disk_row){first, s->calls.n, s->below}));
    vec_reserve(&w->calls, s->calls.n);
    for (size_t i = 0; i < s->calls.n; i++) {
        struct stack_disk_call c = s->calls.v[i];
        if (stack_how_of(&c) != STACK_UNKNOWN)
            c.what = w->function_index[c.what >> STACK_HOW_BITS] << STACK_HOW_BITS | (uint32_t)stack_how_of(&c);
        w->calls.v[w->calls.n++] = c;
    }
    for (size_t i = 0; i < s->longs.n; i++)
        vec_push(&w->longs, ((struct stack_disk_long){first + s->longs.v[i].call, s->longs.v[i].duration}));
}

static uint32_t add_stream(struct stack_writer *w, const struct stack_runner *r)
{
    if (r->tid >= 0)
        return STACK_NO_STREAM;
    const struct stack_stream *s = &w->b->streams.v[r->stream];
    bool fresh;
    uint64_t *index = map_put(&w->stream_index, r->stream, &fresh);
    if (fresh) {
        vec_push(&w->streams, ((struct stack_disk_stream){s->class_id, s->instance_id, s->cpu, intern(w, s->name)}));
        *index = w->streams.n;
    }
    return (uint32_t)*index - 1;
}

static void add_thread(struct stack_writer *w, const struct stack_runner *r)
{
    vec_push(&w->threads,
        ((struct stack_disk_thread){.begin = r->begin < r->last ? r->begin : r->last,
            .end = r->last,
            .process = w->owner_index[r->owner],
            .tid = r->tid,
            .cpu = r->cpu,
            .first_row = (uint32_t)w->rows.n,
            .rows = (uint32_t)r->series.n,
            .first_name = (uint32_t)w->renames.n,
            .names = (uint32_t)r->names.n,
            .stream = add_stream(w, r),
            .first_value = w->memory.n,
            .values = r->memory.n}));
    for (size_t i = 0; i < r->names.n; i++)
        vec_push(&w->renames, ((struct stack_disk_rename){r->names.v[i].time, intern(w, r->names.v[i].name), 0}));
    for (size_t i = 0; i < r->memory.n; i++)
        vec_push(&w->memory, r->memory.v[i]);
    for (size_t i = 0; i < r->series.n; i++)
        add_series(w, &r->series.v[i]);
}

static void add_strings(struct stack_writer *w)
{
    for (size_t i = 0; i < w->strings.n; i++) {
        vec_push(&w->names, (uint32_t)w->text.n);
        text_put(&w->text, w->strings.v[i], strlen(w->strings.v[i]) + 1);
    }
}

/* Adds tiles over the future contents of the store. */
static void add_tiles(struct stack_writer *w)
{
    struct stack_chunk s = {.threads = w->threads.v,
        .n_threads = w->threads.n,
        .rows = w->rows.v,
        .n_rows = w->rows.n,
        .n_functions = w->functions.n,
        .calls = w->calls.v,
        .n_calls = w->calls.n,
        .longs = w->longs.v,
        .n_longs = w->longs.n};
    stack_chunk_find_rows(&s);
    stack_tiles_make(&w->tiles, &s);
    stack_chunk_close(&s);
}

static int commit(struct stack_writer *w, struct store_place place, uint64_t key, struct err *e)
{
    struct store_writer *s = store_create_at(place, "stacks", STACK_VERSION, key, 17);
    store_add(s, "totals", &w->b->totals, sizeof w->b->totals, 1);
    store_add(s, "text", w->text.v, 1, w->text.n);
    store_add(s, "names", w->names.v, sizeof *w->names.v, w->names.n);
    store_add(s, "processes", w->processes.v, sizeof *w->processes.v, w->processes.n);
    store_add(s, "threads", w->threads.v, sizeof *w->threads.v, w->threads.n);
    store_add(s, "streams", w->streams.v, sizeof *w->streams.v, w->streams.n);
    store_add(s, "renames", w->renames.v, sizeof *w->renames.v, w->renames.n);
    store_add(s, "rows", w->rows.v, sizeof *w->rows.v, w->rows.n);
    store_add(s, "functions", w->functions.v, sizeof *w->functions.v, w->functions.n);
    store_add(s, "libraries", w->libraries.v, sizeof *w->libraries.v, w->libraries.n);
    store_add(s, "calls", w->calls.v, sizeof *w->calls.v, w->calls.n);
    store_add(s, "longs", w->longs.v, sizeof *w->longs.v, w->longs.n);
    store_add(s, "tiles", w->tiles.first.v, sizeof *w->tiles.first.v, w->tiles.first.n);
    store_add(s, "figures", w->tiles.figures.v, sizeof *w->tiles.figures.v, w->tiles.figures.n);
    store_add(s, "whole", w->tiles.whole.v, sizeof *w->tiles.whole.v, w->tiles.whole.n);
    store_add(s, "memory", w->memory.v, sizeof *w->memory.v, w->memory.n);
    store_add(s, "losses", w->b->losses.v, sizeof *w->b->losses.v, w->b->losses.n);
    return store_commit(s, e);
}

static void free_writer(struct stack_writer *w)
{
    free(w->told);
    free(w->owner_order);
    free(w->owner_index);
    free(w->runner_order);
    free(w->function_index);
    map_fini(&w->stream_index);
    vec_free(&w->processes);
    vec_free(&w->threads);
    vec_free(&w->streams);
    vec_free(&w->renames);
    vec_free(&w->rows);
    vec_free(&w->functions);
    vec_free(&w->libraries);
    vec_free(&w->calls);
    vec_free(&w->longs);
    stack_tiles_fini(&w->tiles);
    vec_free(&w->memory);
    vec_free(&w->names);
    text_fini(&w->text);
    strings_fini(&w->strings);
}

static int write_chunk(const struct stack_builder *b, struct store_place place, uint64_t key, struct err *e)
{
    struct stack_writer w = {.b = b, .text = {.fd = -1}};
    int64_t lasts;
    if (b->first <= b->last && __builtin_sub_overflow(b->now, b->first, &lasts))
        return err_set(e, ERR_UNSUPPORTED, "events lie more than 292 years apart; their times cannot be right");
    strings_intern(&w.strings, "", 0);
    order(&w);
    add_functions(&w);
    add_libraries(&w);
    for (size_t i = 0; i < w.n_runners; i++)
        add_thread(&w, &b->runners.v[w.runner_order[i]]);
    add_tiles(&w);
    add_strings(&w);
    int rc = commit(&w, place, key, e);
    free_writer(&w);
    return rc;
}

int stack_builder_cut(struct stack_builder *b, int64_t at, struct store_place place, uint64_t key, struct err *e)
{
    return write_chunk(b, place, key, e);
}

int stack_builder_write(struct stack_builder *b, struct store_place place, uint64_t key, struct err *e)
{
    stack_finish(b);
    return write_chunk(b, place, key, e);
}
