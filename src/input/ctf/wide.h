/* SPDX-License-Identifier: MIT */
/* Private to ctf: values of CTF 2 that are no plain numbers, as text. Appended; of data that are known to fit. */
#ifndef WEFT_CTF_WIDE_H
#define WEFT_CTF_WIDE_H

#include "base/text.h"
#include "ctf/layout.h"

/* Text of *bytes bytes up to its first code unit of zeros, as UTF-8; what is no character becomes U+FFFD. Converts as
 * much as has room (4 bytes at least) and moves *p and *bytes behind it; 0 bytes are left at the text's end. Returns
 * the bytes at `out`. Not for UTF-8. */
size_t wide_utf8_part(enum ctf_encoding, const uint8_t **p, uint64_t *bytes, char *out, size_t room);
/* The whole of it. */
void wide_utf8(struct text *, enum ctf_encoding, const uint8_t *, uint64_t bytes);
/* Bytes of a null-terminated string, with its end. */
uint64_t wide_string_bytes(enum ctf_encoding, const uint8_t *);

/* The bits of a field of any size: an integer by its base, else in hexadecimal; a boolean as true or false. */
void wide_bits(struct text *, const struct ctf_type *, const uint8_t *data, uint64_t pos, bool decimal);
/* A LEB128 integer of any size in decimal. Returns its bits. */
uint64_t wide_leb(struct text *, const struct ctf_type *, const uint8_t *data, uint64_t pos);
/* Is one of these bits set? Bit 0 is the least significant. */
bool wide_any(const struct ctf_type *, const uint8_t *data, uint64_t pos, uint64_t lo, uint64_t hi);
/* A floating-point number of 16, 32 or 64 bits. */
double wide_float(const struct ctf_type *, const uint8_t *data, uint64_t pos);

#endif
