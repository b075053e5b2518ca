/* SPDX-License-Identifier: MIT */
/* Causes of wakes: decided by the waking CPU's innermost context (reference/critical-path.md 1.4, 8). */
#include <stdio.h>
#include <string.h>

#include "graph/builder.h"

uint16_t graph_detail(struct graph_builder *b, const char *s)
{
    if (b->details.n > UINT16_MAX)
        return 0;
    return (uint16_t)strings_intern(&b->details, s, strlen(s));
}

uint16_t graph_detail_of_string(struct graph_builder *b, uint32_t string)
{
    if (!string)
        return 0;
    while (b->detail_of.n <= string)
        vec_push(&b->detail_of, 0);
    if (!b->detail_of.v[string]) {
        const char *const *strings;
        size_t n = kernel_tracker_strings(b->tracker, &strings);
        uint16_t detail = string < n ? graph_detail(b, strings[string]) : 0;
        if (!detail || detail == UINT16_MAX)
            return detail;
        b->detail_of.v[string] = (uint16_t)(detail + 1);
    }
    return (uint16_t)(b->detail_of.v[string] - 1);
}

static uint16_t disk_detail(struct graph_builder *b, uint32_t dev)
{
    uint32_t name = kernel_tracker_disk_name(b->tracker, dev);
    if (name)
        return graph_detail_of_string(b, name);
    char text[32];
    snprintf(text, sizeof text, "%u:%u", dev >> 20, dev & 0xfffff); /* the kernel's dev_t */
    return graph_detail(b, text);
}

static uint16_t irq_detail(struct graph_builder *b, uint32_t irq)
{
    const char *const *strings;
    size_t n = kernel_tracker_strings(b->tracker, &strings);
    uint32_t name = kernel_tracker_irq_name(b->tracker, irq);
    char text[96];
    if (irq == 0xffff)
        return graph_detail(b, "irq");
    snprintf(
        text, sizeof text, "irq %u%s%.64s", irq, name && name < n ? " " : "", name && name < n ? strings[name] : "");
    return graph_detail(b, text);
}

static uint16_t thread_detail(struct graph_builder *b, int32_t row)
{
    const struct kernel_thread *threads;
    size_t n = kernel_tracker_threads(b->tracker, &threads);
    return row >= 0 && (size_t)row < n ? graph_detail_of_string(b, threads[row].name) : 0;
}

static bool is_idle(const struct graph_builder *b, int32_t row)
{
    const struct kernel_thread *threads;
    size_t n = kernel_tracker_threads(b->tracker, &threads);
    return (size_t)row < n && threads[row].idle_cpu >= 0;
}

static struct graph_ending softirq_ending(struct graph_builder *b, const struct kernel_record *r, uint16_t call)
{
    static const char *const names[] = {[KERNEL_SOFTIRQ_HI] = "softirq hi",
        [KERNEL_SOFTIRQ_TASKLET] = "softirq tasklet",
        [KERNEL_SOFTIRQ_RCU] = "softirq rcu"};
    switch (r->ctx_number) {
    case KERNEL_SOFTIRQ_TIMER:
    case KERNEL_SOFTIRQ_HRTIMER:
        return (struct graph_ending){.state = GRAPH_TIMER, .cause = GRAPH_CAUSE_TERMINAL, .detail = call};
    case KERNEL_SOFTIRQ_BLOCK:
    case KERNEL_SOFTIRQ_IRQ_POLL:
        return (struct graph_ending){.state = GRAPH_BLOCK_DEVICE, .cause = GRAPH_CAUSE_TERMINAL};
    case KERNEL_SOFTIRQ_NET_TX:
    case KERNEL_SOFTIRQ_NET_RX:
        /* Without a received packet in this run, although packets are recorded, the cause is the softirq's own work,
         * not a message. */
        if (kernel_tracker_has(b->tracker, KERNEL_PACKET_RECEIVE))
            return (struct graph_ending){
                .state = GRAPH_BLOCKED, .cause = GRAPH_CAUSE_TERMINAL, .detail = graph_detail(b, "softirq net")};
        return (struct graph_ending){.state = GRAPH_NETWORK, .cause = GRAPH_CAUSE_NONE, .detail = call};
    case KERNEL_SOFTIRQ_SCHED: return (struct graph_ending){.state = GRAPH_INTERRUPTED, .cause = GRAPH_CAUSE_TERMINAL};
    case KERNEL_SOFTIRQ_HI:
    case KERNEL_SOFTIRQ_TASKLET:
    case KERNEL_SOFTIRQ_RCU:
        return (struct graph_ending){
            .state = GRAPH_BLOCKED, .cause = GRAPH_CAUSE_TERMINAL, .detail = graph_detail(b, names[r->ctx_number])};
    default:
        return (struct graph_ending){
            .state = GRAPH_BLOCKED, .cause = GRAPH_CAUSE_TERMINAL, .detail = graph_detail(b, "softirq")};
    }
}

