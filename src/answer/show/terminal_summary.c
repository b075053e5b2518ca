/* SPDX-License-Identifier: MIT */
/* Summary for a terminal: the largest parts of the path, a line each. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/order.h"
#include "base/text.h"
#include "graph/graph.h"
#include "show/parts.h"
#include "show/terminal.h"
#include "show/words.h"

enum { MAX_LINES = 16 };

struct summary_line {
    int64_t duration;
    char host[64], thread[64], detail[192];
    uint8_t state;
};
struct summary {
    struct summary_line *v;
    size_t n, cap;
};

static int by_duration(const void *pa, const void *pb)
{
    const struct summary_line *a = pa, *b = pb;
    return order_of(b->duration, a->duration) ?: strcmp(a->host, b->host) ?: strcmp(a->thread, b->thread)
        ?: strcmp(a->detail, b->detail);
}

/* Merges threads' lines of one machine, name and state: in a path through thousands of threads only kinds matter. */
static void merge_lines(struct summary *all)
{
    struct map index = {0};
    size_t n = 0, *threads = mem_zalloc(all->n * sizeof *threads + 1);
    for (size_t i = 0; i < all->n; i++) {
        struct summary_line l = all->v[i];
        const char *comm = strchr(l.thread, ' ') ? strchr(l.thread, ' ') + 1 : l.thread;
        uint64_t key = map_hash(l.host, strlen(l.host)) ^ map_mix(map_hash(comm, strlen(comm)) + l.state);
        bool fresh;
        uint64_t *at = map_put(&index, l.state == GRAPH_NETWORK ? map_mix(key + i) : key, &fresh);
        if (fresh) {
            *at = n;
            all->v[n++] = l;
        } else {
            all->v[*at].duration += l.duration;
            if (strcmp(all->v[*at].detail, l.detail) != 0)
                all->v[*at].detail[0] = 0;
        }
        threads[*at]++;
    }
    for (size_t i = 0; i < n; i++) {
        char *thread = all->v[i].thread, name[sizeof all->v[i].thread];
        if (threads[i] < 2)
            continue;
        snprintf(name, sizeof name, "%s", strchr(thread, ' ') ? strchr(thread, ' ') + 1 : "interrupt");
        snprintf(thread, sizeof all->v[i].thread, "%zu × %.40s", threads[i], name);
    }
    all->n = n;
    free(threads);
    map_fini(&index);
}

static struct summary_line line_of(const struct show_part *p)
{
    struct summary_line l = {.duration = p->duration, .state = p->state};
    const char *assumed = p->assumed ? "assumed, " : "";
    if (p->tid >= 0)
        snprintf(l.thread, sizeof l.thread, "%d %s", p->tid, p->comm);
    if (p->state != GRAPH_NETWORK) {
        snprintf(l.host, sizeof l.host, "%s", p->host);
        if (p->reason >= 0)
            snprintf(l.detail, sizeof l.detail, "%s%s%s", path_reason_name(p->reason), p->peer ? " " : "",
                p->peer ? p->peer : "");
        else
            snprintf(l.detail, sizeof l.detail, "%s", p->detail ? p->detail : "");
    } else if (!p->from) {
        snprintf(l.host, sizeof l.host, "? → %s", p->host);
        snprintf(
            l.detail, sizeof l.detail, "%ssender not known%s%s", assumed, p->peer ? ": " : "", p->peer ? p->peer : "");
    } else {
        snprintf(l.host, sizeof l.host, "%s → %s", p->from, p->host);
        snprintf(l.detail, sizeof l.detail, "%s%s%s%zu message%s", assumed, p->detail ? p->detail : "",
            p->detail ? ", " : "", p->messages, p->messages == 1 ? "" : "s");
    }
    return l;
}

static void find_lines(const struct path *p, const struct path_source *source, struct summary *all)
{
    struct arena arena = {0};
    struct show_parts parts = show_parts(p, source, &arena);
    for (size_t i = 0; i < parts.n; i++)
        vec_push(all, line_of(&parts.v[i]));
    if (all->n > 4 * MAX_LINES)
        merge_lines(all);
    arena_fini(&arena);
}

static void write_line(
    const struct summary_line *l, int64_t span, const size_t columns[3], const struct show_style *style, struct text *t)
{
    struct text scratch = {.fd = -1};
    size_t used = TERMINAL_INDENT + 7 + 11 + 2 + columns[0] + 1 + columns[1] + 1 + columns[2] + 2;
    size_t room = style->width > (int)used + 4 ? (size_t)style->width - used : 0;
    show_terminal_style(style, t, "1");
    text_printf(t, "%*s%5.1f %%", TERMINAL_INDENT, "", span ? 100.0 * (double)l->duration / (double)span : 0.0);
    show_terminal_style(style, t, "0");
    show_terminal_right(t, show_terminal_duration(l->duration, &scratch), 11);
    text_fill(t, ' ', 2);
    show_terminal_left(t, l->host, columns[0]);
    text_fill(t, ' ', 1);
    show_terminal_left(t, l->thread, columns[1]);
    text_fill(t, ' ', 1);
    show_terminal_color(style, t, l->state);
    show_text(t, graph_state_name(l->state), columns[2]);
    show_terminal_style(style, t, "0");
    if (l->detail[0] && room) {
        text_fill(t, ' ', columns[2] - strlen(graph_state_name(l->state)) + 2);
        show_text(t, l->detail, room);
    }
    text_putc(t, '\n');
    text_fini(&scratch);
}

void show_terminal_summary(
    const struct path *p, const struct path_source *source, const struct show_style *style, struct text *t)
{
    struct summary all = {0};
    size_t columns[3] = {0, 0, 0};
    find_lines(p, source, &all);
    if (all.n)
        qsort(all.v, all.n, sizeof *all.v, by_duration);
    size_t shown = all.n > MAX_LINES + 1 ? MAX_LINES : all.n;
    for (size_t i = 0; i < shown; i++) {
        columns[0] = show_terminal_widest(columns[0], all.v[i].host);
        columns[1] = show_terminal_widest(columns[1], all.v[i].thread);
        columns[2] = show_terminal_widest(columns[2], graph_state_name(all.v[i].state));
    }
    size_t names = (size_t)style->width - 38; /* width left by percentage, duration and the longest state */
    columns[0] = columns[0] > names * 2 / 5 ? names * 2 / 5 : columns[0];
    columns[1] = columns[1] > names - columns[0] ? names - columns[0] : columns[1];
    for (size_t i = 0; i < shown; i++)
        write_line(&all.v[i], p->end - p->begin, columns, style, t);
    int64_t rest = 0;
    for (size_t i = shown; i < all.n; i++)
        rest += all.v[i].duration;
    if (shown < all.n) {
        struct text scratch = {.fd = -1};
        text_printf(t, "%*s%5.1f %%", TERMINAL_INDENT, "", 100.0 * (double)rest / (double)(p->end - p->begin));
        show_terminal_right(t, show_terminal_duration(rest, &scratch), 11);
        text_printf(t, "  … %zu more\n", all.n - shown);
        text_fini(&scratch);
    }
    vec_free(&all);
}
