#include "base/json.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>

enum { DEEPEST = 60 };

/* Comma before every value but the first of its container; a value after a key takes none. */
static inline void before_value(struct json *j)
{
    uint64_t bit = (uint64_t)1 << j->depth;
    if (j->key_pending)
        j->key_pending = false;
    else if (j->comma & bit)
        text_putc(j->out, ',');
    else
        j->comma |= bit;
}

static void enter(struct json *j, char bracket)
{
    before_value(j);
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

/* Bytes of the well-formed UTF-8 sequence at s (Unicode 15, table 3-7), or 0. */
static size_t utf8_sequence(const unsigned char *s, size_t n)
{
    unsigned char c = s[0], low = 0x80, high = 0xbf;
    size_t more;
    if (c >= 0xc2 && c <= 0xdf)
        more = 1;
    else if (c >= 0xe0 && c <= 0xef)
        more = 2;
    else if (c >= 0xf0 && c <= 0xf4)
        more = 3;
    else
        return 0;
    if (c == 0xe0)
        low = 0xa0;
    else if (c == 0xed)
        high = 0x9f;
    else if (c == 0xf0)
        low = 0x90;
    else if (c == 0xf4)
        high = 0x8f;
    if (n <= more || s[1] < low || s[1] > high)
        return 0;
    for (size_t i = 2; i <= more; i++)
        if ((s[i] & 0xc0) != 0x80)
            return 0;
    return more + 1;
}

static void write_escape(struct text *t, unsigned char c)
{
    static const char short_form[] = {['\b'] = 'b', ['\f'] = 'f', ['\n'] = 'n', ['\r'] = 'r', ['\t'] = 't', ['"'] = '"', ['\\'] = '\\'};
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
    return c >= 0x20 && c < 0x80 && c != '"' && c != '\\';
}

static void write_quoted(struct text *t, const char *s, size_t n)
{
    const unsigned char *u = (const unsigned char *)s;
    text_room(t, n + 2);
    text_putc(t, '"');
    for (size_t i = 0; i < n;) {
        size_t begin = i;
        while (i < n && is_plain(u[i]))
            i++;
        text_put(t, s + begin, i - begin);
        if (i == n)
            break;
        size_t length = u[i] < 0x80 ? 1 : utf8_sequence(u + i, n - i);
        if (u[i] < 0x80)
            write_escape(t, u[i]);
        else if (length)
            text_put(t, s + i, length);
        else
            text_put(t, "\xef\xbf\xbd", 3);
        i += length ? length : 1;
    }
    text_putc(t, '"');
}

void json_key(struct json *j, const char *key)
{
    assert(!j->key_pending);
    before_value(j);
    write_quoted(j->out, key, strlen(key));
    text_putc(j->out, ':');
    j->key_pending = true;
}

void json_string_n(struct json *j, const char *s, size_t n)
{
    before_value(j);
    write_quoted(j->out, s, n);
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
    before_value(j);
    text_i64(j->out, v);
}

void json_u64(struct json *j, uint64_t v)
{
    text_room(j->out, 24);
    before_value(j);
    text_u64(j->out, v);
}

/* Shortest of 15 to 17 significant digits that reads back as the same number. */
void json_double(struct json *j, double v)
{
    if (!isfinite(v)) {
        json_write_null(j);
        return;
    }
    before_value(j);
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
    before_value(j);
    text_puts(j->out, v ? "true" : "false");
}

void json_write_null(struct json *j)
{
    before_value(j);
    text_put(j->out, "null", 4);
}

void json_raw(struct json *j, const char *s, size_t n)
{
    before_value(j);
    text_put(j->out, s, n);
}

void json_kv_string(struct json *j, const char *key, const char *s)
{
    json_key(j, key);
    json_write_string(j, s);
}

void json_kv_i64(struct json *j, const char *key, int64_t v)
{
    json_key(j, key);
    json_i64(j, v);
}

void json_kv_u64(struct json *j, const char *key, uint64_t v)
{
    json_key(j, key);
    json_u64(j, v);
}

void json_kv_double(struct json *j, const char *key, double v)
{
    json_key(j, key);
    json_double(j, v);
}

void json_kv_bool(struct json *j, const char *key, bool v)
{
    json_key(j, key);
    json_bool(j, v);
}
