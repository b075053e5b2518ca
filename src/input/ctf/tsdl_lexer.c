/* SPDX-License-Identifier: MIT */
/* Words, numbers, strings and punctuation of a metadata text, and the values of attributes. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/text.h"
#include "ctf/ctf2.h"

static bool is_word_start(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}
static bool is_word(char c)
{
    return is_word_start(c) || text_is_digit(c);
}
static bool is_space(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

static int digit_value(char c)
{
    if (text_is_digit(c))
        return c - '0';
    c |= 0x20;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : 99;
}

size_t tsdl_line(const char *text, const char *at)
{
    size_t line = 1;
    for (const char *p = text; (p = memchr(p, '\n', (size_t)(at - p))); p++)
        line++;
    return line;
}

void tsdl_fail(struct tsdl_lexer *l, const char *at, int code, const char *fmt, ...)
{
    if (l->failed)
        return;
    char text[400];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    char place[360];
    if (l->is_json && !l->is_bare)
        ctf2_where(l->text, l->end, at, place, sizeof place);
    else
        snprintf(place, sizeof place, "line %zu", l->is_bare ? 1 : tsdl_line(l->text, at));
    err_set(l->e, code, "%s: %s", place, text);
    l->failed = true;
    l->p = l->end;
    l->t = (struct tsdl_token){.kind = TSDL_END, .s = l->end};
}

struct tsdl_shown tsdl_show(const struct tsdl_lexer *l, const struct tsdl_token *t)
{
    struct tsdl_shown shown;
    if (t->kind == TSDL_END) {
        snprintf(shown.s, sizeof shown.s, "%s", t->s < l->end ? "the end" : "the end of the text");
        return shown;
    }
    char s[32];
    size_t n = 0;
    for (; n < t->n && n < sizeof s - 4; n++)
        s[n] = (unsigned char)t->s[n] < 0x20 || t->s[n] == 0x7f ? '?' : t->s[n];
    while (n < t->n && n > 0 && ((unsigned char)t->s[n] & 0xc0) == 0x80)
        n--; /* keeps characters whole */
    snprintf(shown.s, sizeof shown.s, "'%.*s%s'", (int)n, s, n < t->n ? "..." : "");
    return shown;
}

/* Skips spaces and comments. */
static const char *skip_blank(struct tsdl_lexer *l)
{
    const char *p = l->p, *end = l->end;
    for (;;) {
        while (p < end && is_space(*p))
            p++;
        if (end - p < 2 || p[0] != '/' || (p[1] != '*' && p[1] != '/'))
            return p;
        const char *close = p[1] == '*' ? memmem(p + 2, (size_t)(end - p - 2), "*/", 2)
                                        : memchr(p, '\n', (size_t)(end - p));
        if (!close && p[1] == '*') {
            l->truncated = true;
            tsdl_fail(l, p, ERR_FORMAT, "this comment is never closed");
            return l->end;
        }
        p = !close ? end : *close == '*' ? close + 2 : close + 1;
    }
}

static void read_number(struct tsdl_lexer *l, const char *p)
{
    const char *q = p;
    unsigned base = 10;
    if (*q == '0') {
        base = 8;
        if (l->end - q > 2 && (q[1] | 0x20) == 'x' && digit_value(q[2]) < 16) {
            base = 16;
            q += 2;
        }
    }
    uint64_t v = 0;
    for (int d; q < l->end && (d = digit_value(*q)) < 16 && (unsigned)d < (base == 8 ? 10 : base); q++) {
        if ((unsigned)d >= base) {
            tsdl_fail(l, p, ERR_FORMAT, "the digit %d does not belong into a number that begins with 0 (octal)", d);
            return;
        }
        if (__builtin_mul_overflow(v, (uint64_t)base, &v) || __builtin_add_overflow(v, (uint64_t)d, &v)) {
            tsdl_fail(l, p, ERR_FORMAT, "this number does not fit into 64 bits");
            return;
        }
    }
    while (q < l->end && ((*q | 0x20) == 'u' || (*q | 0x20) == 'l'))
        q++;
    l->t = (struct tsdl_token){.kind = TSDL_NUMBER, .s = p, .n = (size_t)(q - p), .value = v};
    if (q < l->end && is_word(*q))
        tsdl_fail(l, p, ERR_FORMAT, "%s runs into letters that belong to no number", tsdl_show(l, &l->t).s);
    l->p = q;
}

