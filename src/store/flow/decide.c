/* SPDX-License-Identifier: MIT */
/* Decisions with a short delay: which receive woke a thread, the owner of each packet, and forwarded packets. Each
 * packet and wake is decided at a time that depends on the records alone, in order of arrival. */
#include "flow/builder.h"

enum { RELATED = 8 }; /* weight above all others */

/* Returns the receive of the run that woke the thread: prefers those whose connection it uses, then those that stayed,
 * then those not taken yet, then those with payload; of equals the earliest. */
static uint32_t waking_receive(const struct flow_builder *b, const struct wake *w)
{
    const struct kernel_thread *t = flow_thread(b, w->row);
    uint32_t best = NO_PACKET, looked_at = 0;
    int best_score = -1;
    for (uint32_t i = flow_unsettled(b, w->last); i != NO_PACKET && looked_at < MOST_IN_RUN;
         i = flow_unsettled(b, b->packets.v[i].before), looked_at++) {
        const struct built_packet *p = &b->packets.v[i];
        int score = (int)flow_relation(b, p->life, w->row) * RELATED + (flow_stays(&p->p) ? 4 : 0) +
            (p->taken ? 0 : 2) + (flow_carries(&p->p) ? 1 : 0);
        if (score >= best_score) {
            best_score = score;
            best = i;
        }
    }
    bool unrelated = best_score < POSSIBLE * RELATED;
    if (best != NO_PACKET && unrelated && (looked_at > 1 || !t || flow_kernel_thread(t)))
        return NO_PACKET;
    return best;
}

static void decide_wake(struct flow_builder *b, struct wake *w)
{
    w->last = w->decided ? flow_unsettled(b, w->last) : waking_receive(b, w);
    w->decided = true;
    if (w->last == NO_PACKET)
        return;
    struct built_packet *p = &b->packets.v[w->last];
    const struct kernel_thread *t = flow_thread(b, w->row);
    p->taken = true;
    if (p->woken != KERNEL_NO_ROW || !t || flow_kernel_thread(t))
        return;
    int32_t *first = &b->lives.v[p->life].first_reader[b->flows.v[p->p.flow].side];
    p->woken = w->row;
    *first = *first == KERNEL_NO_ROW ? w->row : *first;
}

/* Returns whether most sends of the flow were seen to come in before. Then all of them were forwarded, even those
 * without a recorded arrival (lost records). */
static bool passes(const struct flow *flow)
{
    return flow->passing * UINT64_C(2) > flow->sends;
}

/* Returns whether most datagrams of the flow carry other packets. */
static bool carries_others(const struct flow *flow)
{
    return flow->carrying * UINT64_C(2) > flow->seen;
}

static void pass(struct flow_disk_packet *p)
{
    p->origin = FLOW_PASSING;
    p->row = KERNEL_NO_ROW;
    p->back = 0;
    p->is_reply = 0;
}

static int32_t first_of(int32_t last, int32_t first)
{
    return last == KERNEL_NO_ROW ? first : last;
}

/* A socket belongs to the last thread that sent from it; before the first send, to the first sender; without any send,
 * to the thread that its packets woke. Directions are separate: both ends of a loopback connection are on this host. A
 * new connection on the same addresses and ports has another socket. */
static int32_t owner_of(const struct flow_builder *b, const struct built_packet *n)
{
    const struct flow *flow = &b->flows.v[n->p.flow];
    const struct life *life = &b->lives.v[n->life];
    uint32_t out = n->p.is_send ? n->p.flow : flow->reverse;
    unsigned side = n->p.is_send ? flow->side : !flow->side;
    int32_t owner = KERNEL_NO_ROW;
    if (out != NO_FLOW && !passes(&b->flows.v[out]))
        owner = first_of(life->last_sender[side], life->first_sender[side]);
    return owner == KERNEL_NO_ROW ? first_of(life->last_reader[!side], life->first_reader[!side]) : owner;
}

static void settle(struct flow_builder *b, struct built_packet *n)
{
    struct flow_disk_packet *p = &n->p;
    struct flow *flow = &b->flows.v[p->flow];
    struct life *life = &b->lives.v[n->life];
    flow->settled = true;
    if (p->is_send && !p->is_copy && p->origin != FLOW_PASSING && passes(flow)) {
        pass(p);
    }
    if (!(p->way & FLOW_CARRIES) && carries_others(flow)) {
        p->way |= FLOW_CARRIES | FLOW_OPAQUE;
        if (p->is_send && !p->is_copy)
            pass(p);
    }
    if (p->is_send && p->origin == FLOW_BY_THREAD)
        life->last_sender[flow->side] = p->row;
    if (n->woken != KERNEL_NO_ROW)
        life->last_reader[flow->side] = n->woken;
    if (p->origin != FLOW_BY_RECEIVE && p->origin != FLOW_PASSING && flow_stays(p) &&
        !(p->is_send && p->origin == FLOW_BY_THREAD)) {
        p->row = owner_of(b, n);
        if (p->is_send && p->row >= 0)
            p->origin = FLOW_BY_THREAD;
    }
    if (flow_is_own(p) && flow_carries(p) && p->seq_end > flow->high)
        flow->high = p->seq_end;
    p->high = p->is_send && !p->is_copy ? flow->high : 0;
}

static bool is_past(int64_t ts, int64_t then, int64_t ns)
{
    return ts > then && (uint64_t)ts - (uint64_t)then > (uint64_t)ns;
}

void flow_decide(struct flow_builder *b, int64_t ts)
{
    for (; b->wakes_decided < b->wakes.n; b->wakes_decided++) {
        struct wake *w = &b->wakes.v[b->wakes_decided];
        uint32_t since = w->packets > b->settled ? w->packets : b->settled;
        if (b->packets.n - since <= AHEAD_PACKETS / 2 && !is_past(ts, w->ts, AHEAD_NS / 2))
            break;
        decide_wake(b, w);
    }
    for (; b->settled < b->packets.n; b->settled++) {
        struct built_packet *n = &b->packets.v[b->settled];
        if (b->packets.n - b->settled <= AHEAD_PACKETS && !is_past(ts, n->p.ts, AHEAD_NS))
            break;
        settle(b, n);
    }
}

void flow_decide_all(struct flow_builder *b)
{
    for (; b->wakes_decided < b->wakes.n; b->wakes_decided++)
        decide_wake(b, &b->wakes.v[b->wakes_decided]);
    for (; b->settled < b->packets.n; b->settled++)
        settle(b, &b->packets.v[b->settled]);
}
