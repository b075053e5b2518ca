/* SPDX-License-Identifier: MIT */
/* Call stacks of rows. A stack recorded when a thread leaves its CPU to wait belongs to that wait; all others are
 * samples of what the thread did while it ran. A wait in a system call without a stack of its own has the user stack
 * that the thread had at the call's begin: user frames do not change in between. */
#include "graph/stacks.h"

#include <assert.h>
#include <string.h>

#include "base/carry.h"
#include "graph/builder.h"

void graph_stacks_fini(struct graph_stacks *s)
{
    vec_free(&s->frames);
    vec_free(&s->stacks);
    vec_free(&s->samples);
    vec_free(&s->calls);
    map_fini(&s->by_hash);
}

/* ---- stacks, each once ---- */

static_assert((int)KERNEL_MOST_FRAMES == (int)GRAPH_MOST_FRAMES, "all frames are kept");

static bool is_stack(const struct graph_stacks *s, const struct graph_disk_stack *at, const struct kernel_stack *k)
{
    return at->n == k->n && at->cut == k->cut && !memcmp(s->frames.v + at->first, k->v, k->n * sizeof *k->v);
}

uint32_t graph_stacks_number(struct graph_stacks *s, const struct kernel_stack *k)
{
    if (!k->n)
        return 0;
    for (uint64_t hash = map_hash(k->v, k->n * sizeof *k->v) + k->cut;; hash++) {
        const uint64_t *known = map_find(&s->by_hash, hash);
        if (known && !is_stack(s, &s->stacks.v[*known - 1], k))
            continue;
        if (known)
            return (uint32_t)*known;
        if (s->frames.n + k->n > GRAPH_MOST_STACK_FRAMES)
            return 0;
        vec_push(&s->stacks,
            ((struct graph_disk_stack){.first = (uint32_t)s->frames.n, .n = k->n, .cut = (uint16_t)k->cut}));
        for (uint16_t i = 0; i < k->n; i++)
            vec_push(&s->frames, k->v[i]);
        *map_put(&s->by_hash, hash, NULL) = s->stacks.n;
        return (uint32_t)s->stacks.n;
    }
}

void graph_stacks_get(const struct graph_stacks *s, uint32_t number, struct kernel_stack *out)
{
    const struct graph_disk_stack *at = &s->stacks.v[number - 1];
    out->n = at->n;
    out->cut = at->cut;
    memcpy(out->v, s->frames.v + at->first, at->n * sizeof *out->v);
}

/* ---- records ---- */

/* False: the sample is beyond the limits. */
static bool add_sample(struct graph_builder *b, int32_t row, uint32_t user, uint32_t kernel, bool waits)
{
    struct graph_stacks *s = &b->stacks;
    if (s->samples.n == GRAPH_MOST_SAMPLES)
        return false;
    struct graph_disk_sample is = {.ts = b->now, .user = user | (waits ? GRAPH_SAMPLE_WAITS : 0), .kernel = kernel};
    vec_push(&s->samples, ((struct graph_sampled){row, is}));
    return true;
}

/* Number of a record's stack. False: it is beyond the limits. */
static bool find_number(struct graph_stacks *s, const struct kernel_stack *k, uint32_t *out)
{
    *out = graph_stacks_number(s, k);
    return *out || !k->n;
}

static void set_call(struct graph_stacks *s, int32_t row, uint32_t user)
{
    while (user && s->calls.n <= (size_t)row)
        vec_push(&s->calls, 0);
    if ((size_t)row < s->calls.n)
        s->calls.v[row] = user;
}

void graph_builder_stacks(struct graph_builder *b, const struct kernel_record *rec)
{
    struct graph_stacks *s = &b->stacks;
    int32_t row = rec->row;
    bool has = rec->stacks && rec->ctx == KERNEL_CTX_THREAD;
    if (row < 0 || (size_t)row >= b->rows.n || b->rows.v[row].now == GRAPH_NOW_UNSEEN)
        return; /* idle threads call nothing */
    const struct graph_building_row *r = &b->rows.v[row];
    uint32_t user = 0, kernel = 0;
    bool kept = !has || find_number(s, &rec->stacks[KERNEL_STACK_USER], &user);
    kept &= !has || find_number(s, &rec->stacks[KERNEL_STACK_KERNEL], &kernel);
    bool waits = rec->kind == KERNEL_SWITCH && r->now == GRAPH_NOW_WAITING;
    if (waits && !user && r->wait_detail && r->wait_detail == r->syscall && (size_t)row < s->calls.n)
        user = s->calls.v[row];
    if (user || kernel)
        kept &= add_sample(b, row, user, kernel, waits);
    s->left_out += !kept;
    if (rec->kind == KERNEL_SYSCALL_ENTRY || rec->kind == KERNEL_EXEC)
        set_call(s, row, rec->kind == KERNEL_EXEC ? 0 : user);
}

