/* SPDX-License-Identifier: MIT */
/* Connections of the host while records are read: byte numbers, beginnings, users, and forgetting. */
#include <string.h>

#include "flow/builder.h"

/* Silence after which a connection is forgotten. Lasting ones: more than the two hours after which TCP checks whether
 * the other end is alive. Ended connections and datagrams, whose end is unknown: as long as firewalls keep them. Later
 * packets on the same addresses and ports count as the first. */
static const int64_t SILENCE_NS[FLOW_LISTS] = {
    [LASTING] = INT64_C(3) * 3600 * 1000000000, [BRIEF] = INT64_C(180) * 1000000000};

static uint32_t find_flow(const struct flow_builder *b, const struct flow_key *k)
{
    const uint64_t *v;
    for (uint64_t h = flow_key_hash(k); (v = map_find(&b->by_key, h)); h++)
        if (!memcmp(&b->flows.v[*v - 1].key, k, sizeof *k))
            return (uint32_t)*v - 1;
    return NO_FLOW;
}

uint32_t flow_begin(struct flow_builder *b, const struct flow_key *k)
{
    uint32_t f = (uint32_t)b->flows.n;
    struct flow flow = {.key = *k,
        .side = (uint8_t)flow_side(k),
        .known = true,
        .reverse = NO_FLOW,
        .connection = f,
        .before = NO_FLOW,
        .waiting = NO_PACKET,
        .last_packet = NO_PACKET,
        .older = NO_CONNECTION,
        .newer = NO_CONNECTION,
        .list = FLOW_LISTS};
    for (uint64_t h = flow_key_hash(k);; h++) {
        uint64_t *v = map_put(&b->by_key, h, NULL);
        if (*v && memcmp(&b->flows.v[*v - 1].key, k, sizeof *k) != 0)
            continue;
        flow.before = *v ? (uint32_t)*v - 1 : NO_FLOW;
        *v = (uint64_t)f + 1;
        break;
    }
    vec_push(&b->flows, flow);
    return f;
}

void flow_join(struct flow_builder *b, uint32_t f, uint32_t reverse)
{
    b->flows.v[f].reverse = reverse;
    b->flows.v[f].connection = reverse;
    b->flows.v[reverse].reverse = f;
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

uint32_t flow_begin_life(struct flow_builder *b)
{
    vec_push(&b->lives,
        ((struct life){NOBODY_ELSE, {KERNEL_NO_ROW, KERNEL_NO_ROW}, {KERNEL_NO_ROW, KERNEL_NO_ROW},
            {KERNEL_NO_ROW, KERNEL_NO_ROW}, {KERNEL_NO_ROW, KERNEL_NO_ROW}}));
    return (uint32_t)b->lives.n - 1;
}

/* ---- forgetting ---- */

static void unlink_connection(struct flow_builder *b, struct flow *c)
{
    if (c->list == FLOW_LISTS)
        return;
    struct flow_list_ends *list = &b->lists[c->list];
    *(c->older == NO_CONNECTION ? &list->oldest : &b->flows.v[c->older].newer) = c->newer;
    *(c->newer == NO_CONNECTION ? &list->newest : &b->flows.v[c->newer].older) = c->older;
    list->n--;
}

void flow_list_append(struct flow_builder *b, uint32_t connection)
{
    struct flow *c = &b->flows.v[connection];
    struct flow_list_ends *list = &b->lists[c->list];
    c->older = list->newest;
    c->newer = NO_CONNECTION;
    *(c->older == NO_CONNECTION ? &list->oldest : &b->flows.v[c->older].newer) = connection;
    list->newest = connection;
    list->n++;
}

static bool is_lasting(const struct flow *c)
{
    return (!c->key.family || c->key.protocol == FLOW_TCP) && !c->ended;
}

void flow_touch(struct flow_builder *b, uint32_t connection, int64_t ts)
{
    struct flow *c = &b->flows.v[connection];
    uint8_t list = is_lasting(c) ? LASTING : BRIEF;
    c->last = ts;
    c->last_packet = (uint32_t)b->packets.n;
    if (c->list == list && c->newer == NO_CONNECTION)
        return;
    unlink_connection(b, c);
    c->list = list;
    flow_list_append(b, connection);
}

/* Drops idle connections, and above the limit the longest idle ones, unless they have unsettled packets. */
static void forget(struct flow_builder *b, enum flow_list which, int64_t ts)
{
    struct flow_list_ends *list = &b->lists[which];
    while (list->oldest != NO_CONNECTION) {
        struct flow *c = &b->flows.v[list->oldest];
        bool silent = ts > c->last && (uint64_t)ts - (uint64_t)c->last > (uint64_t)SILENCE_NS[which];
        if ((!silent && list->n <= MOST_CONNECTIONS) || flow_unsettled(b, c->last_packet) != NO_PACKET)
            return;
        unlink_connection(b, c);
        c->list = FLOW_LISTS;
        c->known = false;
        if (c->reverse != NO_FLOW)
            b->flows.v[c->reverse].known = false;
    }
}

uint32_t flow_of_packet(struct flow_builder *b, const struct kernel_packet *k, int64_t ts)
{
    struct flow_key key = flow_key_of(k, false);
    for (enum flow_list l = 0; l < FLOW_LISTS; l++)
        forget(b, l, ts);
    uint32_t f = find_flow(b, &key);
    if (f != NO_FLOW && b->flows.v[f].known)
        return f;
    struct flow_key back = flow_key_of(k, true);
    f = flow_begin(b, &key);
    uint32_t r = find_flow(b, &back);
    if (r != NO_FLOW && r != f && b->flows.v[r].known)
        flow_join(b, f, r);
    else
        b->flows.v[f].life = flow_begin_life(b);
    return f;
}

/* ---- bytes ---- */

/* 64-bit number nearest to `near` whose low 32 bits are `seq`. The first packet of a flow starts at 2^32, so that going
 * back never underflows. */
static uint64_t unwrap(uint64_t near, uint32_t seq)
{
    const uint64_t turn = FLOW_TURN;
    if (!near)
        return turn + seq;
    uint64_t v = (near & ~(turn - 1)) | seq;
    if (v + turn / 2 < near)
        return v + turn;
    return v > near + turn / 2 && v >= turn ? v - turn : v;
}

/* Returns whether addresses and ports are reused. A retransmitted SYN has the same number, and later packets do not
 * come before it. If the SYN was not recorded: bytes beyond the FIN. */
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
    flow->last_seq = (flow->last_seq / FLOW_TURN + 2) * FLOW_TURN;
    flow->syn_end = flow->fin_end = 0;
    flow->ended = false;
    if (reverse)
        reverse->ended = false;
}

