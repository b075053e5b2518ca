/* Builds the flow store of one host from kernel records: connections, who sends, which receives may have woken whom. */
#include "flow/builder.h"

#include <stdlib.h>
#include <string.h>

struct flow_builder *flow_builder_new(const struct kernel_tracker *tracker)
{
    struct flow_builder *b = mem_zalloc(sizeof *b);
    b->tracker = tracker;
    b->sights = flow_sights_new();
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
    flow_asks_fini(&b->asks);
    flow_sights_free(b->sights);
    map_fini(&b->by_key);
    free(b);
}

/* ---- flows ---- */

static uint32_t find_flow(struct flow_builder *b, const struct flow_key *k, bool create)
{
    for (uint64_t h = flow_key_hash(k);; h++) {
        uint64_t *v = create ? map_put(&b->by_key, h, NULL) : map_find(&b->by_key, h);
        if (!v)
            return NO_FLOW;
        if (!*v) {
            *v = b->flows.n + 1;
            vec_push(&b->flows, ((struct flow){.key = *k, .reverse = NO_FLOW, .waiting = NO_PACKET}));
            return (uint32_t)b->flows.n - 1;
        }
        if (!memcmp(&b->flows.v[*v - 1].key, k, sizeof *k))
            return (uint32_t)*v - 1;
    }
}

struct flow_key flow_key_of(const struct kernel_packet *k, bool reverse)
{
    struct flow_key out;
    memset(&out, 0, sizeof out);
    out.family = k->family;
    out.protocol = k->protocol;
    out.sport = reverse ? k->dport : k->sport;
    out.dport = reverse ? k->sport : k->dport;
    memcpy(out.saddr, reverse ? k->daddr : k->saddr, 16);
    memcpy(out.daddr, reverse ? k->saddr : k->daddr, 16);
    return out;
}

static void begin_life(struct flow_builder *b, uint32_t connection)
{
    b->flows.v[connection].life = (uint32_t)b->lives.n;
    vec_push(&b->lives, NOBODY_ELSE);
}

static uint32_t flow_of(struct flow_builder *b, const struct kernel_packet *k)
{
    struct flow_key key = flow_key_of(k, false);
    size_t before = b->flows.n;
    uint32_t f = find_flow(b, &key, true);
    if (b->flows.n > before) {
        struct flow_key back = flow_key_of(k, true);
        uint32_t r = find_flow(b, &back, false);
        b->flows.v[f].connection = f;
        if (r != NO_FLOW && r != f) {
            b->flows.v[f].reverse = r;
            b->flows.v[r].reverse = f;
            b->flows.v[f].connection = b->flows.v[r].connection;
        } else {
            begin_life(b, f);
        }
    }
    return f;
}

/* The 64-bit number nearest to `near` whose low 32 bits are `seq`. The first packet of a flow starts at 2^32, so that
 * going back never underflows. */
static uint64_t unwrap(uint64_t near, uint32_t seq)
{
    const uint64_t turn = UINT64_C(1) << 32;
    if (!near)
        return turn + seq;
    uint64_t v = (near & ~(turn - 1)) | seq;
    if (v + turn / 2 < near)
        return v + turn;
    return v > near + turn / 2 && v >= turn ? v - turn : v;
}

/* Are the addresses and ports used again? A SYN that was sent again has the same number, and what follows it does not
 * come before it. Where the SYN was not recorded: bytes beyond the FIN. */
static bool begins_anew(const struct flow *flow, const struct kernel_packet *k)
{
    if (!flow->last_seq)
        return false;
    if (k->flags & FLOW_SYN)
        return !flow->syn_end || flow->syn != k->seq || (flow->ended && flow->last_seq > flow->syn_end);
    uint64_t begin = unwrap(flow->last_seq, k->seq);
    return flow->fin_end && k->payload_bytes && begin > flow->fin_end;
}

static void begin_anew(struct flow *flow, struct flow *reverse)
{
    const uint64_t turn = UINT64_C(1) << 32;
    flow->last_seq = (flow->last_seq / turn + 2) * turn;
    flow->syn_end = flow->fin_end = 0;
    flow->ended = false;
    if (reverse)
        reverse->ended = false;
}

