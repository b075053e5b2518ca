/* SPDX-License-Identifier: MIT */
/* Picture for a terminal: a track for each of the rows with most of the path. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "graph/graph.h"
#include "show/terminal.h"

enum { MAX_TRACKS = 16 };

static const char *glyph(int state, bool ascii)
{
    static const char *const blocks[GRAPH_STATE_COUNT] = {
        [GRAPH_UNKNOWN] = "?",
        [GRAPH_RUNNING] = "█",
        [GRAPH_PREEMPTED] = "▓",
        [GRAPH_INTERRUPTED] = "▙",
        [GRAPH_BLOCKED] = "▒",
        [GRAPH_TIMER] = "░",
        [GRAPH_NETWORK] = "▚",
        [GRAPH_BLOCK_DEVICE] = "▄",
        [GRAPH_USER_INPUT] = "▖",
        [GRAPH_IPI] = "▘",
        [GRAPH_HYPERVISOR] = "▟",
        [GRAPH_STOLEN] = "▜",
    };
    static const char *const letters[GRAPH_STATE_COUNT] = {"?", "#", "p", "i", "b", "t", "n", "d", "u", "x", "h", "s"};
    return ascii ? letters[state] : blocks[state];
}

struct tracks {
    size_t n, columns, of[MAX_TRACKS];
    int64_t *sums;
};

static int64_t *cell_of(const struct tracks *l, size_t track, size_t column)
{
    return &l->sums[(track * l->columns + column) * GRAPH_STATE_COUNT];
}

/* Chooses the rows with most of the path, in their order. */
static void choose_tracks(const struct show_rows *s, struct tracks *l)
{
    l->n = 0;
    for (size_t i = 0; i < s->rows.n; i++)
        if (show_row_is_among(s, i, MAX_TRACKS))
            l->of[l->n++] = i;
}

static int64_t column_at(const struct path *p, size_t columns, size_t i)
{
    return p->begin + (int64_t)((__int128)(p->end - p->begin) * (int64_t)i / (int64_t)columns);
}

static void fill_tracks(const struct show_rows *s, struct tracks *l)
{
    const struct path *p = s->path;
    size_t column = 0;
    l->sums = mem_zalloc(l->n * l->columns * GRAPH_STATE_COUNT * sizeof *l->sums + 1);
    size_t *track_of = mem_alloc(s->rows.n * sizeof *track_of + 1);
    for (size_t i = 0; i < s->rows.n; i++)
        track_of[i] = SIZE_MAX;
    for (size_t i = 0; i < l->n; i++)
        track_of[l->of[i]] = i;
    for (size_t i = 0; i < p->n_segments; i++) {
        const struct path_segment *g = &p->segments[i];
        size_t track = track_of[show_row_find(s, g->row)];
        while (column + 1 < l->columns && column_at(p, l->columns, column + 1) <= g->begin)
            column++;
        for (size_t c = column; track != SIZE_MAX && c < l->columns && column_at(p, l->columns, c) < g->end; c++) {
            int64_t from = column_at(p, l->columns, c), to = column_at(p, l->columns, c + 1);
            cell_of(l, track, c)[g->state] += (g->end < to ? g->end : to) - (g->begin > from ? g->begin : from);
        }
    }
    free(track_of);
}

static void write_track(const struct tracks *l, size_t track, int64_t span, const struct show_style *style,
    bool used[GRAPH_STATE_COUNT], struct text *t)
{
    int last = -1;
    for (size_t c = 0; c < l->columns; c++) {
        const int64_t *sums = cell_of(l, track, c);
        int64_t sum = 0;
        int most = GRAPH_UNKNOWN;
        for (int state = 0; state < GRAPH_STATE_COUNT; state++) {
            sum += sums[state];
            most = sums[state] > sums[most] ? state : most;
        }
        if (!sum) {
            text_putc(t, ' ');
            continue;
        }
        if (most != last)
            show_terminal_color(style, t, most);
        last = most;
        used[most] = true;
        bool thin = sum * (int64_t)l->columns * 5 < span;
        text_puts(t, thin ? (style->ascii ? "'" : "▏") : glyph(most, style->ascii));
    }
    show_terminal_style(style, t, "0");
}

static void write_axis(size_t name, size_t columns, int64_t span, struct text *t)
{
    struct text scratch = {.fd = -1};
    size_t ticks = columns >= 60 ? 4 : 2, at = 0;
    text_fill(t, ' ', TERMINAL_INDENT + name + 2);
    for (size_t i = 0; i <= ticks; i++) {
        const char *label = i
            ? show_terminal_duration((int64_t)((__int128)span * (int64_t)i / (int64_t)ticks), &scratch)
            : "0";
        size_t cells = text_cells(label, strlen(label)), target = columns * i / ticks;
        size_t start = i == ticks ? target - (cells < target ? cells : target) : i ? target - cells / 2 : 0;
        if (start < at + (i > 0))
            continue;
        text_fill(t, ' ', start - at);
        text_puts(t, label);
        at = start + cells;
    }
    text_putc(t, '\n');
    text_fini(&scratch);
}

static void write_legend(
    const bool used[GRAPH_STATE_COUNT], size_t name, const struct show_style *style, struct text *t)
{
    text_fill(t, ' ', TERMINAL_INDENT + name + 2);
    size_t at = TERMINAL_INDENT + name + 2;
    for (int state = 0; state < GRAPH_STATE_COUNT; state++) {
        size_t cells = strlen(graph_state_name(state)) + 4;
        if (!used[state] || at + cells > (size_t)style->width)
            continue;
        show_terminal_color(style, t, state);
        text_puts(t, glyph(state, style->ascii));
        show_terminal_style(style, t, "0");
        text_printf(t, " %s  ", graph_state_name(state));
        at += cells;
    }
    while (t->n && t->v[t->n - 1] == ' ')
        t->n--;
    text_putc(t, '\n');
}

static void track_name(const struct show_row *r, char *buf, size_t n)
{
    if (r->tid < 0)
        snprintf(buf, n, "%s irq", r->host);
    else
        snprintf(buf, n, "%s:%d", r->host, r->tid);
}

void show_terminal_picture(const struct show_rows *s, const struct show_style *style, struct text *t)
{
    struct tracks l;
    size_t name = 0;
    char buf[128];
    bool used[GRAPH_STATE_COUNT] = {false};
    int64_t span = s->path->end - s->path->begin;
    choose_tracks(s, &l);
    for (size_t i = 0; i < l.n; i++) {
        track_name(&s->rows.v[l.of[i]], buf, sizeof buf);
        name = show_terminal_widest(name, buf);
    }
    name = name > TERMINAL_MAX_NAME ? TERMINAL_MAX_NAME : name;
    l.columns = (size_t)style->width - TERMINAL_INDENT - name - 3;
    fill_tracks(s, &l);
    for (size_t i = 0; i < l.n; i++) {
        track_name(&s->rows.v[l.of[i]], buf, sizeof buf);
        text_fill(t, ' ', TERMINAL_INDENT);
        show_terminal_left(t, buf, name);
        text_puts(t, style->ascii ? " |" : " ▏");
        write_track(&l, i, span, style, used, t);
        text_puts(t, style->ascii ? "|\n" : "▏\n");
    }
    write_axis(name, l.columns, span, t);
    if (l.n < s->rows.n)
        text_printf(
            t, "%*s%zu more threads with less of the path are not drawn\n", TERMINAL_INDENT, "", s->rows.n - l.n);
    write_legend(used, name, style, t);
    free(l.sums);
}
