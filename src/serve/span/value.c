/* SPDX-License-Identifier: MIT */
/* Values and ids: lookup, parsing, conversion to text. */
#include "span/span.h"

#include <string.h>

#include "base/json.h"
#include "span/base64.h"
#include "span/write.h"

const struct span_value *span_find(const struct span_attributes *a, const char *key)
{
    for (size_t i = 0; i < a->n; i++)
        if (!strcmp(a->v[i].key, key))
            return &a->v[i].value;
    return NULL;
}

bool span_id_is_zero(const void *id, size_t bytes)
{
    const uint8_t *p = id;
    uint8_t any = 0;
    for (size_t i = 0; i < bytes; i++)
        any |= p[i];
    return !any;
}

void span_write_hex(struct text *t, const void *id, size_t bytes)
{
    static const char digits[] = "0123456789abcdef";
    const uint8_t *p = id;
    for (size_t i = 0; i < bytes; i++) {
        text_putc(t, digits[p[i] >> 4]);
        text_putc(t, digits[p[i] & 15]);
    }
}

static int digit_of(char c)
{
    return c >= '0' && c <= '9' ? c - '0'
        : c >= 'a' && c <= 'f'  ? c - 'a' + 10
        : c >= 'A' && c <= 'F'  ? c - 'A' + 10
                                : -1;
}

bool span_read_hex(const char *s, size_t n, void *id, size_t bytes)
{
    uint8_t *p = id;
    if (n != 2 * bytes)
        return false;
    for (size_t i = 0; i < bytes; i++) {
        int high = digit_of(s[2 * i]), low = digit_of(s[2 * i + 1]);
        if (high < 0 || low < 0)
            return false;
        p[i] = (uint8_t)(high << 4 | low);
    }
    return true;
}

void span_write_base64(struct text *t, const void *v, size_t n)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const uint8_t *p = v;
    for (size_t i = 0; i < n; i += 3) {
        unsigned left = n - i > 2 ? 3 : (unsigned)(n - i);
        unsigned bits = (unsigned)p[i] << 16 | (left > 1 ? (unsigned)p[i + 1] << 8 : 0) | (left > 2 ? p[i + 2] : 0);
        text_putc(t, digits[bits >> 18]);
        text_putc(t, digits[bits >> 12 & 63]);
        text_putc(t, left > 1 ? digits[bits >> 6 & 63] : '=');
        text_putc(t, left > 2 ? digits[bits & 63] : '=');
    }
}

static int sextet_of(char c)
{
    return c >= 'A' && c <= 'Z' ? c - 'A'
        : c >= 'a' && c <= 'z'  ? c - 'a' + 26
        : c >= '0' && c <= '9'  ? c - '0' + 52
        : c == '+' || c == '-'  ? 62
        : c == '/' || c == '_'  ? 63
                                : -1;
}

bool span_read_base64(const char *s, size_t n, uint8_t *out, size_t *out_n)
{
    unsigned bits = 0, have = 0;
    *out_n = 0;
    for (size_t padding = 0; n && s[n - 1] == '=' && padding < 2; padding++)
        n--;
    for (size_t i = 0; i < n; i++) {
        int six = sextet_of(s[i]);
        if (six < 0)
            return false;
        bits = bits << 6 | (unsigned)six;
        have += 6;
        if (have >= 8)
            out[(*out_n)++] = (uint8_t)(bits >> (have -= 8));
    }
    return n % 4 != 1;
}

const char *span_value_text(const struct span_value *v, struct arena *arena)
{
    struct text t = {.fd = -1};
    struct json j = JSON_TO(&t);
    switch (v->type) {
    case SPAN_EMPTY: return "";
    case SPAN_STRING: return v->text.v;
    case SPAN_BOOL: return v->truth ? "true" : "false";
    case SPAN_INT: text_i64(&t, v->number); break;
    case SPAN_BYTES: span_write_base64(&t, v->text.v, v->text.n); break;
    default: span_write_plain(&j, v); break;
    }
    return text_to_arena(&t, arena);
}
