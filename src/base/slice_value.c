/* SPDX-License-Identifier: MIT */
/* Strings of JSON with their escapes resolved, and equality of values. */
#include <string.h>

#include "base/json.h"
#include "base/slice.h"
#include "base/text.h"

/* ---- strings ---- */

/* Returns the value of a digit; the text is valid. */
static uint32_t hex(char c)
{
    return (uint32_t)(text_is_digit(c) ? c - '0' : (c | 0x20) - 'a' + 10);
}

static uint32_t hex4(const char *p)
{
    uint32_t v = 0;
    for (int i = 0; i < 4; i++)
        v = v << 4 | hex(p[i]);
    return v;
}

static char *put_utf8(char *to, uint32_t c)
{
    if (c < 0x80) {
        *to++ = (char)c;
    } else if (c < 0x800) {
        *to++ = (char)(0xc0 | c >> 6);
        *to++ = (char)(0x80 | (c & 63));
    } else if (c < 0x10000) {
        *to++ = (char)(0xe0 | c >> 12);
        *to++ = (char)(0x80 | (c >> 6 & 63));
        *to++ = (char)(0x80 | (c & 63));
    } else {
        *to++ = (char)(0xf0 | c >> 18);
        *to++ = (char)(0x80 | (c >> 12 & 63));
        *to++ = (char)(0x80 | (c >> 6 & 63));
        *to++ = (char)(0x80 | (c & 63));
    }
    return to;
}

/* Appends a character "\u…"; *p is behind "\u". A pair of surrogates is one character; a single one becomes U+FFFD. */
static char *unescape_unicode(char *to, const char **p, const char *end)
{
    uint32_t c = hex4(*p);
    *p += 4;
    if (c >= 0xd800 && c < 0xdc00 && end - *p >= 6 && (*p)[0] == '\\' && (*p)[1] == 'u') {
        uint32_t low = hex4(*p + 2);
        if (low >= 0xdc00 && low < 0xe000) {
            *p += 6;
            return put_utf8(to, 0x10000 + ((c - 0xd800) << 10) + (low - 0xdc00));
        }
    }
    return put_utf8(to, !c || (c >= 0xd800 && c < 0xe000) ? 0xfffd : c);
}

/* Appends the character at *p, with its escape resolved: at most 4 bytes. end: end of the string. */
static char *take_character(char *to, const char **p, const char *end)
{
    static const char kinds[] = "bfnrt", values[] = "\b\f\n\r\t";
    if (**p != '\\') {
        *to++ = *(*p)++;
        return to;
    }
    char kind = (*p)[1];
    const char *known = strchr(kinds, kind);
    *p += 2;
    if (kind == 'u')
        return unescape_unicode(to, p, end);
    *to++ = known ? values[known - kinds] : kind;
    return to;
}

char *slice_string(struct slice s, struct arena *a)
{
    if (!slice_is(s, '"'))
        return NULL;
    char *text = arena_alloc(a, s.n), *to = text; /* escapes are never shorter than their characters */
    for (const char *p = s.at + 1, *end = s.at + s.n - 1; p < end;)
        to = take_character(to, &p, end);
    *to = '\0';
    return text;
}

/* ---- equality ---- */

/* Characters of a string, one byte after the other. */
struct bytes {
    const char *p, *end;
    char v[4];
    size_t at, n;
};

/* Returns -1 at the end. */
static int next_byte(struct bytes *b)
{
    if (b->at == b->n) {
        if (b->p >= b->end)
            return -1;
        b->n = (size_t)(take_character(b->v, &b->p, b->end) - b->v);
        b->at = 0;
    }
    return (unsigned char)b->v[b->at++];
}

static bool same_strings(struct slice a, struct slice b)
{
    struct bytes x = {.p = a.at + 1, .end = a.at + a.n - 1}, y = {.p = b.at + 1, .end = b.at + b.n - 1};
    int byte;
    while ((byte = next_byte(&x)) == next_byte(&y))
        if (byte < 0)
            return true;
    return false;
}

static bool same_arrays(struct slice a, struct slice b)
{
    struct slice_walk v = slice_items(a), w = slice_items(b);
    for (struct slice x, y; slice_next(&v, &x);)
        if (!slice_next(&w, &y) || !slice_same_value(x, y))
            return false;
    struct slice more;
    return !slice_next(&w, &more);
}

static bool same_members(struct slice a, struct slice b)
{
    struct slice_walk v = slice_members(a), w = slice_members(b);
    for (struct slice k, l, x, y; slice_next_member(&v, &k, &x);)
        if (!slice_next_member(&w, &l, &y) || !same_strings(k, l) || !slice_same_value(x, y))
            return false;
    struct slice k, more;
    return !slice_next_member(&w, &k, &more);
}

/* Returns the number of members; SIZE_MAX: more than SLICE_MEMBERS. */
static size_t count_members(struct slice object)
{
    struct slice_walk w = slice_members(object);
    size_t n = 0;
    for (struct slice k, v; slice_next_member(&w, &k, &v);)
        if (++n > SLICE_MEMBERS)
            return SIZE_MAX;
    return n;
}

static struct slice find_member(struct slice object, struct slice key)
{
    struct slice_walk w = slice_members(object);
    for (struct slice k, v; slice_next_member(&w, &k, &v);)
        if (same_strings(k, key))
            return v;
    return (struct slice){0};
}

static bool same_objects(struct slice a, struct slice b)
{
    struct slice_walk w = slice_members(a);
    size_t n = count_members(a);
    if (n == SIZE_MAX)
        return same_members(a, b);
    if (n != count_members(b))
        return false;
    for (struct slice key, value; slice_next_member(&w, &key, &value);) {
        struct slice other = find_member(b, key);
        if (!other.at || !slice_same_value(value, other))
            return false;
    }
    return true;
}

static bool same_numbers(struct slice a, struct slice b)
{
    int64_t i, k;
    double x, y;
    if (slice_integer(a, &i) && slice_integer(b, &k))
        return i == k;
    return slice_number(a, &x) && slice_number(b, &y) && x <= y && x >= y;
}

bool slice_same_value(struct slice a, struct slice b)
{
    if (slice_same(a, b))
        return true;
    if (!a.at || !b.at)
        return false;
    switch (*a.at) {
    case '"': return *b.at == '"' && same_strings(a, b);
    case '[': return *b.at == '[' && same_arrays(a, b);
    case '{': return *b.at == '{' && same_objects(a, b);
    default: return same_numbers(a, b); /* words are equal byte for byte */
    }
}

/* ---- writing ---- */

void slice_put(struct json *j, struct slice s)
{
    json_raw(j, s.at, s.n);
}

void slice_put_key(struct json *j, struct slice key)
{
    json_before_value(j);
    text_put(j->out, key.at, key.n);
    text_putc(j->out, ':');
    j->key_pending = true;
}
