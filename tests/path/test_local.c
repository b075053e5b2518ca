/* SPDX-License-Identifier: MIT */
/* The join of several hosts' stores, with stores and clock maps made up here. Links local.c and traffic.c against
 * made_stores.c. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../base/test.h"
#include "made_stores.h"
#include "path/path.h"

/* b's clock: 1 s ahead of the reference and 100 ppm too fast, at time 0. */
static const struct clock_piece ahead = {.begin = 0,
    .end = INT64_MAX / 2,
    .t0 = 1000000000,
    .shift = -1000000000,
    .slope_q62 = -((INT64_C(1) << 62) / 10001)};
static const struct clock_map map_b = {.host = 1, .pieces = &ahead, .n = 1};
static const struct clock_piece same = {.begin = 0, .end = INT64_MAX / 2};
static const struct clock_map map_a = {.host = 0, .pieces = &same, .n = 1};

static int64_t on_b(int64_t reference)
{
    return 1000000000 + reference + reference / 10000;
}

struct world {
    struct graph a, b;
    struct flow_store fa, fb;
    struct path_local_host hosts[2];
    struct path_local *local;
    int32_t client, server;
};

static void join(struct world *w)
{
    w->hosts[0] = (struct path_local_host){"a", &w->a, &w->fa, &map_a};
    w->hosts[1] = (struct path_local_host){"b", &w->b, &w->fb, &map_b};
    make_address(&w->fa, 1);
    make_address(&w->fb, 2);
    make_peer(&w->fa, 2);
    make_peer(&w->fb, 1);
    w->local = path_local_new(w->hosts, 2);
}

static void leave(struct world *w)
{
    path_local_free(w->local);
    drop(&w->a, &w->fa);
    drop(&w->b, &w->fb);
}

static struct path *walk(struct world *w, int32_t host, int32_t row, int64_t begin, int64_t end)
{
    struct path *p;
    struct err e = {0};
    struct path_options options = {.begin = begin, .end = end};
    int code = path_walk(path_local_source(w->local), (struct path_row){host, row}, &options, &p, &e);
    if (code)
        fail_msg("%s", e.text);
    assert_true(path_covers(p, &e));
    return p;
}

static void expect(const struct path *p, size_t i, int32_t host, int64_t begin, int64_t end, int state)
{
    assert_true(i < p->n_segments);
    const struct path_segment *s = &p->segments[i];
    if (s->row.host != host || llabs(s->begin - begin) > 2 || llabs(s->end - end) > 2 || s->state != state)
        fail_msg("segment %d is host %d %lld-%lld %s", (int)i, s->row.host, (long long)s->begin, (long long)s->end,
            graph_state_name(s->state));
}

/* ---- tests ---- */

/* A client asks at 1 ms, sleeps at 2 ms; the server works from 3 to 40 ms; the answer wakes the client at 42 ms. */
static void make_call(struct world *w)
{
    w->client = make_row(&w->a, 10, "client", 0);
    w->server = make_row(&w->b, 20, "server", on_b(0));
    uint32_t ask_a = make_flow(&w->fa, 1, 1000, 2, 80), ask_b = make_flow(&w->fb, 1, 1000, 2, 80);
    uint32_t answer_a = make_flow(&w->fa, 2, 80, 1, 1000), answer_b = make_flow(&w->fb, 2, 80, 1, 1000);
    make_send(&w->fa, ask_a, 1000000, 10, w->client);
    make(&w->a, w->client, 2000000, GRAPH_RUNNING);
    struct made_interval *wait = make(&w->b, w->server, on_b(3000000), GRAPH_NETWORK);
    make_wake(&w->fb, wait, w->server, make_receive(&w->fb, ask_b, on_b(2900000), 10, w->server));
    make(&w->b, w->server, on_b(50000000), GRAPH_RUNNING);
    make_send(&w->fb, answer_b, on_b(40000000), 10, w->server);
    wait = make(&w->a, w->client, 42000000, GRAPH_NETWORK);
    make_wake(&w->fa, wait, w->client, make_receive(&w->fa, answer_a, 41900000, 10, w->client));
    make(&w->a, w->client, 50000000, GRAPH_RUNNING);
}

