/* SPDX-License-Identifier: MIT */
/* Values as babeltrace2's text output shows them. */
#include <stdio.h>

#include "ctf/print.h"

/* Escapes: 0: none; 1: as \xNN; else the letter after a backslash. */
static const char escapes[256] = {
    ['\a'] = 'a',
    ['\b'] = 'b',
    [27] = 'e',
    ['\f'] = 'f',
    ['\n'] = 'n',
    ['\r'] = 'r',
    ['\t'] = 't',
    ['\v'] = 'v',
    ['\\'] = '\\',
    ['\''] = '\'',
    ['"'] = '"',
    ['?'] = '?',
    [1] = 1,
    [2] = 1,
    [3] = 1,
    [4] = 1,
    [5] = 1,
    [6] = 1,
    [14] = 1,
    [15] = 1,
    [16] = 1,
    [17] = 1,
    [18] = 1,
    [19] = 1,
    [20] = 1,
    [21] = 1,
    [22] = 1,
    [23] = 1,
    [24] = 1,
    [25] = 1,
    [26] = 1,
    [28] = 1,
    [29] = 1,
    [30] = 1,
    [31] = 1,
    [127] = 1,
};

/* Returns whether any of the 8 bytes may need more than a copy. Bytes from 0x80 on give false positives. */
static inline bool may_need_escape(uint64_t v)
{
    const uint64_t ones = 0x0101010101010101, tops = ones << 7;
#define HAS(c) ((v ^ (ones * (c))) - ones) /* top bit of a byte that is c; others by borrow only above such a byte */
    uint64_t control = v - ones * 0x20;
    return ((control | HAS('"') | HAS('\'') | HAS('\\') | HAS('?') | HAS(0x7f) | v) & tops) != 0;
#undef HAS
}

char *print_text_string(char *o, const char *s, size_t n)
{
    *o++ = '"';
    size_t i = 0;
    for (uint64_t v; i + 8 <= n; i += 8, o += 8) {
        memcpy(&v, s + i, 8);
        if (may_need_escape(v))
            break;
        memcpy(o, &v, 8);
    }
    for (; i < n; i++) {
        unsigned char c = (unsigned char)s[i];
        char e = escapes[c];
        if (!e) {
            *o++ = (char)c;
            continue;
        }
        *o++ = '\\';
        if (e != 1) {
            *o++ = e;
            continue;
        }
        *o++ = 'x';
        *o++ = "0123456789abcdef"[c >> 4];
        *o++ = "0123456789abcdef"[c & 15];
    }
    *o++ = '"';
    return o;
}

static char *put_base(char *o, uint64_t v, unsigned shift)
{
    unsigned n = (64 - (unsigned)__builtin_clzll(v | 1) + shift - 1) / shift;
    for (char *p = o + n; p > o; v >>= shift)
        *--p = "0123456789ABCDEF"[v & ((1u << shift) - 1)];
    return o + n;
}

static uint64_t low_bits(uint64_t v, unsigned n)
{
    return n < 64 ? v & (((uint64_t)1 << n) - 1) : v;
}

char *print_text_int(char *o, const struct ctf_type *t, int64_t value)
{
    uint64_t v = (uint64_t)value;
    unsigned n = t->is_leb ? 64 : (unsigned)t->size_bits;
    switch (t->base) {
    case 2:
        *o++ = '0';
        *o++ = 'b';
        for (unsigned i = n; i > 0; i--)
            *o++ = (char)('0' + (v >> (i - 1) & 1));
        return o;
    case 8: *o++ = '0'; return put_base(o, low_bits(v, (n + 2) / 3 * 3), 3);
    case 16:
        *o++ = '0';
        *o++ = 'x';
        return put_base(o, low_bits(v, (n + 3) / 4 * 4), 4);
    default:
        if (t->is_signed && value < 0) {
            *o++ = '-';
            v = -v;
        }
        return print_u64(o, v);
    }
}

char *print_text_float(char *o, double v)
{
    return o + snprintf(o, PRINT_ROOM, "%g", v);
}

static bool in_range(const struct ctf_range *r, int64_t v, bool is_signed)
{
    return is_signed ? v >= r->lo && v <= r->hi : (uint64_t)v >= (uint64_t)r->lo && (uint64_t)v <= (uint64_t)r->hi;
}

void print_labels(
    const struct ctf_type *t, int64_t v, const uint32_t *order, void (*label)(void *arg, const char *), void *arg)
{
    bool is_signed = print_int_type(t)->is_signed;
    const struct ctf_range *r = t->u.enumeration.ranges;
    for (uint32_t k = 0; k < t->n; k++) {
        const struct ctf_range *first = &r[order ? order[k] : k];
        bool hit = in_range(first, v, is_signed);
        while (order && k + 1 < t->n && strcmp(r[order[k + 1]].label, first->label) == 0)
            hit |= in_range(&r[order[++k]], v, is_signed);
        if (hit)
            label(arg, first->label);
    }
}
