/* SPDX-License-Identifier: MIT */
/* Times as people write and read them; ns since the epoch, UTC. */
#ifndef WEFT_BASE_TIME_H
#define WEFT_BASE_TIME_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/text.h"

#define NS_PER_S INT64_C(1000000000)
/* The next instant, at most INT64_MAX. Turns an inclusive end into an exclusive one. */
static inline int64_t time_after(int64_t ns) { return ns < INT64_MAX ? ns + 1 : ns; }
/* Duration from begin to a later end; at most INT64_MAX. */
static inline int64_t time_between(int64_t begin, int64_t end)
{
    uint64_t ns = (uint64_t)end - (uint64_t)begin;
    return ns < INT64_MAX ? (int64_t)ns : INT64_MAX;
}

/* "1795225053184022483" ns; "1795225053.184" seconds, also in the brackets that events are printed with; "+1.5s"
 * "+20ms" "+3us" "+10ns" "+1m" from `start`; ISO 8601 "2026-11-21T01:37:53.123456789Z" (UTC unless an offset is
 * given; date or fraction may be cut), "HH:MM:SS.frac" on the day of `start`. */
int time_parse(const char *s, int64_t start, int64_t *out, struct err *e);
/* "2026-11-21 01:37:53.184 022 483" and "01:37:53.184 022 483" */
void time_write_utc(struct text *, int64_t ns, bool date);
/* "-12.345678901": seconds */
void time_write_seconds(struct text *, int64_t ns);
int64_t time_now_ns(void);       /* real time */
int64_t time_monotonic_ns(void);

#endif
