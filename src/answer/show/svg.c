/* SPDX-License-Identifier: MIT */
/* SVG picture for browsers and paper: no scripts, nothing loaded; each state has a colour and a pattern. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "base/time.h"
#include "graph/graph.h"
#include "show/rows.h"
#include "show/show.h"
#include "show/words.h"

enum {
    WIDTH = 1200,
    LEFT = 190,
    RIGHT = 24,
    AXIS_Y = 106,
    TRACK = 22,
    TRACK_GAP = 6,
    HOST_HEAD = 22,
    MAX_TRACKS = 160,
    MAX_TABLE = 24,
    TABLE_ROW = 17,
    LEGEND_ROW = 20,
    DENSE_SEGMENTS = 4000, /* limit above which segments are drawn by cells of half a pixel */
    CELLS = (WIDTH - LEFT - RIGHT) * 2,
    MAX_LINKS = 4000,
    SHORT_LINK = 3
};

struct canvas {
    struct show_rows show;
    struct text *out;
    int *track_y; /* y per row; -1: not drawn */
    int bottom;   /* bottom of the tracks */
    bool used[GRAPH_STATE_COUNT], link_used[PATH_LINK_SPAN + 1];
    int64_t assumed; /* ns */
    size_t hidden;
};

static double x_of(const struct canvas *c, int64_t t)
{
    const struct path *p = c->show.path;
    double span = (double)(p->end - p->begin);
    double share = span > 0 ? (double)(t - p->begin) / span : 0;
    share = share < 0 ? 0 : share > 1 ? 1 : share;
    return LEFT + share * (WIDTH - LEFT - RIGHT);
}

static void put_duration(struct text *t, int64_t ns)
{
    struct text scratch = {.fd = -1};
    text_duration(&scratch, ns);
    text_put(t, scratch.v, scratch.n);
    text_fini(&scratch);
}

static void put_name(struct canvas *c, struct path_row row, int64_t begin, int64_t end)
{
    char name[160];
    show_xml(c->out, show_name(c->show.source, row, begin, end, name, sizeof name));
}

/* ---- definitions ---- */

/* Base colour, colour and path of the pattern, per state: on an 8 x 8 tile. */
static const struct texture {
    unsigned base, line;
    const char *d;
    bool dark_text;
} textures[GRAPH_STATE_COUNT] = {
    [GRAPH_RUNNING] = {0x2e9e5b, 0, NULL, false},
    [GRAPH_PREEMPTED] = {0xd98e04, 0xfbe3b8, "M0 2H8M0 6H8", true},
    [GRAPH_INTERRUPTED] = {0xe0c341, 0x8a7514, "M0 4H8M4 0V8", true},
    [GRAPH_BLOCKED] = {0xb5524a, 0xe3b4b0, "M0 4H8", false},
    [GRAPH_TIMER] = {0x5f8aa8, 0xc4d7e3, "M2 0V8M6 0V8", false},
    [GRAPH_NETWORK] = {0xb45cc4, 0xe7c9ed, "M-2 2L2 -2M0 8L8 0M6 10L10 6", false},
    [GRAPH_BLOCK_DEVICE] = {0x6a4fb3, 0xb6a6e0, "M0 0L8 8M0 8L8 0", false},
    [GRAPH_USER_INPUT] = {0x3a6ea5, 0xa9c4df, "M2 2h1M6 6h1", false},
    [GRAPH_IPI] = {0xe6d98c, 0x8a7514, "M0 8L8 0", true},
    [GRAPH_HYPERVISOR] = {0xf3e6d8, 0x8a5a2b, "M0 0L8 8M-2 6L2 10M6 -2L10 2", true},
    [GRAPH_STOLEN] = {0xfbe4e4, 0xc62828, "M-2 2L2 -2M0 8L8 0M6 10L10 6", true},
    [GRAPH_UNKNOWN] = {0xf0f0f0, 0x4a4a4a, "M1 1h2M5 5h2", true},
};