static void call(void **state)
{
    (void)state;
    struct world w = {0};
    make_call(&w);
    join(&w);
    struct path *p = walk(&w, 0, w.client, 0, 50000000);
    assert_int_equal(p->n_segments, 5);
    expect(p, 0, 0, 0, 1000000, GRAPH_RUNNING);
    expect(p, 1, 1, 1000000, 3000000, GRAPH_NETWORK);
    expect(p, 2, 1, 3000000, 40000000, GRAPH_RUNNING);
    expect(p, 3, 0, 40000000, 42000000, GRAPH_NETWORK);
    expect(p, 4, 0, 42000000, 50000000, GRAPH_RUNNING);
    assert_int_equal(p->segments[3].sender.host, 1);
    assert_int_equal(p->segments[3].sender.row, w.server);
    assert_string_equal(p->segments[3].detail, "host2:80 → host1:1000");
    assert_int_equal(p->n_gaps, 0);
    path_free(p);

    /* The send lies before the interval: the segment is clamped, the sender is named. */
    p = walk(&w, 0, w.client, 41000000, 50000000);
    assert_int_equal(p->n_segments, 2);
    expect(p, 0, 0, 41000000, 42000000, GRAPH_NETWORK);
    assert_int_equal(p->segments[0].sender.row, w.server);
    assert_int_equal(p->n_links, 1);
    assert_true(llabs(p->links[0].from_ts - 40000000) <= 2 && p->links[0].from.host == 1);
    path_free(p);

    /* The end lies within a wait: what the thread waited for then. */
    p = walk(&w, 0, w.client, 0, 30000000);
    expect(p, 2, 1, 3000000, 30000000, GRAPH_RUNNING);
    assert_int_equal(p->n_segments, 3);
    path_free(p);

    /* Instants of a row belong to exactly one interval although the conversion back is one nanosecond off. */
    const struct path_source *source = path_local_source(w.local);
    struct path_interval iv;
    for (int64_t t = 2999980; t < 3000020; t++) {
        assert_true(source->interval(source->arg, (struct path_row){1, w.server}, t, 0, &iv));
        assert_true(iv.begin < t && t <= iv.end);
    }
    int32_t odd = make_row(&w.b, 21, "odd", on_b(0)); /* borders on either side of the error */
    for (int64_t t = 3000001; t <= 3000008; t++)
        make(&w.b, odd, on_b(t), t % 2 ? GRAPH_RUNNING : GRAPH_PREEMPTED);
    make(&w.b, odd, on_b(5000000), GRAPH_PREEMPTED);
    for (int64_t t = 2999980; t < 3000020; t++) {
        assert_true(source->interval(source->arg, (struct path_row){1, odd}, t, 0, &iv));
        assert_true(iv.begin < t && t <= iv.end);
    }
    int64_t begin, end;
    assert_true(source->life(source->arg, (struct path_row){1, w.server}, &begin, &end));
    assert_false(source->interval(source->arg, (struct path_row){1, w.server}, begin, 0, &iv));
    assert_true(source->interval(source->arg, (struct path_row){1, w.server}, begin + 1, 0, &iv));
    assert_true(source->interval(source->arg, (struct path_row){1, w.server}, end, 0, &iv));
    assert_false(source->interval(source->arg, (struct path_row){1, w.server}, end + 1, 0, &iv));
    assert_false(source->life(source->arg, (struct path_row){1, 99}, &begin, &end));
    assert_false(source->life(source->arg, (struct path_row){2, 0}, &begin, &end));
    leave(&w);
}

/* A machine on the way (here the client's own bridge) saw the answer go out, too, even takes the address for its own
 * (it missed how the answer came in): it comes from who sent it all the same. */
