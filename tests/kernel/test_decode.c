/* SPDX-License-Identifier: MIT */
/* Fields of recorded events against babeltrace2's text of the same events, name by name: LTTng of several ages and
 * perf. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "../base/test.h"
#include "kernel/binding.h"
#include "maker.h"

static const char *const fields[KERNEL_KINDS][6] = {
    [KERNEL_SWITCH] = {"prev_tid|prev_pid", "prev_state", "next_tid|next_pid", "prev_prio", "next_prio"},
    [KERNEL_WAKE] = {"tid|pid", "target_cpu", "prio"},
    [KERNEL_WAKE_NEW] = {"tid|pid", "target_cpu", "prio"},
    [KERNEL_WAKEUP] = {"tid|pid", "target_cpu", "prio"},
    [KERNEL_FORK] = {"parent_tid|parent_pid", "child_tid|child_pid", "child_pid", "child_ns_inum"},
    [KERNEL_EXEC] = {"tid|pid", "old_tid|old_pid"},
    [KERNEL_EXIT] = {"tid|pid"},
    [KERNEL_FREE] = {"tid|pid"},
    [KERNEL_MIGRATE] = {"tid|pid", "orig_cpu", "dest_cpu"},
    [KERNEL_IRQ_ENTRY] = {"irq"},
    [KERNEL_IRQ_EXIT] = {"irq", "ret"},
    [KERNEL_SOFTIRQ_RAISE] = {"vec"},
    [KERNEL_SOFTIRQ_ENTRY] = {"vec"},
    [KERNEL_SOFTIRQ_EXIT] = {"vec"},
    [KERNEL_HRTIMER_ENTRY] = {"hrtimer", "function"},
    [KERNEL_HRTIMER_EXIT] = {"hrtimer"},
    [KERNEL_IPI_ENTRY] = {"vector"},
    [KERNEL_IPI_EXIT] = {"vector"},
    [KERNEL_BLOCK_ISSUE] = {"dev", "sector", "nr_sector", "rwbs"},
    [KERNEL_BLOCK_COMPLETE] = {"dev", "sector", "nr_sector", "rwbs", "error"},
    [KERNEL_WORK_QUEUE] = {"work", "function"},
    [KERNEL_WORK_START] = {"work", "function"},
    [KERNEL_SYSCALL_EXIT] = {"ret"},
    [KERNEL_KVM_ENTRY] = {"vcpu_id"},
    [KERNEL_KVM_EXIT] = {"vcpu_id", "exit_reason", "isa"},
    [KERNEL_PAGE_ALLOC] = {"order", "page"},
    [KERNEL_FREQUENCY] = {"state", "cpu_id"},
    [KERNEL_PAGE_FREE] = {"order"},
    [KERNEL_STATEDUMP_THREAD] = {"tid", "pid", "ppid", "status", "vtid", "ns_inum"},
    [KERNEL_STATEDUMP_NS] = {"tid", "vtid", "ns_level", "ns_inum"},
    [KERNEL_STATEDUMP_DISK] = {"dev"},
    [KERNEL_STATEDUMP_IRQ] = {"irq"},
};

struct oracle {
    FILE *pipe;
    char *line;
    size_t cap;
    bool perf;
};

static void open_trace(
    const char *name, struct ctf_schemas **schemas, struct ctf_trace **trace, struct oracle *o, const char *program)
{
    const char *data = getenv("WEFT_DATA");
    char path[4096], command[4300];
    struct ctf_group *groups;
    size_t n;
    struct err e = {0};
    if (*name == '/')
        snprintf(path, sizeof path, "%s", name);
    else
        snprintf(path, sizeof path, "%s/%s", data ? data : WEFT_SOURCE_ROOT "/../shared/data", name);
    if (ctf_discover(path, &groups, &n, &e))
        skip_without("%s", e.text);
    *schemas = ctf_schemas_new();
    if (ctf_trace_open(&groups[0], *schemas, trace, &e))
        fail_msg("%s", e.text);
    ctf_groups_free(groups, n);
    snprintf(command, sizeof command, "%s '%s' 2>/dev/null", program, path);
    o->pipe = popen(command, "r");
    o->perf = strstr(name, "perf") != NULL;
}

/* The payload part of the next line; NULL at the end. The line's event name goes to `name`. */
static const char *next_line(struct oracle *o, char name[96])
{
    if (getline(&o->line, &o->cap, o->pipe) <= 0)
        return NULL;
    const char *brace = strstr(o->line, ": {");
    if (!brace)
        return "";
    const char *start = brace;
    while (start > o->line && start[-1] != ' ')
        start--;
    snprintf(name, 96, "%.*s", (int)(brace - start), start);
    const char *cpu = strstr(brace, "cpu_id = "), *payload = cpu ? strstr(cpu, "}, {") : NULL;
    return payload ? payload + 3 : brace;
}

