/* SPDX-License-Identifier: MIT */
/* Terminal output: the summary, the picture, and optionally the list of segments. */
#include <string.h>

#include "base/text.h"
#include "base/time.h"
#include "graph/graph.h"
#include "show/terminal.h"
#include "show/words.h"

enum { MIN_WIDTH = 60 };

static void write_head(const struct show_rows *s, const struct show_style *style, struct text *t)
{
    const struct path *p = s->path;
    char name[160];
    struct text scratch = {.fd = -1}, head = {.fd = -1};
    show_terminal_style(style, t, "1");
    show_text(t, show_name(s->source, p->start, p->end, p->end, name, sizeof name), TERMINAL_MAX_NAME);
    show_terminal_style(style, t, "0");
    text_puts(&head, "  ");
    time_write_utc(&head, p->begin, false);
    text_printf(&head, "  →  +%s", show_terminal_duration(p->end - p->begin, &scratch));
    text_printf(&head, "   %zu machine%s, %zu segment%s", s->hosts, s->hosts == 1 ? "" : "s", p->n_segments,
        p->n_segments == 1 ? "" : "s");
    if (style->clock_error_ns >= 0 && s->hosts > 1)
        text_printf(&head, ", clock ±%s", show_terminal_duration(style->clock_error_ns, &scratch));
    size_t cells = text_cells(name, strlen(name));
    show_text(t, text_cstr(&head), (size_t)style->width - (cells < TERMINAL_MAX_NAME ? cells : TERMINAL_MAX_NAME));
    text_putc(t, '\n');
    text_fini(&head);
    text_fini(&scratch);
}

void show_terminal_words(const char *words, const struct show_style *style, struct text *t)
{
    size_t width = (size_t)style->width - TERMINAL_INDENT, used = 0;
    for (const char *word = words; *word;) {
        size_t n = strcspn(word, " "), cells = text_cells(word, n);
        if (used && used + 1 + cells > width) {
            text_putc(t, '\n');
            used = 0;
        }
        text_fill(t, ' ', used ? 1 : TERMINAL_INDENT);
        text_put(t, word, n); /* names are shorter than a line */
        used += cells + (used ? 1 : 0);
        word += n + (word[n] == ' ');
    }
    text_putc(t, '\n');
}

void show_terminal_sentence(
    const struct path *p, const struct path_source *source, const struct show_style *style, struct text *t)
{
    struct text all = {.fd = -1};
    show_sentence(p, source, &all);
    show_terminal_words(text_cstr(&all), style, t);
    text_fini(&all);
}

struct show_style show_terminal_style_of(const struct show_style *given)
{
    struct show_style style = *given;
    if (style.width < MIN_WIDTH)
        style.width = style.width <= 0 ? 100 : MIN_WIDTH;
    return style;
}

static void write_note(const char *note, const struct show_style *style, struct text *t)
{
    text_fill(t, ' ', TERMINAL_INDENT);
    show_text(t, note, (size_t)style->width - TERMINAL_INDENT);
    text_putc(t, '\n');
}

static void write_notes(const struct path *p, const struct show_style *style, struct text *t)
{
    int64_t by_reason[PATH_PENDING + 1] = {0};
    const char *peer[PATH_PENDING + 1] = {NULL};
    struct text scratch = {.fd = -1};
    for (size_t i = 0; i < p->n_gaps; i++) {
        by_reason[p->gaps[i].reason] += p->gaps[i].end - p->gaps[i].begin;
        if (p->gaps[i].peer)
            peer[p->gaps[i].reason] = p->gaps[i].peer;
    }
    static const char *const meaning[] = {
        [PATH_NO_WAKER] = "nobody was seen to end these waits",
        [PATH_UNTRACED_PEER] = "the message came from a machine without a trace",
        [PATH_OFFLINE_NODE] = "the node with the sender's trace did not answer",
        [PATH_LOST_EVENTS] = "events that would tell are missing",
        [PATH_NO_CLOCK] = "the clocks of sender and receiver could not be related",
        [PATH_PENDING] = "still being asked for",
    };
    struct text line = {.fd = -1};
    for (int r = 0; r <= PATH_PENDING; r++)
        if (by_reason[r]) {
            line.n = 0;
            text_printf(&line, "unexplained %s: %s", show_terminal_duration(by_reason[r], &scratch), meaning[r]);
            if (peer[r])
                text_printf(&line, " (%s)", peer[r]);
            write_note(text_cstr(&line), style, t);
        }
    if (show_assumed(p)) {
        line.n = 0;
        text_printf(&line, "assumed %s: threads that ran until a message came are taken to have waited for it",
            show_terminal_duration(show_assumed(p), &scratch));
        write_note(text_cstr(&line), style, t);
    }
    if (p->clamped)
        write_note("a message seems to arrive before it was sent, within the clocks' error", style, t);
    text_fini(&line);
    text_fini(&scratch);
}

