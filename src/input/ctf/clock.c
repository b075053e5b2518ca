/* SPDX-License-Identifier: MIT */
#include "ctf/clock.h"

static const uint64_t ghz = 1000000000;

/* Greatest frequency for which the cycles of one second, times 10⁹, fit 64 bits. */
static const uint64_t narrow_freq = UINT64_MAX / 1000000000;

static int64_t limited(__int128 ns, bool *fits)
{
    if (ns >= CTF_TIME_MIN && ns <= CTF_TIME_MAX)
        return (int64_t)ns;
    *fits = false;
    return ns < 0 ? CTF_TIME_MIN : CTF_TIME_MAX;
}

void ctf_clock_rate_of(const struct ctf_clock *c, struct ctf_clock_rate *out)
{
    *out = (struct ctf_clock_rate){.freq = ghz};
    if (c)
        *out = (struct ctf_clock_rate){.freq = c->freq ? c->freq : ghz, .offset = c->offset, .offset_s = c->offset_s};
    if (out->freq != ghz)
        return;
    __int128 begin = (__int128)out->offset_s * (int64_t)ghz + out->offset, lo = CTF_TIME_MIN - begin,
             hi = CTF_TIME_MAX - begin;
    out->add = (uint64_t)begin;
    out->lo = lo < 0 ? 0 : lo > UINT64_MAX ? UINT64_MAX : (uint64_t)lo;
    out->hi = hi < 0 ? 0 : hi > UINT64_MAX ? UINT64_MAX : (uint64_t)hi;
    if (lo > UINT64_MAX || hi < 0) {
        out->lo = 1;
        out->hi = 0;
    }
}

int64_t ctf_clock_ns(const struct ctf_clock_rate *r, uint64_t cycles, bool *fits)
{
    unsigned __int128 all = (unsigned __int128)r->offset + cycles;
    uint64_t into = (uint64_t)(all % r->freq);
    __int128 seconds = (__int128)(all / r->freq) + r->offset_s;
    return limited(seconds * (int64_t)ghz + (__int128)((unsigned __int128)into * ghz / r->freq), fits);
}

static size_t convert_ghz(const struct ctf_clock_rate *r, struct ctf_event *ev, size_t n)
{
    size_t unfit = 0;
    for (size_t i = 0; i < n; i++) {
        bool fits = true;
        ev[i].ts = ctf_clock_ns(r, (uint64_t)ev[i].ts - r->add, &fits);
        unfit += !fits;
    }
    return unfit;
}

/* Whole second of the clock, all of whose times fit: its first cycle and the time of that cycle. */
struct second {
    uint64_t cycles;
    int64_t ns;
    bool known;
};

/* Returns the second of an event at `ns`. */
static struct second second_of(const struct ctf_clock_rate *r, uint64_t cycles, int64_t ns)
{
    uint64_t into = (uint64_t)(((unsigned __int128)r->offset + cycles) % r->freq);
    __int128 begin = (__int128)ns - (__int128)((unsigned __int128)into * ghz / r->freq);
    bool whole = cycles >= into && cycles - into <= UINT64_MAX - r->freq && r->freq <= narrow_freq,
         fits = begin >= CTF_TIME_MIN && begin <= CTF_TIME_MAX - (int64_t)ghz;
    return (struct second){cycles - into, fits ? (int64_t)begin : 0, whole && fits};
}

/* Keeps the last second: events follow each other closely, so most lie in the same one. */
size_t ctf_clock_convert(const struct ctf_clock_rate *r, struct ctf_event *ev, size_t n)
{
    struct second s = {0};
    size_t unfit = 0;
    if (r->freq == ghz)
        return convert_ghz(r, ev, n);
    for (size_t i = 0; i < n; i++) {
        uint64_t cycles = (uint64_t)ev[i].ts;
        if (s.known && cycles - s.cycles < r->freq) {
            ev[i].ts = s.ns + (int64_t)((cycles - s.cycles) * ghz / r->freq);
            continue;
        }
        bool fits = true;
        ev[i].ts = ctf_clock_ns(r, cycles, &fits);
        s = second_of(r, cycles, ev[i].ts);
        unfit += !fits;
    }
    return unfit;
}
