/* SPDX-License-Identifier: MIT */
/* Private to ctf: cycles of a clock as nanoseconds. */
#ifndef WEFT_CTF_CLOCK_H
#define WEFT_CTF_CLOCK_H

#include "ctf/ctf.h"

/* ns = offset_s · 10⁹ + ⌊(offset + cycles) · 10⁹ / freq⌋, one exact sum that is rounded down once. Times that 64 bits
 * cannot hold become CTF_TIME_MIN or CTF_TIME_MAX. */
struct ctf_clock_rate {
    uint64_t freq, offset;   /* Hz; cycles, below freq */
    int64_t offset_s;
    /* 1 GHz: ns = cycles + add, modulo 2^64, for cycles from lo to hi; lo > hi: for none. Other rates: add is 0. */
    uint64_t add, lo, hi;
};
#define CTF_TIME_MIN (INT64_MIN + 2)
#define CTF_TIME_MAX (INT64_MAX - 2)

void ctf_clock_rate_of(const struct ctf_clock *, struct ctf_clock_rate *out); /* NULL: 1 GHz from 0 */
/* Converts cycles to ns. *fits is set to false if the time does not fit, else unchanged. */
int64_t ctf_clock_ns(const struct ctf_clock_rate *, uint64_t cycles, bool *fits);
/* Converts the `ts` of events from cycles (at 1 GHz: cycles + add) to times. Returns how many did not fit. At 1 GHz it
 * is needed only if some cycles lie outside lo … hi. */
size_t ctf_clock_convert(const struct ctf_clock_rate *, struct ctf_event *, size_t n);

/* Returns the clock after a field of `bits` bits: the low bits of a clock that has wrapped at most once since `now`. */
static inline uint64_t ctf_clock_extend(uint64_t now, uint64_t value, unsigned bits)
{
    if (bits >= 64)
        return value;
    uint64_t mask = ((uint64_t)1 << bits) - 1;
    return now + ((value - now) & mask);
}

#endif