static void write_definitions(struct canvas *c)
{
    struct text *t = c->out;
    text_puts(t, "<defs>\n");
    for (int s = 0; s < GRAPH_STATE_COUNT; s++)
        if (c->used[s] && textures[s].d)
            text_printf(t,
                "<pattern id=\"p%d\" width=\"8\" height=\"8\" patternUnits=\"userSpaceOnUse\"><rect width=\"8\" "
                "height=\"8\" fill=\"#%06x\"/>"
                "<path d=\"%s\" stroke=\"#%06x\" stroke-width=\"1.6\" fill=\"none\"/></pattern>\n",
                s, textures[s].base, textures[s].d, textures[s].line);
    text_puts(t,
        "<marker id=\"arrow\" viewBox=\"0 0 8 8\" refX=\"7\" refY=\"4\" markerWidth=\"6\" markerHeight=\"6\" "
        "orient=\"auto\">"
        "<path d=\"M0 0.8L7.5 4L0 7.2z\" fill=\"#222\"/></marker>\n</defs>\n<style>\n"
        "svg{font-family:'DejaVu Sans',Verdana,Arial,sans-serif;font-size:11px;print-color-adjust:exact;"
        "-webkit-print-color-adjust:exact}\n"
        ".name{text-anchor:end}.host,.head{font-weight:bold}.tick{fill:#444;text-anchor:middle}.right{text-anchor:end}"
        ".in{font-size:10px;pointer-events:none;text-anchor:middle;paint-order:stroke;stroke-width:3.5px;"
        "stroke-linejoin:round}.light{fill:#fff}.dark{fill:#111}\n"
        ".link{stroke:#222;stroke-width:1;fill:none;marker-end:url(#arrow)}.fork{stroke-dasharray:5 "
        "2}.network{stroke-dasharray:none;stroke:#5a1c69}"
        ".assumed{fill-opacity:.5;stroke:#5a1c69;stroke-width:1;stroke-dasharray:3 2}\n"
        ".go{stroke:#888;stroke-width:.7;stroke-dasharray:1.5 2}\n");
    for (int s = 0; s < GRAPH_STATE_COUNT; s++) {
        if (!c->used[s])
            continue;
        if (textures[s].d)
            text_printf(t, ".s%d{fill:url(#p%d);stroke:#%06x;stroke-width:.4}\n", s, s, textures[s].line);
        else
            text_printf(t, ".s%d{fill:#%06x}\n", s, textures[s].base);
    }
    text_puts(t, "</style>\n");
}

/* ---- frame ---- */

/* Rows with most of the path get tracks if there are too many. */
static void layout_tracks(struct canvas *c)
{
    const struct show_rows *s = &c->show;
    int y = AXIS_Y + 10;
    c->track_y = mem_alloc(s->rows.n * sizeof *c->track_y + 1);
    int32_t host = -1;
    bool any = false;
    for (size_t i = 0; i < s->rows.n; i++) {
        c->track_y[i] = -1;
        if (!show_row_is_among(s, i, MAX_TRACKS)) {
            c->hidden++;
            continue;
        }
        if (!any || s->rows.v[i].row.host != host)
            y += HOST_HEAD;
        any = true;
        host = s->rows.v[i].row.host;
        c->track_y[i] = y;
        y += TRACK + TRACK_GAP;
    }
    c->bottom = y;
}

static void write_title(struct canvas *c)
{
    const struct path *p = c->show.path;
    struct text *t = c->out;
    text_puts(t, "<text x=\"16\" y=\"26\" style=\"font-size:17px\" class=\"head\">Critical path of ");
    put_name(c, p->start, p->end, p->end);
    text_puts(t, "</text>\n<text x=\"16\" y=\"46\" fill=\"#444\">");
    time_write_utc(t, p->begin, true);
    text_puts(t, " UTC, ");
    put_duration(t, p->end - p->begin);
    text_printf(t, " on %zu machine%s, %zu thread%s, %zu segment%s</text>\n", c->show.hosts,
        c->show.hosts == 1 ? "" : "s", c->show.rows.n, c->show.rows.n == 1 ? "" : "s", p->n_segments,
        p->n_segments == 1 ? "" : "s");
    struct text sentence = {.fd = -1};
    show_sentence(p, c->show.source, &sentence);
    text_puts(t, "<text x=\"16\" y=\"68\" style=\"font-size:14px\">");
    show_xml(t, text_cstr(&sentence));
    text_puts(t, "</text>\n");
    text_fini(&sentence);
}

