/* SPDX-License-Identifier: MIT */
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <setjmp.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/mem.h"
#include "base/text.h"
#include "ctf_writer.h"
#include "maker.h"

#define I32 "integer { size = 32; align = 8; signed = 1; } "
#define U32 "integer { size = 32; align = 8; signed = 0; } "
#define I64 "integer { size = 64; align = 8; signed = 1; } "
#define U64 "integer { size = 64; align = 8; signed = 0; } "
#define U8 "integer { size = 8; align = 8; signed = 0; } "
#define B(n) "integer { size = " #n "; align = 8; signed = 0; byte_order = be; } "
#define COMM(name) "integer { size = 8; align = 8; signed = 1; encoding = UTF8; } " name "[16]; "
/* clang-format off */
#define BITS(size, align) "integer { size = " #size "; align = " #align "; byte_order = be; } "
#define TRANSPORT \
    "enum : " U8 "{ \"_unknown\" = 0, \"_tcp\" = 1, \"_udp\" = 2, \"_icmp\" = 3 } _transport_header_type; " \
    "variant <_transport_header_type> { struct { } _unknown; " \
    "struct { " B(16) "_source_port; " B(16) "_dest_port; " B(32) "_seq; " B(32) "_ack_seq; " \
    BITS(4, 4) "_data_offset; " BITS(3, 1) "_reserved; " BITS(9, 1) "_flags; " \
    B(16) "_window_size; " B(16) "_checksum; " B(16) "_urg_ptr; } _tcp; " \
    "struct { " B(16) "_source_port; " B(16) "_dest_port; " B(16) "_len; " B(16) "_check; } _udp; " \
    "struct { " B(8) "_type; " B(8) "_code; " B(16) "_checksum; " B(32) "_gateway; } _icmp; } _transport_header; "
#define PACKET \
    U64 "_skbaddr; " U32 "_len; string _name; " \
    "enum : " U8 "{ \"_unknown\" = 0, \"_ipv4\" = 1, \"_ipv6\" = 2 } _network_header_type; " \
    "variant <_network_header_type> { struct { } _unknown; " \
    "struct { " BITS(4, 4) "_version; " BITS(4, 4) "_ihl; " B(8) "_tos; " B(16) "_tot_len; " B(16) "_id; " \
    B(16) "_frag_off; " B(8) "_ttl; " B(8) "_protocol; " B(16) "_checksum; " B(8) "_saddr[4]; " B(8) "_daddr[4]; " \
    TRANSPORT "} _ipv4; " \
    "struct { " BITS(4, 4) "_version; " BITS(4, 4) "_prio; " B(8) "_flow_lbl[3]; " B(16) "_payload_len; " \
    B(8) "_nexthdr; " B(8) "_hop_limit; " B(16) "_saddr[8]; " B(16) "_daddr[8]; " TRANSPORT "} _ipv6; } " \
    "_network_header; "
/* clang-format on */

