/* SPDX-License-Identifier: MIT */
#include "ctf/wide.h"

#include <math.h>
#include <stdlib.h>

#include "ctf/decode.h"

/* ---- text ---- */

static unsigned unit_bytes(enum ctf_encoding e)
{
    return e >= CTF_UTF32BE ? 4 : e >= CTF_UTF16BE ? 2 : 1;
}

static uint32_t unit_at(enum ctf_encoding e, const uint8_t *p)
{
    switch (e) {
    case CTF_UTF8: return *p;
    case CTF_UTF16BE: return (uint32_t)(p[0] << 8 | p[1]);
    case CTF_UTF16LE: return (uint32_t)(p[1] << 8 | p[0]);
    case CTF_UTF32BE: return (uint32_t)p[0] << 24 | (uint32_t)(p[1] << 16 | p[2] << 8 | p[3]);
    default: return (uint32_t)p[3] << 24 | (uint32_t)(p[2] << 16 | p[1] << 8 | p[0]);
    }
}

static char *put_character(char *o, uint32_t c)
{
    static const uint8_t first[] = {0, 0, 0xc0, 0xe0, 0xf0};
    if (c > 0x10ffff || (c & 0xfffff800) == 0xd800)
        c = 0xfffd;
    size_t n = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    for (size_t i = n; i-- > 1; c >>= 6)
        o[i] = (char)(0x80 | (c & 0x3f));
    o[0] = (char)(first[n] | c);
    return o + n;
}

/* Returns the character at *p, and moves *p past it. */
static uint32_t next_character(enum ctf_encoding e, const uint8_t **p, uint64_t *bytes)
{
    unsigned unit = unit_bytes(e);
    uint32_t c = unit_at(e, *p), low = unit == 2 && *bytes >= 4 ? unit_at(e, *p + 2) : 0;
    bool pair = unit == 2 && (c & 0xfc00) == 0xd800 && (low & 0xfc00) == 0xdc00;
    *p += pair ? 4 : unit;
    *bytes -= pair ? 4 : unit;
    return pair ? 0x10000 + ((c & 0x3ff) << 10) + (low & 0x3ff) : c;
}

size_t wide_utf8_part(enum ctf_encoding e, const uint8_t **p, uint64_t *bytes, char *out, size_t room)
{
    char *o = out;
    while (*bytes >= unit_bytes(e) && (size_t)(o - out) + 4 <= room) {
        uint32_t c = next_character(e, p, bytes);
        if (c == 0)
            *bytes = 0;
        else
            o = put_character(o, c);
    }
    if (*bytes < unit_bytes(e))
        *bytes = 0;
    return (size_t)(o - out);
}

void wide_utf8(struct text *t, enum ctf_encoding e, const uint8_t *p, uint64_t bytes)
{
    char part[256];
    while (bytes > 0)
        text_put(t, part, wide_utf8_part(e, &p, &bytes, part, sizeof part));
}

uint64_t wide_string_bytes(enum ctf_encoding e, const uint8_t *p)
{
    unsigned unit = unit_bytes(e);
    uint64_t at = 0;
    while (unit_at(e, p + at))
        at += unit;
    return at + unit;
}

/* ---- bits ---- */

/* Returns bit i of the value; 0 is the least significant. */
static bool bit_at(const struct ctf_type *t, const uint8_t *data, uint64_t pos, uint64_t i)
{
    bool first_is_least = t->big_endian == t->is_reversed;
    uint64_t x = pos + (first_is_least ? i : (uint64_t)t->size_bits - 1 - i);
    return data[x >> 3] >> (t->big_endian ? 7 - (x & 7) : x & 7) & 1;
}

bool wide_any(const struct ctf_type *t, const uint8_t *data, uint64_t pos, uint64_t lo, uint64_t hi)
{
    if (hi >= (uint64_t)t->size_bits)
        hi = (uint64_t)t->size_bits - 1;
    for (uint64_t i = lo; i <= hi; i++)
        if (bit_at(t, data, pos, i))
            return true;
    return false;
}

enum { DECIMAL_WORDS = 128 }; /* limit for decimal output; longer numbers are shown in hexadecimal, which is fast */

static void put_decimal(struct text *t, uint32_t *words, size_t n, bool negative)
{
    char digits[DECIMAL_WORDS * 10 + 16], *p = digits + sizeof digits;
    uint64_t carry = negative;
    for (size_t i = 0; i < n && negative; i++) {
        carry += (uint32_t)~words[i];
        words[i] = (uint32_t)carry;
        carry >>= 32;
    }
    while (n > 0 && !words[n - 1])
        n--;
    do {
        uint64_t rest = 0;
        for (size_t i = n; i-- > 0;) {
            rest = rest << 32 | words[i];
            words[i] = (uint32_t)(rest / 1000000000);
            rest %= 1000000000;
        }
        while (n > 0 && !words[n - 1])
            n--;
        for (int k = 0; k < 9 && (n > 0 || rest || k == 0); k++, rest /= 10)
            *--p = (char)('0' + rest % 10);
    } while (n > 0);
    if (negative)
        *--p = '-';
    text_put(t, p, (size_t)(digits + sizeof digits - p));
}