void flow_number_bytes(struct flow_builder *b, uint32_t f, const struct kernel_packet *k, struct flow_disk_packet *p)
{
    struct flow *flow = &b->flows.v[f], *reverse = flow->reverse == NO_FLOW ? NULL : &b->flows.v[flow->reverse];
    p->ack = k->ack;
    if (!k->family || k->protocol != FLOW_TCP) {
        p->seq_end = k->family ? 0 : k->seq;
        return;
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
    if (anew && asks)
        b->flows.v[flow->connection].life = flow_begin_life(b);
}

/* ---- users of a connection ---- */

const struct kernel_thread *flow_thread(const struct flow_builder *b, int32_t row)
{
    const struct kernel_thread *t;
    size_t n = kernel_tracker_threads(b->tracker, &t);
    return row >= 0 && (size_t)row < n ? &t[row] : NULL;
}

bool flow_is_user(const struct flow_builder *b, uint32_t life, int32_t row)
{
    for (uint32_t u = b->lives.v[life].users; u != NOBODY_ELSE; u = b->users.v[u].next)
        if (b->users.v[u].row == row)
            return true;
    return false;
}

void flow_add_user(struct flow_builder *b, uint32_t life, int32_t row)
{
    const struct kernel_thread *t = flow_thread(b, row);
    if (!t || t->idle_cpu >= 0)
        return;
    unsigned n = 0;
    uint32_t *last = &b->lives.v[life].users;
    for (uint32_t u = *last; u != NOBODY_ELSE; u = b->users.v[u].next) {
        if (b->users.v[u].row == row)
            return;
        if (++n == MOST_USERS - 1)
            b->users.v[u].next = NOBODY_ELSE;
    }
    vec_push(&b->users, ((struct user){row, *last}));
    *last = (uint32_t)b->users.n - 1;
}

static bool same_process(const struct kernel_thread *a, const struct kernel_thread *b)
{
    return a && b && a->tgid > 0 && a->tgid == b->tgid;
}

/* A listening thread accepts connections that its children will use. */
enum relation flow_relation(const struct flow_builder *b, uint32_t life, int32_t row)
{
    const struct kernel_thread *t = flow_thread(b, row);
    uint32_t users = b->lives.v[life].users;
    enum relation best = users != NOBODY_ELSE ? UNRELATED : POSSIBLE;
    for (uint32_t u = users; t && u != NOBODY_ELSE; u = b->users.v[u].next) {
        const struct kernel_thread *user = flow_thread(b, b->users.v[u].row);
        if (b->users.v[u].row == row)
            return USER;
        if (same_process(user, t))
            best = SAME_PROCESS;
        else if (best < POSSIBLE && user && user->parent_row >= 0 &&
            (user->parent_row == row || same_process(flow_thread(b, user->parent_row), t)))
            best = POSSIBLE;
    }
    return best;
}
