/* SPDX-License-Identifier: MIT */
/* The tracker on made traces: contexts and their frames, packets of all kinds, names, lives. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "maker.h"

/* Records of the kinds wanted, in order. */
struct kept {
    struct kernel_record v[64];
    size_t n;
    uint64_t kinds;
};

static void keep(void *arg, const struct kernel_record *r)
{
    struct kept *k = arg;
    if ((k->kinds >> r->kind & 1) && k->n < 64)
        k->v[k->n++] = *r;
}

struct run {
    struct maker_trace trace;
    struct kernel_binding *binding;
    struct kernel_tracker *tracker;
    const struct kernel_thread *threads;
    const char *const *strings;
    size_t n_threads;
};

static struct run run(struct maker *m, struct kept *k)
{
    struct run r = {0};
    int64_t end;
    maker_open(m, SIZE_MAX, false, &r.trace);
    r.tracker = maker_run(r.trace.trace, keep, k, &r.binding, &end);
    r.n_threads = kernel_tracker_threads(r.tracker, &r.threads);
    kernel_tracker_strings(r.tracker, &r.strings);
    maker_free(m);
    return r;
}

static void done(struct run *r)
{
    kernel_tracker_free(r->tracker);
    kernel_binding_free(r->binding);
    maker_close(&r->trace);
}

static int tid_of(const struct run *r, int32_t row)
{
    return row < 0 ? -1 : r->threads[row].tid;
}

static void contexts(void **state)
{
    struct maker *m = maker_new(1, 0);
    struct kept k = {.kinds = UINT64_C(1) << KERNEL_WAKE};
    maker_wake(m, 0, 10, M_WAKING, 9, 0); /* unknown state of the CPU */
    maker_number(m, 0, 11, M_FUTEX_ENTRY, 1);
    maker_wake(m, 0, 12, M_WAKING, 9, 0); /* unknown thread */
    maker_switch(m, 0, 20, 1, 1, 2);
    maker_wake(m, 0, 21, M_WAKING, 9, 0);
    maker_irq(m, 0, 30, true, 7, "dev");
    maker_wake(m, 0, 31, M_WAKING, 9, 0);
    maker_number(m, 0, 32, M_HRTIMER_ENTRY, 5);
    maker_wake(m, 0, 33, M_WAKING, 9, 0);
    maker_number(m, 0, 34, M_HRTIMER_EXIT, 5);
    maker_wake(m, 0, 35, M_WAKING, 9, 0);
    maker_irq(m, 0, 36, false, 7, NULL);
    maker_number(m, 0, 40, M_SOFTIRQ_ENTRY, 3);
    maker_wake(m, 0, 41, M_WAKING, 9, 0);
    maker_plain(m, 0, 42, M_NET_ENTRY);
    maker_wake(m, 0, 43, M_WAKING, 9, 0);
    maker_plain(m, 0, 44, M_NET_EXIT);
    maker_number(m, 0, 45, M_SOFTIRQ_EXIT, 3);
    maker_number(m, 0, 50, M_SOFTIRQ_ENTRY, 3);
    maker_wake(m, 0, 51, M_WAKING, 9, 0);
    maker_number(m, 0, 52, M_SOFTIRQ_EXIT, 3);
    maker_wake(m, 0, 53, M_WAKING, 9, 0);
    struct run r = run(m, &k);
    static const struct {
        int ctx, number, tid, same_frame_as;
    } want[] = {
        {KERNEL_CTX_UNKNOWN, 0, -1, -1},
        {KERNEL_CTX_THREAD, 0, -1, -1},
        {KERNEL_CTX_THREAD, 0, 2, -1},
        {KERNEL_CTX_IRQ, 7, 2, -1},
        {KERNEL_CTX_HRTIMER, 0, 2, -1},
        {KERNEL_CTX_IRQ, 7, 2, 3},
        {KERNEL_CTX_SOFTIRQ, 3, 2, -1},
        {KERNEL_CTX_NET, KERNEL_CTX_SOFTIRQ, 2, 6},
        {KERNEL_CTX_SOFTIRQ, 3, 2, -1},
        {KERNEL_CTX_THREAD, 0, 2, -1},
    };
    assert_int_equal(k.n, sizeof want / sizeof *want);
    for (size_t i = 0; i < k.n; i++) {
        assert_int_equal(k.v[i].ctx, want[i].ctx);
        assert_int_equal(k.v[i].ctx_number, want[i].number);
        assert_int_equal(tid_of(&r, k.v[i].row), want[i].tid);
        assert_int_equal(k.v[i].ctx_frame != 0, k.v[i].ctx > KERNEL_CTX_THREAD);
        if (want[i].same_frame_as >= 0)
            assert_int_equal(k.v[i].ctx_frame, k.v[want[i].same_frame_as].ctx_frame);
    }
    assert_int_not_equal(k.v[6].ctx_frame, k.v[8].ctx_frame);
    assert_string_equal(r.strings[kernel_tracker_irq_name(r.tracker, 7)], "dev");
    done(&r);
}