static void seen_on_the_way(void **state)
{
    (void)state;
    for (int known = 1; known >= 0; known--) {
        struct world w = {0};
        make_call(&w);
        uint32_t answer = make_flow(&w.fa, 2, 80, 1, 1000);
        make_send(&w.fa, answer, 41800000, 10, -1);
        if (known)
            w.fa.flows.v[answer].sends.v[0].origin = FLOW_PASSING;
        make_address(&w.fa, 2);
        join(&w);
        struct path *p = walk(&w, 0, w.client, 0, 50000000);
        assert_int_equal(p->n_segments, 5);
        expect(p, 2, 1, 3000000, 40000000, GRAPH_RUNNING);
        expect(p, 3, 0, 40000000, 42000000, GRAPH_NETWORK);
        assert_int_equal(p->segments[3].sender.host, 1);
        assert_int_equal(p->segments[3].sender.row, w.server);
        path_free(p);
        leave(&w);
    }
}

/* A server was rebooted between two answers that look the same, from one address: each came from the boot that ran
 * then; also where clocks are left as they are and a message could have come from later. */
static void sent_by_the_boot_that_ran(void **state)
{
    (void)state;
    for (int how = 0; how < 4; how++) {
        struct graph a = {0}, boots[2] = {0};
        struct flow_store fa = {0}, fb[2] = {0};
        const struct clock_map *map = how & 1 ? &map_a : NULL;
        int first = how & 2 ? 2 : 1, second = 3 - first; /* order of the hosts */
        int32_t client = make_row(&a, 10, "client", 0);
        uint32_t answers = make_flow(&fa, 2, 80, 1, 1000);
        make(&a, client, 2000000, GRAPH_RUNNING);
        for (int i = 0; i < 2; i++) {
            int64_t booted = i * 50000000;
            int32_t server = make_row(&boots[i], 20, "server", booted);
            make(&boots[i], server, booted + 30000000, GRAPH_RUNNING);
            make_send(&fb[i], make_flow(&fb[i], 2, 80, 1, 1000), booted + 10000000, 10, server);
            make_address(&fb[i], 2);
            make_peer(&fb[i], 1);
            struct made_interval *wait = make(&a, client, booted + 12000000, GRAPH_NETWORK);
            make_wake(&fa, wait, client, make_receive(&fa, answers, booted + 11900000, 10, client));
            make(&a, client, booted + 52000000, GRAPH_RUNNING);
        }
        make_address(&fa, 1);
        make_peer(&fa, 2);
        struct path_local_host hosts[3] = {[0] = {"a", &a, &fa, map}};
        hosts[first] = (struct path_local_host){"b", &boots[0], &fb[0], map};
        hosts[second] = (struct path_local_host){"b", &boots[1], &fb[1], map};
        struct world w = {.local = path_local_new(hosts, 3)};
        struct path *p = walk(&w, 0, client, 0, 70000000);
        assert_int_equal(p->n_segments, 7);
        expect(p, 0, 0, 0, 2000000, GRAPH_RUNNING);
        expect(p, 1, first, 2000000, 10000000, GRAPH_RUNNING);
        expect(p, 2, 0, 10000000, 12000000, GRAPH_NETWORK);
        expect(p, 3, 0, 12000000, 52000000, GRAPH_RUNNING);
        expect(p, 4, second, 52000000, 60000000, GRAPH_RUNNING);
        expect(p, 5, 0, 60000000, 62000000, GRAPH_NETWORK);
        expect(p, 6, 0, 62000000, 70000000, GRAPH_RUNNING);
        path_free(p);
        path_local_free(w.local);
        drop(&a, &fa);
        for (int i = 0; i < 2; i++)
            drop(&boots[i], &fb[i]);
    }
}

static void address_without_owner(void **state)
{
    (void)state;
    struct world w = {0};
    struct path *p;
    /* Unknown owner of the address (the sender's trace does not record it): the host that has the send. */
    make_call(&w);
    join(&w);
    w.fb.addresses.n = 0;
    p = walk(&w, 0, w.client, 0, 50000000);
    assert_int_equal(p->segments[3].sender.host, 1);
    path_free(p);
    leave(&w);
}

