/* SPDX-License-Identifier: MIT */
/* Maps written by users: lines of decimals, joined. */
#include <string.h>

#include "base/text.h"
#include "clock/net.h"

enum { MOST_DIGITS = 60, FRACTION_BITS = 120 };

/* Slopes that a map can represent. */
static const i128 least_drift = Q62 * 36 / 100, most_drift = Q62 * 280 / 100;

/* Absolute decimal: its whole part, and the fraction in units of 2^-120. */
struct decimal {
    bool negative;
    uint64_t whole;
    u128 fraction;
};

static bool read_whole(const char **s, uint64_t *out)
{
    const char *first = *s;
    for (*out = 0; text_is_digit(**s); ++*s) {
        if (*out > (uint64_t)CLOCK_TIME_LIMIT / 10)
            return false;
        *out = *out * 10 + (uint64_t)(**s - '0');
    }
    return *s > first && *out <= (uint64_t)CLOCK_TIME_LIMIT;
}

static bool read_decimal(const char *s, struct decimal *out)
{
    *out = (struct decimal){.negative = *s == '-'};
    s += out->negative;
    if (!read_whole(&s, &out->whole))
        return false;
    if (!*s)
        return true;
    size_t n = strlen(++s);
    if (s[-1] != '.' || !n || n > MOST_DIGITS || strspn(s, "0123456789") != n)
        return false;
    while (n--) /* last digit first, each a tenth of the one before it */
        out->fraction = (out->fraction + ((u128)(s[n] - '0') << FRACTION_BITS)) / 10;
    return true;
}

int clock_line_read(const char *drift, const char *offset_ns, struct clock_piece *out, struct err *e)
{
    struct decimal d, o;
    *out = (struct clock_piece){0};
    if (!read_decimal(drift, &d) || d.negative || d.whole > 2)
        return err_set(
            e, ERR_ARG, "drift \"%.40s\": a decimal from 0.36 to 2.8 is expected, such as 1.00000002", drift);
    i128 slope = (i128)d.whole * Q62 + (i128)((d.fraction + ((u128)1 << (FRACTION_BITS - 63))) >> (FRACTION_BITS - 62));
    if (slope < least_drift || slope > most_drift)
        return err_set(e, ERR_ARG, "drift \"%.40s\": from 0.36 to 2.8 can be", drift);
    if (!read_decimal(offset_ns, &o))
        return err_set(e, ERR_ARG, "offset \"%.40s\": a decimal of ns is expected, at most 2^62", offset_ns);
    out->slope_q62 = (int64_t)(slope - Q62);
    out->shift = o.negative ? -(int64_t)o.whole : (int64_t)o.whole + (o.fraction > 0); /* up: gains are rounded down */
    return 0;
}

int clock_line_through(struct clock_piece *p, int64_t t, int64_t t_ref, struct err *e)
{
    struct clock_map line = {.pieces = p, .n = 1};
    int64_t stated = clock_to_reference(&line, t);
    if (stated > sat64((i128)t_ref + 1000) || stated < sat64((i128)t_ref - 1000))
        return err_set(e, ERR_ARG, "the line does not go through the times that it is said to");
    p->t0 = t;
    p->shift = sat64((i128)t_ref - t);
    return 0;
}

int clock_map_of(struct clock_piece *p, size_t n, struct clock_map *out, struct err *e)
{
    enum { ROUNDING_NS = 4 };
    *out = (struct clock_map){.predecessor = -1, .pieces = p, .n = n};
    for (size_t i = 1; i < n; i++) {
        struct clock_map before = {.pieces = &p[i - 1], .n = 1}, here = {.pieces = &p[i], .n = 1};
        if (p[i].begin <= p[i - 1].begin)
            return err_set(e, ERR_ARG, "its pieces are not in order of time");
        i128 fall = (i128)clock_to_reference(&before, p[i].begin) - clock_to_reference(&here, p[i].begin);
        if (fall > ROUNDING_NS || fall < -ROUNDING_NS)
            return err_set(e, ERR_ARG, "its pieces do not meet");
        if (fall > 0)
            p[i].shift = sat64((i128)p[i].shift + fall);
    }
    return 0;
}