static const struct {
    const char *name, *fields, *context;
} classes[M_EVENTS] = {
    [M_SWITCH] = {"sched_switch",
        COMM("_prev_comm") I32 "_prev_tid; " I32 "_prev_prio; " I64 "_prev_state; " COMM("_next_comm") I32
        "_next_tid; " I32 "_next_prio; "},
    [M_WAKING] = {"sched_waking", COMM("_comm") I32 "_tid; " I32 "_prio; " I32 "_target_cpu; "},
    [M_WAKEUP] = {"sched_wakeup", COMM("_comm") I32 "_tid; " I32 "_prio; " I32 "_target_cpu; "},
    [M_WAKEUP_NEW] = {"sched_wakeup_new", COMM("_comm") I32 "_tid; " I32 "_prio; " I32 "_target_cpu; "},
    [M_FORK] = {"sched_process_fork",
        COMM("_parent_comm") I32 "_parent_tid; " I32 "_parent_pid; " U32 "_parent_ns_inum; " COMM("_child_comm") I32
        "_child_tid; " U8 "__vtids_length; " I32 "_vtids[ __vtids_length ]; " I32 "_child_pid; " U32
        "_child_ns_inum; "},
    [M_EXEC] = {"sched_process_exec", "string _filename; " I32 "_tid; " I32 "_old_tid; "},
    [M_EXIT] = {"sched_process_exit", COMM("_comm") I32 "_tid; " I32 "_prio; "},
    [M_FREE] = {"sched_process_free", COMM("_comm") I32 "_tid; " I32 "_prio; "},
    [M_IRQ_ENTRY] = {"irq_handler_entry", I32 "_irq; string _name; "},
    [M_IRQ_EXIT] = {"irq_handler_exit", I32 "_irq; " I32 "_ret; "},
    [M_SOFTIRQ_ENTRY] = {"irq_softirq_entry", U32 "_vec; "},
    [M_SOFTIRQ_EXIT] = {"irq_softirq_exit", U32 "_vec; "},
    [M_HRTIMER_ENTRY] = {"timer_hrtimer_expire_entry", U64 "_hrtimer; "},
    [M_HRTIMER_EXIT] = {"timer_hrtimer_expire_exit", U64 "_hrtimer; "},
    [M_RESCHEDULE_ENTRY] = {"x86_irq_vectors_reschedule_entry", I32 "_vector; "},
    [M_RESCHEDULE_EXIT] = {"x86_irq_vectors_reschedule_exit", I32 "_vector; "},
    [M_LOCAL_TIMER_ENTRY] = {"x86_irq_vectors_local_timer_entry", I32 "_vector; "},
    [M_LOCAL_TIMER_EXIT] = {"x86_irq_vectors_local_timer_exit", I32 "_vector; "},
    [M_BLOCK_COMPLETE] = {"block_rq_complete",
        U32 "_dev; " U64 "_sector; " U32 "_nr_sector; " I32 "_error; " U32 "_rwbs; "},
    [M_FUTEX_ENTRY] = {"syscall_entry_futex", U64 "_uaddr; " I32 "_op; "},
    [M_FUTEX_EXIT] = {"syscall_exit_futex", I64 "_ret; "},
    [M_UNKNOWN_ENTRY] = {"syscall_entry_unknown", I32 "_id; "},
    [M_UNKNOWN_EXIT] = {"syscall_exit_unknown", I32 "_id; " I64 "_ret; "},
    [M_DUMP_THREAD] = {"lttng_statedump_process_state",
        I32 "_tid; " I32 "_pid; " I32 "_ppid; " COMM("_name") I32 "_status; "},
    [M_DUMP_NS] = {"lttng_statedump_process_pid_ns", I32 "_tid; " I32 "_vtid; " I32 "_ns_level; " U32 "_ns_inum; "},
    [M_DUMP_DISK] = {"lttng_statedump_block_device", U32 "_dev; string _diskname; "},
    [M_SEND] = {"net_dev_queue", PACKET},
    [M_RECEIVE] = {"net_if_receive_skb", PACKET},
    [M_NET_ENTRY] = {"net_if_receive_skb_entry", ""},
    [M_NET_EXIT] = {"net_if_receive_skb_exit", ""},
    [M_DO_IRQ_ENTRY] = {"do_IRQ_entry", ""},
    [M_DO_IRQ_RETURN] = {"do_IRQ_return", ""},
    [M_OTHER] = {"something_else", ""},
    [M_OPEN_ENTRY] = {"syscall_entry_openat", I32 "_dfd; string _filename; " I32 "_flags; "},
    [M_OPEN_EXIT] = {"syscall_exit_openat", I64 "_ret; "},
    [M_READ_ENTRY] = {"syscall_entry_read", I32 "_fd; "},
    [M_READ_EXIT] = {"syscall_exit_read", I64 "_ret; "},
    [M_WRITE_ENTRY] = {"syscall_entry_write", I32 "_fd; "},
    [M_WRITE_EXIT] = {"syscall_exit_write", I64 "_ret; "},
    [M_CLOSE_ENTRY] = {"syscall_entry_close", I32 "_fd; "},
    [M_CLOSE_EXIT] = {"syscall_exit_close", I64 "_ret; "},
    [M_DUP_ENTRY] = {"syscall_entry_dup", I32 "_fildes; "},
    [M_DUP_EXIT] = {"syscall_exit_dup", I64 "_ret; "},
    [M_LOGGER] = {"lttng_logger",
        U64 "__msg_length; integer { size = 8; align = 8; encoding = UTF8; } _msg[ __msg_length ]; "},
    [M_CLONE_ENTRY] = {"syscall_entry_clone", U64 "_flags; "},
    [M_CLONE_EXIT] = {"syscall_exit_clone", I64 "_ret; "},
    [M_UNSHARE_ENTRY] = {"syscall_entry_unshare", U64 "_unshare_flags; "},
    [M_UNSHARE_EXIT] = {"syscall_exit_unshare", I64 "_ret; "},
    [M_SETNS_ENTRY] = {"syscall_entry_setns", I32 "_fd; " I32 "_nstype; "},
    [M_SETNS_EXIT] = {"syscall_exit_setns", I64 "_ret; "},
    [M_HOSTNAME_ENTRY] = {"syscall_entry_sethostname", "string _name; " I32 "_len; "},
    [M_HOSTNAME_EXIT] = {"syscall_exit_sethostname", I64 "_ret; "},
    [M_DUMP_NET] = {"lttng_statedump_process_net_ns", I32 "_tid; " U32 "_ns_inum; "},
    [M_DUMP_UTS] = {"lttng_statedump_process_uts_ns", I32 "_tid; " U32 "_ns_inum; "},
    [M_DUMP_CGROUP] = {"lttng_statedump_process_cgroup_ns", I32 "_tid; " U32 "_ns_inum; "},
    [M_SPACES] = {"something_inside", "", U32 "_pid_ns; " U32 "_net_ns; " U32 "_uts_ns; " U32 "_cgroup_ns; "},
};

