/* Builds the flow store of one host from kernel records: connections, who sends, which receive woke whom. */
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/mem.h"
#include "flow/asks.h"
#include "flow/messages.h"
#include "flow/store.h"
#include "kernel/kernel.h"

enum { TCP = 6, FIN = 1, SYN = 2, NO_FLOW = UINT32_MAX, NO_PACKET = UINT32_MAX };

/* A thread seen to use a connection: it sent on it, or was the only one whom its packets could have woken. */
struct user {
    int32_t row;
    uint32_t next; /* of the same connection; UINT32_MAX ends */
};

struct flow {
    struct flow_key key;
    uint32_t reverse;      /* the other direction, or NO_FLOW */
    uint32_t connection;   /* the smaller of the two numbers */
    uint32_t users;        /* of the connection: listed at flow `connection` */
    uint32_t datagrams[2]; /* receives, sends counted */
    uint64_t last_seq;     /* unwrapped; 0: none yet */
    uint32_t sends, receives;
    uint32_t waiting; /* last receive with payload that woke nobody yet */
};

struct built_packet {
    struct flow_disk_packet p;
    uint32_t frame, cpu;
    uint8_t ctx;
    uint16_t vector;
    bool consumed; /* woke somebody */
};

/* A wake that packets may have caused: one of the receives [first, last] of its softirq run did; decided when all users
 * are known. */
struct wake {
    int64_t ts;
    int32_t row;
    uint32_t first, last; /* packets; first = NO_PACKET: already decided as `last` */
    uint32_t frame;
};

/* Receives since the last change of context on a CPU. */
struct cpu {
    uint32_t frame, first, last; /* first = NO_PACKET: none */
};

struct flow_builder {
    const struct kernel_tracker *tracker;
    VEC(struct flow) flows;
    VEC(struct built_packet) packets;
    VEC(struct wake) wakes;
    VEC(struct user) users;
    VEC(struct cpu) cpus;
    VEC(uint32_t) latest; /* by row: connection on which the thread sent last, + 1 */
    VEC(struct flow_address) addresses;
    struct flow_asks asks;
    struct map by_key; /* hash -> flow + 1 (chained by probing with hash + n) */
};

struct flow_builder *flow_builder_new(const struct kernel_tracker *tracker)
{
    struct flow_builder *b = mem_zalloc(sizeof *b);
    b->tracker = tracker;
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
    vec_free(&b->cpus);
    vec_free(&b->latest);
    flow_asks_fini(&b->asks);
    vec_free(&b->addresses);
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
            vec_push(
                &b->flows, ((struct flow){.key = *k, .reverse = NO_FLOW, .users = UINT32_MAX, .waiting = NO_PACKET}));
            return (uint32_t)b->flows.n - 1;
        }
        if (!memcmp(&b->flows.v[*v - 1].key, k, sizeof *k))
            return (uint32_t)*v - 1;
    }
}

static struct flow_key key_of(const struct kernel_packet *k, bool reverse)
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