/* Escape after its backslash. */
struct escape {
    size_t n;      /* characters it takes; 0: invalid */
    uint32_t code; /* byte, or Unicode code point */
    bool is_character;
};

static struct escape read_escape(const char *p, const char *end)
{
    static const char from[] = "abfnrtv\\'\"?", to[] = "\a\b\f\n\r\t\v\\'\"?";
    struct escape e = {0};
    if (p == end || *p == '\0')
        return e;
    const char *f = strchr(from, *p);
    if (f)
        return (struct escape){.n = 1, .code = (unsigned char)to[f - from]};
    e.is_character = *p == 'u' || *p == 'U';
    unsigned base = e.is_character || *p == 'x' ? 16 : 8;
    size_t skip = base == 16, digits = *p == 'u' ? 4 : *p == 'U' ? 8 : *p == 'x' ? SIZE_MAX : 3, n = 0;
    for (; n < digits && (size_t)(end - p) > skip + n && digit_value(p[skip + n]) < (int)base; n++)
        e.code = e.code < 1u << 28 ? e.code * base + (unsigned)digit_value(p[skip + n]) : UINT32_MAX;
    if (n > 0 && (!e.is_character || n == digits))
        e.n = skip + n;
    return e;
}

static bool escape_fits(const struct escape *e)
{
    return e->is_character ? e->code <= 0x10ffff && (e->code < 0xd800 || e->code > 0xdfff) : e->code <= 0xff;
}

/* Writes the bytes of the escape: characters as UTF-8. */
static char *put_escape(char *o, const struct escape *e)
{
    uint32_t c = e->code;
    if (!e->is_character || c < 0x80) {
        *o++ = (char)c;
        return o;
    }
    unsigned more = c < 0x800 ? 1 : c < 0x10000 ? 2 : 3;
    *o++ = (char)((0xff00 >> (more + 1) & 0xff) | c >> 6 * more);
    while (more-- > 0)
        *o++ = (char)(0x80 | (c >> 6 * more & 0x3f));
    return o;
}

static void read_quoted(struct tsdl_lexer *l, const char *p, const char *quote)
{
    const char *q = quote + 1;
    int64_t value = 0;
    size_t n_characters = 0;
    for (; q < l->end && *q != *quote; q++, n_characters++) {
        value = (signed char)*q;
        if (*q == '\0') {
            tsdl_fail(l, p, ERR_FORMAT, "this string holds a zero byte");
            return;
        }
        if (*q != '\\')
            continue;
        struct escape e = read_escape(q + 1, l->end);
        bool odd = *quote == '"' && l->lenient && (!e.n || !escape_fits(&e));
        if (odd && !l->odd.n)
            l->odd = (struct tsdl_odd){q, e.n < 16 ? e.n + 1 : 16};
        if (odd)
            ;
        else if (e.n == 0)
            tsdl_fail(l, q, ERR_FORMAT, "unknown escape '\\%c' in a string",
                q + 1 < l->end && q[1] >= 0x20 && q[1] < 0x7f ? q[1] : '?');
        else if (!escape_fits(&e))
            tsdl_fail(l, q, ERR_FORMAT, "the escape '%.*s' stands for no %s", (int)(e.n < 16 ? e.n + 1 : 16), q,
                e.is_character ? "character" : "byte");
        if (l->failed)
            return;
        value = e.is_character ? (int64_t)e.code : (signed char)e.code;
        q += e.n;
    }
    if (q >= l->end) {
        l->truncated = true;
        tsdl_fail(l, p, ERR_FORMAT, "this string is never closed");
        return;
    }
    l->p = q + 1;
    l->t = (struct tsdl_token){.kind = TSDL_STRING, .s = quote, .n = (size_t)(q + 1 - quote)};
    if (*quote == '\'') {
        if (n_characters != 1)
            tsdl_fail(l, p, ERR_FORMAT, "a character constant holds one character");
        else {
            l->t.kind = TSDL_NUMBER;
            l->t.value = (uint64_t)value;
        }
    }
}