/* Contexts of all events of a channel, as LTTng declares them. */
static const char stack_contexts[] = U32
    "__callstack_user_length; " U64 "_callstack_user[ __callstack_user_length ]; " U32 "__callstack_kernel_length; " U64
    "_callstack_kernel[ __callstack_kernel_length ]; ";
enum { MOST_ADDRESSES = 200 };

struct item {
    int kind;
    uint32_t cpu;
    int64_t ts;
    uint8_t payload[192];
    size_t n;
    const uint64_t *stacks[2];
    size_t n_stacks[2];
};

struct maker {
    uint32_t cpus;
    uint64_t without;
    struct {
        int tid;
        const char *name;
    } names[8];
    int n_names;
    struct item stacks; /* those of the next item */
    VEC(struct item) items;
};

struct maker *maker_new(uint32_t cpus, uint64_t without)
{
    struct maker *m = mem_zalloc(sizeof *m);
    m->cpus = cpus;
    m->without = without;
    return m;
}

void maker_free(struct maker *m)
{
    vec_free(&m->items);
    free(m);
}

void maker_name(struct maker *m, int tid, const char *name)
{
    int n = 0;
    while (n < m->n_names && m->names[n].tid != tid)
        n++;
    assert_true(n < 8);
    m->names[n].tid = tid;
    m->names[n].name = name;
    m->n_names += n == m->n_names;
}

void maker_stacks(struct maker *m, const uint64_t *user, size_t n_user, const uint64_t *kernel, size_t n_kernel)
{
    assert_true(n_user <= MOST_ADDRESSES && n_kernel <= MOST_ADDRESSES);
    m->stacks = (struct item){.stacks = {user, kernel}, .n_stacks = {n_user, n_kernel}};
}

size_t maker_events(const struct maker *m)
{
    return m->items.n;
}

int maker_kind(const struct maker *m, size_t i, uint32_t *cpu, int64_t *ts)
{
    *cpu = m->items.v[i].cpu;
    *ts = m->items.v[i].ts;
    return m->items.v[i].kind;
}

/* ---- payloads ---- */

static struct item *add(struct maker *m, int kind, uint32_t cpu, int64_t ts)
{
    struct item i = m->stacks;
    i.kind = kind;
    i.cpu = cpu;
    i.ts = ts;
    vec_push(&m->items, i);
    return &m->items.v[m->items.n - 1];
}

static void bytes(struct item *i, const void *p, size_t n)
{
    assert_true(i->n + n <= sizeof i->payload);
    if (n)
        memcpy(i->payload + i->n, p, n);
    i->n += n;
}
static void u8(struct item *i, uint8_t v)
{
    bytes(i, &v, 1);
}
static void i32(struct item *i, int64_t v)
{
    int32_t x = (int32_t)v;
    bytes(i, &x, 4);
}
static void i64(struct item *i, int64_t v)
{
    bytes(i, &v, 8);
}
static void string(struct item *i, const char *s)
{
    bytes(i, s, strlen(s) + 1);
}
static void name16(struct item *i, const char *s)
{
    char name[16] = {0};
    memcpy(name, s, strlen(s) < 15 ? strlen(s) : 15);
    bytes(i, name, 16);
}
static void comm(const struct maker *m, struct item *i, int tid)
{
    char name[16];
    for (int n = 0; n < m->n_names; n++)
        if (m->names[n].tid == tid) {
            name16(i, m->names[n].name);
            return;
        }
    snprintf(name, sizeof name, tid ? "t%d" : "swapper/%d", tid ? tid : (int)i->cpu);
    name16(i, name);
}

