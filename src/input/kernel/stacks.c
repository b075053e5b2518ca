/* SPDX-License-Identifier: MIT */
/* Call stacks in the contexts of events: LTTng's callstack_user and callstack_kernel, sequences of addresses, the
 * innermost first. LTTng records at most 128 of each; an address of all ones behind them marks the stack as
 * incomplete. */
#include <string.h>

#include "kernel/tracker.h"

static const enum ctf_scope scopes[] = {CTF_STREAM_EVENT_CONTEXT, CTF_EVENT_CONTEXT};

/* Kind of stack in a list of that name; KERNEL_STACK_KINDS: none. name may be NULL. */
static int stack_kind(const char *name)
{
    static const char *const names[KERNEL_STACK_KINDS] = {
        [KERNEL_STACK_USER] = "callstack_user", [KERNEL_STACK_KERNEL] = "callstack_kernel"};
    int kind = 0;
    while (kind < KERNEL_STACK_KINDS && !(name && !strcmp(name, names[kind])))
        kind++;
    return kind;
}

static bool is_stack(const struct ctf_field *f)
{
    const struct ctf_type *t = f->type;
    return (t->kind == CTF_SEQUENCE || t->kind == CTF_ARRAY) && t->u.list.element->kind == CTF_INT &&
        stack_kind(f->shown) < KERNEL_STACK_KINDS;
}

uint8_t kernel_stacks_bind(const struct ctf_event_class *c)
{
    unsigned found = 0;
    for (size_t k = 0; k < sizeof scopes / sizeof *scopes; k++)
        for (uint32_t i = 0; c->scope[scopes[k]] && i < c->scope[scopes[k]]->n; i++)
            if (is_stack(&c->scope[scopes[k]]->u.fields[i]))
                found |= 1u << k;
    return (uint8_t)found;
}

bool kernel_has_stacks(const struct ctf_trace *t)
{
    const struct ctf_event_class *const *classes;
    size_t n = ctf_trace_classes(t, &classes);
    for (size_t i = 0; i < n; i++)
        if (classes[i]->item == CTF_EVENT && kernel_stacks_bind(classes[i]))
            return true;
    return false;
}

/* ---- reading ---- */

struct reading {
    struct kernel_stack *out;
    int depth; /* of compounds around the value; 1: fields of the scope */
    int kind;  /* of the list that the value is in */
    bool ended;
};

static void on_begin(void *arg, const struct ctf_value *v)
{
    struct reading *r = arg;
    if (r->depth++ == 1) {
        r->kind = stack_kind(v->name);
        r->ended = false;
    }
}

static void on_end(void *arg, const struct ctf_value *v)
{
    struct reading *r = arg;
    (void)v;
    if (--r->depth == 1)
        r->kind = KERNEL_STACK_KINDS;
}

static bool is_all_ones(const struct ctf_value *v)
{
    int64_t bits = v->type->size_bits;
    return bits > 0 && bits <= 64 && (v->v.u | ~(UINT64_MAX >> (64 - bits))) == UINT64_MAX;
}

static void on_address(void *arg, const struct ctf_value *v)
{
    struct reading *r = arg;
    if (r->kind == KERNEL_STACK_KINDS || r->depth != 2 || v->type->kind != CTF_INT || r->ended)
        return;
    struct kernel_stack *s = &r->out[r->kind];
    r->ended = is_all_ones(v) || s->n == KERNEL_MOST_FRAMES;
    s->cut |= r->ended;
    if (!r->ended)
        s->v[s->n++] = v->v.u;
}

bool kernel_stacks_read(uint8_t bound, const struct ctf_event *ev, struct kernel_stack out[KERNEL_STACK_KINDS])
{
    for (int kind = 0; kind < KERNEL_STACK_KINDS; kind++) {
        out[kind].n = 0;
        out[kind].cut = false;
    }
    for (size_t k = 0; k < sizeof scopes / sizeof *scopes; k++) {
        struct reading r = {.out = out, .kind = KERNEL_STACK_KINDS};
        if (bound >> k & 1)
            ctf_visit(
                ev, scopes[k], &(struct ctf_visitor){.leaf = on_address, .begin = on_begin, .end = on_end, .arg = &r});
    }
    return out[KERNEL_STACK_USER].n || out[KERNEL_STACK_KERNEL].n;
}
