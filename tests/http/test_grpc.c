/* SPDX-License-Identifier: MIT */
/* Timeouts of the gRPC server: silent connections, calls that stall, and too many connections. Its answers are tested
 * by tests/e2e/test_collect_grpc.py. */
#include <arpa/inet.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/time.h"
#include "http/grpc.h"

static const char begin[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0\0";
/* A head of a POST to /x, without an end of the stream; and a message of which a byte is missing. */
static const char call[] = "\0\0\x1c\1\4\0\0\0\1"
                           "\x83\x86\x04\x02/x\x41\1x\x0f\x10\x10"
                           "application/grpc"
                           "\0\0\6\0\0\0\0\0\1\0\0\0\0\2a";
enum { CALL_HEAD = 9 + 28 };

static void handle(void *arg, struct grpc_call *c) {}

static struct grpc_server *start(unsigned connections)
{
    struct grpc_server *g;
    struct err e = {0};
    const struct grpc_options o = {.listen = "127.0.0.1:0", .timeout_s = 1, .max_connections = connections};
    assert_int_equal(http_grpc_server_start(&o, handle, NULL, &g, &e), 0);
    return g;
}

static int dial(const struct grpc_server *g)
{
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    to.sin_port = htons((uint16_t)atoi(strrchr(http_grpc_server_address(g), ':') + 1));
    assert_int_equal(connect(fd, (struct sockaddr *)&to, sizeof to), 0);
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &(struct timeval){.tv_sec = 30}, sizeof(struct timeval));
    return fd;
}

/* Reads until a frame of that type on the stream; false: the connection is over before. */
static bool read_until(int fd, uint8_t type, uint8_t stream)
{
    uint8_t head[9], body[16384];
    while (recv(fd, head, sizeof head, MSG_WAITALL) == sizeof head) {
        size_t n = (size_t)head[0] << 16 | (size_t)head[1] << 8 | head[2];
        assert_true(n <= sizeof body);
        if (n && recv(fd, body, n, MSG_WAITALL) != (ssize_t)n)
            return false;
        if (head[3] == type && head[8] == stream)
            return true;
    }
    return false;
}

static void test_silent(void **state)
{
    struct grpc_server *g = start(0);
    int fd = dial(g);
    int64_t from = time_monotonic_ns();
    assert_false(read_until(fd, 255, 0));
    assert_true(time_monotonic_ns() - from >= NS_PER_S - NS_PER_S / 10);
    assert_true(time_monotonic_ns() - from < 25 * NS_PER_S);
    close(fd);
    http_grpc_server_stop(g);
}

/* Checks that a slow client is answered, and reset. */
static void test_slow(void **state)
{
    enum { HEADERS = 1, RESET = 3 };
    struct grpc_server *g = start(0);
    int fd = dial(g);
    assert_int_equal(send(fd, begin, sizeof begin - 1, 0), sizeof begin - 1);
    assert_int_equal(send(fd, call, sizeof call - 1, 0), sizeof call - 1);
    int64_t from = time_monotonic_ns();
    assert_true(read_until(fd, HEADERS, 1));
    assert_true(time_monotonic_ns() - from >= NS_PER_S - NS_PER_S / 10);
    assert_true(read_until(fd, RESET, 1));
    close(fd);
    http_grpc_server_stop(g);
}

/* Checks that the connection idle for longest yields to a new one; one with a call does not. */
static void test_too_many(void **state)
{
    enum { SETTINGS = 4 };
    struct grpc_server *g = start(2);
    int busy = dial(g);
    assert_int_equal(send(busy, begin, sizeof begin - 1, 0), sizeof begin - 1);
    assert_int_equal(send(busy, call, sizeof call - 1, 0), sizeof call - 1);
    assert_true(read_until(busy, SETTINGS, 0));
    int first = dial(g);
    assert_true(read_until(first, SETTINGS, 0));
    int second = dial(g);
    assert_true(read_until(second, SETTINGS, 0));
    assert_false(read_until(first, 255, 0));
    assert_true(read_until(busy, 1, 1)); /* idle for too long, but still there */
    close(busy);
    close(first);
    close(second);
    http_grpc_server_stop(g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_silent), cmocka_unit_test(test_slow), cmocka_unit_test(test_too_many)};
    _Static_assert(sizeof call - 1 == CALL_HEAD + 9 + 6, "the lengths in it are right");
    return cmocka_run_group_tests(tests, NULL, NULL);
}