void maker_switch(struct maker *m, uint32_t cpu, int64_t ts, int prev, int64_t state, int next)
{
    struct item *i = add(m, M_SWITCH, cpu, ts);
    comm(m, i, prev);
    i32(i, prev);
    i32(i, 20);
    i64(i, state);
    comm(m, i, next);
    i32(i, next);
    i32(i, 20);
}

void maker_wake(struct maker *m, uint32_t cpu, int64_t ts, enum maker_event kind, int tid, int target_cpu)
{
    struct item *i = add(m, kind, cpu, ts);
    comm(m, i, tid);
    i32(i, tid);
    i32(i, 20);
    i32(i, target_cpu);
}

void maker_fork(struct maker *m, uint32_t cpu, int64_t ts, int parent, int child, int tgid, int vtid)
{
    maker_fork_in(m, cpu, ts, parent, child, tgid, vtid, 4026531836);
}

void maker_fork_in(struct maker *m, uint32_t cpu, int64_t ts, int parent, int child, int tgid, int vtid, uint32_t inum)
{
    struct item *i = add(m, M_FORK, cpu, ts);
    comm(m, i, parent);
    i32(i, parent);
    i32(i, parent);
    i32(i, 4026531836);
    comm(m, i, parent);
    i32(i, child);
    u8(i, vtid == child ? 1 : 2);
    i32(i, child);
    if (vtid != child)
        i32(i, vtid);
    i32(i, tgid);
    i32(i, inum);
}

void maker_hostname(struct maker *m, uint32_t cpu, int64_t ts, const char *name)
{
    struct item *i = add(m, M_HOSTNAME_ENTRY, cpu, ts);
    string(i, name);
    i32(i, (int64_t)strlen(name));
}

void maker_dump_space(struct maker *m, uint32_t cpu, int64_t ts, enum maker_event kind, int tid, uint32_t inum)
{
    struct item *i = add(m, kind, cpu, ts);
    i32(i, tid);
    i32(i, inum);
}

void maker_spaces(
    struct maker *m, uint32_t cpu, int64_t ts, uint32_t pid_ns, uint32_t net_ns, uint32_t uts_ns, uint32_t cgroup_ns)
{
    struct item *i = add(m, M_SPACES, cpu, ts);
    i32(i, pid_ns);
    i32(i, net_ns);
    i32(i, uts_ns);
    i32(i, cgroup_ns);
}

void maker_logger(struct maker *m, uint32_t cpu, int64_t ts, const char *text)
{
    struct item *i = add(m, M_LOGGER, cpu, ts);
    i64(i, (int64_t)strlen(text));
    while (*text)
        u8(i, (uint8_t)*text++);
}

void maker_exec(struct maker *m, uint32_t cpu, int64_t ts, const char *file, int tid, int old_tid)
{
    struct item *i = add(m, M_EXEC, cpu, ts);
    string(i, file);
    i32(i, tid);
    i32(i, old_tid);
}

void maker_task(struct maker *m, uint32_t cpu, int64_t ts, enum maker_event kind, int tid)
{
    struct item *i = add(m, kind, cpu, ts);
    comm(m, i, tid);
    i32(i, tid);
    i32(i, 20);
}

void maker_irq(struct maker *m, uint32_t cpu, int64_t ts, bool entry, int irq, const char *name)
{
    struct item *i = add(m, entry ? M_IRQ_ENTRY : M_IRQ_EXIT, cpu, ts);
    i32(i, irq);
    if (entry)
        string(i, name);
    else
        i32(i, 1);
}

/* Returns whether its number has 64 bits. */
static bool is_wide(enum maker_event kind)
{
    switch (kind) {
    case M_HRTIMER_ENTRY:
    case M_HRTIMER_EXIT:
    case M_FUTEX_ENTRY:
    case M_FUTEX_EXIT:
    case M_OPEN_EXIT:
    case M_READ_EXIT:
    case M_WRITE_EXIT:
    case M_CLOSE_EXIT:
    case M_DUP_EXIT:
    case M_CLONE_ENTRY:
    case M_CLONE_EXIT:
    case M_UNSHARE_ENTRY:
    case M_UNSHARE_EXIT:
    case M_SETNS_EXIT:
    case M_HOSTNAME_EXIT: return true;
    default: return false;
    }
}