static size_t put16(uint8_t *p, unsigned v)
{
    p[0] = (uint8_t)(v >> 8);
    p[1] = (uint8_t)v;
    return 2;
}
static size_t put32(uint8_t *p, uint32_t v)
{
    put16(p, v >> 16);
    put16(p + 2, v & 0xffff);
    return 4;
}

/* Tag and bytes of an IPv4 or IPv6 packet with TCP or UDP behind it. */
static size_t header(uint8_t *p, int family, bool tcp, unsigned length)
{
    memset(p, 0, 128);
    uint8_t *h = p + 1;
    p[0] = family == 4 ? 1 : 2;
    if (family == 4) {
        h[0] = 0x46; /* word of options: not recorded, but counted */
        put16(h + 2, length);
        put16(h + 4, 0xbeef);
        h[9] = tcp ? 6 : 17;
        memcpy(h + 12, "\x0a\x00\x00\x01\x0a\x00\x00\x02", 8);
        h += 20;
    } else {
        h[0] = 0x60;
        put16(h + 4, length);
        h[6] = tcp ? 6 : 17;
        memcpy(h + 8, "\x20\x01\x0d\xb8\0\0\0\0\0\0\0\0\0\0\0\x01", 16);
        memcpy(h + 24, "\x20\x01\x0d\xb8\0\0\0\0\0\0\0\0\0\0\0\x02", 16);
        h += 40;
    }
    *h++ = tcp ? 1 : 2;
    put16(h, 40000);
    put16(h + 2, 80);
    if (!tcp) {
        put16(h + 4, 8 + 300);
        return (size_t)(h + 8 - p);
    }
    put32(h + 4, 0xfffffff0);
    put32(h + 8, 77);
    put16(h + 12, 8u << 12 | 0x18); /* 32 bytes of header; PSH, ACK */
    return (size_t)(h + 20 - p);
}

