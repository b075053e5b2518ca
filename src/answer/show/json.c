/* SPDX-License-Identifier: MIT */
/* The answer as JSON. */
#include <inttypes.h>
#include <stdio.h>

#include "base/json.h"
#include "base/text.h"
#include "graph/graph.h"
#include "path/path.h"
#include "show/parts.h"
#include "show/show.h"

static void write_who(
    const struct path_source *source, struct path_row row, int64_t begin, int64_t end, bool comm, struct json *j)
{
    int32_t tid;
    const char *name;
    source->row_name(source->arg, row, begin, end, &tid, &name);
    json_kv_string(j, "host", source->host_name(source->arg, row.host));
    json_kv_i64(j, "tid", tid);
    if (comm)
        json_kv_string(j, "comm", name);
}

static void write_end(
    const char *key, const struct path_source *source, struct path_row row, int64_t time, struct json *j)
{
    json_key(j, key);
    json_object(j);
    write_who(source, row, time, time, false, j);
    json_kv_i64(j, "time", time);
    json_end_object(j);
}

/* Written only if true. */
static void write_assumed(bool assumed, struct json *j)
{
    if (assumed)
        json_kv_bool(j, "assumed", true);
}

static void write_addresses(const char *key, const uint64_t *v, size_t n, struct json *j)
{
    char address[24];
    if (!n)
        return;
    json_key(j, key);
    json_array(j);
    for (size_t i = 0; i < n; i++) {
        snprintf(address, sizeof address, "0x%" PRIx64, v[i]);
        json_object(j);
        json_kv_string(j, "address", address);
        json_end_object(j);
    }
    json_end_array(j);
}

/* Numbers as text: addresses of the kernel are beyond what JSON's readers keep exactly. */
static void write_stack(const char *user, const char *kernel, const struct graph_stack *s, struct json *j)
{
    write_addresses(user, s->user, s->n_user, j);
    write_addresses(kernel, s->kernel, s->n_kernel, j);
}

static void write_segments(const struct path *p, const struct path_source *source, struct json *j)
{
    json_key(j, "segments");
    json_array(j);
    for (size_t i = 0; i < p->n_segments; i++) {
        const struct path_segment *s = &p->segments[i];
        json_object(j);
        write_who(source, s->row, s->begin, s->end, true, j);
        json_kv_i64(j, "begin", s->begin);
        json_kv_i64(j, "end", s->end);
        json_kv_string(j, "state", graph_state_name(s->state));
        json_kv_string(j, "detail", s->detail);
        write_assumed(s->assumed, j);
        struct graph_stack stack;
        if (path_segment_stack(source, s, &stack)) {
            write_stack("stack", "kernel_stack", &stack, j);
            if (graph_is_awake(s->state))
                json_kv_u64(j, "samples", stack.samples);
        }
        json_end_object(j);
    }
    json_end_array(j);
}

static void write_links(const struct path *p, const struct path_source *source, struct json *j)
{
    json_key(j, "links");
    json_array(j);
    for (size_t i = 0; i < p->n_links; i++) {
        const struct path_link *l = &p->links[i];
        json_object(j);
        write_end("from", source, l->from, l->from_ts, j);
        write_end("to", source, l->to, l->to_ts, j);
        json_kv_string(j, "kind", path_link_name(l->kind));
        write_assumed(l->assumed, j);
        struct graph_stack stack;
        if (path_sleeper_stack(source, l, &stack))
            write_stack("stack", "kernel_stack", &stack, j);
        if (path_waker_stack(source, l, &stack))
            write_stack("waker_stack", "waker_kernel_stack", &stack, j);
        json_end_object(j);
    }
    json_end_array(j);
}

static void write_totals(const struct path *p, const struct path_source *source, struct json *j)
{
    json_key(j, "totals");
    json_array(j);
    for (size_t i = 0; i < p->n_totals; i++) {
        json_object(j);
        write_who(source, p->totals[i].row, p->end, p->end, true, j);
        json_kv_string(j, "state", graph_state_name(p->totals[i].state));
        json_kv_i64(j, "duration", p->totals[i].duration);
        write_assumed(p->totals[i].assumed, j);
        json_end_object(j);
    }
    json_end_array(j);
}

static void write_gaps(const struct path *p, struct json *j)
{
    json_key(j, "unexplained");
    json_array(j);
    for (size_t i = 0; i < p->n_gaps; i++) {
        json_object(j);
        json_kv_i64(j, "begin", p->gaps[i].begin);
        json_kv_i64(j, "end", p->gaps[i].end);
        json_kv_string(j, "reason", path_reason_name(p->gaps[i].reason));
        json_kv_string(j, "peer", p->gaps[i].peer);
        json_end_object(j);
    }
    json_end_array(j);
}

static void write_sentence(const struct path *p, const struct path_source *source, struct json *j)
{
    struct text t = {.fd = -1};
    show_sentence(p, source, &t);
    json_kv_string(j, "sentence", text_cstr(&t));
    text_fini(&t);
}

void show_json_part(const struct show_part *p, int32_t tid, struct json *j)
{
    json_kv_string(j, "host", p->host);
    json_kv_i64(j, "tid", tid);
    json_kv_string(j, "comm", p->comm);
    json_kv_string(j, "state", graph_state_name(p->state));
    json_kv_string(j, "detail", show_part_detail(p));
    json_kv_string(j, "from", p->from);
    if (p->reason >= 0)
        json_kv_string(j, "reason", path_reason_name(p->reason));
    write_assumed(p->assumed, j);
}

enum { MOST_PARTS = 16, LEAST_PERCENT = 1 };

/* Writes the parts that matter; the totals have all. */
static void write_parts(const struct path *p, const struct path_source *source, struct json *j)
{
    struct arena a = {0};
    struct show_parts parts = show_parts(p, source, &a);
    int64_t length = p->end - p->begin;
    json_key(j, "parts");
    json_array(j);
    for (size_t i = 0; i < parts.n && i < MOST_PARTS && parts.v[i].duration >= length / 100 * LEAST_PERCENT; i++) {
        const struct show_part *part = &parts.v[i];
        json_object(j);
        show_json_part(part, part->tid, j);
        json_kv_i64(j, "duration", part->duration);
        json_kv_double(j, "share", (double)part->duration / (double)length);
        json_end_object(j);
    }
    json_end_array(j);
    arena_fini(&a);
}

static void write_cost(const struct path_cost *c, struct json *j)
{
    json_key(j, "cost");
    json_object(j);
    json_key(j, "nodes");
    json_array(j);
    for (size_t i = 0; i < c->n_nodes; i++)
        json_string(j, c->nodes[i]);
    json_end_array(j);
    json_kv_u64(j, "messages", c->messages);
    json_kv_u64(j, "bytes", c->bytes);
    json_kv_u64(j, "rounds", c->rounds);
    json_kv_u64(j, "windows", c->windows);
    json_kv_u64(j, "windows_unused", c->windows_unused);
    json_kv_double(j, "seconds", c->seconds);
    json_end_object(j);
}

void show_json(const struct path *p, const struct path_source *source, const char *method, struct json *j)
{
    json_object(j);
    json_key(j, "query");
    json_object(j);
    write_who(source, p->start, p->end, p->end, true, j);
    json_kv_i64(j, "begin", p->begin);
    json_kv_i64(j, "end", p->end);
    json_end_object(j);
    json_kv_string(j, "method", method);
    write_sentence(p, source, j);
    write_parts(p, source, j);
    write_segments(p, source, j);
    write_links(p, source, j);
    write_totals(p, source, j);
    write_gaps(p, j);
    write_cost(&p->cost, j);
    json_end_object(j);
}
