/* The answer for a terminal: the summary, the picture, on demand the list of segments. */
#include <stdio.h>

#include "base/time.h"
#include "graph/graph.h"
#include "show/rows.h"

enum { MAX_LINES = 16, MAX_LANES = 16, MIN_WIDTH = 60, MAX_NAME = 28, INDENT = 2 };

struct line {
    int64_t duration;
    char host[64], thread[64], detail[192];
    uint8_t state;
};
struct lines {
    struct line *v;
    size_t n, cap;
};

static void color(const struct show_style *style, struct text *t, int state)
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
    if (style->color)
        text_printf(t, "\033[38;5;%um", codes[state]);
}

static void style_on(const struct show_style *style, struct text *t, const char *code)
{
    if (style->color)
        text_printf(t, "\033[%sm", code);
}

/* ---- columns ---- */

static void spaces(struct text *t, size_t n)
{
    while (n--)
        text_putc(t, ' ');
}

static void left(struct text *t, const char *s, size_t width)
{
    size_t before = t->n;
    show_text(t, s, width);
    size_t used = text_cells(t->v + before, t->n - before);
    spaces(t, used < width ? width - used : 0);
}

static void right(struct text *t, const char *s, size_t width)
{
    size_t used = text_cells(s, strlen(s));
    spaces(t, used < width ? width - used : 0);
    show_text(t, s, width);
}

static const char *duration(int64_t ns, struct text *scratch)
{
    scratch->n = 0;
    text_duration(scratch, ns);
    return text_cstr(scratch);
}

static size_t widest(size_t a, const char *s)
{
    size_t n = text_cells(s, strlen(s));
    return n > a ? n : a;
}

/* ---- summary ---- */

static int by_duration(const void *pa, const void *pb)
{
    const struct line *a = pa, *b = pb;
    if (a->duration != b->duration)
        return a->duration < b->duration ? 1 : -1;
    int c = strcmp(a->host, b->host);
    c = c ? c : strcmp(a->thread, b->thread);
    return c ? c : strcmp(a->detail, b->detail);
}

/* Lines of one machine, name, state and detail become one: a path through thousands of threads is told by what they
 * are. */
static void merge_lines(struct lines *lines)
{
    struct map index = {0};
    size_t n = 0, *threads = mem_zalloc(lines->n * sizeof *threads + 1);
    for (size_t i = 0; i < lines->n; i++) {
        struct line l = lines->v[i];
        const char *comm = strchr(l.thread, ' ') ? strchr(l.thread, ' ') + 1 : l.thread;
        uint64_t key = map_hash(l.host, strlen(l.host)) ^ map_mix(map_hash(comm, strlen(comm)) + l.state);
        bool fresh;
        uint64_t *at = map_put(&index, key, &fresh);
        if (fresh) {
            *at = n;
            lines->v[n++] = l;
        } else {
            lines->v[*at].duration += l.duration;
            if (strcmp(lines->v[*at].detail, l.detail) != 0)
                lines->v[*at].detail[0] = 0;
        }
        threads[*at]++;
    }
    for (size_t i = 0; i < n; i++) {
        char *thread = lines->v[i].thread, name[sizeof lines->v[i].thread];
        if (threads[i] < 2)
            continue;
        snprintf(name, sizeof name, "%s", strchr(thread, ' ') ? strchr(thread, ' ') + 1 : "interrupt");
        snprintf(thread, sizeof lines->v[i].thread, "%zu × %.40s", threads[i], name);
    }
    lines->n = n;
    free(threads);
    map_fini(&index);
}

static void thread_lines(const struct path *p, const struct path_source *source, struct lines *lines)
{
    for (size_t i = 0; i < p->n_totals; i++) {
        const struct path_total *total = &p->totals[i];
        if (total->state == GRAPH_NETWORK)
            continue;
        struct line l = {.duration = total->duration, .state = total->state};
        int32_t tid;
        const char *comm;
        source->row_name(source->arg, total->row, &tid, &comm);
        snprintf(l.host, sizeof l.host, "%s", source->host_name(source->arg, total->row.host));
        if (tid >= 0)
            snprintf(l.thread, sizeof l.thread, "%d %s", tid, comm);
        snprintf(l.detail, sizeof l.detail, "%s", total->detail ? total->detail : "");
        vec_push(lines, l);
    }
    if (lines->n > 4 * MAX_LINES)
        merge_lines(lines);
}

