/* SPDX-License-Identifier: MIT */
/* Tracker at a cut. Lives are dead or continue; continuing ones get rows in the next chunk, with all knowledge. */
#include <stdlib.h>

#include "base/carry.h"
#include "base/order.h"
#include "kernel/tracker.h"

/* ---- continuing rows ---- */

/* Order of rows: by tid, idle ones by CPU; lives of one tid by birth. */
struct leaver {
    int32_t tid, idle_cpu, birth, row;
};

static int compare_leavers(const void *x, const void *y)
{
    const struct leaver *a = x, *b = y;
    int by = order_of(a->tid, b->tid);
    by = by ? by : order_of(a->idle_cpu, b->idle_cpu);
    by = by ? by : order_of(a->birth, b->birth);
    return by ? by : order_of(a->row, b->row);
}

static int compare_births(const void *x, const void *y)
{
    const struct leaver *a = x, *b = y;
    int by = order_of(a->birth, b->birth);
    return by ? by : order_of(a->row, b->row);
}

/* Position of a row by birth among the host's lives in the chunk. */
static int32_t birth_of(const struct kernel_tracker *t, int32_t row)
{
    return (size_t)row < t->births.n ? t->births.v[row] : row;
}

static bool *who_leaves(const struct kernel_tracker *t, const struct carry *c)
{
    bool *leaves = mem_zalloc(t->threads.n + 1);
    for (size_t i = 0; i < t->threads.n; i++) {
        const struct kernel_thread *k = &t->threads.v[i];
        if (!k->died && k->parent_row >= 0)
            leaves[k->parent_row] = true;
        leaves[i] |= !k->died || carry_is_marked(c, (int32_t)i);
    }
    return leaves;
}

/* Gives open frames small numbers, so that the number of earlier frames does not matter to the next chunk. */
static void number_frames(struct kernel_tracker *t)
{
    map_fini(&t->leaving_frames);
    for (size_t i = 0; i < t->cpus.n; i++)
        for (int k = 0; k < t->cpus.v[i].depth; k++) {
            bool fresh;
            uint64_t *number = map_put(&t->leaving_frames, t->cpus.v[i].frames[k].serial, &fresh);
            if (fresh)
                *number = t->leaving_frames.n;
        }
}

size_t kernel_tracker_carry_rows(struct kernel_tracker *t, struct carry *c, const int32_t **rows)
{
    bool *leaves = who_leaves(t, c);
    struct leaver *all = mem_alloc((t->threads.n + 1) * sizeof *all);
    size_t n = 0;
    for (size_t i = 0; i < t->threads.n; i++) {
        const struct kernel_thread *k = &t->threads.v[i];
        if (leaves[i])
            all[n++] = (struct leaver){k->tid, k->idle_cpu, birth_of(t, (int32_t)i), (int32_t)i};
    }
    free(leaves);
    qsort(all, n, sizeof *all, compare_leavers);
    t->leaving.n = t->leaving_births.n = 0;
    for (size_t i = 0; i < n; i++) {
        vec_push(&t->leaving, all[i].row);
        vec_push(&t->leaving_births, 0);
        all[i].row = (int32_t)i;
    }
    qsort(all, n, sizeof *all, compare_births);
    for (size_t i = 0; i < n; i++)
        t->leaving_births.v[all[i].row] = (int32_t)i;
    free(all);
    number_frames(t);
    carry_save(c, t->leaving.v, n);
    if (rows)
        *rows = t->leaving.v;
    return n;
}

size_t kernel_tracker_carried(const struct kernel_tracker *t)
{
    return t->births.n;
}

/* ---- visits ---- */

/* Rejects carried state that contradicts itself. */
static void refuse(struct carry *c)
{
    c->damaged = true;
    c->at = c->end;
}

