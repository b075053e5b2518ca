/* SPDX-License-Identifier: MIT */
/* Private to ctf: reads the events of one packet. */
#ifndef WEFT_CTF_DECODE_H
#define WEFT_CTF_DECODE_H

#include <stdatomic.h>

#include "ctf/clock.h"
#include "ctf/layout.h"

/* State of a running program. Clock fields, and the packet's begin time, extend `cycles` (as the low bits of a clock
 * that wraps). */
struct ctf_run {
    const uint8_t *data;
    uint64_t end;            /* bits; fields end at or before it */
    uint64_t *slots;         /* CTF_SLOTS */
    uint64_t cycles;
    uint64_t payload;        /* bits; set by PAYLOAD */
    uint64_t unset;          /* bit per slot without a value */
    uint8_t order;           /* byte order of the last bit field: 0 none, 1 little endian, 2 big endian */
    uint32_t seen;           /* bit per role */
    uint64_t values[CTF_ROLES];
};
enum ctf_stop {
    CTF_STOP_NONE, CTF_STOP_UNKNOWN_ID, CTF_STOP_CUT, CTF_STOP_TAG, CTF_STOP_EMPTY, CTF_STOP_UNREADABLE,
    /* CTF 2: undecoded length or selector, half a code unit of text, number of more than 64 bits, two byte orders in
     * one byte */
    CTF_STOP_MISSING, CTF_STOP_TEXT, CTF_STOP_WIDE, CTF_STOP_ORDER
};
const char *ctf_stop_text(enum ctf_stop); /* description for users; not for NONE and UNKNOWN_ID */
/* Runs a program from bit `pos`. Returns the bit behind, or CTF_RUN_STOP of what stopped it (CUT: it does not fit
 * before `end`, TAG: a tag selects nothing). */
uint64_t ctf_program_run(const struct ctf_op *ops, struct ctf_run *r, uint64_t pos);
#define CTF_RUN_STOP(stop) (UINT64_MAX - 15 + (uint64_t)(stop))
#define CTF_RUN_CUT CTF_RUN_STOP(CTF_STOP_CUT)
#define CTF_RUN_TAG CTF_RUN_STOP(CTF_STOP_TAG)
#define CTF_RUN_FAILED(pos) ((pos) >= CTF_RUN_STOP(0))
#define CTF_RUN_STOPPED(pos) ((enum ctf_stop)((pos) - CTF_RUN_STOP(0)))

struct ctf_decoder {
    const uint8_t *data;
    uint64_t pos, end;       /* bits */
    uint64_t last_start;     /* bits; events start before it (end, or begin of the zeros of an unclosed packet) */
    const struct ctf_stream_plan *plan;
    uint64_t cycles;
    struct ctf_clock_rate rate;
    bool has_clock;
    bool has_end, at_end;    /* has_end: the packet has an end time; at_end: the clock has advanced to it */
    bool stepped;            /* the clock may have stepped back among the events just decoded */
    uint64_t end_cycles;     /* low bits of the end time, as recorded */
    uint32_t stream;
    int32_t cpu;
    int64_t last;            /* time of the last event; INT64_MIN: none read since the decoder was moved */
    uint64_t back, unfit;    /* numbers since opening: events earlier than the one before; times beyond 64 bits */
    enum ctf_stop stop;      /* reason why the rest of the packet is not read */
    uint64_t stop_id;        /* UNKNOWN_ID: the id */
    struct ctf_run run;      /* slots of the packet's scopes */
    uint64_t slots[CTF_SLOTS];
};

extern atomic_uint ctf_decoder_generation; /* increased for each packet opened */
/* Reads header and context of the packet at `data` (its slots, begin time, cpu) and goes to its first event. `end`,
 * `last_start`: as above. The clock continues from `cycles`, which a begin time of 64 bits replaces entirely. False if
 * header and context do not fit into the packet. */
bool ctf_decoder_open(struct ctf_decoder *, const struct ctf_stream_plan *, const uint8_t *data, uint64_t end,
    uint64_t last_start);
/* Decodes up to `max` events. Returns 0 at the end of the readable part; then `stop` is the reason, and `cycles` is at
 * the packet's end. */
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

/* Reverses the low `bits` bits, sign-extended. */
static inline uint64_t ctf_reverse(uint64_t v, unsigned bits, bool is_signed)
{
    v = (v & 0x5555555555555555u) << 1 | (v >> 1 & 0x5555555555555555u);
    v = (v & 0x3333333333333333u) << 2 | (v >> 2 & 0x3333333333333333u);
    v = (v & 0x0f0f0f0f0f0f0f0fu) << 4 | (v >> 4 & 0x0f0f0f0f0f0f0f0fu);
    v = __builtin_bswap64(v);
    return is_signed ? (uint64_t)((int64_t)v >> (64 - bits)) : v >> (64 - bits);
}

/* Reads a LEB128 integer of at most n bytes. Returns its size in bytes; 0: it does not end. A value beyond 64 bits
 * becomes the nearest that fits, and sets *fits to false. */
uint64_t ctf_leb(const uint8_t *, uint64_t n, bool is_signed, uint64_t *value, bool *fits);
/* Returns the value of an integer or enumeration at an aligned position, sign-extended (booleans: 0 or 1); *bits: its
 * size. The data must be known to fit. */
uint64_t ctf_int_at(const struct ctf_type *, const uint8_t *data, uint64_t pos, uint64_t *bits);

#endif
