/* SPDX-License-Identifier: MIT */
#include "base/shown.h"

uint32_t shown_code_point(const char *string, size_t n)
{
    const unsigned char *s = (const unsigned char *)string;
    static const unsigned char first_bits[] = {0, 0x7f, 0x1f, 0x0f, 0x07};
    uint32_t c = s[0] & first_bits[n];
    for (size_t i = 1; i < n; i++)
        c = c << 6 | (s[i] & 0x3f);
    return c;
}

static bool is_plain(uint32_t c)
{
    if (c < 0x20 || (c >= 0x7f && c < 0xa0))
        return false;
    return c != 0x061c && c != 0x200e && c != 0x200f && !(c >= 0x2028 && c <= 0x202e) && !(c >= 0x2066 && c <= 0x2069);
}

size_t shown_character(const char *s, size_t n, bool *plain)
{
    size_t bytes = text_sequence(s, n);
    *plain = bytes && is_plain(shown_code_point(s, bytes));
    return bytes ? bytes : 1;
}

static void put(struct text *t, const char *s, size_t n, bool lines)
{
    text_room(t, n);
    for (size_t i = 0, begin = 0; i <= n;) {
        bool plain = false;
        size_t bytes = i < n ? shown_character(s + i, n - i, &plain) : 1;
        if (i < n && (plain || (lines && (s[i] == '\n' || s[i] == '\t')))) {
            i += bytes;
            continue;
        }
        text_put(t, s + begin, i - begin);
        if (i < n)
            text_putc(t, '?');
        i += bytes;
        begin = i;
    }
}

void shown_line(struct text *t, const char *s, size_t n)
{
    put(t, s, n, false);
}

void shown_lines(struct text *t, const char *s, size_t n)
{
    put(t, s, n, true);
}

/* ---- CSV cells ---- */

static size_t digits(const char *s, size_t n, size_t at)
{
    size_t from = at;
    while (at < n && text_is_digit(s[at]))
        at++;
    return at - from;
}

/* [+-]digits[.digits][e[+-]digits] */
static bool is_number(const char *s, size_t n)
{
    size_t at = n && (*s == '+' || *s == '-'), found = digits(s, n, at);
    if (!found)
        return false;
    at += found;
    if (at < n && s[at] == '.') {
        found = digits(s, n, at + 1);
        if (!found)
            return false;
        at += 1 + found;
    }
    if (at < n && (s[at] == 'e' || s[at] == 'E')) {
        at++;
        at += at < n && (s[at] == '+' || s[at] == '-');
        found = digits(s, n, at);
        if (!found)
            return false;
        at += found;
    }
    return at == n;
}

static bool begins_formula(const char *s, size_t n)
{
    static const char *const wide[] = {"\uff1d", "\uff0b", "\uff0d", "\uff20"};
    if (!n)
        return false;
    if (memchr("=+-@\t\r", *s, 6))
        return !is_number(s, n);
    for (size_t i = 0; i < 4 && (unsigned char)*s == 0xef; i++)
        if (n >= 3 && memcmp(s, wide[i], 3) == 0)
            return true;
    return false;
}

void shown_cell(struct text *t, const char *s)
{
    shown_cell_n(t, s, strlen(s));
}

void shown_cell_n(struct text *t, const char *s, size_t n)
{
    char *o = text_room(t, 2 * n + 3);
    bool quoted = memchr(s, ',', n) || memchr(s, '"', n) || memchr(s, '\n', n) || memchr(s, '\r', n);
    if (quoted)
        *o++ = '"';
    if (begins_formula(s, n))
        *o++ = '\'';
    if (!quoted) {
        memcpy(o, s, n);
        o += n;
    }
    for (size_t i = 0; i < n && quoted; i++) {
        if (s[i] == '"')
            *o++ = '"';
        *o++ = s[i];
    }
    if (quoted)
        *o++ = '"';
    t->n = (size_t)(o - t->v);
}