void kernel_carry_frame(const struct kernel_tracker *t, struct carry *c, uint32_t *frame)
{
    uint32_t number = *frame;
    if (c->way == CARRY_SAVE && number) {
        const uint64_t *found = map_find(&t->leaving_frames, number);
        number = found ? (uint32_t)*found : KERNEL_CLOSED_FRAME;
    }
    carry_number(c, &number);
    if (c->way == CARRY_LOAD)
        *frame = number;
}

static void visit_frame(struct kernel_tracker *t, struct carry *c, struct kernel_frame *f)
{
    carry_below(c, &f->ctx, KERNEL_CTX_NET + 1);
    carry_below(c, &f->kind, KERNEL_KINDS);
    if (f->kind == KERNEL_IPI_ENTRY) {
        uint32_t name = f->number;
        carry_string(c, &t->names, &name);
        f->number = (uint16_t)name;
    } else {
        carry_number(c, &f->number);
    }
    kernel_carry_frame(t, c, &f->serial);
    if (c->way == CARRY_LOAD && f->serial != KERNEL_CLOSED_FRAME && f->serial > t->frames)
        t->frames = f->serial;
}

static void visit_cpu(struct kernel_tracker *t, struct carry *c, struct kernel_cpu *k)
{
    carry_number(c, &k->last_ts);
    carry_number(c, &k->known_since);
    carry_number(c, &k->current_since);
    carry_row(c, &k->current);
    carry_row(c, &k->idle_row);
    carry_bool(c, &k->seen);
    carry_bool(c, &k->bottom_known);
    carry_below(c, &k->depth, KERNEL_DEPTH + 1);
    for (int i = 0; i < k->depth; i++)
        visit_frame(t, c, &k->frames[i]);
    carry_number(c, &k->loss_begin);
    carry_number(c, &k->loss_end);
    carry_number(c, &k->loss_head_bytes);
    carry_number(c, &k->loss_head_hash);
    carry_number(c, &k->absent_until);
    if (c->way == CARRY_LOAD && k->loss_end < t->next_loss_end)
        t->next_loss_end = k->loss_end;
}

static void visit_cpus(struct kernel_tracker *t, struct carry *c)
{
    carry_vec(c, &t->cpus, 4 * sizeof(int64_t));
    if (t->cpus.n > KERNEL_MOST_CPUS) {
        refuse(c);
        t->cpus.n = 0;
    }
    for (size_t i = 0; i < t->cpus.n; i++)
        visit_cpu(t, c, &t->cpus.v[i]);
}

/* The parent of an ended life is not needed any more. */
static void visit_thread(struct kernel_tracker *t, struct carry *c, struct kernel_thread *k)
{
    int32_t parent = k->died ? KERNEL_NO_ROW : k->parent_row;
    carry_number(c, &k->tid);
    carry_number(c, &k->tgid);
    carry_number(c, &k->ppid);
    carry_row(c, &parent);
    carry_number(c, &k->idle_cpu);
    carry_string(c, &t->names, &k->name);
    carry_number(c, &k->pid_ns);
    carry_number(c, &k->vtid);
    carry_number(c, &k->begin);
    carry_number(c, &k->end);
    carry_bool(c, &k->born);
    carry_bool(c, &k->died);
    if (c->way != CARRY_LOAD)
        return;
    k->parent_row = parent;
    bool idle = k->tid == 0 && k->idle_cpu >= 0 && (size_t)k->idle_cpu < t->cpus.n && !k->died;
    if (!idle && (k->tid <= 0 || k->idle_cpu != -1))
        refuse(c);
}

static void visit_life(struct kernel_tracker *t, struct carry *c, struct kernel_life *l, bool lives)
{
    carry_string(c, &t->names, &l->syscall);
    carry_below(c, &l->io, KERNEL_IO_PAIR + 1);
    carry_bool(c, &l->exiting);
    carry_bool(c, &l->on_cpu);
    kernel_spaces_carry_life(t, c, &l->spaces, lives);
}

