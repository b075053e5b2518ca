/* The end of building call stacks: orders and names processes, threads and functions, and writes the store. */
#include <stdlib.h>

#include "base/order.h"
#include "base/text.h"
#include "stack/builder.h"
#include "stack/tiles.h"

struct stack_writer {
    const struct stack_builder *b;
    struct strings strings;              /* those of the file */
    uint32_t *owner_order, *owner_index; /* by index: owner; by owner: index */
    uint32_t *runner_order;
    uint32_t *function_index; /* by index in known */
    VEC(struct stack_disk_process) processes;
    VEC(struct stack_disk_thread) threads;
    VEC(struct stack_disk_rename) renames;
    VEC(struct stack_disk_row) rows;
    VEC(struct stack_disk_function) functions;
    VEC(struct stack_disk_call) calls;
    VEC(struct stack_disk_long) longs;
    struct stack_tiles tiles;
    VEC(struct stack_disk_value) memory;
    VEC(struct stack_disk_loss) losses;
    VEC(uint32_t) names;
    struct text text;
};

static uint32_t intern(struct stack_writer *w, uint32_t string)
{
    const char *s = strings_get(&w->b->strings, string);
    return strings_intern(&w->strings, s, strlen(s));
}

/* ---- processes and threads ---- */

static int by_pid_and_name(const void *pa, const void *pb, void *arg)
{
    const struct stack_builder *b = arg;
    const struct stack_owner *x = &b->owners.v[*(const uint32_t *)pa], *y = &b->owners.v[*(const uint32_t *)pb];
    return order_of(x->pid, y->pid) ?: strcmp(strings_get(&b->strings, x->name), strings_get(&b->strings, y->name));
}

static int by_owner_and_tid(const void *pa, const void *pb, void *arg)
{
    const struct stack_writer *w = arg;
    const struct stack_runner *x = &w->b->runners.v[*(const uint32_t *)pa],
                              *y = &w->b->runners.v[*(const uint32_t *)pb];
    return order_of(w->owner_index[x->owner], w->owner_index[y->owner]) ?: order_of(x->tid, y->tid)
                                                                        ?: order_of(x->stream, y->stream);
}

static uint32_t *numbers(size_t n)
{
    uint32_t *v = mem_alloc(sizeof *v * (n + 1));
    for (size_t i = 0; i < n; i++)
        v[i] = (uint32_t)i;
    return v;
}

static void order(struct stack_writer *w)
{
    const struct stack_builder *b = w->b;
    w->owner_order = numbers(b->owners.n);
    w->owner_index = numbers(b->owners.n);
    w->runner_order = numbers(b->runners.n);
    qsort_r(w->owner_order, b->owners.n, sizeof *w->owner_order, by_pid_and_name, (void *)(uintptr_t)b);
    for (size_t i = 0; i < b->owners.n; i++)
        w->owner_index[w->owner_order[i]] = (uint32_t)i;
    qsort_r(w->runner_order, b->runners.n, sizeof *w->runner_order, by_owner_and_tid, w);
}

static void add_processes(struct stack_writer *w)
{
    const struct stack_builder *b = w->b;
    for (size_t i = 0; i < b->owners.n; i++) {
        const struct stack_owner *o = &b->owners.v[w->owner_order[i]];
        vec_push(&w->processes, ((struct stack_disk_process){o->pid, intern(w, o->name)}));
    }
    for (size_t i = 0; i < b->runners.n; i++) { /* a process is called what its first thread is called */
        const struct stack_runner *r = &b->runners.v[i];
        if (r->tid >= 0 && r->tid == b->owners.v[r->owner].pid && r->names.n)
            w->processes.v[w->owner_index[r->owner]].name = intern(w, r->names.v[r->names.n - 1].name);
    }
}

/* ---- functions ---- */

/* Functions of one process with one name are one. */
static void add_functions(struct stack_writer *w)
{
    const struct stack_builder *b = w->b;
    struct map index_of = {0};
    struct text label = {.fd = -1};
    w->function_index = mem_alloc(sizeof *w->function_index * (b->known.n + 1));
    for (size_t i = 0; i < b->known.n; i++) {
        const struct stack_known *f = &b->known.v[i];
        bool fresh;
        label.n = 0;
        stack_name_function(b, f, &label);
        uint32_t name = strings_intern(&w->strings, text_cstr(&label), label.n), process = w->owner_index[f->process];
        uint64_t *index = map_put(&index_of, (uint64_t)process << 32 | name, &fresh);
        if (fresh) {
            vec_push(&w->functions, ((struct stack_disk_function){f->address, process, name}));
            *index = w->functions.n - 1;
        }
        w->function_index[i] = (uint32_t)*index;
    }
    map_fini(&index_of);
    text_fini(&label);
}

/* ---- calls ---- */

