/* SPDX-License-Identifier: MIT */
/* Words and numbers of pictures: safe names from a trace, distances between ticks. */
#include "show/words.h"

#include <stdio.h>
#include <string.h>

#include "base/shown.h"

const char *show_name(
    const struct path_source *source, struct path_row row, int64_t begin, int64_t end, char *buf, size_t n)
{
    int32_t tid;
    const char *comm;
    source->row_name(source->arg, row, begin, end, &tid, &comm);
    if (tid < 0)
        snprintf(buf, n, "%s interrupt", source->host_name(source->arg, row.host));
    else
        snprintf(buf, n, "%s:%d %s", source->host_name(source->arg, row.host), tid, comm);
    return buf;
}

/* Bytes of the character at s, or 0: not allowed in XML. */
static size_t sequence(const unsigned char *s)
{
    return s[0] == 0xef && s[1] == 0xbf && s[2] >= 0xbe ? 0 : text_sequence((const char *)s, 4);
}

static bool is_shown(const unsigned char *s)
{
    bool plain;
    shown_character((const char *)s, strnlen((const char *)s, 4), &plain);
    return plain;
}

void show_text(struct text *t, const char *string, size_t cells)
{
    size_t all = text_cells(string, strlen(string)), shown = 0;
    for (const unsigned char *s = (const unsigned char *)string; *s && shown < cells; shown++) {
        size_t n = sequence(s);
        if (all > cells && shown + 1 == cells) {
            text_puts(t, "…");
            return;
        }
        if (n == 0 || !is_shown(s))
            text_putc(t, '?');
        else
            text_put(t, (const char *)s, n);
        s += n ? n : 1;
    }
}

void show_xml(struct text *t, const char *string)
{
    for (const unsigned char *s = (const unsigned char *)string; *s;) {
        size_t n = sequence(s);
        switch (*s) {
        case '&': text_puts(t, "&amp;"); break;
        case '<': text_puts(t, "&lt;"); break;
        case '>': text_puts(t, "&gt;"); break;
        case '"': text_puts(t, "&quot;"); break;
        case '\'': text_puts(t, "&#39;"); break;
        default:
            if (n == 0 || !is_shown(s))
                text_putc(t, '?');
            else
                text_put(t, (const char *)s, n);
        }
        s += n ? n : 1;
    }
}

int64_t show_assumed(const struct path *p)
{
    int64_t sum = 0;
    for (size_t i = 0; i < p->n_totals; i++)
        sum += p->totals[i].assumed ? p->totals[i].duration : 0;
    return sum;
}

int64_t show_tick(int64_t span, int count)
{
    int64_t step = 1;
    while (span / step > count) {
        int64_t lead = step;
        while (lead >= 10)
            lead /= 10;
        if (step > INT64_MAX / 10)
            return step;
        step = lead == 2 ? step / 2 * 5 : step * 2;
    }
    return step;
}