/* ---- cuts ---- */

/* The threads in system calls whose stacks are known. The order is that of the next chunk's rows. */
static void save_calls(const struct graph_builder *b, struct carry *c)
{
    const struct graph_stacks *s = &b->stacks;
    struct map rows = {0}; /* row in the next chunk -> row + 1 */
    struct kernel_stack stack;
    uint32_t n = 0;
    for (size_t i = 0; i < s->calls.n && i < c->numbers.n; i++)
        if (s->calls.v[i] && b->rows.v[i].syscall && graph_builder_is_carried(b, i)) {
            *map_put(&rows, (uint64_t)c->numbers.v[i], NULL) = i + 1;
            n++;
        }
    if (n)
        carry_number(c, &n);
    for (size_t next = 0; next < c->n_rows && n; next++) {
        const uint64_t *at = map_find(&rows, next);
        if (!at)
            continue;
        int32_t row = (int32_t)*at - 1;
        graph_stacks_get(s, s->calls.v[row], &stack);
        carry_row(c, &row);
        carry_bool(c, &stack.cut);
        carry_number(c, &stack.n);
        carry_bytes(c, stack.v, stack.n * sizeof *stack.v);
    }
    map_fini(&rows);
}

static void load_calls(struct graph_builder *b, struct carry *c)
{
    struct kernel_stack stack;
    uint32_t n = 0;
    carry_number(c, &n);
    for (uint32_t i = 0; i < n && !c->damaged; i++) {
        int32_t row = -1;
        carry_row(c, &row);
        carry_bool(c, &stack.cut);
        carry_number(c, &stack.n);
        if (row < 0 || stack.n > KERNEL_MOST_FRAMES) {
            c->damaged = true;
            return;
        }
        carry_bytes(c, stack.v, stack.n * sizeof *stack.v);
        if (!c->damaged)
            set_call(&b->stacks, row, graph_stacks_number(&b->stacks, &stack));
    }
}

void graph_builder_carry_stacks(struct graph_builder *b, struct carry *c)
{
    if (c->way == CARRY_SAVE)
        save_calls(b, c);
    else if (c->way == CARRY_LOAD && c->at < c->end)
        load_calls(b, c);
}

/* ---- writing ---- */

size_t graph_stacks_sections(const struct graph_stacks *s)
{
    return s->samples.n ? 5 : 0;
}

void graph_stacks_add(const struct graph_stacks *s, struct store_writer *w, struct arena *a, size_t n_rows)
{
    if (!s->samples.n)
        return;
    uint32_t *first = arena_new(a, uint32_t, n_rows + 2); /* samples of earlier rows, by row + 1 */
    struct graph_disk_sample *sorted = arena_new(a, struct graph_disk_sample, s->samples.n);
    for (size_t i = 0; i < s->samples.n; i++)
        first[s->samples.v[i].row + 2]++;
    for (size_t i = 2; i < n_rows + 2; i++)
        first[i] += first[i - 1];
    for (size_t i = 0; i < s->samples.n; i++)
        sorted[first[s->samples.v[i].row + 1]++] = s->samples.v[i].is;
    struct graph_disk_sampled *totals = arena_new(a, struct graph_disk_sampled, 1);
    totals->left_out = s->left_out;
    for (size_t i = 0; i < s->stacks.n; i++)
        totals->cut += s->stacks.v[i].cut;
    store_add(w, "stack-totals", totals, sizeof *totals, 1);
    store_add(w, "stack-rows", first, sizeof *first, n_rows + 1);
    store_add(w, "stack-samples", sorted, sizeof *sorted, s->samples.n);
    store_add(w, "stacks", s->stacks.v, sizeof *s->stacks.v, s->stacks.n);
    store_add(w, "stack-frames", s->frames.v, sizeof *s->frames.v, s->frames.n);
}
