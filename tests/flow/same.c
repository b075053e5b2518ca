/* SPDX-License-Identifier: MIT */
#include "same.h"

#include <inttypes.h>

enum { MOST_ASKED = 50 }; /* receives of a flow, about */

static void same_packet(const struct flow_packet *a, const struct flow_packet *b, const char *what, uint64_t i)
{
    if (a->ts != b->ts || a->seq_end != b->seq_end || a->number != b->number || a->receive != b->receive ||
        a->ack != b->ack || a->bytes != b->bytes || a->row != b->row || a->flags != b->flags || a->ip_id != b->ip_id ||
        a->origin != b->origin || a->retransmission != b->retransmission || a->flow != b->flow)
        fail_msg("%s %" PRIu64 ": ts %" PRId64 " %" PRId64 ", seq_end %" PRIx64 " %" PRIx64 ", number %" PRIu64
                 " %" PRIu64 ", receive %" PRIu64 " %" PRIu64 ", row %d %d, origin %d %d, repeated %d %d, flow %u %u",
            what, i, a->ts, b->ts, a->seq_end, b->seq_end, a->number, b->number, a->receive, b->receive, a->row, b->row,
            a->origin, b->origin, a->retransmission, b->retransmission, a->flow, b->flow);
}

void routes_must_lead(const struct flow_store *sender, const struct flow_message_key *k)
{
    struct flow_route *routes;
    size_t n = flow_routes(sender, SIZE_MAX - 1, &routes);
    if (!flow_may_send(sender, &k->flow) && !flow_routes_lead(routes, n, k))
        fail_msg("no route leads to number %08x that acknowledges %08x, which was sent", k->seq_end, k->ack);
    uint32_t *sent;
    size_t n_sent = flow_sent_hashes(sender, SIZE_MAX - 1, &sent);
    if (flow_may_send(sender, &k->flow) && !flow_sent_hashes_have(sent, n_sent, &k->flow))
        fail_msg("a flow is not told of on which number %08x was sent", k->seq_end);
    free(sent);
    free(routes);
}

static void same_answer(const struct flow_store *one, const struct flow_store *list, const struct flow_message_key *k,
    struct flow_window w, uint64_t number)
{
    struct flow_packet a, b;
    enum flow_answer of_one = flow_find_send(one, k, &w, &a), of_list = flow_find_send(list, k, &w, &b);
    if (of_one != of_list)
        fail_msg("receive %" PRIu64 ": answer %d, of chunks %d", number, of_one, of_list);
    if (of_one == FLOW_NOT_SENT)
        return;
    same_packet(&a, &b, "send of receive", number);
    routes_must_lead(one, k);
    routes_must_lead(list, k);
}

static void same_key(const struct flow_store *one, const struct flow_store *list, const struct flow_packet *receive)
{
    struct flow_message_key a, b;
    memset(&a, 0, sizeof a);
    memset(&b, 0, sizeof b);
    flow_message_key_of(one, receive, &a);
    flow_message_key_of(list, receive, &b);
    assert_memory_equal(&a.flow, &b.flow, sizeof a.flow);
    assert_memory_equal(&a.silences, &b.silences, sizeof a.silences);
    assert_true(
        a.seq_end == b.seq_end && a.ack == b.ack && a.bytes == b.bytes && a.flags == b.flags && a.ip_id == b.ip_id);
    same_answer(one, list, &a, flow_window_at(&a, receive->ts, 0), receive->number);
    same_answer(one, list, &a, flow_window_at(&a, receive->ts, 100), receive->number);
    same_answer(one, list, &a, flow_window_any(), receive->number);
    a.flow.saddr[0] ^= 0x55; /* translated */
    same_answer(one, list, &a, flow_window_at(&a, receive->ts, 0), receive->number);
    same_answer(one, list, &a, flow_window_any(), receive->number);
}

static void same_flow(const struct flow_store *one, const struct flow_store *list, size_t f)
{
    struct flow_key a, b;
    struct flow_packet p, q;
    flow_key(one, f, &a);
    flow_key(list, f, &b);
    assert_memory_equal(&a, &b, sizeof a);
    assert_int_equal(flow_lookup(list, &a), f);
    assert_int_equal(flow_connection(one, f), flow_connection(list, f));
    assert_int_equal(flow_may_send(one, &a), flow_may_send(list, &a));
    size_t n = flow_sends(one, f);
    assert_int_equal(n, flow_sends(list, f));
    for (size_t i = 0; i < n; i++) {
        flow_send(one, f, i, &p);
        flow_send(list, f, i, &q);
        same_packet(&p, &q, "send", i);
    }
    n = flow_receives(one, f);
    assert_int_equal(n, flow_receives(list, f));
    for (size_t i = 0; i < n; i++) {
        flow_receive(one, f, i, &p);
        flow_receive(list, f, i, &q);
        same_packet(&p, &q, "receive", i);
        if (i % (n / MOST_ASKED + 1) == 0)
            same_key(one, list, &p);
    }
}