static void write_axis(struct canvas *c)
{
    const struct path *p = c->show.path;
    struct text *t = c->out;
    int64_t step = show_tick(p->end - p->begin, 12);
    text_printf(t, "<g stroke=\"#ddd\" stroke-width=\".7\">\n");
    for (int64_t at = 0; at <= p->end - p->begin; at += step)
        text_printf(t, "<path d=\"M%.2f %dV%d\"/>\n", x_of(c, p->begin + at), AXIS_Y, c->bottom);
    text_puts(t, "</g>\n<g class=\"tick\">\n");
    for (int64_t at = 0; at <= p->end - p->begin; at += step) {
        text_printf(t, "<text x=\"%.2f\" y=\"%d\">", x_of(c, p->begin + at), AXIS_Y - 5);
        int64_t unit = step >= 1000000000 ? 1000000000 : step >= 1000000 ? 1000000 : step >= 1000 ? 1000 : 1;
        text_i64(t, at / unit);
        if (at + step > p->end - p->begin)
            text_puts(t, unit == 1000000000 ? " s" : unit == 1000000 ? " ms" : unit == 1000 ? " µs" : " ns");
        text_puts(t, "</text>\n");
    }
    text_puts(t, "</g>\n");
}

static void write_track_names(struct canvas *c)
{
    struct text *t = c->out;
    int32_t host = -1;
    bool any = false;
    for (size_t i = 0; i < c->show.rows.n; i++) {
        const struct show_row *r = &c->show.rows.v[i];
        int y = c->track_y[i];
        if (y < 0)
            continue;
        if (!any || r->row.host != host) {
            text_printf(t,
                "<path d=\"M16 %dH%d\" stroke=\"#999\" stroke-width=\".8\"/><text x=\"16\" y=\"%d\" class=\"host\">",
                y - HOST_HEAD + 4, WIDTH - RIGHT, y - 5);
            show_xml(t, r->host);
            text_puts(t, "</text>\n");
        }
        any = true;
        host = r->row.host;
        text_printf(t, "<text x=\"%d\" y=\"%d\" class=\"name\">", LEFT - 8, y + TRACK - 7);
        struct text name = {.fd = -1};
        if (r->tid < 0)
            text_puts(&name, "interrupt");
        else
            text_printf(&name, "%d %s", r->tid, r->comm);
        struct text cut = {.fd = -1};
        show_text(&cut, text_cstr(&name), 24);
        show_xml(t, text_cstr(&cut));
        text_fini(&cut);
        text_fini(&name);
        text_puts(t, "</text>\n");
    }
}

/* ---- segments ---- */

static void write_label(struct canvas *c, int state, int64_t ns, double x, double width, int y)
{
    double need = 6.4 * (double)strlen(graph_state_name(state));
    if (width < need + 6)
        return;
    text_printf(c->out, "<text class=\"in %s\" x=\"%.2f\" y=\"%d\" stroke=\"#%06x\">%s",
        textures[state].dark_text ? "dark" : "light", x + width / 2, y + TRACK - 8, textures[state].base,
        graph_state_name(state));
    if (width > need + 64) {
        text_putc(c->out, ' ');
        put_duration(c->out, ns);
    }
    text_puts(c->out, "</text>\n");
}

static void write_segment(struct canvas *c, const struct path_segment *s, int y)
{
    struct text *t = c->out;
    double x = x_of(c, s->begin), width = x_of(c, s->end) - x;
    text_printf(t, "<rect class=\"s%d%s\" x=\"%.3f\" y=\"%d\" width=\"%.3f\" height=\"%d\"><title>", s->state,
        s->assumed ? " assumed" : "", x, y, width < 0.35 ? 0.35 : width, TRACK);
    put_name(c, s->row, s->begin, s->end);
    text_printf(t, "\n%s ", graph_state_name(s->state));
    put_duration(t, s->end - s->begin);
    text_puts(t, " from +");
    put_duration(t, s->begin - c->show.path->begin);
    if (s->detail) {
        text_putc(t, '\n');
        show_xml(t, s->detail);
    }
    if (s->sender.host >= 0) {
        text_puts(t, "\nsent by ");
        put_name(c, s->sender, s->begin, s->begin);
    }
    if (s->assumed)
        text_puts(t, "\nassumed: it ran, and may have polled for the message");
    text_puts(t, "</title></rect>\n");
    write_label(c, s->state, s->end - s->begin, x, width, y);
}

