/* SPDX-License-Identifier: MIT */
/* The chunks of a kernel trace: graph, flows and states, one after another, and the rows of the host that they speak
 * of. */
#include <stdlib.h>

#include "base/map.h"
#include "base/pool.h"
#include "index/stores.h"

struct kernel_build {
    const struct index_files *files;
    struct kernel_binding *binding;
    struct kernel_rows *rows;
    bool borrows; /* binding and rows belong to another builder */
    /* State of the chunk: */
    struct kernel_tracker *tracker;
    struct flow_builder *flows;
    struct graph_builder *graph;
    struct state_builder *states;
    VEC(int32_t) carried;     /* the host's rows that were carried into it */
    struct store_place place; /* place of its stores */
};

static int open_build(const struct index_files *f, void *with, void **out, struct err *e)
{
    struct kernel_build *b = mem_zalloc(sizeof *b);
    b->files = f;
    if (with) {
        b->binding = ((struct kernel_build *)with)->binding;
        b->rows = ((struct kernel_build *)with)->rows;
        b->borrows = true;
        *out = b;
        return 0;
    }
    int rc = kernel_bind(f->trace, &b->binding, e);
    if (!rc)
        rc = kernel_rows_open(f->dir, index_host_key(f->trace), &b->rows, e);
    if (rc) {
        kernel_binding_free(b->binding);
        free(b);
        return rc;
    }
    *out = b;
    return 0;
}

static void end_chunk(struct kernel_build *b)
{
    state_builder_free(b->states);
    graph_builder_free(b->graph);
    flow_builder_free(b->flows);
    kernel_tracker_free(b->tracker);
    b->states = NULL;
    b->graph = NULL;
    b->flows = NULL;
    b->tracker = NULL;
}

static void close_build(void *arg)
{
    struct kernel_build *b = arg;
    end_chunk(b);
    vec_free(&b->carried);
    if (!b->borrows) {
        kernel_rows_close(b->rows);
        kernel_binding_free(b->binding);
    }
    free(b);
}

static int extend(void *arg, struct err *e)
{
    struct kernel_build *b = arg;
    if (!b->borrows)
        kernel_binding_extend(b->binding);
    if (b->tracker)
        kernel_tracker_extend(b->tracker);
    return 0;
}

/* ---- feeding ---- */

static void on_record(void *arg, const struct kernel_record *r)
{
    struct kernel_build *b = arg;
    graph_builder_add(b->graph, r, flow_builder_add(b->flows, r));
    state_builder_add(b->states, r);
}

/* Visits all carried state, always in this order. */
static void visit(struct kernel_build *b, struct carry *c)
{
    kernel_tracker_carry(b->tracker, c);
    flow_builder_carry(b->flows, c);
    graph_builder_carry(b->graph, c);
    state_builder_carry(b->states, c);
    graph_builder_carry_stacks(b->graph, c);
}

static int begin_chunk(void *arg, const struct index_chunk *chunk, struct store_place place,
    const struct index_known *before, struct err *e)
{
    struct kernel_build *b = arg;
    end_chunk(b); /* end a chunk that failed */
    b->carried.n = 0;
    b->place = place;
    b->tracker = kernel_tracker_new(b->binding, on_record, b);
    b->flows = flow_builder_new(b->tracker);
    b->graph = graph_builder_new(b->tracker);
    b->states = state_builder_new(b->tracker, place, chunk->key);
    if (!before)
        return 0;
    struct carry c;
    carry_load(&c, before->carry, before->n_carry, before->n_leaving);
    visit(b, &c);
    int rc = carry_loaded(&c, e);
    carry_fini(&c);
    for (size_t i = 0; i < before->n_leaving; i++)
        vec_push(&b->carried, before->leaving[i]);
    return rc;
}

static int feed(void *arg, const struct ctf_event *ev, size_t n, const int64_t *times, size_t n_times, struct err *e)
{
    struct kernel_build *b = arg;
    kernel_tracker_feed(b->tracker, ev, n);
    state_builder_events(b->states, times, n_times);
    return state_builder_writing(b->states, e);
}

static uint32_t began(const void *arg)
{
    const struct kernel_build *b = arg;
    const struct kernel_thread *threads;
    size_t n = kernel_tracker_threads(b->tracker, &threads), carried = b->carried.n;
    return n > carried ? (uint32_t)(n - carried) : 0;
}

/* ---- a chunk's end ---- */