static uint32_t flow_of(struct flow_builder *b, const struct kernel_packet *k)
{
    struct flow_key key = key_of(k, false);
    size_t before = b->flows.n;
    uint32_t f = find_flow(b, &key, true);
    if (b->flows.n > before) {
        struct flow_key back = key_of(k, true);
        uint32_t r = find_flow(b, &back, false);
        b->flows.v[f].connection = f;
        if (r != NO_FLOW && r != f) {
            b->flows.v[f].reverse = r;
            b->flows.v[r].reverse = f;
            b->flows.v[f].connection = b->flows.v[r].connection;
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

static void number_bytes(struct flow_builder *b, uint32_t f, const struct kernel_packet *k, struct flow_disk_packet *p)
{
    struct flow *flow = &b->flows.v[f];
    p->ack = k->ack;
    if (!k->family) {
        p->seq_end = k->seq;
    } else if (k->protocol != TCP) {
        p->seq_end = ++flow->datagrams[p->is_send];
    } else {
        uint64_t begin = unwrap(flow->last_seq, k->seq);
        p->seq_end = begin + k->payload_bytes + !!(k->flags & SYN) + !!(k->flags & FIN);
        if (p->seq_end > flow->last_seq)
            flow->last_seq = p->seq_end;
        if (k->flags & 16 && flow->reverse != NO_FLOW && b->flows.v[flow->reverse].last_seq)
            p->ack = unwrap(b->flows.v[flow->reverse].last_seq, k->ack);
    }
}

/* ---- who uses a connection ---- */

static const struct kernel_thread *thread_of(const struct flow_builder *b, int32_t row)
{
    const struct kernel_thread *t;
    size_t n = kernel_tracker_threads(b->tracker, &t);
    return row >= 0 && (size_t)row < n ? &t[row] : NULL;
}

static bool is_user(const struct flow_builder *b, uint32_t connection, int32_t row)
{
    for (uint32_t u = b->flows.v[connection].users; u != UINT32_MAX; u = b->users.v[u].next)
        if (b->users.v[u].row == row)
            return true;
    return false;
}

static void add_user(struct flow_builder *b, uint32_t connection, int32_t row)
{
    const struct kernel_thread *t = thread_of(b, row);
    if (!t || t->idle_cpu >= 0 || is_user(b, connection, row))
        return;
    vec_push(&b->users, ((struct user){row, b->flows.v[connection].users}));
    b->flows.v[connection].users = (uint32_t)b->users.n - 1;
}

enum relation { UNRELATED, POSSIBLE, SAME_PROCESS, USER };

static bool same_process(const struct kernel_thread *a, const struct kernel_thread *b)
{
    return a->tgid > 0 && a->tgid == b->tgid;
}

/* How likely packets of this connection are meant for `row`. A listening thread accepts connections that its children
 * come to use. */
static enum relation relate(const struct flow_builder *b, uint32_t connection, int32_t row)
{
    const struct kernel_thread *t = thread_of(b, row);
    enum relation best = b->flows.v[connection].users == UINT32_MAX ? POSSIBLE : UNRELATED;
    for (uint32_t u = b->flows.v[connection].users; t && u != UINT32_MAX; u = b->users.v[u].next) {
        const struct kernel_thread *user = thread_of(b, b->users.v[u].row);
        if (b->users.v[u].row == row)
            return USER;
        if (same_process(user, t))
            best = SAME_PROCESS;
        else if (best < POSSIBLE && user->parent_row >= 0 &&
            (user->parent_row == row || same_process(thread_of(b, user->parent_row), t)))
            best = POSSIBLE;
    }
    return best;
}

static bool is_kernel_thread(const struct kernel_thread *t)
{
    return t->tid == 2 || t->ppid == 2 || t->idle_cpu >= 0;
}

/* ---- records ---- */

static struct cpu *cpu_of(struct flow_builder *b, uint32_t cpu)
{
    while (b->cpus.n <= cpu)
        vec_push(&b->cpus, ((struct cpu){.first = NO_PACKET}));
    return &b->cpus.v[cpu];
}

static void add_address(struct flow_builder *b, const struct kernel_packet *k)
{
    if (!k->family)
        return;
    for (size_t i = 0; i < b->addresses.n; i++)
        if (b->addresses.v[i].family == k->family && !memcmp(b->addresses.v[i].addr, k->saddr, 16))
            return;
    struct flow_address a = {.family = k->family};
    memcpy(a.addr, k->saddr, 16);
    vec_push(&b->addresses, a);
}

static bool network_softirq(uint8_t ctx, uint16_t number)
{
    return (ctx == KERNEL_CTX_SOFTIRQ && (number == KERNEL_SOFTIRQ_NET_RX || number == KERNEL_SOFTIRQ_NET_TX)) ||
        ctx == KERNEL_CTX_NET;
}

/* Last receive of the other direction in the same softirq run: what clocked this send out. */
static uint32_t clocking_receive(const struct flow_builder *b, const struct cpu *c, uint32_t frame, uint32_t reverse)
{
    if (reverse == NO_FLOW || c->first == NO_PACKET || c->frame != frame)
        return NO_PACKET;
    for (uint32_t i = c->last + 1; i-- > c->first;)
        if (!b->packets.v[i].p.is_send && b->packets.v[i].p.flow == reverse &&
            b->packets.v[i].cpu == b->packets.v[c->first].cpu)
            return b->packets.v[i].p.number;
    return NO_PACKET;
}

static void add_packet(struct flow_builder *b, const struct kernel_record *r)
{
    const struct kernel_packet *k = &r->u.packet;
    bool send = r->kind == KERNEL_PACKET_SEND;
    uint32_t f = flow_of(b, k);
    struct flow *flow = &b->flows.v[f];
    struct built_packet n = {.frame = r->ctx_frame, .cpu = r->cpu, .ctx = r->ctx, .vector = r->ctx_number};
    n.p = (struct flow_disk_packet){.ts = r->ts,
        .bytes = k->payload_bytes,
        .number = k->number,
        .row = -1,
        .receive = NO_PACKET,
        .flow = f,
        .flags = k->flags,
        .ip_id = k->ip_id,
        .origin = FLOW_BY_UNKNOWN,
        .is_send = send};
    uint64_t before = flow->last_seq;
    number_bytes(b, f, k, &n.p);
    struct cpu *c = cpu_of(b, r->cpu);
    if (send) {
        flow->sends++;
        add_address(b, k);
        n.p.retransmission = k->protocol == TCP && k->family && n.p.seq_end <= before &&
            (k->payload_bytes || k->flags & (SYN | FIN));
        if (r->ctx == KERNEL_CTX_THREAD && r->row >= 0) {
            n.p.origin = FLOW_BY_THREAD;
            n.p.row = r->row;
            add_user(b, flow->connection, r->row);
            while (b->latest.n <= (size_t)r->row)
                vec_push(&b->latest, 0);
            b->latest.v[r->row] = flow->connection + 1;
        } else if (network_softirq(r->ctx, r->ctx_number)) {
            n.p.receive = clocking_receive(b, c, r->ctx_frame, flow->reverse);
            if (n.p.receive != NO_PACKET)
                n.p.origin = FLOW_BY_RECEIVE;
        }
    } else {
        flow->receives++;
        if (c->first == NO_PACKET || c->frame != r->ctx_frame) {
            c->first = (uint32_t)b->packets.n;
            c->frame = r->ctx_frame;
        }
        c->last = (uint32_t)b->packets.n;
        if (k->payload_bytes)
            flow->waiting = (uint32_t)b->packets.n;
    }
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
    struct wake w = {.ts = r->ts, .row = r->u.wake.row, .first = NO_PACKET, .last = NO_PACKET, .frame = r->ctx_frame};
    bool same_run = c->first != NO_PACKET && c->frame == r->ctx_frame;
    if (w.row < 0)
        return 0;
    if (same_run && (network_softirq(r->ctx, r->ctx_number) || r->ctx == KERNEL_CTX_THREAD)) {
        w.first = c->first;
        w.last = c->last;
    } else if (r->ctx == KERNEL_CTX_THREAD) {
        w.last = backlog_receive(b, r);
        if (w.last == NO_PACKET)
            return 0;
        b->packets.v[w.last].consumed = true;
    } else {
        return 0;
    }
    vec_push(&b->wakes, w);
    if (w.first == w.last) {
        struct built_packet *p = &b->packets.v[w.last];
        uint32_t connection = b->flows.v[p->p.flow].connection;
        p->consumed = true;
        const struct kernel_thread *t = thread_of(b, w.row);
        if (t && !is_kernel_thread(t) && b->flows.v[connection].users == UINT32_MAX && p->p.bytes)
            add_user(b, connection, w.row);
    }
    return (uint32_t)b->wakes.n;
}

uint32_t flow_builder_add(struct flow_builder *b, const struct kernel_record *r)
{
    switch (r->kind) {
    case KERNEL_PACKET_SEND:
    case KERNEL_PACKET_RECEIVE:
        if (r->u.packet.family || r->u.packet.protocol == TCP) /* not ARP and the like */
            add_packet(b, r);
        break;
    case KERNEL_WAKE: return add_wake(b, r);
    case KERNEL_SYSCALL_ENTRY:
    case KERNEL_SYSCALL_EXIT: flow_asks_add(&b->asks, r, b->tracker); return 0;
    case KERNEL_SWITCH: /* receives in thread context belong to the stretch between two switches */
        cpu_of(b, r->cpu)->first = NO_PACKET;
        break;
    default: break;
    }
    return 0;
}

/* ---- the end: all users are known ---- */

/* Which receive of the run woke the thread: first those whose connection it uses, then those not yet taken, then those
 * with payload; in order. */
static uint32_t waking_receive(struct flow_builder *b, const struct wake *w)
{
    const struct kernel_thread *t = thread_of(b, w->row);
    uint32_t best = NO_PACKET, frame_receives = 0;
    int best_score = -1;
    for (uint32_t i = w->first; i <= w->last; i++) {
        const struct built_packet *p = &b->packets.v[i];
        if (p->p.is_send || p->frame != w->frame || p->cpu != b->packets.v[w->first].cpu)
            continue;
        frame_receives++;
        enum relation rel = relate(b, b->flows.v[p->p.flow].connection, w->row);
        int score = (int)rel * 4 + (p->consumed ? 0 : 2) + (p->p.bytes || p->p.flags & (SYN | FIN) ? 1 : 0);
        if (score > best_score) {
            best_score = score;
            best = i;
        }
    }
    bool unrelated = best_score < POSSIBLE * 4;
    if (best != NO_PACKET && unrelated && (frame_receives > 1 || !t || is_kernel_thread(t)))
        return NO_PACKET;
    return best;
}

static void decide_wakes(struct flow_builder *b)
{
    for (size_t i = 0; i < b->packets.n; i++)
        b->packets.v[i].consumed = false;
    for (size_t i = 0; i < b->wakes.n; i++) {
        struct wake *w = &b->wakes.v[i];
        if (w->first != NO_PACKET)
            w->last = waking_receive(b, w);
        if (w->last != NO_PACKET)
            b->packets.v[w->last].consumed = true;
    }
}

/* The row that each receive woke, or KERNEL_NO_ROW. */
static int32_t *woken_rows(const struct flow_builder *b)
{
    int32_t *woken = mem_alloc(sizeof *woken * (b->packets.n + 1));
    for (size_t i = 0; i < b->packets.n; i++)
        woken[i] = KERNEL_NO_ROW;
    for (size_t i = b->wakes.n; i-- > 0;) {
        const struct wake *w = &b->wakes.v[i];
        const struct kernel_thread *t = thread_of(b, w->row);
        if (w->last != NO_PACKET && t && !is_kernel_thread(t))
            woken[w->last] = w->row;
    }
    return woken;
}

/* The two ends of a flow on this host, as far as seen: who sent on it last, who was woken by it last. */
struct ends {
    int32_t sender, reader;
};

static void see(struct ends *ends, const struct flow_disk_packet *p, int32_t woken)
{
    if (p->is_send && p->origin == FLOW_BY_THREAD)
        ends[p->flow].sender = p->row;
    if (woken != KERNEL_NO_ROW)
        ends[p->flow].reader = woken;
}

/* A socket belongs to whoever sent from it last; before the first send, to whoever sends first; without any send, to
 * the thread that its packets woke. Directions are apart: both ends of a loopback connection are on this host. */
static void decide_owners(struct flow_builder *b)
{
    int32_t *woken = woken_rows(b);
    struct ends *ends = mem_alloc(sizeof *ends * (b->flows.n + 1));
    for (size_t f = 0; f < b->flows.n; f++)
        ends[f] = (struct ends){KERNEL_NO_ROW, KERNEL_NO_ROW};
    for (size_t i = b->packets.n; i-- > 0;)
        see(ends, &b->packets.v[i].p, woken[i]);
    for (size_t i = 0; i < b->packets.n; i++) {
        struct flow_disk_packet *p = &b->packets.v[i].p;
        see(ends, p, woken[i]);
        if (p->origin == FLOW_BY_RECEIVE || (p->is_send && p->origin == FLOW_BY_THREAD))
            continue;
        uint32_t reverse = b->flows.v[p->flow].reverse, out = p->is_send ? p->flow : reverse,
                 in = p->is_send ? reverse : p->flow;
        p->row = out == NO_FLOW ? KERNEL_NO_ROW : ends[out].sender;
        if (p->row == KERNEL_NO_ROW && in != NO_FLOW)
            p->row = ends[in].reader;
        if (p->is_send && p->row >= 0)
            p->origin = FLOW_BY_THREAD;
    }
    free(woken);
    free(ends);
}

/* Where each packet goes in the store: by flow, sends first, in time order. */
static void place_packets(
    const struct flow_builder *b, struct flow_disk_flow *flows, struct flow_disk_packet *packets, uint32_t *numbers)
{
    uint32_t next = 0;
    uint32_t *at = mem_alloc(sizeof *at * 2 * (b->flows.n + 1));
    for (size_t f = 0; f < b->flows.n; f++) {
        const struct flow *flow = &b->flows.v[f];
        flows[f] = (struct flow_disk_flow){.key = flow->key,
            .first = next,
            .sends = flow->sends,
            .receives = flow->receives,
            .connection = flow->connection};
        at[2 * f] = next;
        at[2 * f + 1] = next + flow->sends;
        next += flow->sends + flow->receives;
    }
    for (size_t i = 0; i < b->packets.n; i++) {
        const struct flow_disk_packet *p = &b->packets.v[i].p;
        uint32_t to = at[2 * p->flow + !p->is_send]++;
        packets[to] = *p;
        uint64_t high = p->is_send && to > flows[p->flow].first ? packets[to - 1].high : 0;
        packets[to].high = p->is_send && p->seq_end > high ? p->seq_end : high;
        numbers[p->number] = to;
    }
    free(at);
}

static uint32_t *hash_keys(const struct flow_builder *b, size_t *size)
{
    *size = 16;
    while (*size < b->flows.n * 2 + 1)
        *size *= 2;
    uint32_t *table = mem_zalloc(sizeof *table * *size);
    for (size_t f = 0; f < b->flows.n; f++) {
        size_t h = flow_key_hash(&b->flows.v[f].key) & (*size - 1);
        while (table[h])
            h = (h + 1) & (*size - 1);
        table[h] = (uint32_t)f + 1;
    }
    return table;
}

int flow_builder_write(struct flow_builder *b, const char *path, uint64_t fingerprint, struct err *e)
{
    decide_wakes(b);
    decide_owners(b);
    flow_asks_sort(&b->asks);
    size_t n = b->packets.n, n_numbers = 0, n_table;
    for (size_t i = 0; i < n; i++)
        if (b->packets.v[i].p.number >= n_numbers)
            n_numbers = (size_t)b->packets.v[i].p.number + 1;
    struct flow_disk_flow *flows = mem_zalloc(sizeof *flows * (b->flows.n + 1));
    struct flow_disk_packet *packets = mem_zalloc(sizeof *packets * (n + 1));
    struct flow_disk_wake *wakes = mem_zalloc(sizeof *wakes * (b->wakes.n + 1));
    uint32_t *numbers = mem_alloc(sizeof *numbers * (n_numbers + 1));
    memset(numbers, 0xff, sizeof *numbers * (n_numbers + 1));
    place_packets(b, flows, packets, numbers);
    for (size_t i = 0; i < b->wakes.n; i++) {
        const struct wake *w = &b->wakes.v[i];
        wakes[i] = (struct flow_disk_wake){
            w->ts, w->row, w->last == NO_PACKET ? NO_PACKET : b->packets.v[w->last].p.number};
    }
    uint32_t *table = hash_keys(b, &n_table);
    struct flow_message_order messages;
    flow_message_order_init(&messages, packets, n, numbers, n_numbers);

    struct store_writer *s = store_create(path, "flows", FLOW_VERSION, fingerprint, 10);
    store_add(s, "flows", flows, sizeof *flows, b->flows.n);
    store_add(s, "packets", packets, sizeof *packets, n);
    store_add(s, "wakes", wakes, sizeof *wakes, b->wakes.n);
    store_add(s, "numbers", numbers, sizeof *numbers, n_numbers);
    store_add(s, "addresses", b->addresses.v, sizeof *b->addresses.v, b->addresses.n);
    store_add(s, "keys", table, sizeof *table, n_table);
    store_add(s, "rows", messages.rows, sizeof *messages.rows, messages.n_rows);
    store_add(s, "messages", messages.order, sizeof *messages.order, messages.n);
    store_add(s, "replies", messages.replies.v, sizeof *messages.replies.v, messages.replies.n);
    store_add(s, "asks", b->asks.asks.v, sizeof *b->asks.asks.v, b->asks.asks.n);
    int rc = store_commit(s, e);
    free(flows);
    free(packets);
    free(wakes);
    free(numbers);
    free(table);
    flow_message_order_fini(&messages);
    return rc;
}
