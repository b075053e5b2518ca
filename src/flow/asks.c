/* Threads that ask for messages again and again without sleeping: what their system calls returned says so. Calls that
 * slept return nothing, too: whether the thread was awake is known to who knows its states. */
#include "flow/asks.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/order.h"
#include "base/search.h"
#include "kernel/kernel.h"

enum {
    MOST_BETWEEN_NS = 1000000, /* between two calls of one stretch; who works longer does not only wait */
    SHORTEST_NS = 100000
};

/* What tells that there was nothing: 0 (a time-out of none), EAGAIN, or any return. */
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

/* Does the call belong to the stretch? Where times run back, it does not. */
static bool is_next(const struct asking *row)
{
    return row->ask.calls && row->entered >= row->left &&
        (uint64_t)row->entered - (uint64_t)row->left <= MOST_BETWEEN_NS;
}

/* A call came back empty: the stretch goes on, or one begins. */
static void go_on(struct asking *row, const struct kernel_record *r)
{
    if (!is_next(row))
        row->ask = (struct flow_disk_ask){.begin = row->entered, .row = r->row};
    row->ask.last = row->entered;
    row->ask.calls += row->ask.calls < UINT32_MAX;
    row->left = r->ts;
}

/* A call came back with something. */
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
    while (a->rows.n <= (size_t)r->row)
        vec_push(&a->rows, ((struct asking){.entered = INT64_MIN}));
    struct asking *row = &a->rows.v[r->row];
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

const char *flow_asks_defect(const struct flow_store *s)
{
    for (size_t i = 0; i < s->n_asks; i++) {
        const struct flow_disk_ask *a = &s->asks[i];
        if (a->begin > a->last || a->last > a->end || (i && by_row(a - 1, a) > 0))
            return "stretches of asking for messages out of order";
    }
    return NULL;
}

/* ---- reading ---- */

size_t flow_asks(const struct flow_store *s, int32_t row, size_t *first)
{
    *first = search_first(i, 0, s->n_asks, s->asks[i].row >= row);
    return search_first(i, *first, s->n_asks, s->asks[i].row > row) - *first;
}

void flow_ask(const struct flow_store *s, size_t i, struct flow_ask *out)
{
    const struct flow_disk_ask *a = &s->asks[i];
    *out = (struct flow_ask){.begin = a->begin, .last = a->last, .end = a->end};
}