/* The time on the way is told per pair of machines, not per thread that waited for it. */
struct route {
    int32_t from, to;
    int64_t duration;
    size_t messages;
    const char *label;
    bool several;
};

static void network_lines(const struct path *p, const struct path_source *source, struct lines *lines)
{
    VEC(struct route) routes = {0};
    struct map index = {0};
    for (size_t i = 0; i < p->n_segments; i++) {
        const struct path_segment *s = &p->segments[i];
        if (s->state != GRAPH_NETWORK)
            continue;
        bool fresh;
        uint64_t *at = map_put(&index, (uint64_t)(uint32_t)s->sender.host << 32 | (uint32_t)s->row.host, &fresh);
        if (fresh) {
            *at = routes.n;
            vec_push(&routes, ((struct route){.from = s->sender.host, .to = s->row.host, .label = s->detail}));
        }
        struct route *r = &routes.v[*at];
        r->duration += s->end - s->begin;
        r->messages++;
        r->several |= r->label != s->detail;
    }
    for (size_t i = 0; i < routes.n; i++) {
        const struct route *r = &routes.v[i];
        struct line l = {.duration = r->duration, .state = GRAPH_NETWORK};
        const char *to = source->host_name(source->arg, r->to);
        if (r->from < 0) {
            snprintf(l.host, sizeof l.host, "? → %s", to);
            snprintf(l.detail, sizeof l.detail, "sender not known");
        } else {
            snprintf(l.host, sizeof l.host, "%s → %s", source->host_name(source->arg, r->from), to);
            snprintf(l.detail, sizeof l.detail, "%s%s%zu message%s", r->several || !r->label ? "" : r->label,
                r->several || !r->label ? "" : ", ", r->messages, r->messages == 1 ? "" : "s");
        }
        vec_push(lines, l);
    }
    vec_free(&routes);
    map_fini(&index);
}

static void write_line(
    const struct line *l, int64_t span, const size_t columns[3], const struct show_style *style, struct text *t)
{
    struct text scratch = {.fd = -1};
    size_t used = INDENT + 7 + 11 + 2 + columns[0] + 1 + columns[1] + 1 + columns[2] + 2;
    size_t room = style->width > (int)used + 4 ? (size_t)style->width - used : 0;
    style_on(style, t, "1");
    text_printf(t, "%*s%5.1f %%", INDENT, "", span ? 100.0 * (double)l->duration / (double)span : 0.0);
    style_on(style, t, "0");
    right(t, duration(l->duration, &scratch), 11);
    spaces(t, 2);
    left(t, l->host, columns[0]);
    spaces(t, 1);
    left(t, l->thread, columns[1]);
    spaces(t, 1);
    color(style, t, l->state);
    show_text(t, graph_state_name(l->state), columns[2]);
    style_on(style, t, "0");
    if (l->detail[0] && room) {
        spaces(t, columns[2] - strlen(graph_state_name(l->state)) + 2);
        show_text(t, l->detail, room);
    }
    text_putc(t, '\n');
    text_fini(&scratch);
}

