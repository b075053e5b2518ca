/* Values as JSON. */
#include <math.h>
#include <stdio.h>

#include "ctf/print.h"

/* Bytes of the well-formed UTF-8 sequence at s, 0 when there is none. */
static size_t sequence_bytes(const unsigned char *s, size_t n)
{
    unsigned lead = s[0];
    size_t need = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
    if (lead < 0xc2 || lead > 0xf4 || n < need)
        return 0;
    uint32_t code = lead & (0x7fu >> need);
    for (size_t i = 1; i < need; i++) {
        if ((s[i] & 0xc0) != 0x80)
            return 0;
        code = code << 6 | (s[i] & 0x3f);
    }
    static const uint32_t least[5] = {0, 0, 0x80, 0x800, 0x10000};
    return code < least[need] || code > 0x10ffff || (code >= 0xd800 && code < 0xe000) ? 0 : need;
}

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
        if (c >= 0x20 && c < 0x80 && c != '"' && c != '\\') {
            *o++ = (char)c;
            i++;
        } else if (c < 0x80) {
            o = put_escape(o, c);
            i++;
        } else {
            size_t bytes = sequence_bytes(u + i, n - i);
            memcpy(o, bytes ? s + i : "\xef\xbf\xbd", bytes ? bytes : 3);
            o += bytes ? bytes : 3;
            i += bytes ? bytes : 1;
        }
    }
    *o++ = '"';
    return o;
}

/* As many digits as it takes to read the same number again. JSON has no infinities. */
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
