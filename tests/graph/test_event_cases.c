/* SPDX-License-Identifier: MIT */
/* The event-level cases of ../shared/data/critical-path-cases/event_cases.json: the events are made into traces, the
 * graph must have every edge listed. weft keeps no cut points where a thread sends or wakes: neighbouring edges of the
 * same kind are one interval, so each listed edge must lie in an interval of its kind. It keeps no rows for work in
 * interrupts (k0, k1). Packets are matched by their message number, for flow stands in here. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include <jansson.h>

#include "../base/test.h"
#include "made.h"

static json_t *cases;

/* Packets of one host: time of the send or receive of each message; and the receive that is waiting for its wake on
 * each CPU. */
struct host {
    const char *name;
    struct graph *graph;
    struct {
        int64_t ts;
        int id;
        bool send;
    } packets[16];
    size_t n;
};

static int number(const json_t *fields, const char *name)
{
    return (int)json_integer_value(json_object_get(fields, name));
}

static void add_name(struct maker *m, const json_t *f, const char *tid, const char *comm)
{
    const char *name = json_string_value(json_object_get(f, comm));
    if (name && !strncmp(name, "irq/", 4))
        maker_name(m, number(f, tid), name);
}

static void add_event(struct maker *m, struct host *h, const json_t *event)
{
    int64_t ts = json_integer_value(json_array_get(event, 0));
    const char *name = json_string_value(json_array_get(event, 1));
    uint32_t cpu = (uint32_t)json_integer_value(json_array_get(event, 2));
    const json_t *f = json_array_get(event, 3);
    add_name(m, f, "prev", "pcomm");
    add_name(m, f, "next", "ncomm");
    if (!strcmp(name, "sched_switch"))
        maker_switch(m, cpu, ts, number(f, "prev"), number(f, "st"), number(f, "next"));
    else if (!strcmp(name, "sched_wakeup"))
        maker_wake(m, cpu, ts, M_WAKEUP, number(f, "tid"), (int)cpu);
    else if (!strcmp(name, "irq_handler_entry"))
        maker_irq(m, cpu, ts, true, number(f, "irq"), "device");
    else if (!strcmp(name, "irq_handler_exit"))
        maker_irq(m, cpu, ts, false, 0, NULL);
    else if (!strcmp(name, "softirq_entry") || !strcmp(name, "softirq_exit"))
        maker_number(m, cpu, ts, strstr(name, "entry") ? M_SOFTIRQ_ENTRY : M_SOFTIRQ_EXIT, number(f, "vec"));
    else if (!strcmp(name, "do_IRQ_entry") || !strcmp(name, "do_IRQ_return"))
        maker_plain(m, cpu, ts, strstr(name, "entry") ? M_DO_IRQ_ENTRY : M_DO_IRQ_RETURN);
    else if (!strncmp(name, "netif_receive_skb_internal", 26))
        maker_plain(m, cpu, ts, strstr(name, "entry") ? M_NET_ENTRY : M_NET_EXIT);
    else if (!strncmp(name, "packet_", 7)) {
        h->packets[h->n].ts = ts;
        h->packets[h->n].id = number(f, "id");
        h->packets[h->n++].send = !strcmp(name, "packet_sent");
        maker_plain(m, cpu, ts, M_OTHER);
    } else
        fail_msg("event %s", name);
}

/* Substitute for flow: a wake in network work was caused by the last packet received. */
static uint32_t match_packet(void *arg, const struct kernel_record *r)
{
    struct host *h = arg;
    uint32_t wake = 0;
    bool network = (r->ctx == KERNEL_CTX_SOFTIRQ && r->ctx_number == KERNEL_SOFTIRQ_NET_RX) || r->ctx == KERNEL_CTX_NET;
    if (r->kind != KERNEL_WAKE || !network)
        return 0;
    for (size_t i = 0; i < h->n; i++)
        if (!h->packets[i].send && h->packets[i].ts <= r->ts)
            wake = (uint32_t)h->packets[i].id + 1;
    return wake;
}

static struct host *find_host(struct host *hosts, size_t n, const char *name)
{
    for (size_t i = 0; i < n; i++)
        if (hosts[i].name[0] == name[0])
            return &hosts[i];
    fail_msg("host %s", name);
    return NULL;
}

