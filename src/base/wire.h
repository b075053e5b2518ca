/* SPDX-License-Identifier: MIT */
/* Compact numbers and strings for messages between machines: seven bits per byte, the lowest first (LEB128); signed
 * numbers are folded so that small ones stay small. Reading is safe for any bytes: invalid input reads as 0 or "", and
 * `damaged` stays set. */
#ifndef WEFT_BASE_WIRE_H
#define WEFT_BASE_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/text.h"

void wire_put_u(struct text *, uint64_t);
void wire_put_i(struct text *, int64_t);
void wire_put_bytes(struct text *, const void *, size_t n); /* bytes only, without a count */
void wire_put_string(struct text *, const char *);

struct wire_in { const uint8_t *at, *end; bool damaged; };
static inline struct wire_in wire_of(const void *bytes, size_t n)
{
    const uint8_t *at = bytes;
    return (struct wire_in){at, n ? at + n : at, false};
}
/* Part of wire_u for numbers of any length. */
uint64_t wire_long_u(struct wire_in *);
static inline uint64_t wire_u(struct wire_in *u)
{
    return u->at < u->end && *u->at < 0x80 ? *u->at++ : wire_long_u(u);
}
int64_t wire_i(struct wire_in *);
/* A number below `limit`. */
uint64_t wire_below(struct wire_in *, uint64_t limit);
/* Number of items, each of at least `least_bytes`. */
size_t wire_count(struct wire_in *, size_t least_bytes);
void wire_bytes(struct wire_in *, void *, size_t n);
/* Borrowed from the bytes, not terminated. */
const char *wire_string(struct wire_in *, size_t *n);
/* A sum that does not overflow. */
int64_t wire_sum(struct wire_in *, int64_t a, int64_t b);

#endif