/* Writes a line of its own below the segment's, if there is a call stack. */
static void write_segment_stack(const struct show_rows *s, size_t i, const struct show_style *style, struct text *t)
{
    enum { MOST_FRAMES = 8 };
    struct graph_stack stack;
    struct text words = {.fd = -1};
    if (!path_segment_stack(s->source, &s->path->segments[i], &stack))
        return;
    show_stack(&stack, MOST_FRAMES, &words);
    text_fill(t, ' ', TERMINAL_INDENT + 11 + 11 + 2);
    show_text(t, text_cstr(&words),
        style->width > TERMINAL_INDENT + 24 ? (size_t)style->width - TERMINAL_INDENT - 24 : SIZE_MAX);
    text_putc(t, '\n');
    text_fini(&words);
}

static void write_segments(const struct show_rows *s, const struct show_style *style, struct text *t)
{
    const struct path *p = s->path;
    struct text scratch = {.fd = -1};
    size_t names = 0;
    char name[160];
    for (size_t i = 0; i < p->n_segments; i++) {
        const struct path_segment *g = &p->segments[i];
        names = show_terminal_widest(names, show_name(s->source, g->row, g->begin, g->end, name, sizeof name));
    }
    size_t most = style->width > 0 && style->width - 40 < TERMINAL_MAX_NAME ? (size_t)style->width - 40
                                                                            : TERMINAL_MAX_NAME;
    names = names > most ? most : names;
    for (size_t i = 0; i < p->n_segments; i++) {
        const struct path_segment *g = &p->segments[i];
        scratch.n = 0;
        text_putc(&scratch, '+');
        text_duration(&scratch, g->begin - p->begin);
        show_terminal_right(t, text_cstr(&scratch), TERMINAL_INDENT + 11);
        show_terminal_right(t, show_terminal_duration(g->end - g->begin, &scratch), 11);
        text_fill(t, ' ', 2);
        show_terminal_left(t, show_name(s->source, g->row, g->begin, g->end, name, sizeof name), names);
        text_fill(t, ' ', 2);
        show_terminal_color(style, t, g->state);
        text_puts(t, graph_state_name(g->state));
        show_terminal_style(style, t, "0");
        size_t used = TERMINAL_INDENT + 11 + 11 + 2 + names + 2 + strlen(graph_state_name(g->state)),
               room = style->width > 0 ? (size_t)style->width : SIZE_MAX;
        scratch.n = 0;
        if (g->assumed)
            text_puts(&scratch, "  assumed");
        if (g->sender.host >= 0)
            text_printf(&scratch, "  from %s", show_name(s->source, g->sender, g->begin, g->begin, name, sizeof name));
        if (g->detail)
            text_printf(&scratch, "  %s", g->detail);
        show_text(t, text_cstr(&scratch), room > used ? room - used : 0);
        text_putc(t, '\n');
        write_segment_stack(s, i, style, t);
    }
    text_fini(&scratch);
}

void show_terminal(
    const struct path *p, const struct path_source *source, const struct show_style *given, struct text *t)
{
    struct show_rows s;
    struct show_style style = show_terminal_style_of(given);
    show_rows_init(&s, p, source);
    write_head(&s, &style, t);
    if (p->end > p->begin) {
        show_terminal_sentence(p, source, &style, t);
        text_putc(t, '\n');
        show_terminal_summary(p, source, &style, t);
        text_putc(t, '\n');
        show_terminal_picture(&s, &style, t);
        show_terminal_stacks(p, source, &style, t);
    }
    if (p->n_gaps || p->clamped || show_assumed(p)) {
        text_putc(t, '\n');
        write_notes(p, &style, t);
    }
    if (given->segments) {
        text_putc(t, '\n');
        style.width = given->width <= 0 ? 0 : style.width;
        write_segments(&s, &style, t);
    }
    show_rows_fini(&s);
}
