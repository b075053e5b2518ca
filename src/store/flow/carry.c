/* SPDX-License-Identifier: MIT */
/* Open state at a cut: known connections, unsettled packets and undecided wakes, runs of CPUs, asking threads. Packets
 * are identified by their number among those carried, flows by the position of their connection in the order of the
 * lists. */
#include <stdlib.h>
#include <string.h>

#include "base/carry.h"
#include "flow/builder.h"

struct carrying {
    struct carry *c;
    struct flow_builder *b;
    VEC(uint32_t) flows; /* connection number * 2, + 1 for the other direction: flow, or NO_FLOW */
    VEC(uint32_t) lives; /* lives: first the present ones of the connections, in their order */
    uint32_t *number_of_flow, *number_of_life; /* unused by LOAD */
    uint32_t packets;                          /* number of carried packets */
};

static void give_up(struct carry *c)
{
    c->damaged = true;
    c->at = c->end;
}

/* Visits a number below `limit`, or UINT32_MAX for none. */
static void carry_optional(struct carrying *v, uint32_t *number, size_t limit)
{
    carry_number(v->c, number);
    if (v->c->way == CARRY_LOAD && *number != UINT32_MAX && *number >= limit) {
        give_up(v->c);
        *number = UINT32_MAX;
    }
}

/* Visits a carried packet, or none: a settled packet counts as none in the next chunk as in this one. */
static void carry_packet_number(struct carrying *v, uint32_t *packet, size_t limit)
{
    uint32_t number = flow_unsettled(v->b, *packet);
    if (v->c->way != CARRY_LOAD)
        number = number == NO_PACKET ? number : number - v->b->settled;
    carry_optional(v, &number, limit);
    if (v->c->way == CARRY_LOAD)
        *packet = number;
}

static void carry_rows(struct carry *c, int32_t *rows, size_t n)
{
    for (size_t i = 0; i < n; i++)
        carry_row(c, &rows[i]);
}

/* ---- connections ---- */

static void carry_flow(struct carrying *v, uint32_t f)
{
    struct carry *c = v->c;
    struct flow *flow = &v->b->flows.v[f];
    carry_bool(c, &flow->settled);
    carry_bool(c, &flow->ended);
    carry_number(c, &flow->sends);
    carry_number(c, &flow->passing);
    carry_number(c, &flow->seen);
    carry_number(c, &flow->carrying);
    carry_packet_number(v, &flow->waiting, v->packets);
    carry_number(c, &flow->last_seq);
    carry_number(c, &flow->syn_end);
    carry_number(c, &flow->fin_end);
    carry_number(c, &flow->syn);
    carry_number(c, &flow->high);
    if (c->way == CARRY_LOAD)
        flow->continued = flow->settled;
}

/* SAVE and LOAD; returns the connection's flow. */
static uint32_t carry_connection(struct carrying *v, uint32_t connection, enum flow_list list)
{
    struct carry *c = v->c;
    struct flow_builder *b = v->b;
    struct flow_key key = {0};
    bool both = false;
    if (c->way == CARRY_SAVE) {
        key = b->flows.v[connection].key;
        both = b->flows.v[connection].reverse != NO_FLOW;
    }
    carry_number(c, &key);
    carry_bool(c, &both);
    if (c->way == CARRY_LOAD) {
        connection = flow_begin(b, &key);
        struct flow_key back = flow_key_reverse(&key);
        if (both)
            flow_join(b, flow_begin(b, &back), connection);
    }
    carry_flow(v, connection);
    if (both)
        carry_flow(v, b->flows.v[connection].reverse);
    struct flow *flow = &b->flows.v[connection];
    carry_number(c, &flow->last);
    carry_packet_number(v, &flow->last_packet, v->packets);
    if (c->way == CARRY_LOAD) {
        flow->list = (uint8_t)list;
        flow_list_append(b, connection);
    }
    return connection;
}