static void nobody_sent_it(void **state)
{
    (void)state;
    struct world w = {0};
    make_call(&w);
    /* Second wait of the client, for a machine that was not traced. */
    uint32_t flow = make_flow(&w.fa, 9, 53, 1, 5000);
    struct made_interval *wait = make(&w.a, w.client, 60000000, GRAPH_NETWORK);
    make_wake(&w.fa, wait, w.client, make_receive(&w.fa, flow, 59000000, 10, w.client));
    make(&w.a, w.client, 61000000, GRAPH_RUNNING);
    /* Wait for a message of b that b's trace does not have: it lost events there. */
    wait = make(&w.a, w.client, 70000000, GRAPH_NETWORK);
    make_wake(&w.fa, wait, w.client, make_receive(&w.fa, make_flow(&w.fa, 2, 80, 1, 1000), 69000000, 999, w.client));
    make(&w.a, w.client, 71000000, GRAPH_RUNNING);
    vec_push(&w.b.losses, ((struct graph_loss){.begin = on_b(68000000), .end = on_b(68500000), .count = 5}));
    /* Wait without a recorded end, and one whose end was lost. */
    make(&w.a, w.client, 72000000, GRAPH_BLOCKED);
    make(&w.a, w.client, 73000000, GRAPH_RUNNING);
    make(&w.a, w.client, 74000000, GRAPH_BLOCKED)->cause.kind = GRAPH_CAUSE_LOST;
    make(&w.a, w.client, 75000000, GRAPH_RUNNING);
    /* Wait without a recorded end, while this host lost events. */
    make(&w.a, w.client, 76000000, GRAPH_BLOCKED);
    make(&w.a, w.client, 77000000, GRAPH_RUNNING);
    vec_push(
        &w.a.losses, ((struct graph_loss){.begin = 74500000, .end = 75100000, .count = 1})); /* loss before the sleep */
    join(&w);
    struct path *p = walk(&w, 0, w.client, 50000000, 77000000);
    assert_int_equal(p->n_gaps, 5);
    assert_int_equal(p->gaps[0].reason, PATH_UNTRACED_PEER);
    assert_string_equal(p->gaps[0].peer, "host9:53");
    assert_int_equal(p->gaps[1].reason, PATH_LOST_EVENTS);
    assert_int_equal(p->gaps[2].reason, PATH_NO_WAKER);
    assert_int_equal(p->gaps[3].reason, PATH_LOST_EVENTS);
    assert_int_equal(p->gaps[4].reason, PATH_LOST_EVENTS);
    path_free(p);
    leave(&w);

    /* The clocks of the two hosts cannot be related. */
    w = (struct world){0};
    make_call(&w);
    join(&w);
    path_local_free(w.local);
    static const struct clock_map lonely = {.host = 1, .category = CLOCK_ABSENT, .pieces = NULL, .n = 0, .island = 1};
    w.hosts[1].map = &lonely;
    w.local = path_local_new(w.hosts, 2);
    p = walk(&w, 0, w.client, 0, 50000000);
    assert_int_equal(p->n_gaps, 1);
    assert_int_equal(p->gaps[0].reason, PATH_NO_CLOCK);
    path_free(p);
    leave(&w);

    /* Unrelated clocks. */
    w = (struct world){0};
    make_call(&w);
    join(&w);
    path_local_free(w.local);
    struct clock_map other_island = map_b;
    other_island.island = 1;
    w.hosts[1].map = &other_island;
    w.local = path_local_new(w.hosts, 2);
    for (int recorded = 1; recorded >= 0; recorded--) { /* unrelated: its send may be among the lost ones */
        for (size_t i = 0; !recorded && i < w.fb.flows.n; i++)
            w.fb.flows.v[i].sends.n = 0;
        p = walk(&w, 0, w.client, 0, 50000000);
        assert_int_equal(p->n_gaps, 1);
        assert_int_equal(p->gaps[0].reason, PATH_NO_CLOCK);
        path_free(p);
    }
    leave(&w);
}

/* The client sees the server behind a translator, under an address that no host has. Some messages were not recorded:
 * the others are found all the same, and then the host is known. */