/* "h:1@10-PREEMPTED->h:1@20", "c:200@15-NETWORK(irq/30-handler)->c:200@70" */
static void check_edge(struct host *hosts, size_t n_hosts, const char *edge)
{
    char from_host[8], to_host[8], kind[64], detail[64] = "";
    int from_tid, to_tid;
    long long from, to;
    if (strstr(edge, ":k"))
        return;
    assert_int_equal(sscanf(edge, "%7[^:]:%d@%lld-%63[^-(]", from_host, &from_tid, &from, kind), 4);
    if (strchr(edge, '('))
        assert_int_equal(sscanf(strchr(edge, '('), "(%63[^)])", detail), 1);
    const char *target = strstr(edge, "->");
    assert_int_equal(sscanf(target, "->%7[^:]:%d@%lld", to_host, &to_tid, &to), 3);
    struct host *a = find_host(hosts, n_hosts, from_host), *b = find_host(hosts, n_hosts, to_host);
    int32_t row = made_row(b->graph, to_tid, 0);
    assert_true(row >= 0);
    uint64_t i = graph_find(b->graph, row, to);
    struct graph_interval iv;
    struct graph_cause c;
    graph_interval(b->graph, row, i, &iv);
    graph_interval_cause(b->graph, row, i, &c);
    if (a == b && from_tid == to_tid) {
        for (char *p = kind; *p; p++)
            *p = (char)(*p == '_' ? '-' : *p | 0x20);
        if (strcmp(graph_state_name(iv.state), kind) || iv.begin > from || iv.end < to)
            fail_msg(
                "%s: is %s [%lld, %lld]", edge, graph_state_name(iv.state), (long long)iv.begin, (long long)iv.end);
        if (detail[0])
            assert_string_equal(iv.detail ? iv.detail : "", detail);
        return;
    }
    assert_int_equal(iv.end, to);
    if (!strcmp(kind, "DEFAULT")) {
        assert_int_equal(c.kind, GRAPH_CAUSE_WAKEUP);
        assert_int_equal(c.row, made_row(a->graph, from_tid, 0));
        assert_int_equal(c.ts, from);
        return;
    }
    assert_string_equal(kind, "NETWORK");
    assert_int_equal(iv.state, GRAPH_NETWORK);
    assert_int_equal(c.kind, GRAPH_CAUSE_PACKET);
    for (size_t p = 0; p < a->n; p++)
        if (a->packets[p].send && a->packets[p].id == (int)c.wake) {
            assert_int_equal(a->packets[p].ts, from);
            assert_int_equal(graph_cpu_occupant(a->graph, a == b ? 0 : (uint32_t)(a->name[0] == 's'), from),
                made_row(a->graph, from_tid, 0));
            return;
        }
    fail_msg("%s: nobody sent message %llu", edge, (unsigned long long)c.wake);
}

static void event_case(void **state)
{
    size_t at = (size_t)(uintptr_t)*state;
    const json_t *one = json_array_get(cases, at), *traces = json_object_get(one, "traces"),
                 *edges = json_object_get(one, "graph");
    struct host hosts[4] = {{0}};
    size_t n = json_array_size(traces), i;
    const json_t *value;
    for (i = 0; i < n; i++) {
        const json_t *trace = json_array_get(traces, i), *events = json_array_get(trace, 1), *event;
        hosts[i].name = json_string_value(json_array_get(trace, 0));
        struct maker *m = maker_new(2, 1 << M_WAKING);
        size_t k;
        json_array_foreach (events, k, event)
            add_event(m, &hosts[i], event);
        hosts[i].graph = made_graph(m, SIZE_MAX, false, match_packet, &hosts[i]);
        made_check(hosts[i].graph);
        maker_free(m);
    }
    json_array_foreach (edges, i, value)
        check_edge(hosts, n, json_string_value(value));
    for (i = 0; i < n; i++)
        graph_close(hosts[i].graph);
}

int main(void)
{
    const char *data = getenv("WEFT_DATA");
    char path[4096];
    snprintf(
        path, sizeof path, "%s/critical-path-cases/event_cases.json", data ? data : WEFT_SOURCE_ROOT "/../shared/data");
    json_error_t e;
    cases = json_load_file(path, 0, &e);
    if (!cases) {
        return test_absent("%s: %s", path, e.text);
    }
    struct CMUnitTest tests[16];
    size_t n = json_array_size(cases);
    n = n < 16 ? n : 16;
    for (size_t i = 0; i < n; i++)
        tests[i] = (struct CMUnitTest){.name = json_string_value(json_object_get(json_array_get(cases, i), "name")),
            .test_func = event_case,
            .initial_state = (void *)(uintptr_t)i};
    int rc = _cmocka_run_group_tests("event cases", tests, n, NULL, NULL);
    json_decref(cases);
    return rc;
}