static void number_connection(struct carrying *v, uint32_t connection)
{
    const struct flow *flow = &v->b->flows.v[connection];
    if (v->number_of_flow) {
        v->number_of_flow[connection] = (uint32_t)v->flows.n;
        if (flow->reverse != NO_FLOW)
            v->number_of_flow[flow->reverse] = (uint32_t)v->flows.n + 1;
    }
    vec_push(&v->flows, connection);
    vec_push(&v->flows, flow->reverse);
}

static void carry_connections(struct carrying *v)
{
    struct flow_builder *b = v->b;
    for (enum flow_list l = 0; l < FLOW_LISTS; l++) {
        size_t n = carry_count(v->c, b->lists[l].n, sizeof(struct flow_key));
        uint32_t at = b->lists[l].oldest;
        for (size_t i = 0; i < n && !v->c->damaged; i++) {
            uint32_t connection = v->c->way == CARRY_MARK ? at : carry_connection(v, at, l);
            number_connection(v, connection);
            at = b->flows.v[connection].newer;
        }
    }
}

static uint32_t flow_of_number(const struct carrying *v, uint32_t number)
{
    return number < v->flows.n ? v->flows.v[number] : NO_FLOW;
}

/* ---- lives ---- */

/* Lives of connections that were ended by another one while some of their packets are unsettled come last. */
static void number_lives(struct carrying *v)
{
    struct flow_builder *b = v->b;
    for (size_t i = 0; i < v->flows.n; i += 2)
        vec_push(&v->lives, b->flows.v[v->flows.v[i]].life);
    for (size_t i = 0; i < v->lives.n; i++)
        v->number_of_life[v->lives.v[i]] = (uint32_t)i;
    for (uint32_t i = b->settled; i < b->packets.n; i++) {
        uint32_t *number = &v->number_of_life[b->packets.v[i].life];
        if (*number != UINT32_MAX)
            continue;
        *number = (uint32_t)v->lives.n;
        vec_push(&v->lives, b->packets.v[i].life);
    }
}

static void carry_life(struct carrying *v, uint32_t l)
{
    struct flow_builder *b = v->b;
    struct life *life = &b->lives.v[l];
    carry_rows(v->c, life->first_sender, 2);
    carry_rows(v->c, life->last_sender, 2);
    carry_rows(v->c, life->first_reader, 2);
    carry_rows(v->c, life->last_reader, 2);
    size_t n = 0;
    for (uint32_t u = life->users; u != NOBODY_ELSE; u = b->users.v[u].next)
        n++;
    n = carry_count(v->c, n, sizeof(int32_t));
    for (uint32_t i = 0, u = life->users, last = NOBODY_ELSE; i < n; i++, last = u, u = b->users.v[u].next) {
        if (v->c->way == CARRY_LOAD) {
            u = (uint32_t)b->users.n;
            vec_push(&b->users, ((struct user){KERNEL_NO_ROW, NOBODY_ELSE}));
            *(last == NOBODY_ELSE ? &life->users : &b->users.v[last].next) = u;
        }
        carry_row(v->c, &b->users.v[u].row);
    }
}

static void carry_lives(struct carrying *v)
{
    struct flow_builder *b = v->b;
    if (v->c->way != CARRY_LOAD)
        number_lives(v);
    size_t n = carry_count(v->c, v->lives.n, sizeof(int32_t));
    if (v->c->way == CARRY_LOAD && n < v->flows.n / 2)
        give_up(v->c);
    for (size_t i = 0; i < n; i++) {
        if (v->c->way == CARRY_LOAD)
            vec_push(&v->lives, flow_begin_life(b));
        carry_life(v, v->lives.v[i]);
    }
    while (v->c->way == CARRY_LOAD && v->lives.n < v->flows.n / 2)
        vec_push(&v->lives, flow_begin_life(b));
    for (size_t i = 0; v->c->way == CARRY_LOAD && i < v->flows.n; i += 2)
        b->flows.v[v->flows.v[i]].life = v->lives.v[i / 2];
}

/* ---- packets and wakes ---- */

