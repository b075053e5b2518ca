/* SPDX-License-Identifier: MIT */
#include "extracts.h"

#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/store.h"

struct flow_store *extract_flows(const struct flow_store *s, const uint32_t *flows, size_t n, uint64_t *bytes)
{
    char path[64];
    struct flow_store *out = NULL;
    struct stat st;
    struct err e = {0};
    snprintf(path, sizeof path, "%s/weft-extract-%d", access("/dev/shm", W_OK) ? "/tmp" : "/dev/shm", (int)getpid());
    if (flow_extract(s, flows, n, path, &e) || store_check(path, &e) || flow_check(path, NULL, &e) ||
        flow_open(path, &out, &e))
        fail_msg("%s", e.text);
    assert_int_equal(stat(path, &st), 0);
    *bytes += (uint64_t)st.st_size;
    unlink(path);
    return out;
}

void extract_hosts(const struct flow_store *const *hosts, size_t n, struct flow_store **out, uint64_t *bytes)
{
    struct flow_other *told = mem_zalloc((n + 1) * sizeof *told), *others = mem_zalloc((n + 1) * sizeof *others);
    for (size_t h = 0; h < n; h++)
        if (hosts[h]) {
            told[h].n_hashes = flow_hashes(hosts[h], (uint64_t **)&told[h].hashes);
            told[h].n_own = flow_own_addresses(hosts[h], (struct flow_own_address **)&told[h].own);
        }
    for (size_t h = 0; h < n; h++) {
        uint32_t *flows;
        size_t n_others = 0;
        for (size_t k = 0; k < n; k++)
            if (k != h)
                others[n_others++] = told[k];
        out[h] = NULL;
        if (!hosts[h])
            continue;
        size_t needed = flow_needed(hosts[h], others, n_others, &flows);
        out[h] = extract_flows(hosts[h], flows, needed, bytes);
        free(flows);
    }
    for (size_t h = 0; h < n; h++) {
        free((void *)told[h].hashes);
        free((void *)told[h].own);
    }
    free(told);
    free(others);
}

static void same_packet(const struct flow_packet *a, const struct flow_packet *b, bool send)
{
    assert_true(a->ts == b->ts && a->seq_end == b->seq_end && a->ack == b->ack && a->bytes == b->bytes &&
        a->flags == b->flags && a->ip_id == b->ip_id && a->retransmission == b->retransmission);
    assert_true(!send || (a->origin == FLOW_PASSING) == (b->origin == FLOW_PASSING));
    assert_int_equal(b->row, -1);
    assert_true(b->receive == FLOW_NO_PACKET);
}

static void same_flow(const struct flow_store *s, size_t of, const struct flow_store *extract, size_t flow)
{
    struct flow_key a, b;
    struct flow_packet p, q, again;
    bool is_send;
    flow_key(s, of, &a);
    flow_key(extract, flow, &b);
    assert_memory_equal(&a, &b, sizeof a);
    assert_int_equal(flow_lookup(extract, &a), flow);
    assert_int_equal(flow_may_send(s, &a), flow_may_send(extract, &a));
    for (int send = 0; send < 2; send++) {
        size_t n = send ? flow_sends(s, of) : flow_receives(s, of);
        assert_int_equal(n, send ? flow_sends(extract, flow) : flow_receives(extract, flow));
        for (size_t i = 0; i < n; i++) {
            (send ? flow_send : flow_receive)(s, of, i, &p);
            (send ? flow_send : flow_receive)(extract, flow, i, &q);
            same_packet(&p, &q, send);
            assert_true(flow_by_number(extract, q.number, &again, &is_send));
            assert_true(again.ts == q.ts && again.flow == flow && is_send == send);
        }
    }
}

static void same_host(const struct flow_store *s, const struct flow_store *extract)
{
    struct flow_own_address *a, *b;
    size_t n = flow_own_addresses(s, &a);
    assert_int_equal(n, flow_own_addresses(extract, &b));
    for (size_t i = 0; i < n; i++) {
        assert_memory_equal(&a[i].address, &b[i].address, sizeof a->address);
        assert_true(a[i].since == b[i].since);
    }
    assert_true(flow_last(s) == flow_last(extract));
    free(a);
    free(b);
}

void same_extract(const struct flow_store *s, const uint32_t *flows, size_t n, const struct flow_store *extract)
{
    size_t receives;
    assert_int_equal(flow_count(extract), n);
    for (size_t i = 0; i < n; i++)
        same_flow(s, flows[i], extract, i);
    same_host(s, extract);
    assert_int_equal(flow_wakes(extract), 0);
    assert_int_equal(flow_replies(extract), 0);
    assert_int_equal(flow_asks(extract, 1), 0);
    assert_int_equal(flow_messages(extract, 1, &receives), 0);
}
