/* SPDX-License-Identifier: MIT */
/* Conclusions from ended connections about a server, whatever caused the ends. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "coord/lifeline.h"

/* An answer by a connection of its own; returns the server's end. */
static int answered(struct lifeline *l)
{
    int ends[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    struct http_fetch f = {.connection = ends[0]};
    coord_lifeline_hold(l, &f);
    if (f.connection >= 0)
        close(f.connection);
    return ends[1];
}

static void test_it_ends_with_the_last_one(void **state)
{
    struct lifeline l = {0};
    assert_false(coord_lifeline_ended(&l) || coord_lifeline_is_thin(&l));
    int first = answered(&l);
    assert_true(coord_lifeline_is_thin(&l));
    int second = answered(&l);
    assert_false(coord_lifeline_is_thin(&l));
    close(first);
    assert_true(coord_lifeline_is_thin(&l) && !coord_lifeline_ended(&l));
    int third = answered(&l), fourth = answered(&l); /* the second one is the oldest, and makes room */
    close(second);
    close(third);
    assert_false(coord_lifeline_ended(&l));
    close(fourth);
    assert_true(coord_lifeline_ended(&l));
    coord_lifeline_release(&l);
    assert_false(coord_lifeline_ended(&l));
}

static void test_the_same_one_again_is_one(void **state)
{
    struct lifeline l = {0};
    int ends[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    for (int i = 0; i < 3; i++) {
        struct http_fetch f = {.connection = dup(ends[0])};
        coord_lifeline_hold(&l, &f);
        assert_true(coord_lifeline_is_thin(&l));
    }
    close(ends[1]);
    assert_true(coord_lifeline_ended(&l));
    close(ends[0]);
    coord_lifeline_release(&l);
}

static void test_who_keeps_none_is_not_watched(void **state)
{
    struct lifeline l = {0};
    unsigned lost = 0;
    for (; lost < 100; lost++) {
        close(answered(&l));
        if (!coord_lifeline_ended(&l))
            break;
        coord_lifeline_release(&l);
    }
    assert_in_range(lost, 5, 50);
    struct http_fetch kept = {.connection = -1, .by_kept = true};
    coord_lifeline_hold(&l, &kept); /* gone after a rest */
    close(answered(&l));
    assert_false(coord_lifeline_ended(&l));
    usleep(600000);
    coord_lifeline_hold(&l, &kept);
    close(answered(&l));
    assert_true(coord_lifeline_ended(&l));
    coord_lifeline_release(&l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_it_ends_with_the_last_one),
        cmocka_unit_test(test_the_same_one_again_is_one),
        cmocka_unit_test(test_who_keeps_none_is_not_watched),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