static void write_summary(
    const struct path *p, const struct path_source *source, const struct show_style *style, struct text *t)
{
    struct lines lines = {0};
    size_t columns[3] = {0, 0, 0};
    thread_lines(p, source, &lines);
    network_lines(p, source, &lines);
    if (lines.n)
        qsort(lines.v, lines.n, sizeof *lines.v, by_duration);
    size_t shown = lines.n > MAX_LINES + 1 ? MAX_LINES : lines.n;
    for (size_t i = 0; i < shown; i++) {
        columns[0] = widest(columns[0], lines.v[i].host);
        columns[1] = widest(columns[1], lines.v[i].thread);
        columns[2] = widest(columns[2], graph_state_name(lines.v[i].state));
    }
    size_t names = (size_t)style->width - 38; /* what percentage, duration and the longest state leave */
    columns[0] = columns[0] > names * 2 / 5 ? names * 2 / 5 : columns[0];
    columns[1] = columns[1] > names - columns[0] ? names - columns[0] : columns[1];
    for (size_t i = 0; i < shown; i++)
        write_line(&lines.v[i], p->end - p->begin, columns, style, t);
    int64_t rest = 0;
    for (size_t i = shown; i < lines.n; i++)
        rest += lines.v[i].duration;
    if (shown < lines.n) {
        struct text scratch = {.fd = -1};
        text_printf(t, "%*s%5.1f %%", INDENT, "", 100.0 * (double)rest / (double)(p->end - p->begin));
        right(t, duration(rest, &scratch), 11);
        text_printf(t, "  … %zu more\n", lines.n - shown);
        text_fini(&scratch);
    }
    vec_free(&lines);
}

/* ---- picture ---- */

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

struct lanes {
    size_t n, columns, of[MAX_LANES];
    int64_t *sums;
};

static int64_t *cell_of(const struct lanes *l, size_t lane, size_t column)
{
    return &l->sums[(lane * l->columns + column) * GRAPH_STATE_COUNT];
}

/* The rows with most of the path, in their order. */
static void choose_lanes(const struct show *s, struct lanes *l)
{
    l->n = 0;
    for (size_t i = 0; i < s->rows.n; i++) {
        size_t longer = 0;
        for (size_t k = 0; s->rows.n > MAX_LANES && k < s->rows.n && longer < MAX_LANES; k++)
            longer += s->rows.v[k].total > s->rows.v[i].total || (s->rows.v[k].total == s->rows.v[i].total && k < i);
        if (longer < MAX_LANES)
            l->of[l->n++] = i;
    }
}

static int64_t column_at(const struct path *p, size_t columns, size_t i)
{
    return p->begin + (int64_t)((__int128)(p->end - p->begin) * (int64_t)i / (int64_t)columns);
}

static void fill_lanes(const struct show *s, struct lanes *l)
{
    const struct path *p = s->path;
    size_t column = 0;
    l->sums = mem_zalloc(l->n * l->columns * GRAPH_STATE_COUNT * sizeof *l->sums + 1);
    size_t *lane_of = mem_alloc(s->rows.n * sizeof *lane_of + 1);
    for (size_t i = 0; i < s->rows.n; i++)
        lane_of[i] = SIZE_MAX;
    for (size_t i = 0; i < l->n; i++)
        lane_of[l->of[i]] = i;
    for (size_t i = 0; i < p->n_segments; i++) {
        const struct path_segment *g = &p->segments[i];
        size_t lane = lane_of[show_find(s, g->row)];
        while (column + 1 < l->columns && column_at(p, l->columns, column + 1) <= g->begin)
            column++;
        for (size_t c = column; lane != SIZE_MAX && c < l->columns && column_at(p, l->columns, c) < g->end; c++) {
            int64_t from = column_at(p, l->columns, c), to = column_at(p, l->columns, c + 1);
            cell_of(l, lane, c)[g->state] += (g->end < to ? g->end : to) - (g->begin > from ? g->begin : from);
        }
    }
    free(lane_of);
}

static void write_lane(const struct lanes *l, size_t lane, int64_t span, const struct show_style *style,
    bool used[GRAPH_STATE_COUNT], struct text *t)
{
    int last = -1;
    for (size_t c = 0; c < l->columns; c++) {
        const int64_t *sums = cell_of(l, lane, c);
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
            color(style, t, most);
        last = most;
        used[most] = true;
        bool thin = sum * (int64_t)l->columns * 5 < span;
        text_puts(t, thin ? (style->ascii ? "'" : "▏") : glyph(most, style->ascii));
    }
    style_on(style, t, "0");
}

