/* SPDX-License-Identifier: MIT */
#include "base/json.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>

#include "base/shown.h"

enum { DEEPEST = 60 };

static void enter(struct json *j, char bracket)
{
    json_before_value(j);
    text_putc(j->out, bracket);
    assert(j->depth < DEEPEST);
    j->depth++;
    j->comma &= ~((uint64_t)1 << j->depth);
}

static void leave(struct json *j, char bracket)
{
    assert(j->depth > 0 && !j->key_pending);
    j->depth--;
    text_putc(j->out, bracket);
}

void json_begin_object(struct json *j)
{
    enter(j, '{');
}
void json_end_object(struct json *j)
{
    leave(j, '}');
}
void json_begin_array(struct json *j)
{
    enter(j, '[');
}
void json_end_array(struct json *j)
{
    leave(j, ']');
}

static void write_escape(struct text *t, unsigned char c)
{
    static const char short_form[] = {
        ['\b'] = 'b', ['\f'] = 'f', ['\n'] = 'n', ['\r'] = 'r', ['\t'] = 't', ['"'] = '"', ['\\'] = '\\'};
    text_putc(t, '\\');
    if (c < sizeof short_form && short_form[c]) {
        text_putc(t, short_form[c]);
    } else {
        text_put(t, "u00", 3);
        text_putc(t, (char)('0' + (c >> 4)));
        text_putc(t, "0123456789abcdef"[c & 15]);
    }
}

static inline bool is_plain(unsigned char c)
{
    return c >= 0x20 && c < 0x7f && c != '"' && c != '\\';
}

/* Returns whether all eight bytes are plain. A byte that is not leaves its top bit set in one of the five words;
 * borrows and carries begin only at such bytes. */
static inline bool all_plain(uint64_t word)
{
    const uint64_t ones = 0x0101010101010101, tops = 0x8080808080808080;
    uint64_t quote = word ^ ones * '"', slash = word ^ ones * '\\';
    return !((word | (word + ones) | (word - ones * 0x20) | (quote - ones) | (slash - ones)) & tops);
}

/* Copies s up to the first byte that is not plain, into reserved room; returns the number of bytes. */
static inline size_t copy_plain(char *to, const char *s, size_t n)
{
    size_t i = 0;
    uint64_t word;
    for (; i + 8 <= n; i += 8) {
        memcpy(&word, s + i, 8);
        if (!all_plain(word))
            break;
        memcpy(to + i, &word, 8);
    }
    if (n - i < 8 && n >= 8) { /* last bytes, overlapping some of those before */
        memcpy(&word, s + n - 8, 8);
        if (all_plain(word)) {
            memcpy(to + n - 8, &word, 8);
            return n;
        }
    }
    for (; i < n && is_plain((unsigned char)s[i]); i++)
        to[i] = s[i];
    return i;
}

static void write_escaped(struct text *t, const char *s, size_t n)
{
    text_room(t, n);
    for (size_t i = 0; i < n;) {
        size_t plain = copy_plain(text_room(t, n - i), s + i, n - i);
        t->n += plain;
        i += plain;
        if (i == n)
            break;
        unsigned char c = (unsigned char)s[i];
        bool shown;
        size_t length = shown_character(s + i, n - i, &shown);
        if (c < 0x80)
            write_escape(t, c);
        else if (shown)
            text_put(t, s + i, length);
        else if (length > 1)
            text_printf(t, "\\u%04x", shown_code_point(s + i, length));
        else
            text_put(t, "\xef\xbf\xbd", 3);
        i += length;
    }
}

void json_quote(struct text *t, const char *s, size_t n)
{
    text_room(t, n + 2);
    text_putc(t, '"');
    write_escaped(t, s, n);
    text_putc(t, '"');
}

void json_escape_since(struct text *t, size_t from)
{
    uint64_t word;
    memset(text_room(t, sizeof word), ' ', sizeof word);
    for (; from < t->n; from += sizeof word) {
        memcpy(&word, t->v + from, sizeof word);
        if (!all_plain(word))
            break;
    }
    if (from >= t->n)
        return;
    size_t n = t->n - from;
    char *rest = mem_alloc(n);
    memcpy(rest, t->v + from, n);
    t->n = from;
    write_escaped(t, rest, n);
    free(rest);
}

void json_key(struct json *j, const char *key)
{
    assert(!j->key_pending);
    json_before_value(j);
    json_quote(j->out, key, strlen(key));
    text_putc(j->out, ':');
    j->key_pending = true;
}

void json_string_n(struct json *j, const char *s, size_t n)
{
    json_before_value(j);
    json_quote(j->out, s, n);
}

void json_write_string(struct json *j, const char *s)
{
    if (s)
        json_string_n(j, s, strlen(s));
    else
        json_write_null(j);
}

void json_i64(struct json *j, int64_t v)
{
    text_room(j->out, 24);
    json_before_value(j);
    text_i64_near(j->out, &j->near, v);
}

void json_u64(struct json *j, uint64_t v)
{
    text_room(j->out, 24);
    json_before_value(j);
    text_u64(j->out, v);
}

/* Shortest of 15 to 17 significant digits that reads back as the same number. */
void json_double(struct json *j, double v)
{
    if (!isfinite(v)) {
        json_write_null(j);
        return;
    }
    json_before_value(j);
    if (v == 0 && !signbit(v)) {
        text_putc(j->out, '0');
        return;
    }
    char buffer[40];
    int n = 0;
    for (int digits = 15; digits <= 17; digits++) {
        n = snprintf(buffer, sizeof buffer, "%.*g", digits, v);
        if (digits == 17 || strtod(buffer, NULL) == v)
            break;
    }
    text_put(j->out, buffer, (size_t)n);
}

void json_bool(struct json *j, bool v)
{
    json_before_value(j);
    text_puts(j->out, v ? "true" : "false");
}

void json_write_null(struct json *j)
{
    json_before_value(j);
    text_put(j->out, "null", 4);
}

void json_raw(struct json *j, const char *s, size_t n)
{
    json_before_value(j);
    text_put(j->out, s, n);
}
