/* SPDX-License-Identifier: MIT */
/* Encoding of call stacks: each different one once. */
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/mem.h"
#include "base/wire.h"
#include "cluster/protocol.h"
#include "graph/graph.h"

/* Times are written as differences to the one before. */
void cluster_stacks_question_write(const struct stacks_question *q, struct text *out)
{
    int64_t before = 0;
    wire_put_u(out, q->n);
    for (size_t i = 0; i < q->n; i++) {
        const struct stacks_question_item *v = &q->v[i];
        wire_put_u(out, (uint64_t)v->host << 1 | v->waits);
        wire_put_u(out, v->row);
        wire_put_i(out, (int64_t)((uint64_t)v->end - (uint64_t)before));
        wire_put_i(out, (int64_t)((uint64_t)v->begin - (uint64_t)v->end));
        before = v->end;
    }
    path_request_write(&q->hosts, out);
}

int cluster_stacks_question_read(
    struct arena *a, const void *bytes, size_t n, struct stacks_question *out, struct err *e)
{
    struct wire_in w = wire_of(bytes, n);
    int64_t before = 0;
    *out = (struct stacks_question){.n = wire_count(&w, 4)};
    out->v = arena_new(a, struct stacks_question_item, out->n + 1);
    for (size_t i = 0; i < out->n && !w.damaged; i++) {
        struct stacks_question_item *v = &out->v[i];
        uint64_t host = wire_below(&w, (uint64_t)INT32_MAX << 1);
        v->host = (int32_t)(host >> 1);
        v->waits = host & 1;
        v->row = wire_u(&w);
        v->end = wire_sum(&w, before, wire_i(&w));
        v->begin = wire_sum(&w, v->end, wire_i(&w));
        before = v->end;
    }
    int rc = w.damaged ? err_set(e, ERR_FORMAT, "a question for call stacks that makes no sense")
                       : path_request_read(a, w.at, (size_t)(w.end - w.at), &out->hosts, e);
    for (size_t i = 0; i < out->n && !rc; i++)
        if ((size_t)out->v[i].host >= out->hosts.n_hosts)
            rc = err_set(e, ERR_FORMAT, "a question for call stacks of a host that it does not name");
    out->n = rc ? 0 : out->n;
    return rc;
}

/* ---- answers ---- */

static void put_addresses(struct text *out, const uint64_t *v, size_t n, bool cut)
{
    uint64_t before = 0;
    wire_put_u(out, n << 1 | cut);
    for (size_t i = 0; i < n; i++) {
        wire_put_i(out, (int64_t)(v[i] - before));
        before = v[i];
    }
}

static const uint64_t *take_addresses(struct wire_in *w, struct arena *a, uint16_t *n, bool *cut)
{
    uint64_t head = wire_below(w, (GRAPH_MOST_FRAMES + 1) << 1), before = 0;
    *n = (uint16_t)(head >> 1);
    *cut = head & 1;
    uint64_t *v = arena_new(a, uint64_t, *n + 1u);
    for (uint16_t i = 0; i < *n && !w->damaged; i++)
        before = v[i] = before + (uint64_t)wire_i(w);
    return v;
}

static bool same_addresses(const uint64_t *a, size_t n, const uint64_t *b, size_t m)
{
    return n == m && (!n || !memcmp(a, b, n * sizeof *a));
}

static bool is_same(const struct graph_stack *a, const struct graph_stack *b)
{
    return a->user_cut == b->user_cut && a->kernel_cut == b->kernel_cut &&
        same_addresses(a->user, a->n_user, b->user, b->n_user) &&
        same_addresses(a->kernel, a->n_kernel, b->kernel, b->n_kernel);
}

/* Number of a stack equal to this one, which is the i-th: its own or that of an earlier one. */
static size_t first_of(struct map *seen, const struct graph_stack *v, size_t i)
{
    uint64_t hash[2];
    map_hash_pieces((struct map_piece[]){{v[i].user, v[i].n_user * sizeof *v[i].user},
                        {v[i].kernel, v[i].n_kernel * sizeof *v[i].kernel}},
        2, hash);
    for (;; hash[0]++) {
        bool fresh;
        uint64_t *at = map_put(seen, hash[0], &fresh);
        if (fresh)
            *at = i;
        if (fresh || is_same(&v[*at], &v[i]))
            return (size_t)*at;
    }
}

void cluster_stacks_write(const struct graph_stack *v, size_t n, struct text *out)
{
    struct map seen = {0};
    size_t *number = mem_alloc((n + 1) * sizeof *number), n_each = 0; /* + 1; 0: none */
    for (size_t i = 0; i < n; i++) {
        size_t first = v[i].samples ? first_of(&seen, v, i) : 0;
        number[i] = !v[i].samples ? 0 : first == i ? ++n_each : number[first];
    }
    wire_put_u(out, n_each);
    for (size_t i = 0, written = 0; i < n; i++) {
        if (number[i] <= written)
            continue;
        put_addresses(out, v[i].user, v[i].n_user, v[i].user_cut);
        put_addresses(out, v[i].kernel, v[i].n_kernel, v[i].kernel_cut);
        written++;
    }
    for (size_t i = 0; i < n; i++) {
        wire_put_u(out, number[i]);
        if (number[i])
            wire_put_u(out, v[i].samples);
    }
    free(number);
    map_fini(&seen);
}

int cluster_stacks_read(
    struct arena *a, const void *bytes, size_t size, struct graph_stack *out, size_t n, struct err *e)
{
    struct wire_in w = wire_of(bytes, size);
    size_t n_each = wire_count(&w, 2);
    struct graph_stack *each = arena_new(a, struct graph_stack, n_each + 1);
    for (size_t i = 0; i < n_each && !w.damaged; i++) {
        each[i].user = take_addresses(&w, a, &each[i].n_user, &each[i].user_cut);
        each[i].kernel = take_addresses(&w, a, &each[i].n_kernel, &each[i].kernel_cut);
    }
    for (size_t i = 0; i < n && !w.damaged; i++) {
        uint64_t number = wire_below(&w, n_each + 1);
        out[i] = number ? each[number - 1] : (struct graph_stack){0};
        out[i].samples = number ? (uint32_t)wire_below(&w, UINT64_C(1) << 32) : 0;
    }
    return w.damaged || w.at != w.end ? err_set(e, ERR_FORMAT, "an answer that makes no sense") : 0;
}
