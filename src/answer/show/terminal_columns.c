/* SPDX-License-Identifier: MIT */
/* Colours and columns on a terminal. */
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "graph/graph.h"
#include "show/terminal.h"
#include "show/words.h"

void show_terminal_color(const struct show_style *style, struct text *t, int state)
{
    static const uint8_t codes[GRAPH_STATE_COUNT] = {
        [GRAPH_UNKNOWN] = 242,
        [GRAPH_RUNNING] = 35,
        [GRAPH_PREEMPTED] = 172,
        [GRAPH_INTERRUPTED] = 179,
        [GRAPH_BLOCKED] = 131,
        [GRAPH_TIMER] = 67,
        [GRAPH_NETWORK] = 134,
        [GRAPH_BLOCK_DEVICE] = 61,
        [GRAPH_USER_INPUT] = 25,
        [GRAPH_IPI] = 143,
        [GRAPH_HYPERVISOR] = 94,
        [GRAPH_STOLEN] = 160,
    };
    char sequence[32];
    snprintf(sequence, sizeof sequence, "\033[38;5;%um", codes[state]);
    if (style->color)
        text_style(t, sequence);
}

void show_terminal_style(const struct show_style *style, struct text *t, const char *code)
{
    char sequence[32];
    snprintf(sequence, sizeof sequence, "\033[%sm", code);
    if (style->color)
        text_style(t, sequence);
}

void show_terminal_left(struct text *t, const char *s, size_t width)
{
    size_t before = t->n;
    show_text(t, s, width);
    size_t used = text_cells(t->v + before, t->n - before);
    text_fill(t, ' ', used < width ? width - used : 0);
}

void show_terminal_right(struct text *t, const char *s, size_t width)
{
    size_t used = text_cells(s, strlen(s));
    text_fill(t, ' ', used < width ? width - used : 0);
    show_text(t, s, width);
}

const char *show_terminal_duration(int64_t ns, struct text *scratch)
{
    scratch->n = 0;
    text_duration(scratch, ns);
    return text_cstr(scratch);
}

size_t show_terminal_widest(size_t a, const char *s)
{
    size_t n = text_cells(s, strlen(s));
    return n > a ? n : a;
}
