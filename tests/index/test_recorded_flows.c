/* SPDX-License-Identifier: MIT */
/* The recorded clusters: wakes by packets of traced peers find the send that explains them, and no arrow of a
 * connection is wrong by more than the clocks' error. Truth: every host of a scenario is traced, so a packet that came
 * from a traced address was sent there. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "../base/test.h"
#include "clock/clock.h"
#include "flow/flow.h"
#include "index/index.h"

static const char *scenario(const char *name, char *path, size_t n)
{
    const char *data = getenv("WEFT_DATA");
    snprintf(path, n, "%s/traces/%s", data ? data : WEFT_SOURCE_ROOT "/../shared/data", name);
    if (access(path, R_OK))
        skip_without("no %s", path);
    return path;
}

/* Host that sends from the source address of the flow, or -1. Loopback packets come from the host itself. */
static int traced_source(const struct index_host *hosts, size_t n, size_t receiver, const struct flow_key *key)
{
    if (key->family == 4 && key->saddr[0] == 127)
        return (int)receiver;
    for (size_t i = 0; i < n; i++) {
        const struct flow_address *a;
        size_t count = flow_addresses(hosts[i].flows, &a);
        for (size_t k = 0; k < count; k++)
            if (a[k].family == key->family && !memcmp(a[k].addr, key->saddr, sizeof a[k].addr))
                return (int)i;
    }
    return -1;
}

struct tally {
    size_t wakes, found, backwards, ambiguous;
    size_t translated, led, astray; /* found by numbers alone; routes lead to the sender; to others, in vain */
};

/* Counts senders of the same message under other addresses: its numbers still identify the sender, and exclude
 * others. */
static void count_routes(const struct index_host *hosts, size_t n, int from, struct flow_message_key key,
    const struct flow_window *window, struct tally *t)
{
    struct flow_packet send;
    key.flow.saddr[0] ^= 0x55;
    key.flow.daddr[0] ^= 0x55;
    bool found = flow_find_send(hosts[from].flows, &key, window, &send) != FLOW_NOT_SENT;
    t->translated += found;
    for (size_t i = 0; i < n && found; i++) {
        struct flow_route *routes;
        size_t count = hosts[i].flows ? flow_routes(hosts[i].flows, SIZE_MAX - 1, &routes) : 0;
        bool led = count && flow_routes_lead(routes, count, &key);
        t->led += led && i == (size_t)from;
        t->astray += led && i != (size_t)from;
        if (hosts[i].flows)
            free(routes);
    }
}

static void count_wakes(
    const struct index_host *hosts, size_t n, size_t h, const struct clock_net *net, struct tally *t)
{
    for (size_t w = 0; w < flow_wakes(hosts[h].flows); w++) {
        struct flow_wake wake;
        struct flow_packet receive, send;
        struct flow_key key;
        flow_wake(hosts[h].flows, w, &wake);
        if (!flow_by_number(hosts[h].flows, wake.receive, &receive, NULL))
            continue;
        flow_key(hosts[h].flows, receive.flow, &key);
        int from = traced_source(hosts, n, h, &key);
        if (from < 0)
            continue;
        t->wakes++;
        const struct clock_map *a = clock_net_map(net, (size_t)from), *b = clock_net_map(net, h);
        struct flow_message_key key_of;
        flow_message_key_of(hosts[h].flows, &receive, &key_of);
        int64_t at = clock_from_reference(a, clock_to_reference(b, receive.ts));
        struct flow_window window = flow_window_at(
            &key_of, at, (uint64_t)clock_error_at(a, at) + (uint64_t)clock_error_at(b, receive.ts));
        enum flow_answer answer = flow_find_send(hosts[from].flows, &key_of, &window, &send);
        if (answer == FLOW_NOT_SENT)
            continue;
        t->found++;
        count_routes(hosts, n, from, key_of, &window, t);
        t->ambiguous += answer == FLOW_AMBIGUOUS;
        int64_t sent = clock_to_reference(a, send.ts), received = clock_to_reference(b, receive.ts);
        t->backwards += received + clock_error_at(a, send.ts) + clock_error_at(b, receive.ts) < sent;
    }
}

static void check(const char *name)
{
    char path[4096], store[] = "/tmp/weft-flows-XXXXXX", command[64];
    const char *trace = scenario(name, path, sizeof path);
    struct err e = {0};
    struct experiment *x;
    struct clock_options clocks = clock_defaults();
    const struct clock_net *net;
    const struct index_host *hosts;
    assert_non_null(mkdtemp(store));
    struct index_options o = {.store = store, .stores = true};
    if (index_experiment_open(&trace, 1, &o, &x, &e) || index_experiment_sync(x, &clocks, &net, &e))
        fail_msg("%s", e.text);
    size_t n = index_experiment_hosts(x, &hosts);
    struct tally t = {0};
    for (size_t h = 0; h < n; h++)
        count_wakes(hosts, n, h, net, &t);
    printf("%s: %zu wakes by packets of traced hosts, %zu explained; %zu of them by numbers alone, which led astray to "
           "%zu of %zu others\n",
        name, t.wakes, t.found, t.translated, t.astray, t.translated * (n - 1));
    assert_int_equal(t.led, t.translated);
    assert_true(t.translated > 0 && t.astray * 50 <= t.translated * (n - 1));
    assert_true(t.wakes >= 20);
    assert_true(t.found * 100 >= t.wakes * 99);
    assert_int_equal(t.backwards, 0);
    assert_int_equal(t.ambiguous, 0);
    index_experiment_close(x);
    snprintf(command, sizeof command, "rm -rf %s", store);
    assert_int_equal(system(command), 0);
}

static void three_tier(void **state)
{
    check("three-tier");
}
static void scp_net(void **state)
{
    check("scp-net");
}
static void bsp(void **state)
{
    check("bsp");
}
static void mpi(void **state)
{
    check("mpi");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(three_tier), cmocka_unit_test(scp_net), cmocka_unit_test(bsp), cmocka_unit_test(mpi)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