/* Returns whether a connection begins anew. */
static bool number_bytes(struct flow_builder *b, uint32_t f, const struct kernel_packet *k, struct flow_disk_packet *p)
{
    struct flow *flow = &b->flows.v[f], *reverse = flow->reverse == NO_FLOW ? NULL : &b->flows.v[flow->reverse];
    p->ack = k->ack;
    if (!k->family || k->protocol != FLOW_TCP) {
        p->seq_end = k->family ? flow->datagrams[p->is_send] += !p->is_copy : k->seq;
        return false;
    }
    bool anew = begins_anew(flow, k), asks = k->flags & FLOW_SYN && !(k->flags & FLOW_ACK);
    if (anew)
        begin_anew(flow, asks ? reverse : NULL);
    uint64_t begin = anew ? flow->last_seq + k->seq : unwrap(flow->last_seq, k->seq);
    p->seq_end = begin + k->payload_bytes + !!(k->flags & FLOW_SYN) + !!(k->flags & FLOW_FIN);
    p->retransmission = p->is_send && p->seq_end <= flow->last_seq && flow_carries(p);
    if ((!(k->flags & FLOW_RST) || !flow->last_seq) && p->seq_end > flow->last_seq)
        flow->last_seq = p->seq_end;
    if (k->flags & FLOW_SYN) {
        flow->syn = k->seq;
        flow->syn_end = p->seq_end;
    }
    if (k->flags & FLOW_FIN)
        flow->fin_end = p->seq_end;
    if (k->flags & (FLOW_FIN | FLOW_RST)) {
        flow->ended = true;
        if (reverse)
            reverse->ended = true;
    }
    if (k->flags & FLOW_ACK && reverse && reverse->last_seq)
        p->ack = unwrap(reverse->last_seq, k->ack);
    return anew && asks;
}

/* ---- who uses a connection ---- */

const struct kernel_thread *flow_thread(const struct flow_builder *b, int32_t row)
{
    const struct kernel_thread *t;
    size_t n = kernel_tracker_threads(b->tracker, &t);
    return row >= 0 && (size_t)row < n ? &t[row] : NULL;
}

static bool is_user(const struct flow_builder *b, uint32_t connection, int32_t row)
{
    for (uint32_t u = b->lives.v[b->flows.v[connection].life]; u != NOBODY_ELSE; u = b->users.v[u].next)
        if (b->users.v[u].row == row)
            return true;
    return false;
}

static bool is_used(const struct flow_builder *b, uint32_t connection)
{
    return b->lives.v[b->flows.v[connection].life] != NOBODY_ELSE;
}

static void add_user(struct flow_builder *b, uint32_t connection, int32_t row)
{
    const struct kernel_thread *t = flow_thread(b, row);
    if (!t || t->idle_cpu >= 0 || is_user(b, connection, row))
        return;
    uint32_t *last = &b->lives.v[b->flows.v[connection].life];
    vec_push(&b->users, ((struct user){row, *last}));
    *last = (uint32_t)b->users.n - 1;
}

static bool same_process(const struct kernel_thread *a, const struct kernel_thread *b)
{
    return a->tgid > 0 && a->tgid == b->tgid;
}

