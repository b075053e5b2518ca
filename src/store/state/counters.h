/* SPDX-License-Identifier: MIT */
/* Private to state: counters of disks, network interfaces, memory and performance, and requests of disks. */
#ifndef WEFT_STATE_COUNTERS_H
#define WEFT_STATE_COUNTERS_H

#include "state/series.h"

struct kernel_record;
struct state_builder;

/* Disk or network interface: two counters. */
struct builder_device {
    struct series series[2]; /* read, write; sent, received */
    int64_t total[2];
    uint32_t id;             /* device number, text */
};
typedef VEC(struct builder_device) builder_devices;

/* Counters of one kind, each with a small number, its slot. */
struct builder_amount {
    struct series series;
    int64_t total;
    uint32_t slot;
};
struct builder_amounts {
    VEC(struct builder_amount) v;
    VEC(uint32_t) index;     /* index in v + 1 by slot; 0: none yet */
    uint32_t expected;       /* index + 1 of the last one fetched (state_builder_io_expect) */
};
enum builder_amount_kind {
    BUILDER_PAGES,           /* slot: row of the thread + 1; 0: all threads */
    BUILDER_CPU_COUNTERS,    /* CPU * STATE_CPU_COUNTERS + counter */
    BUILDER_FREQUENCIES,     /* the CPU */
    BUILDER_IO_READ, BUILDER_IO_WRITTEN, /* row of the thread; bytes moved without a file */
    BUILDER_KVM_EXITS,       /* row of the thread */
    BUILDER_AMOUNTS
};

void state_builder_block(struct state_builder *, const struct kernel_record *);
void state_builder_packet(struct state_builder *, const struct kernel_record *);
/* NOBODY: does nothing */
void state_builder_thread_pages(struct state_builder *, int32_t row, int64_t ts, int64_t pages);
void state_builder_all_pages(struct state_builder *, int64_t ts, int64_t pages);
void state_builder_cpu_counters(struct state_builder *, const struct kernel_record *);
void state_builder_frequency(struct state_builder *, const struct kernel_record *);
/* Counts bytes that a call moved in these ways, and that no row of a file counts. row NOBODY: does nothing. */
void state_builder_io(struct state_builder *, int32_t row, int64_t ts, unsigned ways, int64_t bytes);
/* Prefetches the counters of such a call when it begins. */
void state_builder_io_expect(struct state_builder *, int32_t row, unsigned ways);
void state_builder_kvm_exit(struct state_builder *, const struct kernel_record *);
/* Valid until the next call that adds one. */
struct builder_amount *state_builder_amount_at(struct builder_amounts *, uint32_t slot);
void state_builder_amounts_fini(struct builder_amounts *);

/* ---- requests of disks (requests.c) ---- */

enum { BUILDER_MOST_DISKS = 1 << 12, BUILDER_MOST_SLOTS = 1 << 10 };

/* Request of a disk: waiting in the queue, or in the driver. */
struct state_builder_request {
    struct series series;    /* row of its slot in the queue */
    uint64_t latency;        /* handle */
    uint64_t sector;
    int64_t bytes;
    uint32_t sectors;        /* sectors not completed yet */
    uint8_t type;            /* enum state_request */
    bool busy;
};
struct builder_queue {
    struct state_builder_request *v;
    size_t n, cap;
};
struct builder_requests {
    struct builder_queue queues[2];
    uint32_t dev;
    uint32_t codes[STATE_REQUESTS]; /* code by type; 0: none yet */
};

/* ref: see struct state_builder_code. */
uint32_t state_builder_request_code(struct state_builder *, uint32_t ref);
void state_builder_request(struct state_builder *, const struct kernel_record *);
void state_builder_requests_lose(struct state_builder *, int64_t ts);
void state_builder_each_request(struct state_builder *, void (*)(void *arg, int32_t number, uint32_t dev,
    struct series *), void *arg);
void state_builder_requests_fini(struct state_builder *);

#endif