static void write_cells(struct canvas *c, const int64_t (*sums)[GRAPH_STATE_COUNT], int y)
{
    for (int i = 0, end; i < CELLS; i = end) {
        int most[2] = {-1, -1};
        for (end = i; end < CELLS; end++) {
            int k = end > i, best = -1;
            for (int s = 0; s < GRAPH_STATE_COUNT; s++)
                if (sums[end][s] && (best < 0 || sums[end][s] > sums[end][best]))
                    best = s;
            most[k] = best;
            if (k && best != most[0])
                break;
        }
        if (most[0] >= 0)
            text_printf(c->out,
                "<rect class=\"s%d\" x=\"%.1f\" y=\"%d\" width=\"%.1f\" height=\"%d\"><title>mostly "
                "%s</title></rect>\n",
                most[0], LEFT + i / 2.0, y, (end - i) / 2.0, TRACK, graph_state_name(most[0]));
    }
}

/* Draws many segments: each half pixel of a track shows the state with most time in it. */
static void write_dense(struct canvas *c)
{
    const struct path *p = c->show.path;
    int64_t(*sums)[GRAPH_STATE_COUNT] = mem_zalloc((c->show.rows.n - c->hidden) * CELLS * sizeof *sums);
    size_t *track_of = mem_alloc(c->show.rows.n * sizeof *track_of), tracks = 0;
    for (size_t row = 0; row < c->show.rows.n; row++)
        track_of[row] = c->track_y[row] < 0 ? 0 : tracks++;
    for (size_t i = 0; i < p->n_segments; i++) {
        const struct path_segment *s = &p->segments[i];
        size_t row = show_row_find(&c->show, s->row);
        int first = (int)((x_of(c, s->begin) - LEFT) * 2), last = (int)((x_of(c, s->end) - LEFT) * 2);
        for (int k = first; c->track_y[row] >= 0 && k <= last && k < CELLS; k++)
            sums[track_of[row] * CELLS + (size_t)k][s->state] += k > first && k < last
                ? (p->end - p->begin) / CELLS
                : (s->end - s->begin) / (last - first + 1) + 1;
    }
    for (size_t row = 0; row < c->show.rows.n; row++)
        if (c->track_y[row] >= 0)
            write_cells(c, (const int64_t(*)[GRAPH_STATE_COUNT]) & sums[track_of[row] * CELLS], c->track_y[row]);
    free(track_of);
    free(sums);
}

static void write_segments(struct canvas *c)
{
    const struct path *p = c->show.path;
    text_puts(c->out, "<g>\n");
    if (p->n_segments > DENSE_SEGMENTS)
        write_dense(c);
    else
        for (size_t i = 0; i < p->n_segments; i++) {
            int y = c->track_y[show_row_find(&c->show, p->segments[i].row)];
            if (y >= 0)
                write_segment(c, &p->segments[i], y);
        }
    text_puts(c->out, "</g>\n");
}

/* ---- links ---- */

static void write_link(struct canvas *c, const struct path_link *l, struct map *drawn)
{
    size_t from = show_row_find(&c->show, l->from), to = show_row_find(&c->show, l->to);
    if (from == SIZE_MAX || to == SIZE_MAX || from == to || c->track_y[from] < 0 || c->track_y[to] < 0)
        return;
    double x1 = x_of(c, l->from_ts), x2 = x_of(c, l->to_ts);
    if (c->show.path->n_segments > DENSE_SEGMENTS && x2 - x1 < SHORT_LINK)
        return;
    int y1 = c->track_y[from], y2 = c->track_y[to];
    bool fresh;
    uint64_t key = (uint64_t)(x1 * 2) << 44 | (uint64_t)(x2 * 2) << 28 | (uint64_t)from << 14 | (uint64_t)to;
    map_put(drawn, key, &fresh);
    if (!fresh || drawn->n > MAX_LINKS)
        return;
    text_printf(c->out, "<path class=\"link %s%s\" d=\"M%.2f %dL%.2f %d\"><title>%s from ", path_link_name(l->kind),
        l->assumed ? " assumed" : "", x1, y1 < y2 ? y1 + TRACK : y1, x2, y1 < y2 ? y2 : y2 + TRACK,
        path_link_name(l->kind));
    put_name(c, l->from, l->from_ts, l->from_ts);
    text_puts(c->out, " to ");
    put_name(c, l->to, l->to_ts, l->to_ts);
    if (l->to_ts > l->from_ts) {
        text_puts(c->out, ", ");
        put_duration(c->out, l->to_ts - l->from_ts);
    }
    text_puts(c->out, "</title></path>\n");
}

