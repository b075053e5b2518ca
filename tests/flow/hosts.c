#include "hosts.h"

#include <stdio.h>
#include <unistd.h>

size_t kernel_tracker_threads(const struct kernel_tracker *t, const struct kernel_thread **out)
{
    *out = t->threads;
    return THREADS;
}

void host_begin(struct host *h)
{
    memset(h, 0, sizeof *h);
    for (int i = 0; i < THREADS; i++)
        h->tracker.threads[i] = (struct kernel_thread){.tid = 100 + i,
            .tgid = i == 5 ? 104 : 100 + i,
            .ppid = i == 9 ? 2 : 1,
            .parent_row = i == 7 ? 6 : -1,
            .idle_cpu = -1};
    h->builder = flow_builder_new(&h->tracker);
}

void host_end(struct host *h)
{
    struct err e = {0};
    static int serial;
    snprintf(h->path, sizeof h->path, "/tmp/weft-flow-%d-%d", getpid(), serial++);
    if (flow_builder_write(h->builder, h->path, 1, &e) || flow_open(h->path, &h->store, &e))
        fail_msg("%s", e.text);
    if (flow_check(h->path, &e))
        fail_msg("%s", e.text);
    unlink(h->path);
    flow_builder_free(h->builder);
}

uint32_t packet(struct host *h, int kind, struct shape s)
{
    struct kernel_record r = {.ts = s.ts,
        .kind = (uint8_t)kind,
        .ctx = s.ctx ? s.ctx : KERNEL_CTX_THREAD,
        .ctx_number = s.vector,
        .ctx_frame = s.frame,
        .row = s.row};
    r.u.packet = (struct kernel_packet){.number = h->packets++,
        .family = 4,
        .protocol = s.protocol ? s.protocol : 6,
        .sport = s.sport,
        .dport = s.dport,
        .seq = s.seq,
        .ack = s.ack,
        .flags = s.flags ? s.flags : ACK,
        .ip_id = s.id,
        .payload_bytes = s.bytes,
        .has_length = true,
        .device = s.device,
        .skb = s.skb};
    if (s.v6) {
        r.u.packet.family = 6;
        memcpy(r.u.packet.saddr, (uint8_t[16]){0x20, 1, 0x0d, 0xb8, [15] = s.from}, 16);
        memcpy(r.u.packet.daddr, (uint8_t[16]){0x20, 1, 0x0d, 0xb8, [15] = s.to}, 16);
    } else {
        memcpy(r.u.packet.saddr, (uint8_t[]){s.net ? s.net : 10, 0, 0, s.from}, 4);
        memcpy(r.u.packet.daddr, (uint8_t[]){s.net ? s.net : 10, 0, 0, s.to}, 4);
    }
    flow_builder_add(h->builder, &r);
    return r.u.packet.number;
}

uint32_t wake(struct host *h, int64_t ts, int32_t by, int32_t row, uint8_t ctx, uint32_t frame)
{
    struct kernel_record r = {
        .ts = ts, .kind = KERNEL_WAKE, .ctx = ctx, .ctx_number = KERNEL_SOFTIRQ_NET_RX, .ctx_frame = frame, .row = by};
    r.u.wake.row = row;
    return flow_builder_add(h->builder, &r);
}

struct flow_packet get(struct host *h, uint32_t number)
{
    struct flow_packet p;
    assert_true(flow_by_number(h->store, number, &p, NULL));
    return p;
}

int64_t explain_within(struct host *to, uint32_t receive, struct host *from, int64_t error, enum flow_answer *answer)
{
    struct flow_packet r = get(to, receive), s;
    struct flow_message_key key;
    flow_message_key_of(to->store, &r, &key);
    struct flow_window w = error < 0 ? flow_window_any() : flow_window_at(&key, r.ts, (uint64_t)error);
    *answer = FLOW_NOT_SENT;
    if (to == from || !flow_is_anonymous(&key.flow))
        *answer = flow_find_send(from->store, &key, &w, &s);
    return *answer == FLOW_NOT_SENT ? -1 : (int64_t)s.number;
}

int64_t explain(struct host *to, uint32_t receive, struct host *from)
{
    enum flow_answer answer;
    return explain_within(to, receive, from, 0, &answer);
}

void close_both(struct host *a, struct host *b)
{
    flow_close(a->store);
    if (b != a)
        flow_close(b->store);
}
