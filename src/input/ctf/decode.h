/* SPDX-License-Identifier: MIT */
/* Private to ctf: reads the events of one packet. */
#ifndef WEFT_CTF_DECODE_H
#define WEFT_CTF_DECODE_H

#include <stdatomic.h>

#include "ctf/clock.h"
#include "ctf/layout.h"

/* Values met while a program runs. Clock fields, and the time that a packet begins, extend `cycles` (the low bits of a
 * clock that wraps). */
struct ctf_run {
    const uint8_t *data;
    uint64_t end;            /* bits; nothing at or behind it is read as part of a field */
    uint64_t *slots;         /* CTF_SLOTS */
    uint64_t cycles;
    uint64_t payload;        /* bits; set by PAYLOAD */
    uint32_t seen;           /* bit per role */
    uint64_t values[CTF_ROLES];
};
/* Runs a program from bit `pos`. Returns the bit behind, or CTF_RUN_CUT: it does not fit before `end`, CTF_RUN_TAG: a
 * tag selects nothing. */
uint64_t ctf_program_run(const struct ctf_op *ops, struct ctf_run *r, uint64_t pos);
#define CTF_RUN_CUT UINT64_MAX
#define CTF_RUN_TAG (UINT64_MAX - 1)
#define CTF_RUN_FAILED(pos) ((pos) >= CTF_RUN_TAG)

enum ctf_stop { CTF_STOP_NONE, CTF_STOP_UNKNOWN_ID, CTF_STOP_CUT, CTF_STOP_TAG, CTF_STOP_EMPTY, CTF_STOP_UNREADABLE };

struct ctf_decoder {
    const uint8_t *data;
    uint64_t pos, end;       /* bits */
    uint64_t last_start;     /* bits; an event starts before it (end, or where the zeros of an unclosed packet begin) */
    const struct ctf_stream_plan *plan;
    uint64_t cycles;
    struct ctf_clock_rate rate;
    bool has_clock;
    bool has_end, at_end;    /* the packet says when it ends; the clock has been carried there */
    bool stepped;            /* the clock may have stepped back among the events just decoded */
    uint64_t end_cycles;     /* its low bits, as recorded */
    uint32_t stream;
    int32_t cpu;
    int64_t last;            /* time of the last event; INT64_MIN: none was read since it was put somewhere else */
    uint64_t back, unfit;    /* since the opening: events earlier than the one before; whose time fits no 64 bits */
    enum ctf_stop stop;      /* why the rest of the packet is not read */
    uint64_t stop_id;        /* UNKNOWN_ID: the id */
    struct ctf_run run;      /* slots of the packet's scopes */
    uint64_t slots[CTF_SLOTS];
};

extern atomic_uint ctf_decoder_generation; /* one more for each packet opened */
/* Reads header and context of the packet at `data` (its slots, begin time, cpu) and goes to its first event. `end`,
 * `last_start`: as above. The clock goes on from `cycles` as it was, of which a begin time of 64 bits leaves nothing.
 * False when header and context do not fit into the packet. */
bool ctf_decoder_open(struct ctf_decoder *, const struct ctf_stream_plan *, const uint8_t *data, uint64_t end,
    uint64_t last_start);
/* Up to `max` events; 0 at the end of what can be read (then `stop` says why, and `cycles` is at the packet's end). */
size_t ctf_decode(struct ctf_decoder *, struct ctf_event *out, size_t max);

/* Bits at any position, sign-extended. Reads up to 8 bytes behind the last byte of the field. */
static inline uint64_t ctf_bits(const uint8_t *data, uint64_t pos, unsigned bits, bool big_endian, bool is_signed)
{
    const uint8_t *p = data + (pos >> 3);
    unsigned shift = (unsigned)(pos & 7);
    uint64_t v, tail;
    memcpy(&v, p, 8);
    tail = p[8];
    if (big_endian) {
        v = __builtin_bswap64(v) << shift;
        if (shift)
            v |= tail >> (8 - shift);
        return is_signed ? (uint64_t)((int64_t)v >> (64 - bits)) : v >> (64 - bits);
    }
    v >>= shift;
    if (shift)
        v |= tail << (64 - shift);
    v <<= 64 - bits;
    return is_signed ? (uint64_t)((int64_t)v >> (64 - bits)) : v >> (64 - bits);
}

#endif
