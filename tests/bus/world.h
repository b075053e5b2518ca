/* SPDX-License-Identifier: MIT */
/* What the tests of the bus share: each test runs in the process ("local:") and on a NATS server of its own. */
#ifndef TESTS_BUS_WORLD_H
#define TESTS_BUS_WORLD_H

#include "../base/test.h"
#include "base/time.h"
#include "bus/bus.h"

/* Where the buses of the tests that run now meet. */
extern const char *world_url;

/* For cmocka's groups. The server listens on a free port of the loopback, its stores are in a directory that is
 * removed. */
int world_local(void **state);
int world_nats(void **state);
int world_end(void **state);

/* First thing in a test: skips it where there is no server. */
void world_need(void);
/* The server dies at once; comes again on the same port; with its stores or without. */
void world_kill_server(void);
void world_restart_server(bool keep_stores);

/* Started from then on with these too (NULL at the end; or NULL): kills the one that runs, and starts one. */
void world_serve_with(const char *const *arguments);
int world_port(void);
const char *world_directory(void); /* the server's */

struct bus *world_open(void);
int64_t in_ms(int64_t ms);      /* monotonic */
void sleep_ms(int64_t ms);
/* Waits until the condition is true, some seconds at most. */
#define eventually(condition) \
    do { \
        int64_t end_ = in_ms(20000); \
        while (!(condition) && time_monotonic_ns() < end_) \
            sleep_ms(2); \
        assert_true(condition); \
    } while (0)

/* Bytes that differ from place to place. */
uint8_t *world_bytes(size_t n, uint32_t seed);

/* Runs the tests in both worlds. Those of `nats` only with a server. */
int world_run(const char *name, const struct CMUnitTest *both, size_t n, const struct CMUnitTest *nats, size_t n_nats);
#define WORLD_RUN(name, both, nats) \
    world_run(name, both, sizeof both / sizeof *both, nats, sizeof nats / sizeof *nats)

#endif