static void packets(void **state)
{
    struct maker *m = maker_new(1, 0);
    struct kept k = {.kinds = UINT64_C(1) << KERNEL_PACKET_SEND | UINT64_C(1) << KERNEL_PACKET_RECEIVE};
    uint8_t h[128];
    maker_switch(m, 0, 10, 1, 1, 2);
    maker_packet(m, 0, 20, true, 0, h, header(h, 4, true, 24 + 32 + 500));
    maker_packet(m, 0, 21, true, 14 + 24 + 32 + 90000, h, header(h, 4, true, 0)); /* length beyond 64 KiB */
    maker_packet(m, 0, 22, false, 24 + 32 + 90000, h, header(h, 4, true, 0));
    maker_packet(m, 0, 23, false, 0, h, header(h, 4, false, 24 + 8 + 300));
    maker_packet(m, 0, 24, true, 0, h, header(h, 6, true, 32 + 600));
    maker_packet(m, 0, 25, false, 40 + 32 + 70000, h, header(h, 6, true, 0));
    maker_packet(m, 0, 26, false, 0, h, header(h, 6, false, 8 + 300));
    memset(h, 0, sizeof h);
    maker_packet(m, 0, 27, true, 42, h, 1);                     /* ARP: no header recorded */
    maker_packet(m, 0, 28, true, 0, h, header(h, 4, true, 10)); /* shorter than its headers */
    struct run r = run(m, &k);
    static const struct {
        int kind, family, protocol;
        uint32_t payload;
        bool has_length;
    } want[] = {
        {KERNEL_PACKET_SEND, 4, 6, 500, true},
        {KERNEL_PACKET_SEND, 4, 6, 90000, true},
        {KERNEL_PACKET_RECEIVE, 4, 6, 90000, true},
        {KERNEL_PACKET_RECEIVE, 4, 17, 300, true},
        {KERNEL_PACKET_SEND, 6, 6, 600, true},
        {KERNEL_PACKET_RECEIVE, 6, 6, 70000, true},
        {KERNEL_PACKET_RECEIVE, 6, 17, 300, true},
        {KERNEL_PACKET_SEND, 0, 0, 0, false},
        {KERNEL_PACKET_SEND, 4, 6, 0, false},
    };
    assert_int_equal(k.n, sizeof want / sizeof *want);
    for (size_t i = 0; i < k.n; i++) {
        const struct kernel_packet *p = &k.v[i].u.packet;
        assert_int_equal(k.v[i].kind, want[i].kind);
        assert_int_equal(p->family, want[i].family);
        assert_int_equal(p->protocol, want[i].protocol);
        assert_int_equal(p->payload_bytes, want[i].payload);
        assert_int_equal(p->has_length, want[i].has_length);
        assert_string_equal(r.strings[p->device], "eth0");
        if (p->family) {
            assert_int_equal(p->sport, 40000);
            assert_int_equal(p->dport, 80);
            assert_memory_equal(p->saddr, p->family == 4 ? "\x0a\x00\x00\x01" : "\x20\x01\x0d\xb8", 4);
            assert_int_equal(p->daddr[p->family == 4 ? 3 : 15], 2);
        }
        if (p->protocol == 6) {
            assert_int_equal(p->seq, 0xfffffff0);
            assert_int_equal(p->ack, 77);
            assert_int_equal(p->flags, 0x18);
        }
        if (p->family == 4)
            assert_int_equal(p->ip_id, 0xbeef);
    }
    done(&r);
}

static void marks(void **state)
{
    static const char *const others[] = {"", "weft-span", "weft-span begin", "hello",
        "weft-span begin 0102030405060708090a0b0c0d0e0f10 1112131415161718 - 4x job",
        "weft-span begin 0102030405060708090a0b0c0d0e0f10 1112131415161718 - 99999999999 job",
        "weft-span begin 0102030405060708090a0b0c0d0e0f10 1112131415161718 -",
        "weft-span begin 0102030405060708090a0b0c0d0e0f1 1112131415161718 - 4 job",
        "weft-span begin 0102030405060708090a0b0c0d0e0f1g 1112131415161718 - 4 job",
        "weft-span ends 0102030405060708090a0b0c0d0e0f10 1112131415161718",
        "weft-spanend 0102030405060708090a0b0c0d0e0f10 1112131415161718"};
    struct maker *m = maker_new(1, 0);
    struct kept k = {.kinds = UINT64_C(1) << KERNEL_SPAN_MARK};
    maker_switch(m, 0, 10, 0, 0, 100);
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        maker_logger(m, 0, 11 + (int64_t)i, others[i]);
    maker_logger(m, 0, 30, "weft-span begin 0102030405060708090a0b0c0d0e0f10 1112131415161718 - 4711 a job");
    maker_switch(m, 0, 40, 100, 1, 101);
    maker_logger(m, 0, 50, "weft-span end 0102030405060708090a0b0c0d0e0f10 1112131415161718");
    struct run r = run(m, &k);
    assert_int_equal(k.n, 2);
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(k.v[i].ts % 1000, i ? 50 : 30);
        assert_int_equal(tid_of(&r, k.v[i].row), i ? 101 : 100);
        assert_int_equal(k.v[i].u.mark.process, i ? 0 : 4711);
        assert_int_equal(k.v[i].u.mark.is_end, i);
        for (uint8_t b = 0; b < 24; b++)
            assert_int_equal((b < 16 ? k.v[i].u.mark.trace : k.v[i].u.mark.span - 16)[b], b + 1);
    }
    done(&r);
}