void maker_number(struct maker *m, uint32_t cpu, int64_t ts, enum maker_event kind, int64_t number)
{
    struct item *i = add(m, kind, cpu, ts);
    if (kind == M_SETNS_ENTRY)
        i32(i, 3);
    if (is_wide(kind))
        i64(i, number);
    else
        i32(i, number);
    if (kind == M_UNKNOWN_EXIT)
        i64(i, 0);
    if (kind == M_FUTEX_ENTRY)
        i32(i, 0); /* FUTEX_WAIT */
}

void maker_path(struct maker *m, uint32_t cpu, int64_t ts, const char *path)
{
    struct item *i = add(m, M_OPEN_ENTRY, cpu, ts);
    i32(i, -100);
    string(i, path);
    i32(i, 0);
}

void maker_plain(struct maker *m, uint32_t cpu, int64_t ts, enum maker_event kind)
{
    add(m, kind, cpu, ts);
}

void maker_block_complete(struct maker *m, uint32_t cpu, int64_t ts, uint32_t dev)
{
    struct item *i = add(m, M_BLOCK_COMPLETE, cpu, ts);
    i32(i, dev);
    i64(i, 4096);
    i32(i, 8);
    i32(i, 0);
    i32(i, 1);
}

void maker_dump_thread(
    struct maker *m, uint32_t cpu, int64_t ts, int tid, int pid, int ppid, int status, const char *name)
{
    struct item *i = add(m, M_DUMP_THREAD, cpu, ts);
    i32(i, tid);
    i32(i, pid);
    i32(i, ppid);
    name16(i, name);
    i32(i, status);
}

void maker_dump_ns(struct maker *m, uint32_t cpu, int64_t ts, int tid, int vtid, int level, uint32_t inum)
{
    struct item *i = add(m, M_DUMP_NS, cpu, ts);
    i32(i, tid);
    i32(i, vtid);
    i32(i, level);
    i32(i, inum);
}

void maker_dump_disk(struct maker *m, uint32_t cpu, int64_t ts, uint32_t dev, const char *name)
{
    struct item *i = add(m, M_DUMP_DISK, cpu, ts);
    i32(i, dev);
    string(i, name);
}

void maker_packet(struct maker *m, uint32_t cpu, int64_t ts, bool send, uint32_t len, const void *header, size_t n)
{
    struct item *i = add(m, send ? M_SEND : M_RECEIVE, cpu, ts);
    i64(i, 0x1000 + ts);
    i32(i, len);
    string(i, "eth0");
    bytes(i, header, n);
}

void maker_lose(struct maker *m, uint32_t cpu, int64_t ts)
{
    add(m, M_LOSE, cpu, ts);
}

void maker_cut(struct maker *m, uint32_t cpu, int64_t ts)
{
    add(m, M_CUT, cpu, ts);
}

/* ---- writing ---- */

/* An event with its stream's contexts. */
static int write_event(const struct maker *m, struct ctf_writer *w, const struct item *i, struct err *e)
{
    uint8_t all[sizeof i->payload + 2 * (4 + 8 * MOST_ADDRESSES)];
    size_t n = 0;
    for (int kind = 0; kind < 2 && m->without & M_STACKS; kind++) {
        uint32_t length = (uint32_t)i->n_stacks[kind];
        memcpy(all + n, &length, 4);
        if (length)
            memcpy(all + n + 4, i->stacks[kind], 8 * length);
        n += 4 + 8 * length;
    }
    memcpy(all + n, i->payload, i->n);
    return ctf_writer_event(w, i->cpu, (uint64_t)i->kind, i->ts, all, n + i->n, e);
}

static void write_items(const struct maker *m, struct ctf_writer *w, size_t skip, bool lose_skipped)
{
    struct err e = {0};
    for (size_t n = 0; n < m->items.n; n++) {
        const struct item *i = &m->items.v[n];
        int rc = 0;
        if (n == skip ? lose_skipped : i->kind == M_LOSE)
            rc = ctf_writer_lose(w, i->cpu, 1, 0, &e);
        else if (i->kind == M_CUT)
            rc = ctf_writer_lose(w, i->cpu, 0, 0, &e);
        else if (n != skip && !(m->without >> i->kind & 1))
            rc = write_event(m, w, i, &e);
        if (rc)
            fail_msg("%s", e.text);
    }
    if (ctf_writer_close(w, &e))
        fail_msg("%s", e.text);
}