/* Finds " name = 12," in the line; of strings and nested fields only the first number counts. */
static bool told(const char *line, const char *names, int64_t *value)
{
    char want[64];
    for (const char *s = names; s;) {
        const char *bar = strchr(s, '|');
        snprintf(want, sizeof want, " %.*s = ", bar ? (int)(bar - s) : (int)strlen(s), s);
        const char *at = strstr(line, want);
        if (at) {
            at += strlen(want);
            if (*at == '(') /* an enumeration: ( "_tcp" : container = 6 ) */
                at = strstr(at, "container = ") + 12;
            *value = at[0] == '-' ? strtoll(at, NULL, 10) : (int64_t)strtoull(at, NULL, at[1] == 'x' ? 16 : 10);
            return true;
        }
        s = bar ? bar + 1 : NULL;
    }
    return false;
}

/* The integer fields of one event. Returns its kind. */
static int decode_event(const struct kernel_binding *b, const struct ctf_event *ev, int64_t values[KERNEL_FIELDS])
{
    uint32_t index = ev->cls->index;
    const struct kernel_plan *p = index < b->n ? &b->plans[index] : &b->plans[0];
    kernel_fields(ev, p, values);
    return p->kind;
}

static void decode(void **state)
{
    const char *name = *state;
    struct ctf_schemas *schemas;
    struct ctf_trace *trace;
    struct oracle o = {0};
    struct err e = {0};
    open_trace(name, &schemas, &trace, &o, "babeltrace2 --clock-seconds --no-delta");
    struct kernel_binding *b;
    if (kernel_bind(trace, &b, &e))
        fail_msg("%s", e.text);
    struct ctf_source source = {.trace = trace};
    struct ctf_merge *merge;
    if (ctf_merge_new(&source, 1, (struct ctf_window){INT64_MIN, INT64_MAX}, -1, &merge, &e))
        fail_msg("%s", e.text);
    struct ctf_event events[64];
    size_t n, compared = 0;
    bool ended = false;
    while (!ended && (n = ctf_merge_next(merge, events, 64)) > 0)
        for (size_t i = 0; i < n && !ended; i++) {
            char event[96] = "";
            int64_t v[6], want;
            if (events[i].cls->item != CTF_EVENT)
                continue;
            const char *line = next_line(&o, event);
            if ((ended = !line))
                break;
            assert_string_equal(event, events[i].cls->name);
            int kind = decode_event(b, &events[i], v);
            for (int f = 0; f < 6 && fields[kind][f]; f++)
                if (!(o.perf && kind == KERNEL_FORK && f == 2) && told(line, fields[kind][f], &want)) {
                    if (v[f] != want)
                        fail_msg("%s: %s is %lld, not %lld: %s", event, fields[kind][f], (long long)v[f],
                            (long long)want, line);
                    compared++;
                }
        }
    pclose(o.pipe);
    free(o.line);
    ctf_merge_free(merge);
    kernel_binding_free(b);
    ctf_trace_close(trace);
    ctf_schemas_free(schemas);
    if (!compared)
        skip_without("babeltrace2 is not installed");
}

/* ---- packets ---- */

struct packets {
    struct oracle oracle;
    size_t compared, tcp;
};

static int64_t must(const char *line, const char *name)
{
    int64_t v = 0;
    if (!told(line, name, &v))
        fail_msg("no %s in %s", name, line);
    return v;
}

static void check_address(const char *line, const char *name, const uint8_t *bytes)
{
    char want[64];
    snprintf(want, sizeof want, " %s = [ [0] = %u, [1] = %u, [2] = %u, [3] = %u ]", name, bytes[0], bytes[1], bytes[2],
        bytes[3]);
    if (!strstr(line, want))
        fail_msg("no \"%s\" in %s", want, line);
}

static void on_packet(void *arg, const struct kernel_record *r)
{
    struct packets *p = arg;
    if (r->kind != KERNEL_PACKET_SEND && r->kind != KERNEL_PACKET_RECEIVE)
        return;
    const struct kernel_packet *k = &r->u.packet;
    const char *line;
    char event[96] = "";
    do {
        line = next_line(&p->oracle, event);
        if (!line)
            return;
    } while (strcmp(event, "net_dev_queue") && strcmp(event, "net_if_receive_skb") &&
        strncmp(event, "inet_sock_local_", 16));
    if (!strncmp(event, "inet", 4)) {
        assert_int_equal(r->kind, strstr(event, "out") ? KERNEL_PACKET_SEND : KERNEL_PACKET_RECEIVE);
        assert_int_equal(k->seq, must(line, "seq"));
        assert_int_equal(k->ack, must(line, "ack_seq"));
        assert_int_equal(k->flags, must(line, "flags") & 0x1ff);
        assert_false(k->has_length);
        p->compared++;
        return;
    }
    assert_int_equal(k->skb, must(line, "skbaddr"));
    if (must(line, "network_header_type") == 1) {
        assert_int_equal(k->family, 4);
        check_address(line, "saddr", k->saddr);
        check_address(line, "daddr", k->daddr);
        assert_int_equal(k->ip_id, must(line, "id"));
        assert_int_equal(k->protocol, must(line, "protocol"));
        int64_t transport = must(line, "transport_header_type");
        const char *header = strstr(line, "transport_header = ");
        if (transport == 1 || transport == 2) {
            assert_int_equal(k->sport, must(header, "source_port"));
            assert_int_equal(k->dport, must(header, "dest_port"));
        }
        if (transport == 1) {
            assert_int_equal(k->seq, must(header, "seq"));
            assert_int_equal(k->ack, must(header, "ack_seq"));
            assert_int_equal(k->flags, must(header, "flags"));
            assert_true(k->has_length);
            assert_int_equal(
                k->payload_bytes, must(line, "tot_len") - 4 * must(line, "ihl") - 4 * must(header, "data_offset"));
            p->tcp++;
        }
    }
    p->compared++;
}