void tsdl_next(struct tsdl_lexer *l)
{
    const char *p = skip_blank(l), *end = l->end;
    if (p >= end || l->failed) {
        l->p = end;
        l->t = (struct tsdl_token){.kind = TSDL_END, .s = end};
        return;
    }
    char c = *p;
    if (is_word_start(c)) {
        const char *q = p + 1;
        while (q < end && is_word(*q))
            q++;
        if (c == 'L' && q == p + 1 && q < end && (*q == '"' || *q == '\'')) {
            read_quoted(l, p, q);
            return;
        }
        l->p = q;
        l->t = (struct tsdl_token){.kind = TSDL_WORD, .s = p, .n = (size_t)(q - p)};
        return;
    }
    if (text_is_digit(c)) {
        read_number(l, p);
        return;
    }
    if (c == '"' || c == '\'') {
        read_quoted(l, p, p);
        return;
    }
    struct tsdl_token t = {.kind = c, .s = p, .n = 1};
    if (c == '.' && end - p >= 3 && p[1] == '.' && p[2] == '.')
        t.kind = TSDL_DOTS, t.n = 3;
    else if (c == ':' && end - p >= 2 && p[1] == '=')
        t.kind = TSDL_TYPE_ASSIGN, t.n = 2;
    else if (c == '-' && end - p >= 2 && p[1] == '>')
        t.kind = TSDL_ARROW, t.n = 2;
    else if (!strchr("{}[]()<>;:,.=+-*", c) || c == '\0') {
        tsdl_fail(l, p, ERR_FORMAT,
            c > 0x20 && c < 0x7f ? "'%c' has no meaning here" : "byte 0x%02x has no meaning here", (unsigned char)c);
        return;
    }
    l->t = t;
    l->p = p + t.n;
}

void tsdl_lexer_init(struct tsdl_lexer *l, const char *text, const char *from, const char *end, struct err *e)
{
    *l = (struct tsdl_lexer){.text = text, .p = from, .end = end, .e = e};
    tsdl_next(l);
}

struct tsdl_token tsdl_peek(struct tsdl_lexer *l)
{
    struct tsdl_token current = l->t;
    const char *p = l->p;
    tsdl_next(l);
    struct tsdl_token next = l->t;
    if (!l->failed) {
        l->t = current;
        l->p = p;
    }
    return next;
}

bool tsdl_is(const struct tsdl_token *t, const char *word)
{
    size_t n = strlen(word);
    return t->kind == TSDL_WORD && t->n == n && memcmp(t->s, word, n) == 0;
}

bool tsdl_accept(struct tsdl_lexer *l, int kind)
{
    if (l->t.kind != kind)
        return false;
    tsdl_next(l);
    return true;
}

bool tsdl_expect(struct tsdl_lexer *l, int kind, const char *where)
{
    if (l->t.kind == kind) {
        tsdl_next(l);
        return true;
    }
    char mark[2] = {(char)kind, '\0'};
    const char *wanted = kind == TSDL_WORD ? "a name"
        : kind == TSDL_NUMBER              ? "a number"
        : kind == TSDL_TYPE_ASSIGN         ? "':='"
                                           : NULL;
    tsdl_fail(l, l->t.s, ERR_FORMAT, "expected %s%s%s %s, found %s", wanted ? "" : "'", wanted ? wanted : mark,
        wanted ? "" : "'", where, tsdl_show(l, &l->t).s);
    return false;
}

void tsdl_skip_block(struct tsdl_lexer *l)
{
    const char *open = l->t.s, *close = l->failed ? NULL : tsdl_block_end(l->p, l->end);
    if (!close) {
        tsdl_fail(l, open, ERR_FORMAT, "this '{' is never closed");
        return;
    }
    l->t = (struct tsdl_token){.kind = '}', .s = close - 1, .n = 1};
    l->p = close;
}

/* Returns the effective escape. If a number is too large for a byte, only the digits that fit are used. Invalid escapes
 * (n 0) are text. */
static struct escape as_read(const char *p, const char *end)
{
    struct escape e = read_escape(p, end);
    while (e.n && !escape_fits(&e)) {
        if (e.is_character)
            e.n = 0;
        else
            e = read_escape(p, p + e.n - 1);
    }
    return e;
}

