/* SPDX-License-Identifier: MIT */
#include "kernel_trace.h"

#include "base/text.h"

#define I32 "integer { size = 32; align = 8; signed = 1; } "
#define U32 "integer { size = 32; align = 8; signed = 0; } "
#define I64 "integer { size = 64; align = 8; signed = 1; } "
#define U64 "integer { size = 64; align = 8; signed = 0; } "
#define U8 "integer { size = 8; align = 8; signed = 0; } "
#define BE(n) "integer { size = " #n "; align = 8; signed = 0; byte_order = be; } "
#define COMM(name) "integer { size = 8; align = 8; signed = 1; encoding = UTF8; } " name "[16]; "
#define BITS(n, align) "integer { size = " #n "; align = " #align "; signed = 0; byte_order = be; } "
/* The network headers as lttng-modules 2.13 declares them. */
#define PROTOCOL \
    "enum : " BE( \
        8) "{ \"_unknown\" = 0, \"_icmp\" = 1, \"_unknown\" = 2 ... 5, \"_tcp\" = 6, \"_unknown\" = 7 ... 16, " \
           "\"_udp\" = 17, \"_unknown\" = 18 ... 255 } "
#define TCP \
    "struct { " BE(16) "_source_port; " BE(16) "_dest_port; " BE(32) "_seq; " BE(32) "_ack_seq; " BITS( \
        4, 4) "_data_offset; " BITS(3, 1) "_reserved; " BITS(9, \
        1) "_flags; " BE(16) "_window_size; " BE(16) "_checksum; " BE(16) "_urg_ptr; } _tcp; "
#define UDP "struct { " BE(16) "_source_port; " BE(16) "_dest_port; " BE(16) "_len; " BE(16) "_check; } _udp; "
#define ICMP "struct { " BE(8) "_type; " BE(8) "_code; " BE(16) "_checksum; " BE(32) "_gateway; } _icmp; "
#define TRANSPORT \
    "enum : " U8 "{ \"_unknown\" = 0, \"_tcp\" = 1, \"_udp\" = 2, \"_icmp\" = 3 } _transport_header_type; " \
    "variant <_transport_header_type> { struct { } _unknown; " TCP UDP ICMP "} _transport_header; "
#define PADDED(element, name, n) "struct { } align(8) " name "_padding; " element name "[" #n "]; "
#define IPV4 \
    "struct { " BITS(4, 4) "_version; " BITS(4, 4) "_ihl; " BE(8) "_tos; " BE(16) "_tot_len; " BE(16) "_id; " BE( \
        16) "_frag_off; " BE(8) "_ttl; " PROTOCOL "_protocol; " BE(16) "_checksum; " PADDED(BE(8), "_saddr", 4) \
        PADDED(BE(8), "_daddr", 4) TRANSPORT "} _ipv4; "
#define IPV6 \
    "struct { " BITS(4, 4) "_version; " BITS(4, 4) "_prio; " PADDED(BE(8), "_flow_lbl", 3) \
        BE(16) "_payload_len; " PROTOCOL "_nexthdr; " BE(8) "_hop_limit; " PADDED(BE(16), "_saddr", 8) \
            PADDED(BE(16), "_daddr", 8) TRANSPORT "} _ipv6; "
#define PACKET \
    U64 "_skbaddr; " U32 "_len; string _name; enum : " U8 \
        "{ \"_unknown\" = 0, \"_ipv4\" = 1, \"_ipv6\" = 2 } _network_header_type; " \
        "variant <_network_header_type> { struct { } _unknown; " IPV4 IPV6 "} _network_header; "
#define WAKE COMM("_comm") I32 "_tid; " I32 "_prio; " I32 "_target_cpu; "

static const char *const call_names[CALLS] = {
    "read", "write", "futex", "epoll_wait", "clock_nanosleep", "sendto", "newfstatat", "pread64"};