static void lives(void **state)
{
    struct maker *m = maker_new(2, 0);
    struct kept k = {
        .kinds = UINT64_C(1) << KERNEL_SYSCALL_ENTRY | UINT64_C(1) << KERNEL_SYSCALL_EXIT | UINT64_C(1) << KERNEL_EXEC};
    maker_name(m, 100, "leader");
    maker_dump_thread(m, 0, 5, 100, 100, 1, KERNEL_DUMPED_WAITING, "leader");
    maker_switch(m, 0, 10, 0, 0, 100);
    maker_fork(m, 0, 20, 100, 101, 100, 101);
    maker_switch(m, 1, 30, 0, 0, 101);
    maker_number(m, 1, 31, M_FUTEX_ENTRY, 1);
    maker_number(m, 1, 32, M_FUTEX_EXIT, 0);
    maker_number(m, 1, 33, M_UNKNOWN_ENTRY, 777);
    maker_number(m, 1, 34, M_UNKNOWN_EXIT, 777);
    maker_number(m, 1, 35, M_UNKNOWN_EXIT, 1);    /* exit without entry: unknown call */
    maker_exec(m, 1, 40, "/opt/other", 100, 101); /* a thread takes over its process */
    maker_switch(m, 1, 50, 100, 1, 5000000);      /* tid beyond any kernel's pid_max */
    maker_switch(m, 1, 60, 5000000, 1, 100);
    struct run r = run(m, &k);
    assert_int_equal(k.n, 6);
    assert_string_equal(r.strings[k.v[0].u.syscall.name], "futex");
    assert_string_equal(r.strings[k.v[1].u.syscall.name], "futex");
    assert_string_equal(r.strings[k.v[2].u.syscall.name], "syscall_777");
    assert_string_equal(r.strings[k.v[3].u.syscall.name], "syscall_777");
    assert_int_equal(k.v[4].u.syscall.name, KERNEL_NO_STRING);
    assert_string_equal(r.strings[k.v[5].u.exec.file], "/opt/other");
    int32_t caller = k.v[0].row;
    assert_int_equal(k.v[5].row, caller);
    assert_int_equal(r.threads[caller].tid, 100);
    assert_int_equal(r.threads[caller].tgid, 100);
    assert_false(r.threads[caller].died);
    size_t hundreds = 0, far = 0, leaders = 0;
    for (size_t i = 0; i < r.n_threads; i++) {
        hundreds += r.threads[i].tid == 100;
        far += r.threads[i].tid == 5000000;
        leaders += r.threads[i].tid == 100 && r.threads[i].died && !strcmp(r.strings[r.threads[i].name], "leader");
    }
    assert_int_equal(hundreds, 2);
    assert_int_equal(far, 1);
    assert_int_equal(leaders, 1);
    done(&r);
}

/* Checks a thread whose fork was not seen: its parent is the first waker, unless that is the idle thread. */
static void unseen_forks(void **state)
{
    struct maker *m = maker_new(1, 0);
    struct kept k = {0};
    maker_switch(m, 0, 10, 1, 1, 2);
    maker_wake(m, 0, 11, M_WAKEUP_NEW, 50, 0);
    maker_fork(m, 0, 15, 2, 40, 2, 40); /* a thread of 2's process: so 2 is its first */
    maker_switch(m, 0, 20, 2, 1, 0);
    maker_wake(m, 0, 21, M_WAKEUP_NEW, 51, 0);
    struct run r = run(m, &k);
    for (size_t i = 0; i < r.n_threads; i++)
        if (r.threads[i].tid == 2 || r.threads[i].tid == 40) {
            assert_int_equal(r.threads[i].tgid, 2);
        } else if (r.threads[i].tid >= 50) {
            assert_true(r.threads[i].born);
            assert_int_equal(tid_of(&r, r.threads[i].parent_row), r.threads[i].tid == 50 ? 2 : -1);
        }
    done(&r);
}

