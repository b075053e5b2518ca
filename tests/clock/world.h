/* SPDX-License-Identifier: MIT */
/* World of clocks with known truth, for tests: true time runs in ns from 0; each clock is a polyline over it. */
#ifndef TEST_CLOCK_WORLD_H
#define TEST_CLOCK_WORLD_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/text.h"
#include "clock/clock.h"

enum { WORLD_HOSTS = 64, WORLD_BENDS = 16 };

struct world_clock {
    int64_t offset;          /* clock at true time 0 */
    int n;                   /* stretches */
    /* drift from true time `from` on, after a step */
    struct { int64_t from; long double drift_ppm; int64_t step; } stretch[WORLD_BENDS];
};

struct world {
    uint64_t seed;
    int n;
    int64_t span;            /* true ns */
    struct world_clock clock[WORLD_HOSTS];
    struct clock_net *net;
};

uint64_t world_random(struct world *);
/* Returns a random number in [low, high). */
long double world_uniform(struct world *, long double low, long double high);

/* Makes n hosts with offsets of seconds around an epoch of today, drifts within +-drift_ppm; all traces span [0, span]
 * of true time. */
void world_init(struct world *, uint64_t seed, int n, int64_t span, long double drift_ppm,
    const struct clock_options *);
void world_fini(struct world *);
/* Adds the hosts to the net: after clocks were changed, before messages. */
void world_begin(struct world *);
int64_t world_read(const struct world *, int host, int64_t true_time);
/* Returns the true time at which the host's clock showed t (clocks without steps backwards). */
long double world_when(const struct world *, int host, int64_t t);
/* Adds `count` messages from a to b at random times of [from, to], delays of `least` ns and an exponential tail of mean
 * `tail`. */
void world_talk(struct world *, int a, int b, int count, int64_t from, int64_t to, int64_t least, int64_t tail);

/* Checks every host with a map: pieces are contiguous, continuous, monotone and invertible; and at many times the truth
 * is within the stated error (+ 2 ns of rounding), unless true time is within [not_from, not_to]. Returns the number of
 * hosts with pieces. */
int world_check(const struct world *);

#endif