static const struct {
    const char *name, *fields;
} classes[CALL_ENTRY] = {
    [SWITCH] = {"sched_switch",
        COMM("_prev_comm") I32 "_prev_tid; " I32 "_prev_prio; " I64 "_prev_state; " COMM("_next_comm") I32
        "_next_tid; " I32 "_next_prio; "},
    [WAKING] = {"sched_waking", WAKE},
    [WAKEUP] = {"sched_wakeup", WAKE},
    [WAKEUP_NEW] = {"sched_wakeup_new", WAKE},
    [FORK] = {"sched_process_fork",
        COMM("_parent_comm") I32 "_parent_tid; " I32 "_parent_pid; " U32 "_parent_ns_inum; " COMM("_child_comm") I32
        "_child_tid; " U8 "__vtids_length; " I32 "_vtids[ __vtids_length ]; " I32 "_child_pid; " U32
        "_child_ns_inum; "},
    [EXIT] = {"sched_process_exit", COMM("_comm") I32 "_tid; " I32 "_prio; "},
    [FREE] = {"sched_process_free", COMM("_comm") I32 "_tid; " I32 "_prio; "},
    [IRQ_ENTRY] = {"irq_handler_entry", I32 "_irq; string _name; "},
    [IRQ_EXIT] = {"irq_handler_exit", I32 "_irq; " I32 "_ret; "},
    [RAISE] = {"irq_softirq_raise", U32 "_vec; "},
    [SOFT_ENTRY] = {"irq_softirq_entry", U32 "_vec; "},
    [SOFT_EXIT] = {"irq_softirq_exit", U32 "_vec; "},
    [TIMER_ENTRY] = {"timer_hrtimer_expire_entry", U64 "_hrtimer; " U64 "_now; " U64 "_function; "},
    [TIMER_EXIT] = {"timer_hrtimer_expire_exit", U64 "_hrtimer; "},
    [BLOCK_ISSUE] = {"block_rq_issue",
        U32 "_dev; " U64 "_sector; " U32 "_nr_sector; " U32 "_bytes; " I32 "_tid; " U32 "_rwbs; " COMM("_comm")},
    [BLOCK_COMPLETE] = {"block_rq_complete",
        U32 "_dev; " U64 "_sector; " U32 "_nr_sector; " I32 "_error; " U32 "_rwbs; "},
    [SEND] = {"net_dev_queue", PACKET},
    [RECEIVE] = {"net_if_receive_skb", PACKET},
    [DUMP_THREAD] = {"lttng_statedump_process_state",
        I32 "_tid; " I32 "_pid; " I32 "_ppid; " COMM("_name") I32 "_status; "},
    [DUMP_DISK] = {"lttng_statedump_block_device", U32 "_dev; string _diskname; "},
    [DUMP_END] = {"lttng_statedump_end", ""},
};

const char *const kernel_env[] = {"domain=kernel", "sysname=Linux", "kernel_release=6.1.0", "tracer_name=lttng-modules",
    "tracer_major=2", "tracer_minor=13", NULL};

void kernel_declare(struct text *tsdl)
{
    for (int i = 0; i < KERNEL_EVENTS; i++)
        if (i < CALL_ENTRY)
            text_printf(tsdl, "event { name = \"%s\"; id = %d; stream_id = 0; fields := struct { %s}; };\n",
                classes[i].name, i, classes[i].fields);
        else
            text_printf(tsdl, "event { name = \"syscall_%s_%s\"; id = %d; stream_id = 0; fields := struct { %s}; };\n",
                i < CALL_EXIT ? "entry" : "exit", call_names[(i - CALL_ENTRY) % CALLS], i,
                i < CALL_EXIT ? U32 "_fd; " U64 "_buf; " : I64 "_ret; ");
}

static void put_be(struct kernel_payload *p, uint64_t v, int bytes)
{
    while (bytes--)
        kernel_u8(p, (uint8_t)(v >> (8 * bytes)));
}

void kernel_put_packet(struct kernel_payload *out, const struct kernel_packet *p)
{
    kernel_u64(out, p->skb);
    kernel_u32(out, p->bytes + 40);
    kernel_put(out, "eth0", 5);
    kernel_u8(out, 1);
    put_be(out, 0x4500, 2);
    put_be(out, p->bytes + 40, 2);
    put_be(out, p->ip_id, 2);
    put_be(out, 0x4000, 2);
    put_be(out, 0x40060000, 4);
    put_be(out, p->source, 4);
    put_be(out, p->target, 4);
    kernel_u8(out, 1);
    put_be(out, p->source_port, 2);
    put_be(out, p->target_port, 2);
    put_be(out, p->seq, 4);
    put_be(out, p->ack, 4);
    put_be(out, 0x5000 | p->flags, 2);
    put_be(out, 500, 2);
    put_be(out, 0, 4);
}