/* Draws a thin line where the path changes rows without a signal (it resumes on the row that waited). */
static void write_connectors(struct canvas *c)
{
    const struct path *p = c->show.path;
    struct map signals = {0};
    for (size_t i = 0; i < p->n_links; i++) {
        map_put(&signals, (uint64_t)p->links[i].from_ts, NULL);
        map_put(&signals, (uint64_t)p->links[i].to_ts, NULL);
    }
    for (size_t i = 0; i + 1 < p->n_segments && p->n_segments <= DENSE_SEGMENTS; i++) {
        size_t a = show_row_find(&c->show, p->segments[i].row), b = show_row_find(&c->show, p->segments[i + 1].row);
        if (a == b || c->track_y[a] < 0 || c->track_y[b] < 0 || map_find(&signals, (uint64_t)p->segments[i].end))
            continue;
        int ya = c->track_y[a], yb = c->track_y[b];
        text_printf(c->out, "<path class=\"go\" d=\"M%.2f %dV%d\"/>\n", x_of(c, p->segments[i].end),
            ya < yb ? ya + TRACK : ya, ya < yb ? yb : yb + TRACK);
    }
    map_fini(&signals);
}

static void write_links(struct canvas *c)
{
    struct map drawn = {0};
    text_puts(c->out, "<g>\n");
    write_connectors(c);
    for (size_t i = 0; i < c->show.path->n_links; i++)
        write_link(c, &c->show.path->links[i], &drawn);
    text_puts(c->out, "</g>\n");
    map_fini(&drawn);
}

/* ---- legend and table ---- */

/* Position of the next entry of the legend; on a new line if it does not fit. */
static int legend_x(int *x, int *y, int width)
{
    if (*x + width > WIDTH - RIGHT) {
        *x = LEFT;
        *y += LEGEND_ROW;
    }
    *x += width;
    return *x - width;
}

/* Returns the height; `out` NULL only measures. */
static int write_legend(struct canvas *c, int top, struct text *out)
{
    int x = LEFT, y = top;
    for (int s = 0; s < GRAPH_STATE_COUNT; s++) {
        const char *name = graph_state_name(s);
        int at = c->used[s] ? legend_x(&x, &y, 40 + (int)(7 * strlen(name))) : 0;
        if (at && out)
            text_printf(out,
                "<rect class=\"s%d\" x=\"%d\" y=\"%d\" width=\"18\" height=\"12\"/><text x=\"%d\" y=\"%d\">%s</text>\n",
                s, at, y, at + 23, y + 10, name);
    }
    int at_assumed = c->assumed ? legend_x(&x, &y, 40 + 7 * (int)strlen("assumed")) : 0;
    if (at_assumed && out)
        text_printf(out,
            "<rect class=\"s%d assumed\" x=\"%d\" y=\"%d\" width=\"18\" height=\"12\"/><text x=\"%d\" "
            "y=\"%d\">assumed</text>\n",
            GRAPH_NETWORK, at_assumed, y, at_assumed + 23, y + 10);
    for (int k = 0; k <= PATH_LINK_SPAN; k++) {
        const char *name = k == PATH_LINK_NETWORK ? "message" : path_link_name(k);
        int at = c->link_used[k] ? legend_x(&x, &y, 42 + (int)(7 * strlen(name))) : 0;
        if (at && out)
            text_printf(out, "<path class=\"link %s\" d=\"M%d %dh20\"/><text x=\"%d\" y=\"%d\">%s</text>\n",
                path_link_name(k), at, y + 6, at + 26, y + 10, name);
    }
    return y + LEGEND_ROW - top;
}

static void table_cell(struct canvas *c, int x, int y, const char *s, bool right, size_t cells)
{
    struct text cut = {.fd = -1};
    show_text(&cut, s, cells);
    text_printf(c->out, "<text x=\"%d\" y=\"%d\"%s>", x, y, right ? " class=\"right\"" : "");
    show_xml(c->out, text_cstr(&cut));
    text_puts(c->out, "</text>");
    text_fini(&cut);
}