static void check_packets(const char *name, const char *program)
{
    struct ctf_schemas *schemas;
    struct ctf_trace *trace;
    struct packets p = {0};
    bool old = strstr(name, "scp_") != NULL;
    open_trace(name, &schemas, &trace, &p.oracle, program);
    struct kernel_binding *b;
    int64_t end;
    kernel_tracker_free(maker_run(trace, on_packet, &p, &b, &end));
    if (p.compared && !old)
        assert_true(p.tcp > 20);
    pclose(p.oracle.pipe);
    free(p.oracle.line);
    kernel_binding_free(b);
    ctf_trace_close(trace);
    ctf_schemas_free(schemas);
    if (!p.compared)
        skip_without("%s is not installed", old ? "babeltrace" : "babeltrace2");
}

static void packets(void **state)
{
    bool old = strstr(*state, "scp_") != NULL;
    check_packets(*state, old ? "babeltrace --clock-seconds --no-delta" : "babeltrace2 --clock-seconds --no-delta");
}

/* Checks the packets rewritten by babeltrace2: in the byte and bit order of this machine instead of the network's. */
static void rewritten_packets(void **state)
{
    const char *data = getenv("WEFT_DATA");
    char dir[] = "/tmp/weft-rewritten-XXXXXX", command[4300];
    assert_non_null(mkdtemp(dir));
    snprintf(command, sizeof command, "babeltrace2 --output-format=ctf --output=%s '%s/%s' >%s/log 2>&1", dir,
        data ? data : WEFT_SOURCE_ROOT "/../shared/data", (const char *)*state, dir);
    bool made = !system(command);
    if (made)
        check_packets(dir, "babeltrace2 --clock-seconds --no-delta");
    snprintf(command, sizeof command, "rm -r %s", dir);
    assert_int_equal(system(command), 0);
    if (!made)
        skip_without("babeltrace2 does not write traces here, or there is no %s", (const char *)*state);
}

/* Checks a trace that is not the kernel's. */
static void refused(void **state)
{
    struct ctf_schemas *schemas;
    struct ctf_trace *trace;
    struct oracle o = {0};
    struct kernel_binding *b;
    struct err e = {0};
    open_trace("traces-public/single-host/hello-lost", &schemas, &trace, &o, "true");
    assert_int_equal(kernel_bind(trace, &b, &e), ERR_UNSUPPORTED);
    assert_non_null(strstr(e.text, "sched_switch"));
    assert_false(kernel_is_kernel_trace(trace));
    pclose(o.pipe);
    ctf_trace_close(trace);
    ctf_schemas_free(schemas);
}

int main(void)
{
    static char *traces[] = {"traces/three-tier/db/kernel", "traces/mpi/n1/kernel", "traces/vm/vmhost/kernel",
        "traces/perf-ctf/trace", "traces-public/single-host/many-threads", "traces-public/single-host/bug446190",
        "traces-public/single-host/perf-taskset2"};
    static char *networks[] = {"traces/three-tier/web/kernel", "traces/scp-net/n1/kernel", "traces/mpi/n1/kernel",
        "traces-public/synctraces/scp_dest"};
    enum { TRACES = sizeof traces / sizeof *traces, NETWORKS = sizeof networks / sizeof *networks };
    struct CMUnitTest tests[TRACES + NETWORKS + 2];
    size_t n = 0;
    for (size_t i = 0; i < TRACES; i++)
        tests[n++] = (struct CMUnitTest){.name = traces[i], .test_func = decode, .initial_state = traces[i]};
    for (size_t i = 0; i < NETWORKS; i++)
        tests[n++] = (struct CMUnitTest){.name = networks[i], .test_func = packets, .initial_state = networks[i]};
    tests[n++] = (struct CMUnitTest){
        .name = "packets written anew", .test_func = rewritten_packets, .initial_state = networks[0]};
    tests[n++] = (struct CMUnitTest)cmocka_unit_test(refused);
    return _cmocka_run_group_tests("decode", tests, n, NULL, NULL);
}
