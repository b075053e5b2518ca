/* SPDX-License-Identifier: MIT */
/* Records as the payload of CTF events: fields in the order of their format, without gaps. */
#include <string.h>

#include "ftrace/pages.h"

static void add_field(struct ftrace_event *ev, const struct ftrace_field *f)
{
    struct ftrace_op *last = ev->n_ops ? &ev->ops[ev->n_ops - 1] : NULL;
    bool is_fixed = f->kind == FTRACE_INT || f->kind == FTRACE_ARRAY;
    if (is_fixed && last && last->kind == FTRACE_COPY && last->offset + last->size == f->offset)
        last->size += f->size;
    else
        ev->ops[ev->n_ops++] = (struct ftrace_op){
            f->offset, f->size, is_fixed ? FTRACE_COPY : f->kind, f->element, f->is_text, f->relative};
}

void ftrace_plan(struct ftrace_file *f)
{
    for (size_t i = 0; i < f->events.n; i++) {
        struct ftrace_event *ev = &f->events.v[i];
        ev->ops = arena_new(&f->arena, struct ftrace_op, f->common.n + ev->own.n + 1);
        for (size_t k = 0; k < f->common.n; k++)
            add_field(ev, &f->common.v[k]);
        for (size_t k = 0; k < ev->own.n; k++)
            add_field(ev, &ev->own.v[k]);
    }
}

static void put_list(struct ftrace_sink *s, const struct ftrace_op *op, const uint8_t *v, uint64_t n, bool big)
{
    if (op->is_text) {
        ftrace_put(s, v, n ? strnlen((const char *)v, n) : 0);
        ftrace_put(s, "", 1);
        return;
    }
    ftrace_put_number(s, n / op->element, 4, big);
    ftrace_put(s, v, n - n % op->element);
}

bool ftrace_put_event(struct ftrace_sink *s, const struct ftrace_event *ev, const uint8_t *record, uint64_t n, bool big)
{
    for (size_t i = 0; i < ev->n_ops; i++) {
        const struct ftrace_op *op = &ev->ops[i];
        if (op->offset > n || (op->kind != FTRACE_TAIL && op->size > n - op->offset))
            return false;
        if (op->kind == FTRACE_COPY) {
            ftrace_put(s, record + op->offset, op->size);
        } else if (op->kind == FTRACE_TAIL) {
            put_list(s, op, record + op->offset, n - op->offset, big);
        } else {
            uint32_t word = (uint32_t)ftrace_load(record + op->offset, 4, big);
            uint64_t at = (word & 0xffff) + (op->relative ? op->offset + 4 : 0), size = word >> 16;
            if (at > n || size > n - at)
                return false;
            put_list(s, op, record + at, size, big);
        }
    }
    return true;
}