static void translated(void **state)
{
    (void)state;
    struct world w = {0};
    w.client = make_row(&w.a, 10, "client", 0);
    w.server = make_row(&w.b, 20, "server", on_b(0));
    make(&w.b, w.server, on_b(90000000), GRAPH_RUNNING);
    uint32_t out = make_flow(&w.fb, 2, 80, 1, 1000), in = make_flow(&w.fa, 9, 4000, 1, 1000);
    for (int64_t i = 0; i < 8; i++) {
        if (i != 5) /* order of requests: the walk goes backwards, so this one and the last come first */
            make_send(&w.fb, out, on_b((10 * i + 3) * 1000000), (uint64_t)(TRANSLATED + i), w.server);
        make(&w.a, w.client, (10 * i + 2) * 1000000, GRAPH_RUNNING);
        struct made_interval *wait = make(&w.a, w.client, (10 * i + 5) * 1000000, GRAPH_NETWORK);
        make_wake(&w.fa, wait, w.client,
            make_receive(
                &w.fa, in, (10 * i + 4) * 1000000, (uint64_t)(i < 7 ? TRANSLATED + i : TRANSLATED + 99), w.client));
    }
    make(&w.a, w.client, 80000000, GRAPH_RUNNING);
    join(&w);
    struct path *p = walk(&w, 0, w.client, 0, 80000000);
    assert_int_equal(p->n_gaps, 2);
    assert_int_equal(p->gaps[1].reason, PATH_UNTRACED_PEER);
    assert_string_equal(p->gaps[1].peer, "host9:4000");
    size_t found = 0;
    for (size_t i = 0; i < p->n_segments; i++)
        found += p->segments[i].state == GRAPH_NETWORK && p->segments[i].sender.host == 1 &&
            p->segments[i].sender.row == w.server;
    assert_int_equal(found, 6);
    path_free(p);
    leave(&w);
}

/* Checks that an untraced peer is queried a few times, not for each of its messages. */
static void untraced_peer(void **state)
{
    (void)state;
    struct world w = {0};
    enum { MESSAGES = 500 };
    w.client = make_row(&w.a, 10, "client", 0);
    w.server = make_row(&w.b, 20, "server", on_b(0));
    uint32_t in = make_flow(&w.fa, 9, 53, 1, 1000);
    for (int64_t i = 0; i < MESSAGES; i++) {
        make(&w.a, w.client, (10 * i + 2) * 1000, GRAPH_RUNNING);
        struct made_interval *wait = make(&w.a, w.client, (10 * i + 5) * 1000, GRAPH_NETWORK);
        make_wake(&w.fa, wait, w.client, make_receive(&w.fa, in, (10 * i + 4) * 1000, (uint64_t)i, w.client));
    }
    join(&w);
    explained = 0;
    struct path *p = walk(&w, 0, w.client, 0, 10000 * MESSAGES);
    assert_int_equal(p->n_gaps, MESSAGES);
    for (size_t i = 0; i < p->n_gaps; i++)
        assert_int_equal(p->gaps[i].reason, PATH_UNTRACED_PEER);
    assert_true(explained <= 20);
    path_free(p);
    leave(&w);
}

/* Checks many hosts, and a peer that is none of them: hosts that never sent to the receiver are not queried. */
static void many_hosts(void **state)
{
    (void)state;
    enum { HOSTS = 300, MESSAGES = 20 };
    static struct graph graphs[HOSTS];
    static struct flow_store flows[HOSTS];
    static struct path_local_host hosts[HOSTS];
    static char names[HOSTS][24];
    for (size_t i = 0; i < HOSTS; i++) {
        snprintf(names[i], sizeof names[i], "host%zu", i); /* hosts of one name would be boots of one machine */
        hosts[i] = (struct path_local_host){names[i], &graphs[i], &flows[i], &map_a};
        make_address(&flows[i], (uint8_t)(10 + i % 200));
        make_peer(&flows[i], (uint8_t)(10 + (i + 7) % 200));
    }
    int32_t reader = make_row(&graphs[0], 1, "reader", 0);
    uint32_t in = make_flow(&flows[0], 5, 53, 10, 1000);
    for (int64_t i = 0; i < MESSAGES; i++) {
        make(&graphs[0], reader, (10 * i + 2) * 1000, GRAPH_RUNNING);
        make_wake(&flows[0], make(&graphs[0], reader, (10 * i + 5) * 1000, GRAPH_NETWORK), reader,
            make_receive(&flows[0], in, (10 * i + 4) * 1000, (uint64_t)i, reader));
    }
    struct path_local *local = path_local_new(hosts, HOSTS);
    struct path_options options = {.begin = 0, .end = 10000 * MESSAGES};
    struct path *p;
    struct err e = {0};
    explained = 0;
    assert_int_equal(path_walk(path_local_source(local), (struct path_row){0, reader}, &options, &p, &e), 0);
    assert_int_equal(p->n_gaps, MESSAGES);
    /* Queries go only to the two hosts that sent to address 10, a few times. */
    assert_in_range(explained, 1, 16);
    path_free(p);
    path_local_free(local);
    for (size_t i = 0; i < HOSTS; i++)
        drop(&graphs[i], &flows[i]);
}

