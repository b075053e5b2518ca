/* SPDX-License-Identifier: MIT */
/* Builder of a host's flow store from kernel records: connections, senders, and the receives that may have woken
 * threads. */
#include "flow/builder.h"

#include <stdlib.h>
#include <string.h>

struct flow_builder *flow_builder_new(const struct kernel_tracker *tracker)
{
    struct flow_builder *b = mem_zalloc(sizeof *b);
    b->tracker = tracker;
    b->sights = flow_sights_new();
    b->wraps = flow_wraps_new();
    for (enum flow_list l = 0; l < FLOW_LISTS; l++)
        b->lists[l] = (struct flow_list_ends){NO_CONNECTION, NO_CONNECTION, 0};
    return b;
}

void flow_builder_free(struct flow_builder *b)
{
    if (!b)
        return;
    vec_free(&b->flows);
    vec_free(&b->packets);
    vec_free(&b->wakes);
    vec_free(&b->users);
    vec_free(&b->lives);
    vec_free(&b->cpus);
    vec_free(&b->latest);
    vec_free(&b->devices);
    flow_asks_fini(&b->asks);
    flow_sights_free(b->sights);
    flow_wraps_free(b->wraps);
    map_fini(&b->by_key);
    free(b);
}

/* ---- records ---- */

static struct cpu *cpu_of(struct flow_builder *b, uint32_t cpu)
{
    while (b->cpus.n <= cpu)
        vec_push(&b->cpus, ((struct cpu){.last = NO_PACKET}));
    return &b->cpus.v[cpu];
}

static bool network_softirq(uint8_t ctx, uint16_t number)
{
    return (ctx == KERNEL_CTX_SOFTIRQ && (number == KERNEL_SOFTIRQ_NET_RX || number == KERNEL_SOFTIRQ_NET_TX)) ||
        ctx == KERNEL_CTX_NET;
}

/* Last receive of the other direction in the same softirq run, which clocked this send out. */
static uint32_t clocking_receive(const struct flow_builder *b, const struct cpu *c, uint32_t frame, uint32_t reverse)
{
    if (reverse == NO_FLOW || c->frame != frame)
        return NO_PACKET;
    uint32_t i = flow_unsettled(b, c->last);
    for (int tries = MOST_IN_RUN; i != NO_PACKET && tries; tries--, i = flow_unsettled(b, b->packets.v[i].before))
        if (b->packets.v[i].p.flow == reverse)
            return i;
    return NO_PACKET;
}

/* Sets the origin of a send as far as the record shows it. */
static void attribute_send(
    struct flow_builder *b, const struct kernel_record *r, const struct flow *flow, struct built_packet *n)
{
    if (r->ctx == KERNEL_CTX_THREAD && r->row >= 0) {
        int32_t *first = &b->lives.v[n->life].first_sender[flow->side];
        n->p.origin = FLOW_BY_THREAD;
        n->p.row = r->row;
        *first = *first == KERNEL_NO_ROW ? r->row : *first;
        flow_add_user(b, n->life, r->row);
        while (b->latest.n <= (size_t)r->row)
            vec_push(&b->latest, ((struct latest){0}));
        b->latest.v[r->row] = (struct latest){flow->connection + 1, n->life};
    } else if (network_softirq(r->ctx, r->ctx_number)) {
        uint32_t receive = clocking_receive(b, cpu_of(b, r->cpu), r->ctx_frame, flow->reverse);
        if (receive == NO_PACKET)
            return;
        n->p.origin = FLOW_BY_RECEIVE;
        n->p.back = (uint32_t)b->packets.n - receive;
        n->p.is_reply = b->packets.v[receive].p.ts <= n->p.ts;
    }
}

/* Remembers a receive, which is the next packet: returns the one before it in its run. */
static uint32_t remember_receive(struct flow_builder *b, const struct kernel_record *r, struct flow *flow)
{
    struct cpu *c = cpu_of(b, r->cpu);
    uint32_t before = c->frame == r->ctx_frame ? c->last : NO_PACKET;
    c->frame = r->ctx_frame;
    c->last = (uint32_t)b->packets.n;
    if (r->u.packet.payload_bytes)
        flow->waiting = (uint32_t)b->packets.n;
    return before;
}