static void same_row(const struct flow_store *one, const struct flow_store *list, int32_t row)
{
    size_t receives, other, n = flow_messages(one, row, &receives);
    assert_int_equal(n, flow_messages(list, row, &other));
    assert_int_equal(receives, other);
    for (size_t i = 0; i < n; i++) {
        struct flow_packet p, q;
        bool p_send, q_send;
        flow_message(one, row, i, &p, &p_send);
        flow_message(list, row, i, &q, &q_send);
        same_packet(&p, &q, "message", i);
        assert_int_equal(p_send, q_send);
    }
    n = flow_asks(one, row);
    assert_int_equal(n, flow_asks(list, row));
    for (size_t i = 0; i < n; i++) {
        struct flow_ask a, b;
        flow_ask(one, row, i, &a);
        flow_ask(list, row, i, &b);
        assert_true(a.begin == b.begin && a.last == b.last && a.end == b.end);
    }
}

static void same_numbers(const struct flow_store *one, const struct flow_store *list)
{
    struct flow_packet p, q;
    bool p_send, q_send;
    uint64_t number = 0;
    for (; flow_by_number(one, number, &p, &p_send); number++) {
        assert_true(flow_by_number(list, number, &q, &q_send));
        same_packet(&p, &q, "number", number);
        assert_int_equal(p_send, q_send);
    }
    assert_false(flow_by_number(list, number, &q, NULL));
    uint64_t wakes = flow_wakes(one);
    assert_int_equal(wakes, flow_wakes(list));
    for (uint64_t i = 0; i < wakes; i++) {
        struct flow_wake a, b;
        flow_wake(one, i, &a);
        flow_wake(list, i, &b);
        if (a.row != b.row || a.ts != b.ts || a.receive != b.receive)
            fail_msg(
                "wake %" PRIu64 ": row %d %d, receive %" PRIu64 " %" PRIu64, i, a.row, b.row, a.receive, b.receive);
    }
    size_t n = flow_replies(one);
    assert_int_equal(n, flow_replies(list));
    for (size_t i = 0; i < n; i++) {
        flow_reply(one, i, &p);
        flow_reply(list, i, &q);
        same_packet(&p, &q, "reply", i);
    }
}

struct sum {
    uint64_t n, value;
};

static void add(void *arg, int64_t sent, int64_t received)
{
    struct sum *s = arg;
    s->n++;
    s->value = s->value * 31 + (uint64_t)sent * 7 + (uint64_t)received;
}

static void same_links(const struct flow_store *one, const struct flow_store *list)
{
    const struct flow_store *ones[] = {one, one}, *lists[] = {list, list};
    struct flow_link *a, *b;
    size_t n = flow_links(ones, 2, 1, &a);
    assert_int_equal(n, flow_links(lists, 2, 1, &b));
    struct sum of_one = {0}, of_list = {0};
    for (size_t i = 0; i < n; i++) {
        assert_memory_equal(&a[i], &b[i], sizeof a[i]);
        flow_pairs(one, one, &a[i], 1, add, &of_one);
        flow_pairs(list, list, &b[i], 1, add, &of_list);
    }
    assert_true(of_one.n == of_list.n && of_one.value == of_list.value);
    free(a);
    free(b);
}

static void same_addresses(const struct flow_address *a, size_t n, const struct flow_address *b, size_t m)
{
    assert_int_equal(n, m);
    if (n)
        assert_memory_equal(a, b, n * sizeof *a);
}

void same_stores(const struct flow_store *one, const struct flow_store *list, int32_t rows)
{
    const struct flow_address *a, *b;
    assert_int_equal(flow_count(one), flow_count(list));
    for (size_t f = 0; f < flow_count(one); f++)
        same_flow(one, list, f);
    for (int32_t row = -1; row <= rows; row++)
        same_row(one, list, row);
    same_numbers(one, list);
    size_t n = flow_addresses(one, &a), m = flow_addresses(list, &b);
    same_addresses(a, n, b, m);
    n = flow_peers(one, &a), m = flow_peers(list, &b);
    same_addresses(a, n, b, m);
    same_links(one, list);
}