/* An acknowledgement clocks out more of what the sender has queued: the send belongs to interrupt context, and leads on
 * to who acknowledged. */
static void clocked_by_receive(void **state)
{
    (void)state;
    struct world w = {0};
    w.client = make_row(&w.a, 10, "reader", 0);
    w.server = make_row(&w.b, 20, "writer", on_b(0));
    make(&w.b, w.server, on_b(5000000), GRAPH_RUNNING);
    make(&w.b, w.server, on_b(100000000), GRAPH_BLOCKED);
    uint32_t data_a = make_flow(&w.fa, 2, 80, 1, 1000), data_b = make_flow(&w.fb, 2, 80, 1, 1000);
    uint32_t ack_a = make_flow(&w.fa, 1, 1000, 2, 80), ack_b = make_flow(&w.fb, 1, 1000, 2, 80);
    make(&w.a, w.client, 20000000, GRAPH_RUNNING);
    make_send(&w.fa, ack_a, 15000000, 77, w.client);
    uint32_t acked = make_receive(&w.fb, ack_b, on_b(40000000), 77, w.server);
    make_send(&w.fb, data_b, on_b(40010000), 10, -1);
    struct flow_packet *send = &w.fb.flows.v[data_b].sends.v[0];
    send->origin = FLOW_BY_RECEIVE;
    send->receive = acked;
    struct made_interval *wait = make(&w.a, w.client, 60000000, GRAPH_NETWORK);
    make_wake(&w.fa, wait, w.client, make_receive(&w.fa, data_a, 59000000, 10, w.client));
    make(&w.a, w.client, 70000000, GRAPH_RUNNING);
    join(&w);
    struct path *p = walk(&w, 0, w.client, 0, 70000000);
    assert_int_equal(p->n_segments, 5);
    expect(p, 0, 0, 0, 15000000, GRAPH_RUNNING);
    expect(p, 1, 1, 15000000, 40000000, GRAPH_NETWORK);
    expect(p, 2, 1, 40000000, 40010000, GRAPH_RUNNING);
    expect(p, 3, 0, 40010000, 60000000, GRAPH_NETWORK);
    int32_t tid;
    const char *comm;
    const struct path_source *source = path_local_source(w.local);
    source->row_name(source->arg, p->segments[2].row, 0, 0, &tid, &comm);
    assert_int_equal(tid, -1);
    assert_non_null(p->segments[2].detail);
    assert_int_equal(p->segments[1].sender.row, w.client);
    assert_int_equal(p->n_gaps, 0);
    path_free(p);
    leave(&w);
}

/* The writer sleeps while its queued bytes leave: the message is the writer's, and took since it went to sleep. */
static void sent_while_asleep(void **state)
{
    (void)state;
    struct world w = {0};
    w.client = make_row(&w.a, 10, "reader", 0);
    w.server = make_row(&w.b, 20, "writer", on_b(0));
    make(&w.b, w.server, on_b(5000000), GRAPH_RUNNING);
    make(&w.b, w.server, on_b(100000000), GRAPH_TIMER);
    uint32_t data_a = make_flow(&w.fa, 2, 80, 1, 1000), data_b = make_flow(&w.fb, 2, 80, 1, 1000);
    make_send(&w.fb, data_b, on_b(40000000), 10, w.server);
    make_wake(&w.fa, make(&w.a, w.client, 60000000, GRAPH_NETWORK), w.client,
        make_receive(&w.fa, data_a, 59000000, 10, w.client));
    make(&w.a, w.client, 70000000, GRAPH_RUNNING);
    join(&w);
    struct path *p = walk(&w, 0, w.client, 0, 70000000);
    assert_int_equal(p->n_segments, 3);
    expect(p, 0, 1, 0, 5000000, GRAPH_RUNNING);
    expect(p, 1, 0, 5000000, 60000000, GRAPH_NETWORK);
    assert_int_equal(p->segments[1].sender.row, w.server);
    path_free(p);
    leave(&w);
}