char *tsdl_text(struct arena *a, const struct tsdl_token *t)
{
    if (t->kind != TSDL_STRING)
        return arena_strndup(a, t->s, t->n);
    const char *p = t->s + 1, *end = t->s + t->n - 1;
    char *out = arena_alloc(a, t->n), *o = out;
    while (p < end) {
        if (*p != '\\') {
            *o++ = *p++;
            continue;
        }
        struct escape e = as_read(p + 1, end);
        o = e.n ? put_escape(o, &e) : (*o = '\\', o + 1);
        p += 1 + e.n;
    }
    return out; /* terminated, since the arena's memory is zeroed and the quotes left room */
}

/* ---- attribute values ---- */

static void skip_statement(struct tsdl_lexer *l)
{
    while (l->t.kind != ';' && l->t.kind != TSDL_END && l->t.kind != '}') {
        if (l->t.kind == '{')
            tsdl_skip_block(l);
        tsdl_next(l);
    }
}

static void read_path(struct tsdl_lexer *l, struct tsdl_value *v)
{
    v->part[v->n_parts++] = l->t;
    v->end = l->p;
    tsdl_next(l);
    while (l->t.kind == '.' || l->t.kind == TSDL_ARROW) {
        tsdl_next(l);
        if (l->t.kind != TSDL_WORD)
            break;
        if (v->n_parts < 3)
            v->part[v->n_parts] = l->t;
        v->n_parts++;
        v->end = l->p;
        tsdl_next(l);
    }
    v->kind = v->n_parts == 1 ? TSDL_VALUE_TEXT : TSDL_VALUE_PATH;
}

void tsdl_value(struct tsdl_lexer *l, struct tsdl_value *v)
{
    *v = (struct tsdl_value){.t = l->t};
    if (l->t.kind == TSDL_STRING) {
        v->kind = TSDL_VALUE_TEXT;
        tsdl_next(l);
    } else if (l->t.kind == TSDL_WORD) {
        read_path(l, v);
    } else {
        while (l->t.kind == '-' || l->t.kind == '+') {
            v->negative ^= l->t.kind == '-';
            tsdl_next(l);
        }
        if (l->t.kind == TSDL_NUMBER) {
            v->kind = TSDL_VALUE_NUMBER;
            v->u = v->negative ? -l->t.value : l->t.value;
            if (v->negative && l->t.value > (uint64_t)INT64_MAX + 1)
                tsdl_fail(l, l->t.s, ERR_FORMAT, "-%s does not fit into 64 bits", tsdl_show(l, &l->t).s);
            tsdl_next(l);
        }
    }
    if (v->kind == TSDL_VALUE_NONE)
        skip_statement(l);
    tsdl_expect(l, ';', "after a value");
}

bool tsdl_value_is(const struct tsdl_value *v, const char *text)
{
    if (v->kind != TSDL_VALUE_TEXT)
        return false;
    size_t quotes = v->t.kind == TSDL_STRING, n = strlen(text);
    return v->t.n == n + 2 * quotes && memcmp(v->t.s + quotes, text, n) == 0;
}

bool tsdl_value_bool(const struct tsdl_value *v, bool *out)
{
    static const struct {
        const char *word;
        bool value;
    } words[] = {
        {"true", true},
        {"TRUE", true},
        {"True", true},
        {"yes", true},
        {"YES", true},
        {"false", false},
        {"FALSE", false},
        {"False", false},
        {"no", false},
        {"NO", false},
    };
    if (v->kind == TSDL_VALUE_NUMBER) {
        *out = v->u != 0;
        return true;
    }
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        if (tsdl_value_is(v, words[i].word)) {
            *out = words[i].value;
            return true;
        }
    }
    return false;
}

int tsdl_byte_order(const struct tsdl_value *v)
{
    if (tsdl_value_is(v, "le"))
        return 0;
    if (tsdl_value_is(v, "be") || tsdl_value_is(v, "network"))
        return 1;
    return tsdl_value_is(v, "native") ? 2 : -1;
}

bool tsdl_uuid(const char *s, uint8_t out[16])
{
    size_t n = 0;
    for (; n < 16; n++) {
        if ((n == 4 || n == 6 || n == 8 || n == 10) && *s++ != '-')
            return false;
        int high = digit_value(s[0]), low = high < 16 ? digit_value(s[1]) : 99;
        if (low >= 16)
            return false;
        out[n] = (uint8_t)(high << 4 | low);
        s += 2;
    }
    return *s == '\0';
}