/* Hash of the interface's name: string numbers differ between chunks. */
static uint64_t device_of(struct flow_builder *b, uint32_t string)
{
    while (b->devices.n <= string)
        vec_push(&b->devices, 0);
    uint64_t *device = &b->devices.v[string];
    if (!*device) {
        const char *const *strings;
        size_t n = kernel_tracker_strings(b->tracker, &strings);
        *device = string < n ? map_hash(strings[string], strlen(strings[string])) : string;
    }
    return *device;
}

static void count_send(struct flow *flow, bool passing)
{
    if (flow->sends == UINT32_MAX) {
        flow->sends /= 2;
        flow->passing /= 2;
    }
    flow->sends++;
    flow->passing += passing;
}

/* Packet with this number of the host, unless it is settled. */
static struct built_packet *unsettled_number(struct flow_builder *b, uint64_t number)
{
    return number > b->first_packet + b->settled && number <= b->first_packet + b->packets.n
        ? &b->packets.v[number - 1 - b->first_packet]
        : NULL;
}

static void count_datagram(struct flow *flow, bool carries)
{
    if (flow->seen == UINT32_MAX) {
        flow->seen /= 2;
        flow->carrying /= 2;
    }
    flow->seen++;
    flow->carrying += carries;
}

/* Marks that a packet came out of that one. If a socket of the host sends back, it was for the socket, and a reused
 * address. */
static void mark_carrier(struct flow_builder *b, uint64_t number)
{
    struct built_packet *outer = unsettled_number(b, number);
    if (!outer || b->lives.v[outer->life].users != NOBODY_ELSE)
        return;
    struct flow *flow = &b->flows.v[outer->p.flow];
    flow->carrying += !(outer->p.way & FLOW_CARRIES);
    outer->p.way = (uint8_t)((outer->p.way | FLOW_CARRIES) & ~FLOW_OPAQUE);
}

/* Updates earlier packets by this one, and sets its way. */
static void follow(struct flow_builder *b, const struct flow_seen *seen, const struct flow_wrap *wrap, uint8_t *way)
{
    struct built_packet *before = unsettled_number(b, seen->went_on);
    if (before)
        before->p.way |= FLOW_WENT_ON;
    if (wrap->carrier)
        mark_carrier(b, wrap->carrier);
    *way = (uint8_t)(seen->way | (wrap->carries ? FLOW_CARRIES : 0) | (wrap->opaque ? FLOW_OPAQUE : 0));
}

static void add_packet(struct flow_builder *b, const struct kernel_record *r)
{
    const struct kernel_packet *k = &r->u.packet;
    bool send = r->kind == KERNEL_PACKET_SEND;
    uint32_t f = flow_of_packet(b, k, r->ts);
    uint64_t device = device_of(b, k->device), number = b->first_packet + b->packets.n;
    struct flow_seen seen = flow_sights_see(b->sights, k, r->ts, device, send, number);
    struct flow_wrap wrap = flow_wraps_see(b->wraps, r, device, send, number);
    struct built_packet n = {.before = NO_PACKET, .woken = KERNEL_NO_ROW};
    n.p = (struct flow_disk_packet){.ts = r->ts,
        .bytes = k->payload_bytes,
        .row = -1,
        .flow = f,
        .flags = k->flags,
        .ip_id = k->ip_id,
        .origin = FLOW_BY_UNKNOWN,
        .is_send = send,
        .is_copy = seen.sight == FLOW_SIGHT_AGAIN};
    follow(b, &seen, &wrap, &n.p.way);
    flow_number_bytes(b, f, k, &n.p);
    struct flow *flow = &b->flows.v[f];
    n.life = flow_life(b, f);
    if (k->protocol != FLOW_TCP)
        count_datagram(flow, wrap.carries);
    if (send && !n.p.is_copy) {
        bool passing = seen.sight == FLOW_SIGHT_PASSING || wrap.carries;
        count_send(flow, passing);
        if (passing)
            n.p.origin = FLOW_PASSING;
        else
            attribute_send(b, r, flow, &n);
    }
    if (!send)
        n.before = remember_receive(b, r, flow);
    flow_touch(b, flow->connection, r->ts);
    vec_push(&b->packets, n);
}