/* Writes digits of `shift` bits each, without leading zeros (base 2: with them). */
static void put_digits(struct text *t, const struct ctf_type *type, const uint8_t *data, uint64_t pos, unsigned shift)
{
    uint64_t bits = (uint64_t)type->size_bits, n = (bits + shift - 1) / shift;
    bool any = shift == 1;
    for (uint64_t i = n; i-- > 0;) {
        unsigned digit = 0;
        for (unsigned k = 0; k < shift; k++) {
            uint64_t bit = i * shift + k;
            if (bit >= bits && type->is_signed)
                bit = bits - 1;
            digit |= (unsigned)(bit < bits && bit_at(type, data, pos, bit)) << k;
        }
        any |= digit != 0 || i == 0;
        if (any)
            text_putc(t, "0123456789ABCDEF"[digit]);
    }
}

void wide_bits(struct text *t, const struct ctf_type *type, const uint8_t *data, uint64_t pos, bool decimal)
{
    uint64_t bits = (uint64_t)type->size_bits;
    if (type->look == CTF_LOOK_BOOL) {
        text_puts(t, wide_any(type, data, pos, 0, bits) ? "true" : "false");
        return;
    }
    if (bits <= DECIMAL_WORDS * 32 && type->look == CTF_LOOK_PLAIN && (type->base == 10 || decimal)) {
        uint32_t words[DECIMAL_WORDS] = {0};
        size_t n = (size_t)(bits + 31) / 32;
        bool negative = type->is_signed && bit_at(type, data, pos, bits - 1);
        for (uint64_t i = 0; i < n * 32; i++)
            words[i / 32] |= (uint32_t)(i < bits ? bit_at(type, data, pos, i) : negative) << (i % 32);
        put_decimal(t, words, n, negative);
        return;
    }
    text_puts(t, type->base == 8 ? "0" : type->base == 2 ? "0b" : "0x");
    put_digits(t, type, data, pos, type->base == 8 ? 3 : type->base == 2 ? 1 : 4);
}

uint64_t wide_leb(struct text *t, const struct ctf_type *type, const uint8_t *data, uint64_t pos)
{
    const uint8_t *p = data + (pos >> 3);
    uint64_t v, n = ctf_leb(p, UINT64_MAX, type->is_signed, &v, &(bool){true});
    uint32_t words[DECIMAL_WORDS + 1] = {0};
    bool negative = type->is_signed && p[n - 1] & 0x40;
    uint64_t used = n;
    while (used > 10 && (p[used - 1] & 0x7f) == (negative ? 0x7f : 0) && !(negative && !(p[used - 2] & 0x40)))
        used--;
    if (used * 7 > DECIMAL_WORDS * 32) { /* raw bytes */
        text_puts(t, "0x");
        for (uint64_t i = n; i-- > 0;)
            text_printf(t, "%02X", p[i]);
        return n * 8;
    }
    for (uint64_t i = 0; i < DECIMAL_WORDS * 32; i++) {
        bool bit = i / 7 < used ? p[i / 7] >> (i % 7) & 1 : negative;
        words[i / 32] |= (uint32_t)bit << (i % 32);
    }
    put_decimal(t, words, DECIMAL_WORDS, negative);
    return n * 8;
}

/* ---- floating-point numbers ---- */

double wide_float(const struct ctf_type *t, const uint8_t *data, uint64_t pos)
{
    unsigned n = (unsigned)t->size_bits;
    uint64_t bits = ctf_bits(data, pos, n, t->big_endian, false);
    if (t->is_reversed)
        bits = ctf_reverse(bits, n, false);
    if (n == 16) {
        unsigned exponent = bits >> 10 & 31, fraction = bits & 1023;
        double v = exponent == 31 ? (fraction ? (double)NAN : (double)INFINITY)
            : exponent            ? ldexp(1024 + fraction, (int)exponent - 25)
                                  : ldexp(fraction, -24);
        return bits >> 15 ? -v : v;
    }
    if (n == 32) {
        uint32_t low = (uint32_t)bits;
        float f;
        memcpy(&f, &low, 4);
        return (double)f;
    }
    double v;
    memcpy(&v, &bits, 8);
    return v;
}