/* Times in the packet context, after the header (4 + 16 + 4 + 8 bytes): begin, end. */
static void join_packets(const char *dir, uint32_t cpu, size_t packet_bytes)
{
    char path[128];
    snprintf(path, sizeof path, "%s/channel0_%u", dir, cpu);
    FILE *f = fopen(path, "r+b");
    if (!f)
        return;
    uint64_t begin;
    for (long at = (long)packet_bytes; !fseek(f, at + 32, SEEK_SET) && fread(&begin, 8, 1, f) == 1;
         at += (long)packet_bytes) {
        assert_int_equal(fseek(f, at - (long)packet_bytes + 40, SEEK_SET), 0);
        assert_int_equal(fwrite(&begin, 8, 1, f), 1);
    }
    fclose(f);
}

void maker_open(const struct maker *m, size_t skip, bool lose_skipped, struct maker_trace *out)
{
    struct err e = {0};
    struct text tsdl = {.fd = -1};
    for (int i = 0; i < M_EVENTS; i++)
        if (!(m->without >> i & 1))
            text_printf(&tsdl, "event { name = \"%s\"; id = %d; stream_id = 0; %s%s%s fields := struct { %s}; };\n",
                classes[i].name, i, classes[i].context ? "context := struct { " : "",
                classes[i].context ? classes[i].context : "", classes[i].context ? "};" : "", classes[i].fields);
    static const char *const env[] = {"kernel_release=6.1.0", "tracer_name=lttng-modules", NULL},
                             *const old_env[] = {"kernel_release=3.16.0", "tracer_name=lttng-modules", NULL};
    struct ctf_writer_options o = {.hostname = "made",
        .tsdl = text_cstr(&tsdl),
        .env = m->without & M_OLD_KERNEL ? old_env : env,
        .freq = 1000000000,
        .packet_bytes = 4096,
        .cpus = m->cpus,
        .event_context = m->without & M_STACKS ? stack_contexts : NULL,
        .uuid = {1, 2, 3}};
    struct ctf_writer *w;
    snprintf(out->dir, sizeof out->dir, "/tmp/weft-made-XXXXXX");
    assert_non_null(mkdtemp(out->dir));
    if (ctf_writer_open(out->dir, &o, &w, &e))
        fail_msg("%s", e.text);
    write_items(m, w, skip, lose_skipped);
    for (uint32_t cpu = 0; cpu < m->cpus; cpu++)
        join_packets(out->dir, cpu, o.packet_bytes);
    text_fini(&tsdl);
    out->schemas = ctf_schemas_new();
    char *dirs[] = {out->dir};
    struct ctf_group g = {.dirs = dirs, .n = 1};
    if (ctf_trace_open(&g, out->schemas, &out->trace, &e))
        fail_msg("%s", e.text);
}

void maker_close(struct maker_trace *t)
{
    char path[128];
    ctf_trace_close(t->trace);
    ctf_schemas_free(t->schemas);
    for (uint32_t cpu = 0; cpu < 64; cpu++) {
        snprintf(path, sizeof path, "%s/channel0_%u", t->dir, cpu);
        unlink(path);
    }
    snprintf(path, sizeof path, "%s/metadata", t->dir);
    unlink(path);
    rmdir(t->dir);
}

/* ---- running ---- */

struct kernel_tracker *maker_run_with(const struct ctf_trace *trace, maker_start *start, kernel_sink *sink, void *arg,
    struct kernel_binding **binding, int64_t *end)
{
    struct err e = {0};
    if (kernel_bind(trace, binding, &e))
        fail_msg("%s", e.text);
    struct ctf_source source = {.trace = (struct ctf_trace *)(uintptr_t)trace};
    struct ctf_merge *merge;
    if (ctf_merge_new(&source, 1, (struct ctf_window){INT64_MIN, INT64_MAX}, -1, &merge, &e))
        fail_msg("%s", e.text);
    struct kernel_tracker *t = kernel_tracker_new(*binding, sink, arg);
    if (start)
        start(arg, t);
    struct ctf_event events[64];
    *end = INT64_MIN;
    for (size_t n; (n = ctf_merge_next(merge, events, 64)) > 0;) {
        kernel_tracker_feed(t, events, n);
        *end = events[n - 1].ts > *end ? events[n - 1].ts : *end;
    }
    kernel_tracker_finish(t);
    ctf_merge_free(merge);
    return t;
}

struct kernel_tracker *maker_run(
    const struct ctf_trace *trace, kernel_sink *sink, void *arg, struct kernel_binding **binding, int64_t *end)
{
    return maker_run_with(trace, NULL, sink, arg, binding, end);
}