/* Data that arrive while another thread holds the socket are passed on when that thread releases it: the waker is then
 * a user of the same connection, in thread context, and the receive has woken nobody yet. */
static uint32_t backlog_receive(const struct flow_builder *b, const struct kernel_record *r)
{
    if (r->row < 0 || (size_t)r->row >= b->latest.n || !b->latest.v[r->row].connection)
        return NO_PACKET;
    uint32_t connection = b->latest.v[r->row].connection - 1, life = b->latest.v[r->row].life;
    if (flow_life(b, connection) != life || !flow_is_user(b, life, r->u.wake.row) || r->u.wake.row == r->row)
        return NO_PACKET;
    uint32_t best = NO_PACKET, both[2] = {connection, b->flows.v[connection].reverse};
    for (int i = 0; i < 2; i++) {
        uint32_t w = both[i] == NO_FLOW ? NO_PACKET : flow_unsettled(b, b->flows.v[both[i]].waiting);
        if (w != NO_PACKET && !b->packets.v[w].consumed && (best == NO_PACKET || w > best))
            best = w;
    }
    return best;
}

/* Returns whether the run received anything else that stayed. */
static bool has_others(const struct flow_builder *b, const struct built_packet *p)
{
    uint32_t i = flow_unsettled(b, p->before);
    for (int tries = MOST_PASSED_BY; i != NO_PACKET && tries; tries--, i = flow_unsettled(b, b->packets.v[i].before))
        if (flow_stays(&b->packets.v[i].p))
            return true;
    return i != NO_PACKET;
}

/* Returns the number of the wake + 1; 0: no packet caused it. */
static uint64_t add_wake(struct flow_builder *b, const struct kernel_record *r)
{
    const struct cpu *c = cpu_of(b, r->cpu);
    struct wake w = {.ts = r->ts, .row = r->u.wake.row, .packets = (uint32_t)b->packets.n};
    uint32_t last = c->frame == r->ctx_frame ? flow_unsettled(b, c->last) : NO_PACKET;
    if (w.row < 0)
        return 0;
    if (last != NO_PACKET && (network_softirq(r->ctx, r->ctx_number) || r->ctx == KERNEL_CTX_THREAD)) {
        w.last = last;
    } else if (r->ctx == KERNEL_CTX_THREAD) {
        w.decided = true;
        w.last = backlog_receive(b, r);
        if (w.last == NO_PACKET)
            return 0;
        b->packets.v[w.last].consumed = true;
    } else {
        return 0;
    }
    vec_push(&b->wakes, w);
    struct built_packet *p = &b->packets.v[w.last];
    if (!w.decided && !has_others(b, p)) {
        uint32_t life = flow_life(b, p->p.flow);
        p->consumed = true;
        const struct kernel_thread *t = flow_thread(b, w.row);
        if (t && !flow_kernel_thread(t) && b->lives.v[life].users == NOBODY_ELSE && p->p.bytes)
            flow_add_user(b, life, w.row);
    }
    return b->first_wake + b->wakes.n;
}

uint64_t flow_builder_add(struct flow_builder *b, const struct kernel_record *r)
{
    switch (r->kind) {
    case KERNEL_PACKET_SEND:
    case KERNEL_PACKET_RECEIVE:
        if (r->u.packet.family || r->u.packet.protocol == FLOW_TCP) { /* excludes ARP and similar ones */
            flow_decide(b, r->ts);
            add_packet(b, r);
        }
        break;
    case KERNEL_WAKE: flow_decide(b, r->ts); return add_wake(b, r);
    case KERNEL_SYSCALL_ENTRY:
    case KERNEL_SYSCALL_EXIT: flow_asks_add(&b->asks, r, b->tracker); return 0;
    case KERNEL_SWITCH: /* receives in thread context belong to the time between two switches */
        cpu_of(b, r->cpu)->last = NO_PACKET;
        break;
    default: break;
    }
    return 0;
}
