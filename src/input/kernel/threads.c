/* SPDX-License-Identifier: MIT */
/* Lives of threads: maps tids to rows. */
#include <stdlib.h>
#include <string.h>

#include "kernel/tracker.h"

static int32_t kernel_row_new(struct kernel_tracker *t, int32_t tid, int64_t begin)
{
    if (t->threads.n >= INT32_MAX)
        return KERNEL_NO_ROW;
    int32_t row = (int32_t)t->threads.n;
    struct kernel_thread thread = {.tid = tid,
        .tgid = -1,
        .ppid = -1,
        .parent_row = KERNEL_NO_ROW,
        .idle_cpu = -1,
        .vtid = -1,
        .begin = begin,
        .end = begin};
    vec_push(&t->threads, thread);
    vec_push(&t->lives, (struct kernel_life){0});
    return row;
}

void kernel_row_bind(struct kernel_tracker *t, int64_t tid, int32_t row)
{
    if (tid >= KERNEL_DENSE_TIDS) {
        *map_put(&t->far_tids, (uint64_t)tid, NULL) = (uint64_t)(row + 1);
        return;
    }
    if ((size_t)tid >= t->n_by_tid) {
        size_t n = t->n_by_tid ? t->n_by_tid : 1024;
        while (n <= (size_t)tid)
            n *= 2;
        t->by_tid = mem_resize(t->by_tid, n * sizeof *t->by_tid);
        memset(t->by_tid + t->n_by_tid, 0, (n - t->n_by_tid) * sizeof *t->by_tid);
        t->n_by_tid = n;
    }
    t->by_tid[tid] = row + 1;
}

/* Latest life of the tid: its row, dead or not; KERNEL_BURIED; KERNEL_NO_ROW. */
static int32_t latest(const struct kernel_tracker *t, int64_t tid)
{
    if (tid > 0 && (size_t)tid < t->n_by_tid)
        return t->by_tid[tid] - 1;
    const uint64_t *found = tid >= KERNEL_DENSE_TIDS ? map_find(&t->far_tids, (uint64_t)tid) : NULL;
    return found ? (int32_t)*found - 1 : KERNEL_NO_ROW;
}

int32_t kernel_row_find(const struct kernel_tracker *t, int64_t tid)
{
    int32_t row = latest(t, tid);
    return row >= 0 && !t->threads.v[row].died ? row : KERNEL_NO_ROW;
}

bool kernel_row_is_buried(const struct kernel_tracker *t, int64_t tid)
{
    int32_t row = latest(t, tid);
    return row == KERNEL_BURIED || (row >= 0 && t->threads.v[row].died);
}

void kernel_row_forget(struct kernel_tracker *t, int64_t tid)
{
    if (kernel_row_is_buried(t, tid))
        kernel_row_bind(t, tid, KERNEL_NO_ROW);
}

int32_t kernel_row_get(struct kernel_tracker *t, int64_t tid, int64_t begin)
{
    if (tid <= 0 || tid > INT32_MAX)
        return KERNEL_NO_ROW;
    int32_t row = kernel_row_find(t, tid);
    if (row < 0) {
        row = kernel_row_new(t, (int32_t)tid, begin);
        if (row >= 0)
            kernel_row_bind(t, tid, row);
    }
    return row;
}

int32_t kernel_row_idle(struct kernel_tracker *t, uint32_t cpu)
{
    struct kernel_cpu *c = &t->cpus.v[cpu];
    if (c->idle_row < 0) {
        int64_t begin = c->seen && c->known_since < t->now ? c->known_since : t->now;
        c->idle_row = kernel_row_new(t, 0, begin);
        if (c->idle_row < 0)
            return KERNEL_NO_ROW;
        struct arena a = {0};
        char *name = arena_printf(&a, "swapper/%u", cpu);
        t->threads.v[c->idle_row].idle_cpu = (int32_t)cpu;
        t->threads.v[c->idle_row].tgid = 0;
        kernel_row_set_name(t, c->idle_row, strings_intern(&t->names, name, strlen(name)));
        arena_fini(&a);
    }
    return c->idle_row;
}

void kernel_row_die(struct kernel_tracker *t, int32_t row)
{
    struct kernel_thread *k = &t->threads.v[row];
    kernel_spaces_die(t, row);
    k->died = true;
    k->end = t->now;
    if (!t->binding->has[KERNEL_FREE] && latest(t, k->tid) == row)
        kernel_row_forget(t, k->tid); /* its free would not be seen */
}

static void keep_former(struct kernel_tracker *t, int32_t row)
{
    const struct kernel_thread *k = &t->threads.v[row];
    vec_push(&t->formers, ((struct kernel_former){.until = t->now, .row = row, .tid = k->tid, .name = k->name}));
}

void kernel_row_set_name(struct kernel_tracker *t, int32_t row, uint32_t name)
{
    struct kernel_thread *k = &t->threads.v[row];
    if (k->name && k->name != name)
        keep_former(t, row);
    k->name = name;
}

void kernel_row_renumber(struct kernel_tracker *t, int32_t row, int32_t tid)
{
    keep_former(t, row);
    t->threads.v[row].tid = tid;
}

void kernel_row_name(
    struct kernel_tracker *t, int32_t row, const struct ctf_event *ev, const struct kernel_plan *p, int i)
{
    const struct kernel_text *text = &p->cold->text[i];
    size_t n;
    if (text->array_bytes == KERNEL_COMM_BYTES) {
        uint64_t raw[2];
        uint64_t *last = t->lives.v[row].comm;
        memcpy(raw, ev->data + (ev->payload_bits >> 3) + text->offset, sizeof raw);
        if (raw[0] == last[0] && raw[1] == last[1])
            return;
        last[0] = raw[0];
        last[1] = raw[1];
        n = strnlen((const char *)raw, sizeof raw);
        if (n)
            kernel_row_set_name(t, row, strings_intern(&t->names, (const char *)raw, n));
        return;
    }
    const char *s = kernel_text(ev, p, i, &n);
    const char *known = strings_get(&t->names, t->threads.v[row].name);
    if (!n || (!strncmp(known, s, n) && !known[n]))
        return;
    kernel_row_set_name(t, row, strings_intern(&t->names, s, n));
    memset(t->lives.v[row].comm, 0, sizeof t->lives.v[row].comm);
}

/* ---- public functions ---- */

size_t kernel_tracker_threads(const struct kernel_tracker *t, const struct kernel_thread **out)
{
    *out = t->threads.v;
    return t->threads.n;
}

size_t kernel_tracker_formers(const struct kernel_tracker *t, const struct kernel_former **out)
{
    *out = t->formers.v;
    return t->formers.n;
}

size_t kernel_tracker_strings(const struct kernel_tracker *t, const char *const **out)
{
    *out = (const char *const *)t->names.v;
    return t->names.n;
}

static uint32_t look_up(const struct map *m, uint64_t key)
{
    const uint64_t *found = map_find(m, key);
    return found ? (uint32_t)*found : KERNEL_NO_STRING;
}

uint32_t kernel_tracker_disk_name(const struct kernel_tracker *t, uint32_t dev)
{
    return look_up(&t->disks, dev);
}
uint32_t kernel_tracker_irq_name(const struct kernel_tracker *t, uint32_t irq)
{
    return look_up(&t->irqs, irq);
}
