/* SPDX-License-Identifier: MIT */
/* Private to ctf: text of CTF 2 values that are no plain numbers. Appends; the data must be known to fit. */
#ifndef WEFT_CTF_WIDE_H
#define WEFT_CTF_WIDE_H

#include "base/text.h"
#include "ctf/layout.h"

/* Converts text of *bytes bytes, up to its first zero code unit, to UTF-8; invalid characters become U+FFFD. Converts
 * what fits into `room` (at least 4 bytes) and moves *p and *bytes past it; *bytes is 0 at the text's end. Returns the
 * bytes at `out`. Not for UTF-8. */
size_t wide_utf8_part(enum ctf_encoding, const uint8_t **p, uint64_t *bytes, char *out, size_t room);
/* Converts the whole text. */
void wide_utf8(struct text *, enum ctf_encoding, const uint8_t *, uint64_t bytes);
/* Returns the size in bytes of a null-terminated string, with its end. */
uint64_t wide_string_bytes(enum ctf_encoding, const uint8_t *);

/* Writes the bits of a field of any size: an integer by its base, else in hexadecimal; a boolean as true or false. */
void wide_bits(struct text *, const struct ctf_type *, const uint8_t *data, uint64_t pos, bool decimal);
/* Writes a LEB128 integer of any size in decimal. Returns its size in bits. */
uint64_t wide_leb(struct text *, const struct ctf_type *, const uint8_t *data, uint64_t pos);
/* Returns whether one of these bits is set. Bit 0 is the least significant. */
bool wide_any(const struct ctf_type *, const uint8_t *data, uint64_t pos, uint64_t lo, uint64_t hi);
/* Reads a floating-point number of 16, 32 or 64 bits. */
double wide_float(const struct ctf_type *, const uint8_t *data, uint64_t pos);

#endif