static void add_series(struct stack_writer *w, const struct stack_series *s)
{
    uint64_t first = w->calls.n;
    vec_push(&w->rows, ((struct stack_disk_row){first, s->calls.n}));
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

static void add_thread(struct stack_writer *w, const struct stack_runner *r)
{
    vec_push(&w->threads,
        ((struct stack_disk_thread){.begin = r->begin,
            .end = r->last,
            .process = w->owner_index[r->owner],
            .tid = r->tid,
            .cpu = r->cpu,
            .first_row = (uint32_t)w->rows.n,
            .rows = (uint32_t)r->series.n,
            .first_name = (uint32_t)w->renames.n,
            .names = (uint32_t)r->names.n,
            .first_value = w->memory.n,
            .values = r->memory.n}));
    for (size_t i = 0; i < r->names.n; i++)
        vec_push(&w->renames, ((struct stack_disk_rename){r->names.v[i].time, intern(w, r->names.v[i].name), 0}));
    for (size_t i = 0; i < r->memory.n; i++)
        vec_push(&w->memory, r->memory.v[i]);
    for (size_t i = 0; i < r->series.n; i++)
        add_series(w, &r->series.v[i]);
}

static int by_begin(const void *pa, const void *pb)
{
    const struct stack_disk_loss *a = pa, *b = pb;
    return order_of(a->begin, b->begin) ?: order_of(a->cpu, b->cpu);
}

static void add_losses(struct stack_writer *w)
{
    for (size_t i = 0; i < w->b->losses.n; i++) {
        struct stack_disk_loss l = w->b->losses.v[i];
        if (l.end == INT64_MAX)
            l.end = l.begin > w->b->totals.end ? l.begin : w->b->totals.end;
        vec_push(&w->losses, l);
    }
    if (w->losses.n)
        qsort(w->losses.v, w->losses.n, sizeof *w->losses.v, by_begin);
}

static void add_strings(struct stack_writer *w)
{
    strings_intern(&w->strings, "", 0);
    for (size_t i = 0; i < w->strings.n; i++) {
        vec_push(&w->names, (uint32_t)w->text.n);
        text_put(&w->text, w->strings.v[i], strlen(w->strings.v[i]) + 1);
    }
}

/* Of what will be in the store. */
static void add_tiles(struct stack_writer *w)
{
    const struct stack_store s = {.threads = w->threads.v,
        .n_threads = w->threads.n,
        .rows = w->rows.v,
        .n_rows = w->rows.n,
        .n_functions = w->functions.n,
        .calls = w->calls.v,
        .n_calls = w->calls.n,
        .longs = w->longs.v,
        .n_longs = w->longs.n};
    stack_tiles_make(&w->tiles, &s);
}

static int commit(struct stack_writer *w, const char *path, uint64_t key, struct err *e)
{
    struct store_writer *s = store_create(path, "stacks", STACK_VERSION, key, 15);
    store_add(s, "totals", &w->b->totals, sizeof w->b->totals, 1);
    store_add(s, "text", w->text.v, 1, w->text.n);
    store_add(s, "names", w->names.v, sizeof *w->names.v, w->names.n);
    store_add(s, "processes", w->processes.v, sizeof *w->processes.v, w->processes.n);
    store_add(s, "threads", w->threads.v, sizeof *w->threads.v, w->threads.n);
    store_add(s, "renames", w->renames.v, sizeof *w->renames.v, w->renames.n);
    store_add(s, "rows", w->rows.v, sizeof *w->rows.v, w->rows.n);
    store_add(s, "functions", w->functions.v, sizeof *w->functions.v, w->functions.n);
    store_add(s, "calls", w->calls.v, sizeof *w->calls.v, w->calls.n);
    store_add(s, "longs", w->longs.v, sizeof *w->longs.v, w->longs.n);
    store_add(s, "tiles", w->tiles.first.v, sizeof *w->tiles.first.v, w->tiles.first.n);
    store_add(s, "figures", w->tiles.figures.v, sizeof *w->tiles.figures.v, w->tiles.figures.n);
    store_add(s, "whole", w->tiles.whole.v, sizeof *w->tiles.whole.v, w->tiles.whole.n);
    store_add(s, "memory", w->memory.v, sizeof *w->memory.v, w->memory.n);
    store_add(s, "losses", w->losses.v, sizeof *w->losses.v, w->losses.n);
    return store_commit(s, e);
}

int stack_builder_write(struct stack_builder *b, const char *path, uint64_t key, struct err *e)
{
    struct stack_writer w = {.b = b, .text = {.fd = -1}};
    int64_t lasts;
    if (b->totals.events && __builtin_sub_overflow(b->totals.end, b->totals.begin, &lasts))
        return err_set(e, ERR_UNSUPPORTED, "events lie more than 292 years apart; their times cannot be right");
    stack_finish(b);
    strings_intern(&w.strings, "", 0);
    order(&w);
    add_processes(&w);
    add_functions(&w);
    for (size_t i = 0; i < b->runners.n; i++)
        add_thread(&w, &b->runners.v[w.runner_order[i]]);
    add_tiles(&w);
    add_losses(&w);
    add_strings(&w);
    int rc = commit(&w, path, key, e);
    free(w.owner_order);
    free(w.owner_index);
    free(w.runner_order);
    free(w.function_index);
    vec_free(&w.processes);
    vec_free(&w.threads);
    vec_free(&w.renames);
    vec_free(&w.rows);
    vec_free(&w.functions);
    vec_free(&w.calls);
    vec_free(&w.longs);
    stack_tiles_fini(&w.tiles);
    vec_free(&w.memory);
    vec_free(&w.losses);
    vec_free(&w.names);
    text_fini(&w.text);
    strings_fini(&w.strings);
    return rc;
}