/* Checks that a thread that was seen to die is the same if the state dump still finds it. */
static void zombies(void **state)
{
    struct maker *m = maker_new(2, 0);
    struct kept k = {0};
    maker_switch(m, 0, 10, 61, 16, 1);
    maker_dump_thread(m, 0, 20, 60, 59, 1, KERNEL_DUMPED_ZOMBIE, "dead");
    maker_dump_thread(m, 0, 21, 61, 61, 1, KERNEL_DUMPED_ZOMBIE, "t 61");
    maker_dump_thread(m, 0, 22, 62, 62, 1, KERNEL_DUMPED_DEAD, "released");
    maker_task(m, 0, 30, M_FREE, 60);
    maker_fork(m, 0, 40, 1, 60, 60, 60);
    struct run r = run(m, &k);
    size_t found[3] = {0};
    for (size_t i = 0; i < r.n_threads; i++) {
        const struct kernel_thread *t = &r.threads[i];
        if (t->tid < 60)
            continue;
        found[t->tid - 60]++;
        if (t->tid == 60 && !t->born) {
            assert_string_equal(r.strings[t->name], "dead");
            assert_int_equal(t->tgid, 59);
            assert_true(t->died);
            assert_int_equal(t->end, 30);
        }
        if (t->tid == 62)
            assert_string_equal(r.strings[t->name], "released");
    }
    assert_int_equal(found[0], 2);
    assert_int_equal(found[1], 1);
    assert_int_equal(found[2], 1);
    done(&r);
}

/* The tid of one that ran, woken as new: its end and the next one's fork were not seen. */
static void reused_unseen(void **state)
{
    struct maker *m = maker_new(2, 0);
    struct kept k = {0};
    maker_switch(m, 0, 10, 1, 0, 50);
    maker_switch(m, 0, 20, 50, 1, 1);
    maker_wake(m, 0, 30, M_WAKEUP_NEW, 50, 0);
    maker_switch(m, 0, 40, 1, 1, 50);
    maker_fork(m, 0, 50, 50, 51, 51, 51);
    maker_switch(m, 1, 60, 0, 0, 51);
    maker_wake(m, 0, 60, M_WAKEUP_NEW, 51, 1); /* run in the same ns */
    struct run r = run(m, &k);
    size_t fifties = 0, children = 0;
    for (size_t i = 0; i < r.n_threads; i++) {
        const struct kernel_thread *t = &r.threads[i];
        fifties += t->tid == 50;
        children += t->tid == 51;
        if (t->tid == 50) {
            assert_int_equal(t->died, !t->born);
            assert_int_equal(t->born ? t->begin : t->end, 30);
        }
    }
    assert_int_equal(fifties, 2);
    assert_int_equal(children, 1);
    done(&r);
}

/* sched_wakeup stands for sched_waking only where there is none. */
static void wake_events(void **state)
{
    for (int without = 0; without < 2; without++) {
        struct maker *m = maker_new(1, without ? UINT64_C(1) << M_WAKING : 0);
        struct kept k = {.kinds = UINT64_C(1) << KERNEL_WAKE | UINT64_C(1) << KERNEL_WAKEUP};
        maker_wake(m, 0, 10, M_WAKING, 9, 0);
        maker_wake(m, 0, 11, M_WAKEUP, 9, 0);
        struct run r = run(m, &k);
        assert_int_equal(k.n, without ? 1 : 2);
        assert_int_equal(k.v[0].kind, KERNEL_WAKE);
        assert_int_equal(k.v[0].u.wake.by_wakeup, without);
        assert_int_equal(kernel_has(r.binding, KERNEL_WAKEUP), !without);
        assert_true(kernel_has(r.binding, KERNEL_WAKE));
        done(&r);
    }
}

/* Checks that a loss is reported at its begin, and again for events dropped at the end of the reporting packet. */
static void losses(void **state)
{
    struct maker *m = maker_new(2, 0);
    struct kept k = {.kinds = UINT64_C(1) << KERNEL_LOST | UINT64_C(1) << KERNEL_WAKE};
    maker_switch(m, 0, 100, 1, 1, 2);
    maker_switch(m, 1, 100, 3, 1, 4);
    maker_plain(m, 0, 150, M_OTHER);
    maker_lose(m, 0, 150);
    maker_wake(m, 1, 180, M_WAKING, 9, 0);
    maker_wake(m, 0, 200, M_WAKING, 9, 0);
    maker_switch(m, 0, 210, 5, 1, 2);
    maker_wake(m, 0, 220, M_WAKING, 9, 0);
    struct run r = run(m, &k);
    assert_int_equal(k.n, 5);
    assert_int_equal(k.v[0].kind, KERNEL_LOST);
    assert_int_equal(k.v[0].u.lost.count, 1);
    assert_int_equal(k.v[0].cpu, 0);
    assert_int_equal(k.v[1].kind, KERNEL_WAKE);
    assert_int_equal(tid_of(&r, k.v[1].row), 4); /* other CPU: no losses */
    assert_int_equal(k.v[2].kind, KERNEL_LOST);
    assert_int_equal(k.v[2].u.lost.begin, 150);
    assert_int_equal(k.v[2].u.lost.end, 200);
    assert_int_equal(k.v[2].u.lost.count, 0);
    assert_int_equal(k.v[3].ctx, KERNEL_CTX_UNKNOWN);
    assert_int_equal(k.v[3].row, KERNEL_NO_ROW);
    assert_int_equal(k.v[4].ctx, KERNEL_CTX_THREAD);
    assert_int_equal(tid_of(&r, k.v[4].row), 2);
    done(&r);
}