static struct graph_ending context_ending(
    struct graph_builder *b, const struct kernel_record *r, uint64_t packet_wake, uint16_t call)
{
    const struct graph_building_cpu *c = &b->cpus.v[r->cpu];
    uint8_t nobody = c->lost ? GRAPH_CAUSE_LOST : GRAPH_CAUSE_NONE;
    if (r->ctx == KERNEL_CTX_NET &&
        r->ctx_number == KERNEL_CTX_THREAD) /* threaded interrupt or NAPI handler: its name shows the device */
        call = thread_detail(b, r->row);
    if (packet_wake) {
        uint64_t wake = packet_wake - 1 - b->wake0;
        b->next_wake = packet_wake > b->next_wake ? packet_wake : b->next_wake;
        return (struct graph_ending){.state = GRAPH_NETWORK,
            .cause = wake == (uint64_t)(int32_t)wake ? GRAPH_CAUSE_PACKET : GRAPH_CAUSE_NONE,
            .arg = (uint32_t)wake,
            .detail = call};
    }
    bool completed = r->ctx_frame && c->block_frame == r->ctx_frame;
    if (completed &&
        (r->ctx == KERNEL_CTX_IRQ || r->ctx == KERNEL_CTX_IPI ||
            (r->ctx == KERNEL_CTX_SOFTIRQ && r->ctx_number == KERNEL_SOFTIRQ_BLOCK)))
        return (struct graph_ending){
            .state = GRAPH_BLOCK_DEVICE, .cause = GRAPH_CAUSE_TERMINAL, .detail = disk_detail(b, c->block_dev)};
    switch (r->ctx) {
    case KERNEL_CTX_THREAD:
        if (r->row < 0 || is_idle(b, r->row)) /* idle threads wake nobody: events of the waking interrupt are missing */
            return (struct graph_ending){.state = GRAPH_BLOCKED, .cause = nobody, .detail = call};
        return (struct graph_ending){
            .state = GRAPH_BLOCKED, .cause = GRAPH_CAUSE_WAKEUP, .arg = (uint32_t)r->row, .detail = call};
    case KERNEL_CTX_HRTIMER:
        return (struct graph_ending){.state = GRAPH_TIMER, .cause = GRAPH_CAUSE_TERMINAL, .detail = call};
    case KERNEL_CTX_SOFTIRQ: return softirq_ending(b, r, call);
    case KERNEL_CTX_IRQ:
        return (struct graph_ending){
            .state = GRAPH_BLOCKED, .cause = GRAPH_CAUSE_TERMINAL, .detail = irq_detail(b, r->ctx_number)};
    case KERNEL_CTX_IPI: /* sched_wakeup here is for wakes requested by another CPU: the waker is unknown */
        if (r->u.wake.by_wakeup)
            return (struct graph_ending){.state = GRAPH_BLOCKED, .cause = nobody, .detail = call};
        return (struct graph_ending){
            .state = GRAPH_IPI, .cause = GRAPH_CAUSE_TERMINAL, .detail = graph_detail_of_string(b, r->ctx_number)};
    case KERNEL_CTX_NET:
        return (struct graph_ending){.state = GRAPH_NETWORK, .cause = GRAPH_CAUSE_NONE, .detail = call};
    default: return (struct graph_ending){.state = GRAPH_BLOCKED, .cause = nobody, .detail = call};
    }
}

struct graph_ending graph_wake_ending(
    struct graph_builder *b, const struct kernel_record *r, uint64_t packet_wake, uint16_t call)
{
    struct graph_ending e = context_ending(b, r, packet_wake, call);
    e.ts = b->now;
    return e;
}