static void write_total(struct canvas *c, const struct path_total *total, int y)
{
    const struct path *p = c->show.path;
    struct text scratch = {.fd = -1};
    int32_t tid;
    const char *comm;
    c->show.source->row_name(c->show.source->arg, total->row, p->end, p->end, &tid, &comm);
    text_printf(&scratch, "%.1f %%", 100.0 * (double)total->duration / (double)(p->end - p->begin));
    table_cell(c, LEFT + 46, y, text_cstr(&scratch), true, 12);
    scratch.n = 0;
    text_duration(&scratch, total->duration);
    table_cell(c, LEFT + 130, y, text_cstr(&scratch), true, 16);
    text_printf(
        c->out, "<rect class=\"s%d\" x=\"%d\" y=\"%d\" width=\"10\" height=\"10\"/>", total->state, LEFT + 148, y - 9);
    table_cell(c, LEFT + 164, y, graph_state_name(total->state), false, 20);
    table_cell(c, LEFT + 270, y, c->show.source->host_name(c->show.source->arg, total->row.host), false, 20);
    scratch.n = 0;
    if (tid >= 0)
        text_printf(&scratch, "%d %s", tid, comm);
    else
        text_puts(&scratch, "interrupt");
    table_cell(c, LEFT + 410, y, text_cstr(&scratch), false, 24);
    scratch.n = 0;
    text_printf(&scratch, "%s%s%s", total->assumed ? "assumed" : "", total->assumed && total->detail ? ", " : "",
        total->detail ? total->detail : "");
    if (scratch.n)
        table_cell(c, LEFT + 590, y, text_cstr(&scratch), false, 60);
    text_putc(c->out, '\n');
    text_fini(&scratch);
}

static void write_notes(struct canvas *c, int y)
{
    const struct path *p = c->show.path;
    int64_t gaps = 0;
    for (size_t i = 0; i < p->n_gaps; i++)
        gaps += p->gaps[i].end - p->gaps[i].begin;
    if (!gaps && !c->hidden && !p->clamped && !c->assumed)
        return;
    text_printf(c->out, "<text x=\"%d\" y=\"%d\" fill=\"#444\">", LEFT, y);
    if (gaps) {
        put_duration(c->out, gaps);
        text_printf(
            c->out, " unexplained (%s%s). ", path_reason_name(p->gaps[0].reason), p->n_gaps > 1 ? " and others" : "");
    }
    if (c->assumed) {
        put_duration(c->out, c->assumed);
        text_puts(c->out, " assumed: threads that ran until a message came are taken to have waited for it. ");
    }
    if (c->hidden)
        text_printf(c->out, "%zu threads with less of the path are not drawn. ", c->hidden);
    if (p->clamped)
        text_puts(c->out, "A message seemed to arrive before it was sent, within the error of the clocks.");
    text_puts(c->out, "</text>\n");
}

void show_svg(const struct path *p, const struct path_source *source, struct text *t)
{
    struct canvas c = {.out = t, .assumed = show_assumed(p)};
    show_rows_init(&c.show, p, source);
    layout_tracks(&c);
    for (size_t i = 0; i < p->n_segments; i++)
        c.used[p->segments[i].state] = true;
    for (size_t i = 0; i < p->n_links; i++)
        c.link_used[p->links[i].kind] = true;
    size_t rows = p->n_totals < MAX_TABLE ? p->n_totals : MAX_TABLE;
    int table_y = c.bottom + 14 + write_legend(&c, 0, NULL) + 24, height = table_y + (int)rows * TABLE_ROW + 30;
    text_printf(t,
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" "
        "height=\"%d\" viewBox=\"0 0 %d %d\" role=\"img\">\n<title>Critical path of ",
        WIDTH, height, WIDTH, height);
    put_name(&c, p->start, p->end, p->end);
    text_puts(t, "</title>\n");
    write_definitions(&c);
    text_puts(t, "<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n");
    write_title(&c);
    write_axis(&c);
    write_track_names(&c);
    write_segments(&c);
    write_links(&c);
    write_legend(&c, c.bottom + 14, t);
    for (size_t i = 0; i < rows; i++)
        write_total(&c, &p->totals[i], table_y + (int)i * TABLE_ROW);
    write_notes(&c, table_y + (int)rows * TABLE_ROW + 6);
    text_puts(t, "</svg>\n");
    free(c.track_y);
    show_rows_fini(&c.show);
}
