/* SPDX-License-Identifier: MIT */
/* Enumeration labels that LTTng wrote without escaping their double quotes. */
#include <stdlib.h>
#include <string.h>

#include "ctf/tsdl.h"

static const char *skip_blanks(const char *p, const char *end)
{
    while (p < end && (*p == ' ' || *p == '\t' || *p == '\r'))
        p++;
    return p;
}

/* Returns the position after an integer, or NULL. */
static const char *skip_integer(const char *p, const char *end)
{
    p = skip_blanks(p, end);
    p += p < end && *p == '-';
    const char *digits = p;
    while (p < end && *p >= '0' && *p <= '9')
        p++;
    return p > digits ? skip_blanks(p, end) : NULL;
}

/* Returns whether the text is like ` = 1 ... 2,` after a label. */
static bool is_value(const char *p, const char *end)
{
    p = skip_blanks(p, end);
    if (p == end || *p != '=' || !(p = skip_integer(p + 1, end)))
        return false;
    if (end - p >= 3 && !memcmp(p, "...", 3) && !(p = skip_integer(p + 3, end)))
        return false;
    p += p < end && *p == ',';
    return skip_blanks(p, end) == end;
}

/* Returns whether the text is valid between the quotes of a string. */
static bool is_escaped(const char *p, const char *end)
{
    for (; p < end; p++) {
        if (*p == '"' || (*p == '\\' && p + 1 == end))
            return false;
        p += *p == '\\';
    }
    return true;
}

/* Returns the label, between the quotes, of a line that consists of a label and its value. begin NULL: another line. */
static struct tsdl_span label_of(const char *line, const char *end)
{
    const char *open = skip_blanks(line, end), *close = end;
    if (open < end && *open == '"')
        while (--close > open)
            if (*close == '"' && is_value(close + 1, end))
                return (struct tsdl_span){open + 1, close};
    return (struct tsdl_span){NULL, NULL};
}

static char *escape(char *o, struct tsdl_span label)
{
    for (const char *p = label.begin; p < label.end; p++) {
        if (*p == '"' || (*p == '\\' && p + 1 == label.end))
            *o++ = '\\';
        else if (*p == '\\')
            *o++ = *p++;
        *o++ = *p;
    }
    return o;
}

char *tsdl_mend_labels(const char *text, size_t n, size_t *mended_n, size_t *first_line)
{
    const char *end = text + n, *copied = text;
    char *out = NULL, *o = NULL;
    size_t number = 0;
    for (const char *line = text, *next; line < end; line = next) {
        const char *stop = memchr(line, '\n', (size_t)(end - line));
        stop = stop ? stop : end;
        next = stop < end ? stop + 1 : end;
        number++;
        struct tsdl_span label = label_of(line, stop);
        if (!label.begin || is_escaped(label.begin, label.end))
            continue;
        if (!out) {
            o = out = mem_alloc(2 * n + 1);
            *first_line = number;
        }
        o = mempcpy(o, copied, (size_t)(label.begin - copied));
        o = escape(o, label);
        copied = label.end;
    }
    if (out)
        *mended_n = (size_t)((char *)mempcpy(o, copied, (size_t)(end - copied)) - out);
    return out;
}