static void save_threads(struct kernel_tracker *t, struct carry *c)
{
    carry_count(c, t->leaving.n, 1);
    for (size_t i = 0; i < t->leaving.n; i++) {
        visit_thread(t, c, &t->threads.v[t->leaving.v[i]]);
        visit_life(t, c, &t->lives.v[t->leaving.v[i]], !t->threads.v[t->leaving.v[i]].died);
        carry_number(c, &t->leaving_births.v[i]);
    }
}

static void load_threads(struct kernel_tracker *t, struct carry *c)
{
    size_t n = carry_count(c, 0, sizeof(struct kernel_thread));
    if (n != c->n_rows)
        refuse(c);
    for (size_t i = 0; i < n && !c->damaged; i++) {
        struct kernel_thread k = {0};
        struct kernel_life l = {0};
        int32_t birth = 0;
        visit_thread(t, c, &k);
        visit_life(t, c, &l, !k.died);
        carry_number(c, &birth);
        if (birth < 0 || (size_t)birth >= n)
            refuse(c);
        vec_push(&t->threads, k);
        vec_push(&t->lives, l);
        vec_push(&t->births, birth);
        if (!k.died && !c->damaged && k.tid > 0)
            kernel_row_bind(t, k.tid, (int32_t)i);
    }
}

/* ---- zombies, whose parents may not have read their status: a state dump still shows them ---- */

static int compare_tids(const void *a, const void *b)
{
    const uint64_t *x = a, *y = b;
    return order_of(*x, *y);
}

static void save_buried(struct kernel_tracker *t, struct carry *c)
{
    VEC(uint64_t) tids = {0};
    for (size_t tid = 1; tid < t->n_by_tid; tid++)
        if (kernel_row_is_buried(t, (int64_t)tid))
            vec_push(&tids, tid);
    size_t n_dense = tids.n;
    for (size_t i = 0; i < t->far_tids.cap; i++)
        if (t->far_tids.used[i] && kernel_row_is_buried(t, (int64_t)t->far_tids.keys[i]))
            vec_push(&tids, t->far_tids.keys[i]);
    if (tids.n > n_dense)
        qsort(tids.v + n_dense, tids.n - n_dense, sizeof *tids.v, compare_tids);
    carry_count(c, tids.n, sizeof(uint32_t));
    for (size_t i = 0; i < tids.n; i++) {
        uint32_t tid = (uint32_t)tids.v[i];
        carry_number(c, &tid);
    }
    vec_free(&tids);
}

static void load_buried(struct kernel_tracker *t, struct carry *c)
{
    size_t n = carry_count(c, 0, sizeof(uint32_t));
    for (size_t i = 0; i < n && !c->damaged; i++) {
        uint32_t tid = 0;
        carry_number(c, &tid);
        if (tid == 0 || tid > INT32_MAX || kernel_row_find(t, tid) >= 0)
            refuse(c);
        else
            kernel_row_bind(t, tid, KERNEL_BURIED);
    }
}

/* ---- whole tracker ---- */

static void visit_name(struct carry *c, uint64_t *value, void *tracker)
{
    struct kernel_tracker *t = tracker;
    uint32_t name = (uint32_t)*value;
    carry_string(c, &t->names, &name);
    *value = name;
}

void kernel_tracker_carry(struct kernel_tracker *t, struct carry *c)
{
    carry_number(c, &t->now);
    visit_cpus(t, c);
    kernel_spaces_carry(t, c);
    if (c->way == CARRY_SAVE) {
        save_threads(t, c);
        save_buried(t, c);
    } else if (c->way == CARRY_LOAD) {
        load_threads(t, c);
        load_buried(t, c);
        for (size_t i = 0; i < t->cpus.n && c->damaged; i++) /* references to missing rows */
            t->cpus.v[i] = KERNEL_CPU_UNSEEN;
    }
    carry_map(c, &t->disks, visit_name, t);
    carry_map(c, &t->irqs, visit_name, t);
}
