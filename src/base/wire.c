/* SPDX-License-Identifier: MIT */
#include "base/wire.h"

#include <string.h>

void wire_put_u(struct text *t, uint64_t v)
{
    for (; v >= 0x80; v >>= 7)
        text_putc(t, (char)(v | 0x80));
    text_putc(t, (char)v);
}

void wire_put_i(struct text *t, int64_t v)
{
    wire_put_u(t, (uint64_t)v << 1 ^ (v < 0 ? UINT64_MAX : 0));
}

void wire_put_bytes(struct text *t, const void *bytes, size_t n)
{
    if (n)
        text_put(t, bytes, n);
}

void wire_put_string(struct text *t, const char *s)
{
    size_t n = strlen(s);
    wire_put_u(t, n);
    wire_put_bytes(t, s, n);
}

static uint64_t refuse(struct wire_in *u)
{
    u->damaged = true;
    u->at = u->end;
    return 0;
}

uint64_t wire_long_u(struct wire_in *u)
{
    uint64_t v = 0;
    for (unsigned shift = 0; u->at < u->end && shift < 64; shift += 7) {
        uint8_t b = *u->at++;
        if (shift == 63 && b > 1)
            break;
        v |= (uint64_t)(b & 0x7f) << shift;
        if (b < 0x80)
            return v;
    }
    return refuse(u);
}

int64_t wire_i(struct wire_in *u)
{
    uint64_t v = wire_u(u);
    return (int64_t)(v >> 1 ^ (v & 1 ? UINT64_MAX : 0));
}

uint64_t wire_below(struct wire_in *u, uint64_t limit)
{
    uint64_t v = wire_u(u);
    return v < limit ? v : refuse(u);
}

size_t wire_count(struct wire_in *u, size_t least_bytes)
{
    uint64_t n = wire_u(u);
    return n <= (size_t)(u->end - u->at) / least_bytes ? (size_t)n : (size_t)refuse(u);
}

void wire_bytes(struct wire_in *u, void *out, size_t n)
{
    if ((size_t)(u->end - u->at) < n) {
        refuse(u);
        memset(out, 0, n);
    } else if (n) {
        memcpy(out, u->at, n);
        u->at += n;
    }
}

const char *wire_string(struct wire_in *u, size_t *n)
{
    const char *s;
    *n = wire_count(u, 1);
    s = *n ? (const char *)u->at : "";
    u->at += *n;
    return s;
}

int64_t wire_sum(struct wire_in *u, int64_t a, int64_t b)
{
    int64_t sum;
    if (!__builtin_add_overflow(a, b, &sum))
        return sum;
    refuse(u);
    return a;
}
