/* SPDX-License-Identifier: MIT */
/* What a generated kernel trace consists of: events as LTTng declares them, and their payloads.
 * A payload is put together field by field, in the order of the declaration (kernel_trace.c). */
#ifndef WEFT_BENCH_KERNEL_TRACE_H
#define WEFT_BENCH_KERNEL_TRACE_H

#include <stdint.h>
#include <string.h>

struct text;

enum { CALLS = 8 };
enum kernel_event {
    SWITCH,
    WAKING,
    WAKEUP,
    WAKEUP_NEW,
    FORK,
    EXIT,
    FREE,
    IRQ_ENTRY,
    IRQ_EXIT,
    RAISE,
    SOFT_ENTRY,
    SOFT_EXIT,
    TIMER_ENTRY,
    TIMER_EXIT,
    BLOCK_ISSUE,
    BLOCK_COMPLETE,
    SEND,
    RECEIVE,
    DUMP_THREAD,
    DUMP_DISK,
    DUMP_END,
    CALL_ENTRY,
    CALL_EXIT = CALL_ENTRY + CALLS,
    KERNEL_EVENTS = CALL_EXIT + CALLS
};
enum kernel_call { C_READ, C_WRITE, C_FUTEX, C_EPOLL_WAIT, C_NANOSLEEP, C_SENDTO, C_STAT, C_PREAD };

/* Ends with NULL. */
extern const char *const kernel_env[];
/* Appends the declarations of all events, in TSDL. */
void kernel_declare(struct text *tsdl);

struct kernel_payload {
    uint8_t v[128];
    size_t n;
};
static inline void kernel_put(struct kernel_payload *p, const void *bytes, size_t n)
{
    memcpy(p->v + p->n, bytes, n);
    p->n += n;
}
static inline void kernel_u8(struct kernel_payload *p, uint8_t v)
{
    kernel_put(p, &v, 1);
}
static inline void kernel_u32(struct kernel_payload *p, uint32_t v)
{
    kernel_put(p, &v, 4);
}
static inline void kernel_u64(struct kernel_payload *p, uint64_t v)
{
    kernel_put(p, &v, 8);
}

/* A TCP segment over IPv4, addresses and ports as numbers. */
struct kernel_packet {
    uint64_t skb;
    uint32_t source, target, seq, ack, bytes;
    uint16_t source_port, target_port, ip_id, flags;
};
/* The fields of SEND and RECEIVE. */
void kernel_put_packet(struct kernel_payload *, const struct kernel_packet *);

#endif
