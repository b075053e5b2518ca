/* SPDX-License-Identifier: MIT */
/* Asks: threads that ask for messages again and again without sleeping, as shown by return values of their system
 * calls. Calls that slept may return nothing, too: whether the thread was awake must be checked by its states. */
#include "flow/asks.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/carry.h"
#include "base/order.h"
#include "base/search.h"
#include "kernel/kernel.h"

enum {
    MOST_BETWEEN_NS = 1000000, /* limit between two calls of a stretch; a longer pause is work */
    SHORTEST_NS = 100000
};

/* Class of a call by the returns that mean nothing was there: 0 (no timeout), EAGAIN, or any return. */
enum ask_class { ASKS_NOTHING, ASKS_READY, ASKS_DATA, YIELDS };

static enum ask_class class_of(const char *call)
{
    static const char *const ready[] = {
        "poll", "ppoll", "select", "pselect6", "epoll_wait", "epoll_pwait", "epoll_pwait2", NULL};
    static const char *const data[] = {"read", "readv", "recv", "recvfrom", "recvmsg", "recvmmsg", NULL};
    for (size_t i = 0; ready[i]; i++)
        if (!strcmp(call, ready[i]))
            return ASKS_READY;
    for (size_t i = 0; data[i]; i++)
        if (!strcmp(call, data[i]))
            return ASKS_DATA;
    return strcmp(call, "sched_yield") ? ASKS_NOTHING : YIELDS;
}

static enum ask_class class_of_string(struct flow_asks *a, const struct kernel_tracker *t, uint32_t number)
{
    while (a->classes.n <= number)
        vec_push(&a->classes, 0);
    if (!a->classes.v[number]) {
        const char *const *strings;
        size_t n = kernel_tracker_strings(t, &strings);
        a->classes.v[number] = (uint8_t)(1 + (number < n ? class_of(strings[number]) : ASKS_NOTHING));
    }
    return a->classes.v[number] - 1;
}

static struct asking *asking_of(struct flow_asks *a, int32_t row)
{
    while (a->rows.n <= (size_t)row)
        vec_push(&a->rows, ((struct asking){.entered = INT64_MIN}));
    return &a->rows.v[row];
}

/* Returns whether the call continues the stretch; false if times run back. */
static bool is_next(const struct asking *row)
{
    return row->ask.calls && row->entered >= row->left &&
        (uint64_t)row->entered - (uint64_t)row->left <= MOST_BETWEEN_NS;
}

/* Handles a call without a result: continues the stretch, or begins one. */
static void go_on(struct asking *row, const struct kernel_record *r)
{
    if (!is_next(row))
        row->ask = (struct flow_disk_ask){.begin = row->entered, .row = r->row};
    row->ask.last = row->entered;
    row->ask.calls += row->ask.calls < UINT32_MAX;
    row->left = r->ts;
}

/* Handles a call with a result. */
static void end(struct flow_asks *a, struct asking *row, const struct kernel_record *r)
{
    row->ask.end = r->ts;
    if (row->ask.calls > 1 && is_next(row) && (uint64_t)r->ts - (uint64_t)row->ask.begin >= SHORTEST_NS)
        vec_push(&a->asks, row->ask);
    row->ask.calls = 0;
}

void flow_asks_add(struct flow_asks *a, const struct kernel_record *r, const struct kernel_tracker *t)
{
    enum ask_class class = class_of_string(a, t, r->u.syscall.name);
    if (r->row < 0 || class == ASKS_NOTHING)
        return;
    struct asking *row = asking_of(a, r->row);
    if (r->kind == KERNEL_SYSCALL_ENTRY) {
        row->entered = r->ts;
        return;
    }
    if (row->entered > INT64_MIN && r->ts >= row->entered) {
        if (class == YIELDS || r->u.syscall.ret == (class == ASKS_DATA ? -EAGAIN : 0))
            go_on(row, r);
        else if (r->u.syscall.ret > 0)
            end(a, row, r);
    }
    row->entered = INT64_MIN;
}

