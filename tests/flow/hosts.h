/* SPDX-License-Identifier: MIT */
/* Made-up hosts, packet by packet, as in the kernel's records. */
#ifndef WEFT_TESTS_FLOW_HOSTS_H
#define WEFT_TESTS_FLOW_HOSTS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../base/test.h"
#include "base/mem.h"
#include "flow/flow.h"
#include "kernel/kernel.h"

enum { ACK = 16, PSH = 8, RST = 4, SYN = 2, FIN = 1, THREADS = 12 };

/* Substitute for the tracker: flow uses it only for threads and for the names of calls. Row r has tid 100 + r; rows 4
 * and 5 are one process, row 9 is a kernel thread, row 7 is a child of 6. */
struct kernel_tracker {
    struct kernel_thread threads[THREADS];
    const struct kernel_thread *many; /* replacement of these threads; borrowed */
    size_t n_many;
};

enum { EPOLL_WAIT = 1, POLL, SELECT, RECVFROM, READ, SCHED_YIELD, WRITE, SLEEP }; /* calls by number of the name */

struct host {
    struct kernel_tracker tracker;
    struct flow_builder *builder;
    struct flow_store *store;
    VEC(struct kernel_record) records;
    uint32_t packets;
    char path[64];
};

/* Runs the tests with stores of one chunk, and again with stores cut at random; these are also checked to agree with
 * the others. */
#define RUN_CUT(name, tests) (run_cut(false) ? cmocka_run_group_tests_name(name, tests, NULL, NULL) : 0) + \
    (run_cut(true) ? cmocka_run_group_tests_name(name ", cut", tests, NULL, NULL) : 0)
/* False: the cut run is left out, since it has no threads for ThreadSanitizer to check and takes it minutes. */
bool run_cut(bool cut);
bool is_run_cut(void);
uint64_t host_tell(struct host *h, const struct kernel_record *r);

void host_begin(struct host *h);
void host_end(struct host *h);
void close_both(struct host *a, struct host *b);

struct shape {
    int64_t ts;
    int32_t row;
    uint8_t ctx;
    uint16_t vector;
    uint32_t frame;
    uint8_t from, to; /* last byte of 10.0.0.x */
    uint16_t sport, dport;
    uint32_t seq, ack, bytes;
    uint16_t flags, id;
    uint8_t protocol, net; /* net: first byte of the addresses instead of 10 */
    bool v6;               /* 2001:db8::x */
    uint32_t device, cpu;
    uint64_t skb;
    uint16_t headers; /* bytes; 0: unknown */
};

uint32_t packet(struct host *h, int kind, struct shape s);
uint32_t wake(struct host *h, int64_t ts, int32_t by, int32_t row, uint8_t ctx, uint32_t frame);
#define SEND(h, ...) packet(h, KERNEL_PACKET_SEND, (struct shape){__VA_ARGS__})
#define RECEIVE(h, ...) \
    packet(h, KERNEL_PACKET_RECEIVE, \
        (struct shape){.ctx = KERNEL_CTX_SOFTIRQ, .vector = KERNEL_SOFTIRQ_NET_RX, __VA_ARGS__})

struct flow_packet get(struct host *h, uint32_t number);
/* Returns the number of the send on `from` that explains a receive of `to`, or -1; their clocks are the same. */
int64_t explain(struct host *to, uint32_t receive, struct host *from);
/* Does so with the clocks' error, and returns the kind of answer; error < 0: the clocks cannot be related. */
int64_t explain_within(struct host *to, uint32_t receive, struct host *from, int64_t error, enum flow_answer *answer);

#endif
