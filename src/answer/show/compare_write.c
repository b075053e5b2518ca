/* SPDX-License-Identifier: MIT */
/* Comparison of two paths, as JSON, as CSV, on a terminal. */
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/shown.h"
#include "base/text.h"
#include "graph/graph.h"
#include "show/compare.h"
#include "show/terminal.h"
#include "show/words.h"

static struct show_differences compare(const struct show_answer *a, const struct show_answer *b, struct arena *arena)
{
    struct show_side sides[] = {{.path = a->path, .source = a->source}, {.path = b->path, .source = b->source}};
    return show_compare(&sides[0], &sides[1], arena);
}

/* ---- JSON, CSV ---- */

static void write_difference(struct json *j, const struct show_difference *d)
{
    json_object(j);
    show_json_part(&d->kind.part, d->tid, j);
    json_kv_i64(j, "a", d->ns[0]);
    json_kv_i64(j, "b", d->ns[1]);
    json_end_object(j);
}

void show_compare_json(const struct show_answer *a, const struct show_answer *b, struct json *j)
{
    struct arena arena = {0};
    struct text sentence = {.fd = -1};
    struct show_differences all = compare(a, b, &arena);
    json_object(j);
    json_key(j, "a");
    show_json(a->path, a->source, a->method, j);
    json_key(j, "b");
    show_json(b->path, b->source, b->method, j);
    json_key(j, "parts");
    json_array(j);
    for (size_t i = 0; i < all.n; i++)
        write_difference(j, &all.v[i]);
    json_end_array(j);
    show_compare_sentence(&all, &sentence);
    json_kv_string(j, "sentence", text_cstr(&sentence));
    json_end_object(j);
    text_fini(&sentence);
    arena_fini(&arena);
}

void show_compare_csv(const struct show_answer *a, const struct show_answer *b, struct text *t)
{
    struct arena arena = {0};
    struct show_differences all = compare(a, b, &arena);
    text_puts(t, "host,tid,comm,state,detail,from,a,b\n");
    for (size_t i = 0; i < all.n; i++) {
        const struct show_difference *d = &all.v[i];
        const struct show_part *p = &d->kind.part;
        const char *detail = show_part_detail(p);
        shown_cell(t, p->host);
        text_printf(t, ",%d,", d->tid);
        shown_cell(t, p->comm ? p->comm : "");
        text_printf(t, ",%s,", graph_state_name(p->state));
        shown_cell(t, detail ? detail : "");
        text_putc(t, ',');
        shown_cell(t, p->from ? p->from : "");
        text_putc(t, ',');
        text_i64(t, d->ns[0]);
        text_putc(t, ',');
        text_i64(t, d->ns[1]);
        text_putc(t, '\n');
    }
    arena_fini(&arena);
}

/* ---- a terminal ---- */

enum { MOST_LINES = 16, TIME_CELLS = 10, BAR_CELLS = 24, LEAST_BAR = 8 };

static void write_answer(char name, const struct show_answer *a, const struct show_style *style, struct text *t)
{
    char who[160];
    text_printf(t, "%c  ", name);
    show_terminal_style(style, t, "1");
    show_text(t, show_name(a->source, a->path->start, a->path->end, a->path->end, who, sizeof who), TERMINAL_MAX_NAME);
    show_terminal_style(style, t, "0");
    text_putc(t, '\n');
    show_terminal_sentence(a->path, a->source, style, t);
    text_putc(t, '\n');
}

static void what_of(const struct show_difference *d, struct text *t)
{
    const struct show_part *p = &d->kind.part;
    t->n = 0;
    if (p->from && strcmp(p->from, p->host) != 0)
        text_printf(t, "%.24s → ", p->from);
    text_printf(t, "%.24s", p->host);
    if (d->tid >= 0)
        text_printf(t, " %d", d->tid);
    if (p->comm && p->tid >= 0)
        text_printf(t, " %.16s", p->comm);
    text_printf(t, " %s", graph_state_name(p->state));
    const char *detail = show_part_detail(p);
    if (detail)
        text_printf(t, " %.40s", detail);
}

static void write_signed(struct text *t, int64_t ns, struct text *scratch)
{
    scratch->n = 0;
    text_puts(scratch, ns < 0 ? "−" : ns > 0 ? "+" : "");
    text_duration(scratch, ns < 0 ? -ns : ns);
    show_terminal_right(t, text_cstr(scratch), TIME_CELLS + 1);
}

