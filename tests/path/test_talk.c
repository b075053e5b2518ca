/* SPDX-License-Identifier: MIT */
/* Ends of a flow, derived from hosts' reports. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "path/talk.h"

enum { HOSTS = 4 };

/* Host i has the address 10.0.0.i, and those that are added. */
struct world {
    struct talk_told told[HOSTS];
    struct flow_address own[HOSTS][2];
    struct talk_lines lines;
};

static struct flow_key key(uint8_t from, uint8_t to)
{
    return (struct flow_key){4, 6, 1000, 80, {10, 0, 0, from}, {10, 0, 0, to}};
}

static void begin(struct world *w)
{
    *w = (struct world){0};
    for (uint8_t i = 0; i < HOSTS; i++) {
        w->own[i][0] = (struct flow_address){4, {10, 0, 0, i}};
        w->told[i].own = w->own[i];
        w->told[i].n_own = 1;
    }
}

static void end(struct world *w)
{
    for (int i = 0; i < HOSTS; i++)
        vec_free(&w->told[i].flows);
    vec_free(&w->lines);
}

static void saw(struct world *w, int host, struct flow_key k, uint64_t sent, uint64_t received)
{
    struct path_talk_report r = {
        k, {.packets = sent, .bytes = 10 * sent}, {.packets = received, .bytes = 10 * received}};
    vec_push(&w->told[host].flows, r);
}

static void join(struct world *w)
{
    path_talk_join(w->told, HOSTS, &w->lines);
}

static void assert_line(const struct world *w, size_t i, int32_t from, int32_t to, uint64_t sent, uint64_t received)
{
    assert_true(i < w->lines.n);
    assert_int_equal(w->lines.v[i].from, from);
    assert_int_equal(w->lines.v[i].to, to);
    assert_int_equal(w->lines.v[i].sent.packets, sent);
    assert_int_equal(w->lines.v[i].received.packets, received);
}

static void both_ends(void **state)
{
    (void)state;
    struct world w;
    begin(&w);
    saw(&w, 2, key(1, 2), 0, 9);
    saw(&w, 1, key(1, 2), 10, 0);
    saw(&w, 1, key(2, 1), 0, 3);
    saw(&w, 2, key(2, 1), 3, 0);
    join(&w);
    assert_int_equal(w.lines.n, 2);
    assert_line(&w, 0, 1, 2, 10, 9);
    assert_line(&w, 1, 2, 1, 3, 3);
    end(&w);
}

/* Checks flows without receive or without send: an address of only one host identifies it. */
static void one_end(void **state)
{
    (void)state;
    struct world w;
    begin(&w);
    saw(&w, 1, key(1, 2), 10, 0);
    saw(&w, 1, key(1, 99), 7, 0);
    saw(&w, 2, key(3, 2), 0, 5);
    saw(&w, 2, key(98, 2), 0, 4);
    join(&w);
    assert_int_equal(w.lines.n, 4);
    assert_line(&w, 0, 1, 2, 10, 0);
    assert_line(&w, 1, 1, -1, 7, 0);
    assert_line(&w, 2, 3, 2, 0, 5);
    assert_line(&w, 3, -1, 2, 0, 4);
    end(&w);
}

/* Checks that an address of several hosts identifies none. */
static void address_of_several(void **state)
{
    (void)state;
    struct world w;
    begin(&w);
    for (int i = 2; i < 4; i++) {
        w.own[i][1] = (struct flow_address){4, {10, 0, 0, 77}};
        w.told[i].n_own = 2;
    }
    saw(&w, 1, key(1, 77), 10, 0);
    join(&w);
    assert_int_equal(w.lines.n, 1);
    assert_line(&w, 0, 1, -1, 10, 0);
    end(&w);
}

/* Containers of two hosts that have the same addresses and ports: each talks to itself. */
static void same_addresses(void **state)
{
    (void)state;
    struct world w;
    begin(&w);
    saw(&w, 1, key(50, 51), 10, 10);
    saw(&w, 2, key(50, 51), 20, 19);
    join(&w);
    assert_int_equal(w.lines.n, 2);
    assert_line(&w, 0, 1, 1, 10, 10);
    assert_line(&w, 1, 2, 2, 20, 19);
    end(&w);
}

/* Checks two senders on a flow that a third host received: the one that sent more. */
static void two_senders(void **state)
{
    (void)state;
    struct world w;
    begin(&w);
    saw(&w, 1, key(50, 3), 1, 0);
    saw(&w, 2, key(50, 3), 20, 0);
    saw(&w, 3, key(50, 3), 0, 20);
    join(&w);
    assert_int_equal(w.lines.n, 2);
    assert_line(&w, 0, 2, 3, 20, 20);
    assert_line(&w, 1, 1, 3, 1, 0);
    end(&w);
}

static void many_receivers(void **state)
{
    (void)state;
    struct world w;
    struct flow_key group = {4, 17, 5, 6, {10, 0, 0, 1}, {239, 1, 1, 1}};
    begin(&w);
    saw(&w, 1, group, 10, 0);
    for (int i = 2; i < 4; i++)
        saw(&w, i, group, 0, 10);
    join(&w);
    assert_int_equal(w.lines.n, 2);
    assert_line(&w, 0, 1, 2, 10, 10);
    assert_line(&w, 1, 1, 3, 10, 10);
    end(&w);
}

/* Checks that loopback is each host's own; events without addresses identify no host. */
static void what_joins_nothing(void **state)
{
    (void)state;
    struct world w;
    struct flow_key loop = {4, 6, 1000, 80, {127, 0, 0, 1}, {127, 0, 0, 1}}, none = {0};
    begin(&w);
    saw(&w, 1, loop, 4, 4);
    saw(&w, 2, loop, 5, 0);
    saw(&w, 3, loop, 0, 6);
    saw(&w, 1, none, 8, 9);
    join(&w);
    assert_int_equal(w.lines.n, 5);
    assert_line(&w, 0, 1, -1, 8, 0);
    assert_line(&w, 1, -1, 1, 0, 9);
    assert_line(&w, 2, 1, 1, 4, 4);
    assert_line(&w, 3, 2, -1, 5, 0);
    assert_line(&w, 4, -1, 3, 0, 6);
    end(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(both_ends),
        cmocka_unit_test(one_end),
        cmocka_unit_test(address_of_several),
        cmocka_unit_test(same_addresses),
        cmocka_unit_test(two_senders),
        cmocka_unit_test(many_receivers),
        cmocka_unit_test(what_joins_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
