/* SPDX-License-Identifier: MIT */
/* Validation of an open flow store, for `verify`. Readers are safe for any contents. */
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/mem.h"
#include "flow/asks.h"
#include "flow/messages.h"
#include "flow/store.h"

/* Returns whether the packet with that number is a receive: one bit per number. Looking the packet up instead would
 * access a random place of the largest table each time. */
static bool is_marked(const uint64_t *receives, const struct flow_chunk *s, uint32_t number)
{
    return number >= s->n_by_number || receives[number / 64] >> number % 64 & 1;
}

enum { AHEAD = 16 };

/* Checks the packets of a flow; marks the numbers of its receives. */
static const char *packets_defect(const struct flow_chunk *s, size_t f, uint64_t *receives)
{
    uint64_t high = 0;
    const struct flow_disk_flow *flow = &s->flows[f];
    uint32_t own = 0, ordered = 0;
    for (uint32_t i = 0; i < flow->sends + flow->receives + flow->copies; i++) {
        size_t at = flow->first + i;
        const struct flow_disk_packet *p = &s->packets[at];
        bool send = i < flow->sends, copy = i >= flow->sends + flow->receives;
        if (at + AHEAD < s->n_packets) /* numbers of one flow are far apart, so wait for memory here */
            __builtin_prefetch(&s->by_number[p[AHEAD].number < s->n_by_number ? p[AHEAD].number : 0]);
        if (p->flow != f || p->is_copy != copy || (!copy && p->is_send != send) || p->origin > FLOW_PASSING ||
            p->way >= FLOW_RENAMED * 2)
            return "a packet contradicts its flow";
        own += flow_is_own(p);
        ordered += flow_is_ordered(&flow->key, p);
        if (send && p->high < high)
            return "sequence numbers out of order";
        high = p->high;
        if (p->number >= s->n_by_number || s->by_number[p->number] != at)
            return "packet numbers out of order";
        receives[p->number / 64] |= (uint64_t)!p->is_send << p->number % 64;
    }
    if (own != flow->own || ordered != flow->ordered)
        return "a flow miscounts its sends";
    return NULL;
}

/* Checks that searched tables are sorted and have the right contents. */
static const char *order_defect(const struct flow_chunk *s)
{
    size_t next = 0;
    for (size_t f = 0; f < s->n_flows; f++) {
        const struct flow_disk_flow *flow = &s->flows[f];
        struct flow_rank before = {0};
        if (flow->first_ordered != next || flow->ordered > s->n_order - next)
            return "a flow's order lies outside the table";
        for (uint32_t i = 0; i < flow->ordered; i++, next++) {
            const struct flow_disk_packet *p = flow_packet_at(s, s->order[next]);
            struct flow_rank rank = flow_rank_of(&flow->key, p);
            if (p->flow != f || !flow_is_ordered(&flow->key, p) || flow_rank_compare(before, rank) > 0 ||
                (i && s->order[next] == s->order[next - 1]))
                return "packets out of order";
            before = rank;
        }
    }
    if (next != s->n_order)
        return "an order of no flow";
    for (size_t i = 0; i < s->n_carriers; i++) {
        const struct flow_disk_packet *p = flow_packet_at(s, s->carriers[i]);
        if (!flow_is_own(p) || !flow_carries(p) ||
            (i && (uint32_t)p->seq_end < (uint32_t)flow_packet_at(s, s->carriers[i - 1])->seq_end))
            return "sends out of order";
    }
    return NULL;
}

static const char *references_defect(const struct flow_chunk *s, uint64_t *receives)
{
    const char *what;
    for (size_t f = 0; f < s->n_flows; f++)
        if ((what = packets_defect(s, f, receives)))
            return what;
    for (size_t i = 0; i < s->n_by_number; i++)
        if (s->by_number[i] >= s->n_packets)
            return "a packet number lies outside the table";
    for (size_t i = 0; i < s->n_wakes; i++)
        if (!is_marked(receives, s, s->wakes[i].receive))
            return "a wake by something that is no receive";
    for (size_t i = 0; i < s->n_packets; i++) {
        const struct flow_disk_packet *p = &s->packets[i];
        if (p->back ? p->origin != FLOW_BY_RECEIVE || !is_marked(receives, s, p->number - p->back)
                    : p->origin == FLOW_BY_RECEIVE)
            return "a send that follows something that is no receive";
    }
    return NULL;
}

static const char *keys_defect(const struct flow_chunk *s)
{
    struct map first = {0}; /* hash of key -> flow */
    const char *what = NULL;
    for (size_t f = 0; f < s->n_flows && !what; f++) {
        bool fresh;
        uint64_t *at = map_put(&first, flow_key_hash(&s->flows[f].key), &fresh);
        if (fresh)
            *at = f;
        else if (!memcmp(&s->flows[*at].key, &s->flows[f].key, sizeof s->flows[f].key))
            what = "two flows have one key";
    }
    map_fini(&first);
    return what;
}

/* Checks the addresses of an extract, which has them twice: once with times. */
static const char *own_defect(const struct flow_chunk *s)
{
    bool same = !s->own || s->n_own == s->n_addresses;
    for (size_t i = 0; same && i < s->n_own; i++)
        same = !memcmp(&s->own[i].address, &s->addresses[i], sizeof *s->addresses);
    return same ? NULL : "addresses that contradict each other";
}

/* Returns the defect of the sections of an open store, or NULL. */
static const char *flow_defect(const struct flow_chunk *s)
{
    size_t next = 0;
    for (size_t f = 0; f < s->n_flows; f++) {
        const struct flow_disk_flow *flow = &s->flows[f];
        if (flow->first != next || flow->sends > s->n_packets - next ||
            flow->receives > s->n_packets - next - flow->sends ||
            flow->copies > s->n_packets - next - flow->sends - flow->receives)
            return "a flow's packets lie outside the table";
        if (flow->connection > f)
            return "a flow names a connection that comes after it";
        next += (size_t)flow->sends + flow->receives + flow->copies;
    }
    if (next != s->n_packets)
        return "packets that belong to no flow";
    uint64_t *receives = mem_zalloc((s->n_by_number / 64 + 1) * sizeof *receives);
    const char *what = references_defect(s, receives);
    free(receives);
    if (what || (what = keys_defect(s)) || (what = order_defect(s)) || (what = flow_message_order_defect(s)) ||
        (what = flow_asks_defect(s)) || (what = own_defect(s)))
        return what;
    size_t filled = 0;
    for (size_t i = 0; i < s->table_size; i++) {
        filled += s->table[i] != 0;
        if (s->table[i] > s->n_flows)
            return "the key table names a flow that does not exist";
    }
    if (filled > s->n_flows)
        return "the key table is too full";
    return NULL;
}

int flow_check(const char *path, const struct store *in, struct err *e)
{
    struct flow_store *s;
    int rc = flow_open_list(&(struct chunk){.path = path, .in = in, .begin = INT64_MIN, .end = INT64_MAX}, 1, &s, e);
    if (rc)
        return rc;
    const char *what = flow_defect(s->chunks);
    if (what)
        rc = err_set(e, ERR_FORMAT, "%s: %s", path, what);
    flow_close(s);
    return rc;
}
