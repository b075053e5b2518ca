/* SPDX-License-Identifier: MIT */
/* Private to the made clusters: what there is (cluster_world.c), and what it records (cluster_events.c). */
#ifndef WEFT_BENCH_CLUSTER_INSIDE_H
#define WEFT_BENCH_CLUSTER_INSIDE_H

#include "base/mem.h"
#include "cluster_world.h"
#include "kernel_trace.h"

#define MADE_START_NS INT64_C(1700000000000000000)

struct ctf_writer;

enum waits { W_NOTHING, W_START, W_TOKEN, W_DATA, W_DISK };
enum act { A_START, A_DISPATCH, A_STEP, A_ARRIVE, A_DISK };
enum state { S_WAIT, S_READY, S_RUN, S_GONE };

struct thread {
    uint32_t host, cpu;
    int32_t tid;
    enum state state;
    enum waits waits;
    int64_t since, began, ended; /* in its state; of its life */
    int64_t starts;
    uint32_t tokens;
    int32_t next; /* in its CPU's queue, or -1 */
    bool in_call;
    struct made_step step; /* that it is at */
    bool at_step;
    uint64_t sector;
    char comm[16];
};

struct end {
    uint32_t thread, peer;
    uint32_t seq, expected, unacked;
    uint64_t got;
    int64_t last_arrival;
    uint16_t port;
};

struct cpu {
    int64_t now, fill_at;
    int32_t running, head, tail; /* threads, or -1 */
};

struct host {
    struct made_host given; /* its name is ours */
    struct ctf_writer *writer;
    struct cpu *cpus;
    uint32_t ip_id, ports;
};

struct flying {
    struct kernel_packet packet;
    uint32_t end; /* that it comes to */
    uint32_t by;
    int64_t sent;
};

struct due {
    int64_t ns;
    uint64_t order;
    enum act act;
    uint32_t what;
};

struct made_world {
    uint64_t seed, random, events, order, skb;
    int64_t every, last;
    VEC(struct host) hosts;
    VEC(struct thread) threads;
    VEC(struct end) ends;
    VEC(struct flying) flying;
    VEC(uint32_t) free;
    VEC(struct due) heap;
    struct kernel_payload payload;
    FILE *history;
    void (*next)(void *arg, uint32_t thread, struct made_step *);
    void *arg;
    struct err *error;
    int failed;
};

/* ---- events of a CPU, each some time after the one before ---- */

/* Ends the event that was put together; when it was, by the true time. */
int64_t made_emit(struct made_world *, uint32_t host, uint32_t cpu, enum kernel_event, int64_t after);
/* 200 to 500 ns. */
int64_t made_soon(struct made_world *);
void made_put_side(struct made_world *, const char *name, int32_t tid);
void made_put_switch(
    struct made_world *, const char *prev, int32_t prev_tid, int64_t state, const char *next, int32_t next_tid);
void made_put_waking(struct made_world *, const char *name, int32_t tid, uint32_t cpu);
void made_timer(struct made_world *, uint32_t host, uint32_t cpu, bool entry);
void made_call(struct made_world *, uint32_t host, uint32_t cpu, enum kernel_call, bool entry, int64_t after);
/* name NULL: the exit. */
void made_irq(struct made_world *, const struct thread *, int number, const char *name);
void made_softirq(struct made_world *, const struct thread *, enum kernel_event);
/* What else goes on there until `t`: no thread of the world depends on it. */
void made_fill(struct made_world *, uint32_t host, uint32_t cpu, int64_t t);
/* The CPU comes to `t`, unless it is beyond it. */
void made_reach(struct made_world *, uint32_t host, uint32_t cpu, int64_t t);

#endif