/* Writes a bar: time in both is full; additional time is light (only a) or dense (only b). */
static void write_bar(const struct show_difference *d, int64_t longest, size_t cells, bool ascii, struct text *t)
{
    static const char *const blocks[] = {"█", "░", "▓"}, *const letters[] = {"#", "-", "+"};
    const char *const *glyphs = ascii ? letters : blocks;
    int64_t both = d->ns[0] < d->ns[1] ? d->ns[0] : d->ns[1], most = d->ns[0] + d->ns[1] - both;
    size_t full = longest ? (size_t)((double)both * (double)cells / (double)longest + 0.5) : 0,
           all = longest ? (size_t)((double)most * (double)cells / (double)longest + 0.5) : 0;
    for (size_t i = 0; i < all; i++)
        text_puts(t, glyphs[i < full ? 0 : d->ns[0] > d->ns[1] ? 1 : 2]);
}

static void write_lines(const struct show_differences *all, const struct show_style *style, struct text *t)
{
    size_t shown = all->n < MOST_LINES ? all->n : MOST_LINES, widest = 0, width = (size_t)style->width;
    struct text scratch = {.fd = -1};
    int64_t longest = 0;
    for (size_t i = 0; i < shown; i++) {
        what_of(&all->v[i], &scratch);
        widest = show_terminal_widest(widest, text_cstr(&scratch));
        for (int k = 0; k < 2; k++)
            longest = all->v[i].ns[k] > longest ? all->v[i].ns[k] : longest;
    }
    size_t times = TERMINAL_INDENT + 3 * TIME_CELLS + 3 + 2, room = width > times ? width - times : LEAST_BAR;
    widest = widest > room * 2 / 3 ? room * 2 / 3 : widest;
    size_t bar = room > widest + 2 ? room - widest - 2 : 0;
    text_fill(t, ' ', TERMINAL_INDENT);
    show_terminal_right(t, "a", TIME_CELLS);
    show_terminal_right(t, "b", TIME_CELLS + 1);
    show_terminal_right(t, "b − a", TIME_CELLS + 2);
    text_putc(t, '\n');
    for (size_t i = 0; i < shown; i++) {
        const struct show_difference *d = &all->v[i];
        text_fill(t, ' ', TERMINAL_INDENT);
        show_terminal_right(t, d->ns[0] ? show_terminal_duration(d->ns[0], &scratch) : "–", TIME_CELLS);
        text_putc(t, ' ');
        show_terminal_right(t, d->ns[1] ? show_terminal_duration(d->ns[1], &scratch) : "–", TIME_CELLS);
        text_putc(t, ' ');
        write_signed(t, d->ns[1] - d->ns[0], &scratch);
        text_fill(t, ' ', 2);
        what_of(d, &scratch);
        show_terminal_left(t, text_cstr(&scratch), widest);
        text_fill(t, ' ', 2);
        show_terminal_color(style, t, d->kind.part.state);
        write_bar(d, longest, bar < BAR_CELLS ? bar : BAR_CELLS, style->ascii, t);
        show_terminal_style(style, t, "0");
        text_putc(t, '\n');
    }
    if (shown < all->n)
        text_printf(t, "%*s… %zu more\n", TERMINAL_INDENT, "", all->n - shown);
    text_printf(t, "%*s%s\n", TERMINAL_INDENT, "",
        style->ascii ? "# in both  - only in a  + only in b" : "█ in both  ░ only in a  ▓ only in b");
    text_fini(&scratch);
}

void show_compare_terminal(
    const struct show_answer *a, const struct show_answer *b, const struct show_style *given, struct text *t)
{
    struct arena arena = {0};
    struct text sentence = {.fd = -1};
    struct show_style style = show_terminal_style_of(given);
    struct show_differences all = compare(a, b, &arena);
    write_answer('a', a, &style, t);
    write_answer('b', b, &style, t);
    show_compare_sentence(&all, &sentence);
    show_terminal_words(text_cstr(&sentence), &style, t);
    text_putc(t, '\n');
    write_lines(&all, &style, t);
    text_fini(&sentence);
    arena_fini(&arena);
}