static void carry_packet(struct carrying *v, uint32_t i)
{
    struct carry *c = v->c;
    struct built_packet *n = &v->b->packets.v[v->b->settled + i];
    struct flow_disk_packet *p = &n->p;
    uint32_t flow = 0, life = 0;
    if (c->way != CARRY_LOAD) {
        flow = v->number_of_flow[p->flow];
        life = v->number_of_life[n->life];
    }
    carry_number(c, &p->ts);
    carry_number(c, &p->seq_end);
    carry_number(c, &p->ack);
    carry_number(c, &p->bytes);
    carry_row(c, &p->row);
    carry_number(c, &p->back);
    carry_number(c, &flow);
    carry_number(c, &p->flags);
    carry_number(c, &p->ip_id);
    carry_below(c, &p->origin, FLOW_PASSING + 1);
    carry_below(c, &p->retransmission, 2);
    carry_below(c, &p->is_send, 2);
    carry_below(c, &p->is_copy, 2);
    carry_below(c, &p->is_reply, 2);
    carry_below(c, &p->way, FLOW_RENAMED * 2);
    carry_packet_number(v, &n->before, i);
    carry_number(c, &life);
    carry_row(c, &n->woken);
    carry_bool(c, &n->consumed);
    carry_bool(c, &n->taken);
    if (c->way != CARRY_LOAD)
        return;
    p->flow = flow_of_number(v, flow);
    if (p->flow == NO_FLOW || life >= v->lives.n || !p->back != (p->origin != FLOW_BY_RECEIVE))
        give_up(c);
    else
        n->life = v->lives.v[life];
}

/* LOAD: as many as were saved, or none, if they are invalid. */
static void carry_packets(struct carrying *v)
{
    struct flow_builder *b = v->b;
    for (uint32_t i = 0; i < v->packets && !v->c->damaged; i++) {
        if (v->c->way == CARRY_LOAD)
            vec_push(&b->packets, ((struct built_packet){.before = NO_PACKET, .woken = KERNEL_NO_ROW}));
        carry_packet(v, i);
    }
}

static void carry_wakes(struct carrying *v)
{
    struct flow_builder *b = v->b;
    size_t n = carry_count(v->c, b->wakes.n - b->wakes_decided, sizeof(int64_t));
    for (size_t i = 0; i < n && !v->c->damaged; i++) {
        if (v->c->way == CARRY_LOAD)
            vec_push(&b->wakes, ((struct wake){.last = NO_PACKET}));
        struct wake *w = &b->wakes.v[b->wakes_decided + i];
        uint32_t packets = w->packets > b->settled ? w->packets - b->settled : 0;
        carry_number(v->c, &w->ts);
        carry_row(v->c, &w->row);
        carry_packet_number(v, &w->last, v->packets);
        carry_number(v->c, &packets);
        carry_bool(v->c, &w->decided);
        if (v->c->way == CARRY_LOAD)
            w->packets = packets <= v->packets ? packets : 0;
    }
}

static void carry_cpus(struct carrying *v)
{
    struct flow_builder *b = v->b;
    size_t n = b->cpus.n;
    while (n && flow_unsettled(b, b->cpus.v[n - 1].last) == NO_PACKET)
        n--;
    n = carry_count(v->c, n, sizeof(uint32_t));
    for (size_t i = 0; i < n; i++) {
        if (v->c->way == CARRY_LOAD)
            vec_push(&b->cpus, ((struct cpu){.last = NO_PACKET}));
        struct cpu *cpu = &b->cpus.v[i];
        carry_packet_number(v, &cpu->last, v->packets);
        if (flow_unsettled(b, cpu->last) != NO_PACKET)
            kernel_carry_frame(b->tracker, v->c, &cpu->frame);
    }
}

/* ---- threads ---- */

static bool has_latest(const struct flow_builder *b, int32_t row)
{
    const struct kernel_thread *t = flow_thread(b, row);
    if (!t || t->died || (size_t)row >= b->latest.n || !b->latest.v[row].connection)
        return false;
    const struct latest *l = &b->latest.v[row];
    const struct flow *flow = &b->flows.v[l->connection - 1];
    return flow->known && flow_life(b, l->connection - 1) == l->life;
}

