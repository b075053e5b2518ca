/* SPDX-License-Identifier: MIT */
/* Helpers of the bus tests: each test runs in the process ("local:") and on a NATS server of its own. */
#ifndef TESTS_BUS_WORLD_H
#define TESTS_BUS_WORLD_H

#include "../base/test.h"
#include "base/time.h"
#include "bus/bus.h"

/* URL at which the buses of the current tests meet. */
extern const char *world_url;

/* Fixtures for cmocka's groups. The server listens on a free port of the loopback; its stores are in a directory that
 * is removed. */
int world_local(void **state);
int world_nats(void **state);
int world_end(void **state);

/* Skips the test if there is no server; first call of a test. */
void world_need(void);
/* Kills the server; restarts it on the same port, with its stores or without. */
void world_kill_server(void);
void world_restart_server(bool keep_stores);

/* Restarts the server with additional arguments from now on (NULL at the end; or NULL). */
void world_serve_with(const char *const *arguments);
int world_port(void);
const char *world_directory(void); /* directory of the server */

struct bus *world_open(void);
int64_t in_ms(int64_t ms);      /* monotonic time */
void sleep_ms(int64_t ms);
/* Waits until the condition is true, some seconds at most. */
#define eventually(condition) \
    do { \
        int64_t end_ = in_ms(20000); \
        while (!(condition) && time_monotonic_ns() < end_) \
            sleep_ms(2); \
        assert_true(condition); \
    } while (0)

/* Returns bytes that differ from place to place. */
uint8_t *world_bytes(size_t n, uint32_t seed);

/* Runs the tests in both worlds. Those of `nats` run only with a server. */
int world_run(const char *name, const struct CMUnitTest *both, size_t n, const struct CMUnitTest *nats, size_t n_nats);
#define WORLD_RUN(name, both, nats) \
    world_run(name, both, sizeof both / sizeof *both, nats, sizeof nats / sizeof *nats)

#endif