/* A client that spins for the answer: running, polling, with a link to who answered. A message it did not ask for is
 * only counted. A client that sleeps for most of its messages does not poll. */
static void polling(void **state)
{
    (void)state;
    struct world w = {0};
    make_call(&w);
    int32_t spinner = make_row(&w.a, 11, "rank", 0), sleeper = make_row(&w.a, 12, "sleeper", 0);
    for (int i = 0; i < 10; i++) { /* difference of the two: messages that came awake, and asleep */
        make_receive(&w.fa, make_flow(&w.fa, 3, 99, 1, 2000), 100000 + i, (uint64_t)i, spinner);
        make_receive(&w.fa, make_flow(&w.fa, 3, 99, 1, 3000), 100000 + i, (uint64_t)i, sleeper);
    }
    make(&w.a, sleeper, 1000000, GRAPH_NETWORK);
    make(&w.a, sleeper, 50000000, GRAPH_RUNNING);
    make_send(&w.fa, make_flow(&w.fa, 1, 3000, 2, 80), 4000000, 10, sleeper);
    make_receive(&w.fa, make_flow(&w.fa, 2, 80, 1, 3000), 30000000, 10, sleeper);
    uint32_t ask_a = make_flow(&w.fa, 1, 2000, 2, 80), answer_a = make_flow(&w.fa, 2, 80, 1, 2000),
             answer_b = make_flow(&w.fb, 2, 80, 1, 2000);
    make_send(&w.fa, ask_a, 4000000, 10, spinner);
    int32_t once = make_row(&w.a, 13, "once", 0); /* single message: no habit */
    make(&w.a, once, 50000000, GRAPH_RUNNING);
    make_send(&w.fa, make_flow(&w.fa, 1, 4000, 2, 80), 4000000, 10, once);
    make_receive(&w.fa, make_flow(&w.fa, 2, 80, 1, 4000), 30000000, 10, once);
    make_receive(&w.fa, answer_a, 5000000, 0, spinner); /* an acknowledgement is no answer */
    w.fa.flows.v[answer_a].receives.v[0].bytes = 0;
    make_receive(&w.fa, answer_a, 30000000, 10, spinner);
    make_send(&w.fb, answer_b, on_b(29000000), 10, w.server);
    make_receive(&w.fa, answer_a, 45000000, 20, spinner);
    /* no polling: request to another host; answer before it could have slept; sleep before the answer came */
    make_send(&w.fa, make_flow(&w.fa, 1, 2001, 2, 80), 46000000, 10, spinner);
    make_receive(&w.fa, answer_a, 47500000, 30, spinner);
    make_send(&w.fa, ask_a, 48000000, 20, spinner);
    make_receive(&w.fa, answer_a, 48050000, 40, spinner);
    make_send(&w.fa, ask_a, 49500000, 30, spinner);
    make_receive(&w.fa, answer_a, 51500000, 50, spinner);
    make(&w.a, spinner, 10000000, GRAPH_RUNNING);
    make(&w.a, spinner, 12000000, GRAPH_PREEMPTED);
    make(&w.a, spinner, 50000000, GRAPH_RUNNING);
    make(&w.a, spinner, 51000000, GRAPH_TIMER);
    make(&w.a, spinner, 52000000, GRAPH_RUNNING);
    join(&w);
    struct path *p = walk(&w, 0, spinner, 0, 50000000);
    assert_int_equal(p->n_segments, 5);
    expect(p, 0, 0, 0, 4000000, GRAPH_RUNNING);
    assert_null(p->segments[0].detail);
    expect(p, 1, 0, 4000000, 10000000, GRAPH_RUNNING);
    assert_string_equal(p->segments[1].detail, "polling");
    expect(p, 2, 0, 10000000, 12000000, GRAPH_PREEMPTED);
    expect(p, 3, 0, 12000000, 30000000, GRAPH_RUNNING);
    assert_string_equal(p->segments[3].detail, "polling");
    expect(p, 4, 0, 30000000, 50000000, GRAPH_RUNNING);
    assert_null(p->segments[4].detail);
    assert_int_equal(p->n_links, 1);
    assert_int_equal(p->links[0].kind, PATH_LINK_NETWORK);
    assert_int_equal(p->links[0].from.host, 1);
    assert_int_equal(p->links[0].from.row, w.server);
    assert_int_equal(p->links[0].to_ts, 30000000);
    path_free(p);
    p = walk(&w, 0, spinner, 30000000, 52000000);
    assert_int_equal(p->n_segments, 3);
    for (size_t i = 0; i < p->n_segments; i++)
        assert_null(p->segments[i].detail);
    assert_int_equal(p->n_links, 0);
    path_free(p);
    size_t seen;
    assert_int_equal(path_local_unslept(w.local, (struct path_row){0, spinner}, 1000000, 50000000, &seen), 4);
    assert_int_equal(seen, 1);
    p = walk(&w, 0, once, 0, 50000000);
    assert_int_equal(p->n_segments, 1);
    assert_null(p->segments[0].detail);
    path_free(p);
    p = walk(&w, 0, sleeper, 0, 50000000);
    for (size_t i = 0; i < p->n_segments; i++)
        assert_null(p->segments[i].detail);
    path_free(p);
    leave(&w);
}

