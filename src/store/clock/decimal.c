/* SPDX-License-Identifier: MIT */
/* Exact decimals of fixed-point numbers: doubles have steps of 256 ns at today's epoch. */
#include "clock/net.h"

/* Writes value / 2^62 with `digits` after the point (cut, not rounded), without trailing zeros. */
static void write_q62(struct text *out, i128 value, int digits)
{
    u128 v = value < 0 ? -(u128)value : (u128)value;
    uint64_t fraction = (uint64_t)(v & (((u128)1 << 62) - 1));
    char decimals[64];
    int n = 0;
    for (; n < digits && fraction; n++) {
        u128 next = (u128)fraction * 10;
        decimals[n] = (char)('0' + (int)(next >> 62));
        fraction = (uint64_t)(next & (((u128)1 << 62) - 1));
    }
    while (n && decimals[n - 1] == '0')
        n--;
    if (value < 0)
        text_putc(out, '-');
    text_u64(out, (uint64_t)(v >> 62));
    if (n) {
        text_putc(out, '.');
        text_put(out, decimals, (size_t)n);
    }
}

/* 24 digits: at 2^62 ns the rest is below 10^-5 ns. */
void clock_decimal_drift(struct text *out, const struct clock_piece *p)
{
    write_q62(out, Q62 + p->slope_q62, 24);
}

void clock_decimal_offset(struct text *out, const struct clock_piece *p)
{
    write_q62(out, p->shift * Q62 - (i128)p->slope_q62 * p->t0, 6);
}