static void write_axis(size_t name, size_t columns, int64_t span, struct text *t)
{
    struct text scratch = {.fd = -1};
    size_t ticks = columns >= 60 ? 4 : 2, at = 0;
    spaces(t, INDENT + name + 2);
    for (size_t i = 0; i <= ticks; i++) {
        const char *label = i ? duration((int64_t)((__int128)span * (int64_t)i / (int64_t)ticks), &scratch) : "0";
        size_t cells = text_cells(label, strlen(label)), target = columns * i / ticks;
        size_t start = i == ticks ? target - (cells < target ? cells : target) : i ? target - cells / 2 : 0;
        if (start < at + (i > 0))
            continue;
        spaces(t, start - at);
        text_puts(t, label);
        at = start + cells;
    }
    text_putc(t, '\n');
    text_fini(&scratch);
}

static void write_legend(
    const bool used[GRAPH_STATE_COUNT], size_t name, const struct show_style *style, struct text *t)
{
    spaces(t, INDENT + name + 2);
    size_t at = INDENT + name + 2;
    for (int state = 0; state < GRAPH_STATE_COUNT; state++) {
        size_t cells = strlen(graph_state_name(state)) + 4;
        if (!used[state] || at + cells > (size_t)style->width)
            continue;
        color(style, t, state);
        text_puts(t, glyph(state, style->ascii));
        style_on(style, t, "0");
        text_printf(t, " %s  ", graph_state_name(state));
        at += cells;
    }
    while (t->n && t->v[t->n - 1] == ' ')
        t->n--;
    text_putc(t, '\n');
}

static void lane_name(const struct show_row *r, char *buf, size_t n)
{
    if (r->tid < 0)
        snprintf(buf, n, "%s irq", r->host);
    else
        snprintf(buf, n, "%s:%d", r->host, r->tid);
}

static void write_picture(const struct show *s, const struct show_style *style, struct text *t)
{
    struct lanes l;
    size_t name = 0;
    char buf[128];
    bool used[GRAPH_STATE_COUNT] = {false};
    int64_t span = s->path->end - s->path->begin;
    choose_lanes(s, &l);
    for (size_t i = 0; i < l.n; i++) {
        lane_name(&s->rows.v[l.of[i]], buf, sizeof buf);
        name = widest(name, buf);
    }
    name = name > MAX_NAME ? MAX_NAME : name;
    l.columns = (size_t)style->width - INDENT - name - 3;
    fill_lanes(s, &l);
    for (size_t i = 0; i < l.n; i++) {
        lane_name(&s->rows.v[l.of[i]], buf, sizeof buf);
        spaces(t, INDENT);
        left(t, buf, name);
        text_puts(t, style->ascii ? " |" : " ▏");
        write_lane(&l, i, span, style, used, t);
        text_puts(t, style->ascii ? "|\n" : "▏\n");
    }
    write_axis(name, l.columns, span, t);
    if (l.n < s->rows.n)
        text_printf(t, "%*s%zu more threads with less of the path are not drawn\n", INDENT, "", s->rows.n - l.n);
    write_legend(used, name, style, t);
    free(l.sums);
}

/* ---- the rest ---- */

static void write_head(const struct show *s, const struct show_style *style, struct text *t)
{
    const struct path *p = s->path;
    char name[160];
    struct text scratch = {.fd = -1}, head = {.fd = -1};
    style_on(style, t, "1");
    show_text(t, show_name(s->source, p->start, name, sizeof name), MAX_NAME);
    style_on(style, t, "0");
    text_puts(&head, "  ");
    time_write_utc(&head, p->begin, false);
    text_printf(&head, "  →  +%s", duration(p->end - p->begin, &scratch));
    text_printf(&head, "   %zu machine%s, %zu segment%s", s->hosts, s->hosts == 1 ? "" : "s", p->n_segments,
        p->n_segments == 1 ? "" : "s");
    if (style->clock_error_ns >= 0 && s->hosts > 1)
        text_printf(&head, ", clock ±%s", duration(style->clock_error_ns, &scratch));
    size_t cells = text_cells(name, strlen(name));
    show_text(t, text_cstr(&head), (size_t)style->width - (cells < MAX_NAME ? cells : MAX_NAME));
    text_puts(t, "\n\n");
    text_fini(&head);
    text_fini(&scratch);
}