/* Threads of one host: wakeups, forks, and no idle CPU as a cause. */
static void one_host(void **state)
{
    (void)state;
    struct world w = {0};
    int32_t parent = make_row(&w.a, 1, "parent", 0), child = make_row(&w.a, 2, "child", 20),
            idle = make_row(&w.a, 0, "swapper/0", 0);
    w.a.rows.v[idle].row.idle_cpu = 0;
    make(&w.a, idle, 100, GRAPH_RUNNING);
    make(&w.a, parent, 25, GRAPH_RUNNING);
    make(&w.a, parent, 60, GRAPH_BLOCKED)->cause = (struct graph_cause){
        .kind = GRAPH_CAUSE_WAKEUP, .row = child, .ts = 60};
    make(&w.a, parent, 70, GRAPH_RUNNING);
    make(&w.a, parent, 80, GRAPH_BLOCKED)->cause = (struct graph_cause){
        .kind = GRAPH_CAUSE_WAKEUP, .row = idle, .ts = 80};
    make(&w.a, parent, 100, GRAPH_RUNNING);
    w.a.rows.v[child].origin = (struct graph_cause){.kind = GRAPH_CAUSE_FORK, .row = parent, .ts = 20};
    make(&w.a, child, 65, GRAPH_RUNNING);
    struct path_local_host host = {"a", &w.a, NULL, NULL};
    w.local = path_local_new(&host, 1);
    struct path *p = walk(&w, 0, parent, 0, 100);
    assert_int_equal(p->n_segments, 5);
    expect(p, 0, 0, 0, 20, GRAPH_RUNNING);
    assert_int_equal(p->segments[1].row.row, child);
    assert_int_equal(p->segments[1].begin, 20);
    assert_int_equal(p->segments[1].end, 60);
    assert_int_equal(p->segments[3].state, GRAPH_BLOCKED);
    assert_int_equal(p->n_gaps, 1);
    assert_int_equal(p->links[0].kind, PATH_LINK_FORK);
    path_free(p);
    leave(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(call),
        cmocka_unit_test(seen_on_the_way),
        cmocka_unit_test(sent_by_the_boot_that_ran),
        cmocka_unit_test(address_without_owner),
        cmocka_unit_test(nobody_sent_it),
        cmocka_unit_test(translated),
        cmocka_unit_test(untraced_peer),
        cmocka_unit_test(many_hosts),
        cmocka_unit_test(clocked_by_receive),
        cmocka_unit_test(sent_while_asleep),
        cmocka_unit_test(polling),
        cmocka_unit_test(one_host),
    };
    return cmocka_run_group_tests_name("path: join of stores", tests, NULL, NULL);
}
