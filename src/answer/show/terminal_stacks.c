/* SPDX-License-Identifier: MIT */
/* Call stacks of waits for a terminal: of those that the path followed to their end, and of those on the path. Waits of
 * one thread's name with the same stack are a line. */
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/mem.h"
#include "base/order.h"
#include "base/text.h"
#include "graph/graph.h"
#include "show/terminal.h"
#include "show/words.h"

enum { MOST_LINES = 5, MOST_FRAMES = 6 };

struct place {
    struct path_row row;
    struct graph_stack stack;
    int64_t waited; /* ns within the path's time */
    size_t n, met;  /* number of waits; order of the first one */
};
struct places {
    struct place *v;
    size_t n, cap;
    struct map by_content;
    const struct path *path;
    const struct path_source *source;
};

static uint64_t content_of(const struct places *all, struct path_row row, int64_t ts, const struct graph_stack *s)
{
    int32_t tid;
    const char *comm, *host = all->source->host_name(all->source->arg, row.host);
    uint64_t hash[2];
    all->source->row_name(all->source->arg, row, ts, ts, &tid, &comm);
    map_hash_pieces((struct map_piece[]){{host, strlen(host)}, {comm, strlen(comm)},
                        {s->user, s->n_user * sizeof *s->user}, {s->kernel, s->n_kernel * sizeof *s->kernel}},
        4, hash);
    return hash[0];
}

static void add(struct places *all, struct path_row row, int64_t begin, int64_t end, const struct graph_stack *s)
{
    bool fresh;
    uint64_t *at = map_put(&all->by_content, content_of(all, row, end, s), &fresh);
    if (fresh) {
        *at = all->n;
        vec_push(all, ((struct place){.row = row, .stack = *s, .met = all->n}));
    }
    begin = begin > all->path->begin ? begin : all->path->begin;
    end = end < all->path->end ? end : all->path->end;
    all->v[*at].waited += end > begin ? end - begin : 0;
    all->v[*at].n++;
}

static void find(struct places *all)
{
    const struct path *p = all->path;
    const struct path_source *s = all->source;
    struct graph_stack stack;
    struct path_interval iv;
    for (size_t i = 0; i < p->n_links; i++) {
        const struct path_link *l = &p->links[i];
        if (path_sleeper_stack(s, l, &stack) &&
            s->interval(s->arg, l->to, l->to_ts, l->from_ts, &iv) == PATH_REPLY_FOUND)
            add(all, l->to, iv.begin, iv.end, &stack);
    }
    for (size_t i = 0; i < p->n_segments; i++) {
        const struct path_segment *g = &p->segments[i];
        if (g->sender.host < 0 && !graph_is_awake(g->state) && path_segment_stack(s, g, &stack)) /* no link */
            add(all, g->row, g->begin, g->end, &stack);
    }
}

static int by_time(const void *pa, const void *pb)
{
    const struct place *a = pa, *b = pb;
    return order_of(b->waited, a->waited) ?: order_of(a->met, b->met);
}

static void write_place(const struct places *all, const struct place *k, const struct show_style *style, struct text *t)
{
    char name[160];
    struct text words = {.fd = -1}, scratch = {.fd = -1};
    text_fill(t, ' ', TERMINAL_INDENT);
    show_terminal_right(t, show_terminal_duration(k->waited, &scratch), 11);
    text_printf(&words, "  %zu ×  %s  ", k->n,
        show_name(all->source, k->row, all->path->begin, all->path->end, name, sizeof name));
    struct graph_stack shown = k->stack;
    shown.n_kernel = shown.n_user ? 0 : shown.n_kernel; /* the innermost ones are the tracer's own */
    show_stack(&shown, MOST_FRAMES, &words);
    show_text(t, text_cstr(&words), style->width > 13 ? (size_t)style->width - 13 : 0);
    text_putc(t, '\n');
    text_fini(&words);
    text_fini(&scratch);
}

void show_terminal_stacks(
    const struct path *p, const struct path_source *source, const struct show_style *style, struct text *t)
{
    struct places all = {.path = p, .source = source};
    if (source->stack)
        find(&all);
    if (all.n) {
        qsort(all.v, all.n, sizeof *all.v, by_time);
        text_puts(t, "\n  Waits by call stack, the innermost address first:\n");
    }
    for (size_t i = 0; i < all.n && i < MOST_LINES; i++)
        write_place(&all, &all.v[i], style, t);
    if (all.n > MOST_LINES)
        text_printf(t, "               … %zu more: --segments, --format json\n", all.n - MOST_LINES);
    vec_free(&all);
    map_fini(&all.by_content);
}
