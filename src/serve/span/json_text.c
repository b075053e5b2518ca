/* SPDX-License-Identifier: MIT */
#include "span/json_text.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"

/* Returns the code unit after "\u", or -1. */
static int unit_at(const char *s, size_t n)
{
    int v = 0;
    for (size_t i = 0; i < 4; i++) {
        char c = i < n ? s[i] : 0;
        int d = c >= '0' && c <= '9' ? c - '0' : (c | 32) >= 'a' && (c | 32) <= 'f' ? (c | 32) - 'a' + 10 : -1;
        if (d < 0)
            return -1;
        v = v << 4 | d;
    }
    return v;
}

/* Returns the length of the escape at s[0] == '\\' if it stands for characters; 0 for half of a pair. */
static size_t escape_at(const char *s, size_t n)
{
    if (n < 2)
        return 1;
    int unit = s[1] == 'u' ? unit_at(s + 2, n - 2) : -1;
    if (unit < 0xd800 || unit > 0xdfff)
        return unit < 0 ? 2 : 6;
    bool pair = unit < 0xdc00 && n >= 12 && s[6] == '\\' && s[7] == 'u' && (unit_at(s + 8, n - 8) & 0xfc00) == 0xdc00;
    return pair ? 12 : 0;
}

struct scan {
    bool in_string;
    unsigned depth, deepest;
    size_t values;
};

static void look(struct scan *c, char ch)
{
    if (ch == '"')
        c->in_string = !c->in_string;
    if (c->in_string)
        return;
    if (ch == '[' || ch == '{') {
        c->depth++;
        c->values++;
        c->deepest = c->depth > c->deepest ? c->depth : c->deepest;
    } else if (ch == ']' || ch == '}') {
        c->depth -= c->depth > 0;
    } else {
        c->values += ch == ',';
    }
}

/* Repairs invalid text; `out` stays empty if there is none. */
static void mend(const char *s, size_t n, struct scan *c, struct text *out)
{
    size_t done = 0;
    for (size_t i = 0, step; i < n; i += step) {
        bool escape = c->in_string && s[i] == '\\';
        size_t whole = step = escape ? escape_at(s + i, n - i) : text_sequence(s + i, n - i);
        if (!whole) {
            step = escape ? 6 : 1;
            text_put(out, s + done, i - done);
            TEXT_PUT(out, "\xef\xbf\xbd");
            done = i + step;
        }
        if (!escape && whole)
            look(c, s[i]);
    }
    if (done)
        text_put(out, s + done, n - done);
}

int span_load_json(const char *s, size_t n, json_t **out, struct err *e)
{
    struct text mended = {.fd = -1};
    struct scan c = {0};
    json_error_t why;
    mend(s, n, &c, &mended);
    if (c.deepest > JSON_MOST_DEPTH || c.values > JSON_MOST_VALUES) {
        text_fini(&mended);
        return err_set(e, ERR_LIMIT,
            "JSON of %zu values, %u deep: at most %d values, %d deep, are taken; send less at once", c.values,
            c.deepest, JSON_MOST_VALUES, JSON_MOST_DEPTH);
    }
    *out = json_loadb(mended.n ? mended.v : s, mended.n ? mended.n : n, JSON_ALLOW_NUL | JSON_DECODE_ANY, &why);
    text_fini(&mended);
    return *out ? 0
                : err_set(e, ERR_FORMAT, "this is no JSON: %s (line %d, column %d)", why.text, why.line, why.column);
}