static int resolve(struct kernel_build *b, const struct index_chunk *chunk, struct index_outcome *o, struct err *e)
{
    const struct kernel_thread *threads;
    size_t n = kernel_tracker_threads(b->tracker, &threads);
    const struct kernel_rows_chunk what = {
        .tracker = b->tracker, .begin = chunk->begin, .until = chunk->end, .carried = b->carried.v};
    vec_reserve(&o->rows, n);
    o->rows.n = n;
    int rc = kernel_rows_resolve(b->rows, &what, o->rows.v, e);
    const int32_t *ended;
    o->rows_ended = !rc && kernel_rows_ended(b->rows, &ended);
    return rc;
}

struct writing {
    struct kernel_build *build;
    const struct index_chunk *chunk;
    bool is_last;
    struct err errors[2];
};

/* Writes the states. Memory of finished builders serves the next ones. */
static int write_states(const struct writing *w, struct err *e)
{
    struct kernel_build *b = w->build;
    const struct index_totals *t = &w->chunk->totals;
    int rc = w->is_last ? state_builder_write(b->states, t->begin, t->end, e)
                        : state_builder_cut(b->states, w->chunk->end, t->begin, t->end, e);
    state_builder_free(b->states);
    b->states = NULL;
    return rc;
}

static int write_graph(const struct writing *w, struct err *e)
{
    struct kernel_build *b = w->build;
    const struct index_chunk *c = w->chunk;
    int rc = w->is_last ? graph_builder_write(b->graph, c->totals.end, b->place, c->key, e)
                        : graph_builder_cut(b->graph, c->end, b->place, c->key, e);
    graph_builder_free(b->graph);
    b->graph = NULL;
    return rc;
}

static int write_flows(const struct writing *w, struct err *e)
{
    struct kernel_build *b = w->build;
    const struct index_chunk *c = w->chunk;
    int rc = w->is_last ? flow_builder_write(b->flows, b->place, c->key, e)
                        : flow_builder_cut(b->flows, c->end, b->place, c->key, e);
    flow_builder_free(b->flows);
    b->flows = NULL;
    return rc;
}

/* The states have been written to since the chunk began; the graph waits for its turn in the file. So the parts always
 * have the same order. */
static void write_some(void *arg, size_t i)
{
    struct writing *w = arg;
    struct err *e = &w->errors[i];
    if (i == 0)
        write_states(w, e);
    else if (!write_graph(w, e))
        write_flows(w, e);
}

/* Writes all stores in parallel; they are independent. */
static int write_stores(struct kernel_build *b, const struct index_chunk *chunk, bool is_last, struct err *e)
{
    struct writing w = {.build = b, .chunk = chunk, .is_last = is_last};
    pool_run(2, 0, write_some, &w);
    end_chunk(b);
    for (size_t i = 0; i < 2; i++)
        if (w.errors[i].code) {
            *e = w.errors[i];
            return e->code;
        }
    return 0;
}

static int cut(void *arg, const struct index_chunk *chunk, struct index_outcome *o, struct err *e)
{
    struct kernel_build *b = arg;
    struct carry c;
    const int32_t *leaving;
    carry_init(&c);
    visit(b, &c);
    size_t n = kernel_tracker_carry_rows(b->tracker, &c, &leaving);
    visit(b, &c);
    int rc = resolve(b, chunk, o, e);
    for (size_t i = 0; i < n && !rc; i++)
        vec_push(&o->leaving, o->rows.v[leaving[i]]);
    if (!rc) {
        text_put(&o->carry, c.bytes.v, c.bytes.n);
        o->after = map_mix(carry_hash(&c) + map_hash(o->leaving.v, o->leaving.n * sizeof *o->leaving.v)) | 1;
    }
    carry_fini(&c);
    return rc ?: write_stores(b, chunk, false, e);
}

static int finish(void *arg, const struct index_chunk *chunk, struct index_outcome *o, struct err *e)
{
    struct kernel_build *b = arg;
    kernel_tracker_finish(b->tracker);
    int rc = resolve(b, chunk, o, e);
    return rc ?: write_stores(b, chunk, true, e);
}

static int save(void *arg, struct err *e)
{
    struct kernel_build *b = arg;
    return kernel_rows_save(b->rows, e);
}

const struct index_kind index_kernel = {.batch = 128,
    .open = open_build,
    .close = close_build,
    .begin = begin_chunk,
    .feed = feed,
    .began = began,
    .cut = cut,
    .finish = finish,
    .extend = extend,
    .save = save};
