/* SPDX-License-Identifier: MIT */
/* Values as JSON. */
#include <math.h>
#include <stdio.h>

#include "base/shown.h"
#include "ctf/print.h"

static char *put_escape(char *o, unsigned char c)
{
    const char *letter = strchr("\bb\ff\nn\rr\tt\"\"\\\\", c);
    *o++ = '\\';
    if (letter) {
        *o++ = letter[1];
        return o;
    }
    o = stpcpy(o, "u00");
    *o++ = "0123456789abcdef"[c >> 4];
    *o++ = "0123456789abcdef"[c & 15];
    return o;
}

char *print_json_string(char *o, const char *s, size_t n)
{
    const unsigned char *u = (const unsigned char *)s;
    *o++ = '"';
    for (size_t i = 0; i < n;) {
        unsigned char c = u[i];
        if (c >= 0x20 && c < 0x7f && c != '"' && c != '\\') {
            *o++ = (char)c;
            i++;
        } else if (c < 0x80) {
            o = put_escape(o, c);
            i++;
        } else {
            bool shown;
            size_t bytes = shown_character(s + i, n - i, &shown);
            if (shown)
                o = mempcpy(o, s + i, bytes);
            else if (bytes > 1)
                o += sprintf(o, "\\u%04x", shown_code_point(s + i, bytes));
            else
                o = stpcpy(o, "\xef\xbf\xbd");
            i += bytes;
        }
    }
    *o++ = '"';
    return o;
}

/* Writes the shortest digits that are read as the same number. JSON has no infinities. */
char *print_json_float(char *o, double v, bool single)
{
    if (!isfinite(v))
        return stpcpy(o, "null");
    int n = 0;
    for (int digits = single ? 6 : 15; digits <= 17; digits++) {
        n = snprintf(o, PRINT_ROOM, "%.*g", digits, v);
        if (single ? strtof(o, NULL) == (float)v : strtod(o, NULL) == v)
            break;
    }
    return o + n;
}
