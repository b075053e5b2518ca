/* SPDX-License-Identifier: MIT */
/* Delayed records at a cut. */
#include <stdlib.h>
#include <string.h>

#include "state/carry_parts.h"

/* Strings of the tracker, saved by text: they are from the chunk before, and this chunk's tracker may not know them.
 * Unknown ones get numbers beyond the tracker's. */
enum { BEYOND_STRINGS = 1 << 20 };
struct held_visit {
    struct state_carry *all;
    struct map string_of; /* LOAD: text -> string */
    uint32_t unknown;
};

static uint32_t give_string(struct held_visit *x, uint32_t text, uint32_t most)
{
    struct state_builder *b = x->all->b;
    const uint64_t *known = map_find(&x->string_of, text);
    if (known && *known <= most)
        return (uint32_t)*known;
    uint32_t string = most == UINT16_MAX ? UINT16_MAX - x->unknown % (UINT16_MAX / 2) : BEYOND_STRINGS + x->unknown;
    x->unknown++;
    *map_put(&x->string_of, text, NULL) = string;
    state_builder_give_text(b, string, text);
    return string;
}

static void carry_name(struct held_visit *x, uint32_t *string, uint32_t most)
{
    struct state_builder *b = x->all->b;
    uint32_t text = x->all->c->way == CARRY_SAVE ? builder_text(b, *string) : 0;
    carry_string(x->all->c, &b->texts, &text);
    if (x->all->c->way == CARRY_LOAD)
        *string = give_string(x, text, most);
}

/* Reserves n zeroed bytes behind the record. */
static void reserve_data(struct builder_held *held, struct builder_held_record *h, size_t n)
{
    held->data.n = (held->data.n + 7) / 8 * 8;
    h->data = held->data.n;
    vec_reserve(&held->data, n + 8);
    memset(held->data.v + h->data, 0, n);
    held->data.n += n;
}

/* Visits bytes behind the record. */
static size_t carry_data(struct held_visit *x, struct builder_held_record *h, size_t n)
{
    struct builder_held *held = &x->all->b->held;
    struct carry *c = x->all->c;
    n = carry_count(c, n, 1);
    if (c->way == CARRY_LOAD)
        reserve_data(held, h, n);
    if (n)
        carry_bytes(c, held->data.v + h->data, n);
    return n;
}

static void carry_call(struct held_visit *x, struct builder_held_record *h)
{
    struct carry *c = x->all->c;
    struct kernel_record *r = &h->record;
    carry_name(x, &r->u.syscall.name, UINT32_MAX);
    carry_below(c, &r->u.syscall.io, KERNEL_IO_PAIR + 1);
    bool entry = r->kind == KERNEL_SYSCALL_ENTRY;
    if (entry || r->u.syscall.io == KERNEL_IO_PAIR) {
        carry_number(c, &r->u.syscall.other);
        carry_number(c, &r->u.syscall.fd);
    }
    if (!entry) {
        carry_number(c, &r->u.syscall.ret);
        return;
    }
    carry_number(c, &r->u.syscall.operation);
    carry_number(c, &r->u.syscall.futex);
    carry_number(c, &r->u.syscall.flags);
    bool opens = r->u.syscall.io == KERNEL_IO_OPEN;
    r->u.syscall.path_bytes = carry_data(x, h, opens ? r->u.syscall.path_bytes : 0);
}

static void carry_dumped(struct held_visit *x, struct builder_held_record *h)
{
    struct carry *c = x->all->c;
    struct kernel_record *r = &h->record;
    carry_number(c, &r->u.descriptor.table);
    carry_row(c, &r->u.descriptor.row);
    carry_number(c, &r->u.descriptor.fd);
    carry_number(c, &r->u.descriptor.flags);
    r->u.descriptor.path_bytes = carry_data(x, h, r->u.descriptor.path_bytes);
}

static void carry_counters(struct held_visit *x, struct builder_held_record *h)
{
    struct builder_held *held = &x->all->b->held;
    struct carry *c = x->all->c;
    struct kernel_record *r = &h->record;
    carry_number(c, &r->u.counters.present);
    if (c->way == CARRY_LOAD) {
        if (r->u.counters.present & ~x->all->counters) {
            state_carry_refuse(c);
            r->u.counters.present = 0;
        }
        reserve_data(held, h, builder_held_values(r) * sizeof(int64_t));
    }
    for (uint64_t left = r->u.counters.present; left; left &= left - 1)
        carry_bytes(c, held->data.v + h->data + (size_t)__builtin_ctzll(left) * sizeof(int64_t), sizeof(int64_t));
}

static void carry_block(struct carry *c, struct kernel_record *r)
{
    carry_number(c, &r->u.block.dev);
    carry_number(c, &r->u.block.nr_sector);
    carry_number(c, &r->u.block.sector);
    carry_number(c, &r->u.block.rwbs);
    carry_number(c, &r->u.block.error);
}

static void carry_switch(struct carry *c, struct kernel_record *r)
{
    carry_row(c, &r->u.sw.prev);
    carry_row(c, &r->u.sw.next);
    carry_below(c, &r->u.sw.leave, KERNEL_LEAVE_DEAD + 1);
    carry_number(c, &r->u.sw.since);
    carry_number(c, &r->u.sw.priority);
}