static void load_latest(struct carrying *v)
{
    struct flow_builder *b = v->b;
    int32_t row = KERNEL_NO_ROW;
    uint32_t number = 0;
    carry_row(v->c, &row);
    carry_number(v->c, &number);
    if (v->c->damaged || row < 0 || number >= v->flows.n / 2) {
        give_up(v->c);
        return;
    }
    while (b->latest.n <= (size_t)row)
        vec_push(&b->latest, ((struct latest){0}));
    uint32_t connection = v->flows.v[(size_t)number * 2];
    b->latest.v[row] = (struct latest){connection + 1, flow_life(b, connection)};
}

static void carry_latest(struct carrying *v, const int32_t *rows, size_t n_rows)
{
    struct flow_builder *b = v->b;
    size_t n = 0;
    for (size_t i = 0; i < n_rows; i++)
        n += has_latest(b, rows[i]);
    n = carry_count(v->c, n, sizeof(int32_t));
    if (v->c->way == CARRY_LOAD)
        for (size_t i = 0; i < n && !v->c->damaged; i++)
            load_latest(v);
    for (size_t i = 0; i < n_rows; i++) {
        int32_t row = rows[i];
        if (!has_latest(b, row))
            continue;
        uint32_t number = v->c->way == CARRY_SAVE
            ? v->number_of_flow[b->flows.v[b->latest.v[row].connection - 1].connection] / 2
            : 0;
        carry_row(v->c, &row);
        carry_number(v->c, &number);
    }
}

/* Rows with possible state: MARK all, SAVE in the order of the next chunk, LOAD none. */
static int32_t *rows_of(const struct flow_builder *b, const struct carry *c, size_t *n)
{
    size_t all = b->latest.n > b->asks.rows.n ? b->latest.n : b->asks.rows.n;
    *n = c->way == CARRY_MARK ? all : c->way == CARRY_SAVE ? c->n_rows : 0;
    int32_t *rows = mem_alloc(sizeof *rows * (*n + 1));
    for (size_t i = 0; i < *n; i++)
        rows[i] = c->way == CARRY_MARK ? (int32_t)i : KERNEL_NO_ROW;
    for (size_t row = 0; c->way == CARRY_SAVE && row < c->numbers.n; row++)
        if (c->numbers.v[row] >= 0 && (size_t)c->numbers.v[row] < *n)
            rows[c->numbers.v[row]] = (int32_t)row;
    return rows;
}

static uint32_t *unnumbered(size_t n)
{
    uint32_t *v = mem_alloc(sizeof *v * (n + 1));
    memset(v, 0xff, sizeof *v * (n + 1));
    return v;
}

void flow_builder_carry(struct flow_builder *b, struct carry *c)
{
    struct carrying v = {.c = c, .b = b};
    uint64_t first_packet = b->first_packet + b->settled, first_wake = b->first_wake + b->wakes_decided;
    carry_number(c, &first_packet);
    carry_number(c, &first_wake);
    v.packets = (uint32_t)carry_count(c, b->packets.n - b->settled, sizeof(struct flow_disk_packet) / 2);
    if (c->way == CARRY_LOAD) {
        b->first_packet = first_packet;
        b->first_wake = first_wake;
    } else {
        v.number_of_flow = unnumbered(b->flows.n);
        v.number_of_life = unnumbered(b->lives.n);
    }
    carry_connections(&v);
    carry_lives(&v);
    carry_packets(&v);
    carry_wakes(&v);
    carry_cpus(&v);
    size_t n_rows;
    int32_t *rows = rows_of(b, c, &n_rows);
    carry_latest(&v, rows, n_rows);
    flow_asks_carry(&b->asks, c, b->tracker, rows, n_rows);
    flow_sights_carry(b->sights, c);
    flow_wraps_carry(b->wraps, c);
    free(rows);
    vec_free(&v.flows);
    vec_free(&v.lives);
    free(v.number_of_flow);
    free(v.number_of_life);
}