/* An exit closes its own handler and those above it whose exits are missing; without an entry it closes nothing. */
static void unmatched_exits(void **state)
{
    struct maker *m = maker_new(1, 0);
    struct kept k = {.kinds = UINT64_C(1) << KERNEL_WAKE};
    maker_switch(m, 0, 100, 1, 1, 2);
    maker_irq(m, 0, 110, true, 7, "outer");
    maker_irq(m, 0, 111, true, 8, "inner");
    maker_irq(m, 0, 112, false, 5, NULL);
    maker_wake(m, 0, 113, M_WAKING, 9, 0);
    maker_irq(m, 0, 114, false, 7, NULL);
    maker_wake(m, 0, 115, M_WAKING, 9, 0);
    struct run r = run(m, &k);
    assert_int_equal(k.n, 2);
    assert_int_equal(k.v[0].ctx, KERNEL_CTX_IRQ);
    assert_int_equal(k.v[0].ctx_number, 8);
    assert_int_equal(k.v[1].ctx, KERNEL_CTX_THREAD);
    done(&r);
}

/* The handler that ran when events began to be lost may be over: what follows in the same packet is in no known
 * context, and of no known thread. */
static void loss_in_a_handler(void **state)
{
    struct maker *m = maker_new(2, 0);
    struct kept k = {.kinds = UINT64_C(1) << KERNEL_WAKE};
    maker_switch(m, 0, 100, 1, 1, 2);
    maker_irq(m, 0, 140, true, 7, "dev");
    maker_wake(m, 0, 145, M_WAKING, 9, 0);
    maker_cut(m, 0, 145);
    maker_wake(m, 0, 160, M_WAKING, 9, 0);
    maker_irq(m, 0, 161, true, 8, "new");
    maker_wake(m, 0, 162, M_WAKING, 9, 0);
    maker_irq(m, 0, 163, false, 8, NULL);
    maker_irq(m, 0, 164, false, 7, NULL); /* end that shows that it was running; lower frames stay unknown */
    maker_wake(m, 0, 165, M_WAKING, 9, 0);
    maker_number(m, 0, 166, M_FUTEX_ENTRY, 1);
    maker_wake(m, 0, 167, M_WAKING, 9, 0);
    maker_lose(m, 0, 167);
    maker_wake(m, 0, 200, M_WAKING, 9, 0);
    struct run r = run(m, &k);
    static const struct {
        int ctx, number, tid;
    } want[] = {
        {KERNEL_CTX_IRQ, 7, 2},
        {KERNEL_CTX_UNKNOWN, 0, -1},
        {KERNEL_CTX_IRQ, 8, -1},
        {KERNEL_CTX_UNKNOWN, 0, -1},
        {KERNEL_CTX_THREAD, 0, -1}, /* system calls are made by threads: but by which */
        {KERNEL_CTX_UNKNOWN, 0, -1},
    };
    assert_int_equal(k.n, sizeof want / sizeof *want);
    for (size_t i = 0; i < k.n; i++) {
        assert_int_equal(k.v[i].ctx, want[i].ctx);
        assert_int_equal(k.v[i].ctx_number, want[i].number);
        assert_int_equal(tid_of(&r, k.v[i].row), want[i].tid);
    }
    done(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(contexts), cmocka_unit_test(packets), cmocka_unit_test(lives),
        cmocka_unit_test(unseen_forks), cmocka_unit_test(zombies), cmocka_unit_test(reused_unseen),
        cmocka_unit_test(wake_events), cmocka_unit_test(losses), cmocka_unit_test(unmatched_exits),
        cmocka_unit_test(loss_in_a_handler), cmocka_unit_test(marks)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