static void carry_lost(struct carry *c, struct kernel_record *r)
{
    carry_number(c, &r->u.lost.begin);
    carry_number(c, &r->u.lost.end);
    carry_number(c, &r->u.lost.count);
}

static void carry_thread(struct carry *c, struct kernel_record *r)
{
    carry_row(c, &r->u.thread.row);
    if (r->kind != KERNEL_STATEDUMP_THREAD)
        return;
    carry_number(c, &r->u.thread.status);
    carry_number(c, &r->u.thread.files);
}

static void carry_context(struct held_visit *x, struct kernel_record *r)
{
    uint32_t number = r->ctx_number;
    carry_below(x->all->c, &r->ctx, KERNEL_CTX_NET + 1);
    if (r->ctx == KERNEL_CTX_IPI)
        carry_name(x, &number, UINT16_MAX);
    else
        carry_number(x->all->c, &r->ctx_number);
    if (r->ctx == KERNEL_CTX_IPI && x->all->c->way == CARRY_LOAD)
        r->ctx_number = (uint16_t)number;
    state_carry_frame(x->all, &r->ctx_frame);
}

static void carry_record(struct held_visit *x, struct builder_held_record *h)
{
    struct carry *c = x->all->c;
    struct kernel_record *r = &h->record;
    carry_number(c, &r->ts);
    carry_number(c, &r->cpu);
    carry_below(c, &r->kind, KERNEL_KINDS);
    if (c->way == CARRY_LOAD && r->cpu >= BUILDER_MOST_CPUS && (r->kind != KERNEL_LOST || r->cpu != UINT32_MAX))
        state_carry_refuse(c);
    carry_context(x, r);
    carry_row(c, &r->row);
    switch (r->kind) {
    case KERNEL_SYSCALL_ENTRY:
    case KERNEL_SYSCALL_EXIT: carry_call(x, h); break;
    case KERNEL_SWITCH: carry_switch(c, r); break;
    case KERNEL_WAKE:
    case KERNEL_WAKE_NEW:
    case KERNEL_WAKEUP: carry_row(c, &r->u.wake.row); break;
    case KERNEL_FORK:
        carry_row(c, &r->u.fork.parent);
        carry_row(c, &r->u.fork.child);
        break;
    case KERNEL_EXIT:
    case KERNEL_FREE:
    case KERNEL_STATEDUMP_THREAD: carry_thread(c, r); break;
    case KERNEL_STATEDUMP_FD: carry_dumped(x, h); break;
    case KERNEL_BLOCK_INSERT:
    case KERNEL_BLOCK_ISSUE:
    case KERNEL_BLOCK_REQUEUE:
    case KERNEL_BLOCK_COMPLETE: carry_block(c, r); break;
    case KERNEL_PACKET_SEND:
    case KERNEL_PACKET_RECEIVE:
        carry_name(x, &r->u.packet.device, UINT32_MAX);
        carry_number(c, &r->u.packet.payload_bytes);
        break;
    case KERNEL_PAGE_ALLOC:
    case KERNEL_PAGE_FREE: carry_number(c, &r->u.page.order); break;
    case KERNEL_COUNTERS: carry_counters(x, h); break;
    case KERNEL_FREQUENCY:
        carry_number(c, &r->u.frequency.of_cpu);
        carry_number(c, &r->u.frequency.khz);
        break;
    case KERNEL_LOST: carry_lost(c, r); break;
    default: break;
    }
}

static void carry_suspects(struct held_visit *x)
{
    struct builder_held *h = &x->all->b->held;
    struct carry *c = x->all->c;
    carry_vec(c, &h->suspects, 1);
    if (h->suspects.n > BUILDER_MOST_CPUS) {
        state_carry_refuse(c);
        h->suspects.n = 0;
    }
    for (size_t i = 0; i < h->suspects.n; i++) {
        struct builder_suspect *s = &h->suspects.v[i];
        carry_bool(c, &s->open);
        if (s->open)
            carry_bool(c, &s->heard);
        if (s->open && s->heard)
            carry_number(c, &s->last_ts);
        if (c->way == CARRY_LOAD)
            h->open += s->open;
    }
}

static void know_strings(struct held_visit *x)
{
    struct state_builder *b = x->all->b;
    const char *const *strings;
    size_t n = kernel_tracker_strings(b->tracker, &strings);
    for (size_t i = 0; i < n; i++)
        *map_put(&x->string_of, strings_intern(&b->texts, strings[i], strlen(strings[i])), NULL) = i;
}

void state_carry_held(struct state_carry *v)
{
    struct builder_held *h = &v->b->held;
    struct held_visit x = {.all = v};
    carry_suspects(&x);
    size_t n = carry_count(v->c, h->v.n - h->first, 2 * sizeof(int64_t));
    if (v->c->way == CARRY_LOAD && n)
        know_strings(&x);
    for (size_t i = 0; i < n && !v->c->damaged; i++) {
        struct builder_held_record fresh = {0};
        carry_record(&x, v->c->way == CARRY_LOAD ? &fresh : &h->v.v[h->first + i]);
        if (v->c->way == CARRY_LOAD && !v->c->damaged)
            vec_push(&h->v, fresh);
    }
    map_fini(&x.string_of);
}