static void write_note(const char *note, const struct show_style *style, struct text *t)
{
    spaces(t, INDENT);
    show_text(t, note, (size_t)style->width - INDENT);
    text_putc(t, '\n');
}

static void write_gaps(const struct path *p, const struct show_style *style, struct text *t)
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
        [PATH_LOST_EVENTS] = "the tracer lost the events that would tell",
        [PATH_NO_CLOCK] = "the clocks of sender and receiver could not be related",
        [PATH_PENDING] = "still being asked for",
    };
    struct text line = {.fd = -1};
    for (int r = 0; r <= PATH_PENDING; r++)
        if (by_reason[r]) {
            line.n = 0;
            text_printf(&line, "unexplained %s: %s", duration(by_reason[r], &scratch), meaning[r]);
            if (peer[r])
                text_printf(&line, " (%s)", peer[r]);
            write_note(text_cstr(&line), style, t);
        }
    if (p->clamped)
        write_note("a message seems to arrive before it was sent, within the clocks' error", style, t);
    text_fini(&line);
    text_fini(&scratch);
}

static void write_segments(const struct show *s, const struct show_style *style, struct text *t)
{
    const struct path *p = s->path;
    struct text scratch = {.fd = -1};
    size_t names = 0;
    char name[160];
    for (size_t i = 0; i < s->rows.n; i++)
        names = widest(names, show_name(s->source, s->rows.v[i].row, name, sizeof name));
    size_t most = style->width > 0 && style->width - 40 < MAX_NAME ? (size_t)style->width - 40 : MAX_NAME;
    names = names > most ? most : names;
    for (size_t i = 0; i < p->n_segments; i++) {
        const struct path_segment *g = &p->segments[i];
        scratch.n = 0;
        text_putc(&scratch, '+');
        text_duration(&scratch, g->begin - p->begin);
        right(t, text_cstr(&scratch), INDENT + 11);
        right(t, duration(g->end - g->begin, &scratch), 11);
        spaces(t, 2);
        left(t, show_name(s->source, g->row, name, sizeof name), names);
        spaces(t, 2);
        color(style, t, g->state);
        text_puts(t, graph_state_name(g->state));
        style_on(style, t, "0");
        size_t used = INDENT + 11 + 11 + 2 + names + 2 + strlen(graph_state_name(g->state)),
               room = style->width > 0 ? (size_t)style->width : SIZE_MAX;
        scratch.n = 0;
        if (g->sender.host >= 0)
            text_printf(&scratch, "  from %s", show_name(s->source, g->sender, name, sizeof name));
        if (g->detail)
            text_printf(&scratch, "  %s", g->detail);
        show_text(t, text_cstr(&scratch), room > used ? room - used : 0);
        text_putc(t, '\n');
    }
    text_fini(&scratch);
}

void show_terminal(
    const struct path *p, const struct path_source *source, const struct show_style *given, struct text *t)
{
    struct show s;
    struct show_style style = *given;
    if (style.width < MIN_WIDTH)
        style.width = style.width <= 0 ? 100 : MIN_WIDTH;
    show_init(&s, p, source);
    write_head(&s, &style, t);
    if (p->end > p->begin) {
        write_summary(p, source, &style, t);
        text_putc(t, '\n');
        write_picture(&s, &style, t);
    }
    if (p->n_gaps || p->clamped) {
        text_putc(t, '\n');
        write_gaps(p, &style, t);
    }
    if (given->segments) {
        text_putc(t, '\n');
        style.width = given->width <= 0 ? 0 : style.width;
        write_segments(&s, &style, t);
    }
    show_fini(&s);
}