/* A listening thread accepts connections that its children come to use. */
enum relation flow_relation(const struct flow_builder *b, uint32_t life, int32_t row)
{
    const struct kernel_thread *t = flow_thread(b, row);
    enum relation best = b->lives.v[life] != NOBODY_ELSE ? UNRELATED : POSSIBLE;
    for (uint32_t u = b->lives.v[life]; t && u != NOBODY_ELSE; u = b->users.v[u].next) {
        const struct kernel_thread *user = flow_thread(b, b->users.v[u].row);
        if (b->users.v[u].row == row)
            return USER;
        if (same_process(user, t))
            best = SAME_PROCESS;
        else if (best < POSSIBLE && user->parent_row >= 0 &&
            (user->parent_row == row || same_process(flow_thread(b, user->parent_row), t)))
            best = POSSIBLE;
    }
    return best;
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

/* Last receive of the other direction in the same softirq run: what clocked this send out. */
static uint32_t clocking_receive(const struct flow_builder *b, const struct cpu *c, uint32_t frame, uint32_t reverse)
{
    if (reverse == NO_FLOW || c->frame != frame)
        return NO_PACKET;
    uint32_t i = c->last;
    for (int tries = MOST_IN_RUN; i != NO_PACKET && tries; tries--, i = b->packets.v[i].before)
        if (b->packets.v[i].p.flow == reverse)
            return b->packets.v[i].p.number;
    return NO_PACKET;
}

/* Who made a send, as far as the record tells. */
static void attribute_send(
    struct flow_builder *b, const struct kernel_record *r, const struct flow *flow, struct flow_disk_packet *p)
{
    if (r->ctx == KERNEL_CTX_THREAD && r->row >= 0) {
        p->origin = FLOW_BY_THREAD;
        p->row = r->row;
        add_user(b, flow->connection, r->row);
        while (b->latest.n <= (size_t)r->row)
            vec_push(&b->latest, 0);
        b->latest.v[r->row] = flow->connection + 1;
    } else if (network_softirq(r->ctx, r->ctx_number)) {
        p->receive = clocking_receive(b, cpu_of(b, r->cpu), r->ctx_frame, flow->reverse);
        if (p->receive != NO_PACKET)
            p->origin = FLOW_BY_RECEIVE;
    }
}

/* The packet that comes next is a receive: returns the one before it in its run. */
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

static void add_packet(struct flow_builder *b, const struct kernel_record *r)
{
    const struct kernel_packet *k = &r->u.packet;
    bool send = r->kind == KERNEL_PACKET_SEND;
    uint32_t f = flow_of(b, k);
    struct flow *flow = &b->flows.v[f];
    enum flow_sight sight = flow_sights_see(b->sights, k, send);
    struct built_packet n = {.before = NO_PACKET};
    n.p = (struct flow_disk_packet){.ts = r->ts,
        .bytes = k->payload_bytes,
        .number = k->number,
        .row = -1,
        .receive = NO_PACKET,
        .flow = f,
        .flags = k->flags,
        .ip_id = k->ip_id,
        .origin = FLOW_BY_UNKNOWN,
        .is_send = send,
        .is_copy = sight == FLOW_SIGHT_AGAIN};
    n.begins = number_bytes(b, f, k, &n.p);
    if (n.begins)
        begin_life(b, flow->connection);
    n.life = b->flows.v[flow->connection].life;
    if (n.p.is_copy) {
        flow->copies++;
    } else if (send) {
        flow->sends++;
        flow->passing += sight == FLOW_SIGHT_PASSING;
        if (sight == FLOW_SIGHT_PASSING)
            n.p.origin = FLOW_PASSING;
        else
            attribute_send(b, r, flow, &n.p);
    } else {
        flow->receives++;
    }
    if (!send)
        n.before = remember_receive(b, r, flow);
    vec_push(&b->packets, n);
}

/* Data that came while another thread held the socket are handed on when that thread lets go of it: the waker is then a
 * user of the same connection, in thread context, and the receive has woken nobody yet. */
static uint32_t backlog_receive(struct flow_builder *b, const struct kernel_record *r)
{
    if (r->row < 0 || (size_t)r->row >= b->latest.n || !b->latest.v[r->row])
        return NO_PACKET;
    uint32_t connection = b->latest.v[r->row] - 1;
    if (!is_user(b, connection, r->u.wake.row) || r->u.wake.row == r->row)
        return NO_PACKET;
    uint32_t best = NO_PACKET, both[2] = {connection, b->flows.v[connection].reverse};
    for (int i = 0; i < 2; i++) {
        uint32_t w = both[i] == NO_FLOW ? NO_PACKET : b->flows.v[both[i]].waiting;
        if (w != NO_PACKET && !b->packets.v[w].consumed && (best == NO_PACKET || w > best))
            best = w;
    }
    return best;
}

/* Returns the number of the wake + 1, 0: no packet caused it. */
static uint32_t add_wake(struct flow_builder *b, const struct kernel_record *r)
{
    struct cpu *c = cpu_of(b, r->cpu);
    struct wake w = {.ts = r->ts, .row = r->u.wake.row};
    bool same_run = c->last != NO_PACKET && c->frame == r->ctx_frame;
    if (w.row < 0)
        return 0;
    if (same_run && (network_softirq(r->ctx, r->ctx_number) || r->ctx == KERNEL_CTX_THREAD)) {
        w.last = c->last;
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
    if (!w.decided && p->before == NO_PACKET) {
        uint32_t connection = b->flows.v[p->p.flow].connection;
        p->consumed = true;
        const struct kernel_thread *t = flow_thread(b, w.row);
        if (t && !flow_kernel_thread(t) && !is_used(b, connection) && p->p.bytes)
            add_user(b, connection, w.row);
    }
    return (uint32_t)b->wakes.n;
}

uint32_t flow_builder_add(struct flow_builder *b, const struct kernel_record *r)
{
    switch (r->kind) {
    case KERNEL_PACKET_SEND:
    case KERNEL_PACKET_RECEIVE:
        if (r->u.packet.family || r->u.packet.protocol == FLOW_TCP) /* not ARP and the like */
            add_packet(b, r);
        break;
    case KERNEL_WAKE: return add_wake(b, r);
    case KERNEL_SYSCALL_ENTRY:
    case KERNEL_SYSCALL_EXIT: flow_asks_add(&b->asks, r, b->tracker); return 0;
    case KERNEL_SWITCH: /* receives in thread context belong to the stretch between two switches */
        cpu_of(b, r->cpu)->last = NO_PACKET;
        break;
    default: break;
    }
    return 0;
}