static bool is_asking(const struct flow_asks *a, const struct kernel_thread *t, int32_t row)
{
    return row >= 0 && (size_t)row < a->rows.n && !t[row].died &&
        (a->rows.v[row].entered > INT64_MIN || a->rows.v[row].ask.calls);
}

static void carry_asking(struct carry *c, struct asking *of)
{
    carry_number(c, &of->entered);
    carry_number(c, &of->ask.calls);
    if (!of->ask.calls)
        return;
    carry_number(c, &of->left);
    carry_number(c, &of->ask.begin);
    carry_number(c, &of->ask.last);
}

void flow_asks_carry(
    struct flow_asks *a, struct carry *c, const struct kernel_tracker *tracker, const int32_t *rows, size_t n_rows)
{
    const struct kernel_thread *t;
    size_t threads = kernel_tracker_threads(tracker, &t), n = 0;
    if (a->rows.n > threads)
        a->rows.n = threads;
    for (size_t i = 0; i < n_rows; i++)
        n += is_asking(a, t, rows[i]);
    n = carry_count(c, n, sizeof(int32_t));
    for (size_t i = 0, at = 0; i < n && !c->damaged; i++, at++) {
        struct asking loaded = {0}, *of = &loaded;
        int32_t row = KERNEL_NO_ROW;
        while (c->way != CARRY_LOAD && !is_asking(a, t, rows[at]))
            at++;
        if (c->way != CARRY_LOAD) {
            row = rows[at];
            of = &a->rows.v[row];
        }
        carry_row(c, &row);
        carry_asking(c, of);
        if (c->way != CARRY_LOAD || c->damaged || row < 0)
            continue;
        loaded.ask.row = row;
        *asking_of(a, row) = loaded;
    }
}

static int by_row(const void *pa, const void *pb)
{
    const struct flow_disk_ask *a = pa, *b = pb;
    return order_of(a->row, b->row) ?: order_of(a->begin, b->begin);
}

void flow_asks_sort(struct flow_asks *a)
{
    if (a->asks.n)
        qsort(a->asks.v, a->asks.n, sizeof *a->asks.v, by_row);
}

void flow_asks_fini(struct flow_asks *a)
{
    vec_free(&a->rows);
    vec_free(&a->classes);
    vec_free(&a->asks);
}

const char *flow_asks_defect(const struct flow_chunk *s)
{
    for (size_t i = 0; i < s->n_asks; i++) {
        const struct flow_disk_ask *a = &s->asks[i];
        if (a->begin > a->last || a->last > a->end || (i && by_row(a - 1, a) > 0))
            return "stretches of asking for messages out of order";
    }
    return NULL;
}

/* ---- reading ---- */

size_t flow_chunk_asks(const struct flow_chunk *c, int32_t row, size_t *first)
{
    *first = search_first(i, 0, c->n_asks, c->asks[i].row >= row);
    return search_first(i, *first, c->n_asks, c->asks[i].row > row) - *first;
}

size_t flow_asks(const struct flow_store *s, int32_t row)
{
    size_t n = chunk_rows_places(s->rows, row), first, before = 0;
    if (!n)
        return 0;
    if (s->n > 1)
        before = flow_sums(s, row)[n - 1].asks;
    struct chunk_place last = chunk_rows_place(s->rows, row, n - 1);
    return before + flow_chunk_asks(&s->chunks[last.chunk], last.row, &first);
}

void flow_ask(const struct flow_store *s, int32_t row, size_t i, struct flow_ask *out)
{
    size_t k = 0, first;
    if (s->n > 1) {
        const struct flow_sums *sums = flow_sums(s, row);
        k = search_first(p, 0, chunk_rows_places(s->rows, row), sums[p].asks > i) - 1;
        i -= sums[k].asks;
    }
    struct chunk_place place = chunk_rows_place(s->rows, row, k);
    const struct flow_chunk *c = &s->chunks[place.chunk];
    size_t n = flow_chunk_asks(c, place.row, &first);
    *out = (struct flow_ask){0};
    if (i < n)
        *out = (struct flow_ask){c->asks[first + i].begin, c->asks[first + i].last, c->asks[first + i].end};
}
